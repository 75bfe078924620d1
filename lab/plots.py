"""Figures as HTML and SVG fragments: bars of averages with their p90, and lines over time.

They need the page's style sheet and nothing else. Every text is HTML, beside the drawing and not
inside it, so that a drawing may be stretched to any width and its words stay readable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from lab.units import ms

COLOURS = 7
BAD = 7  # the colour of failures, and of nothing else


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: the average, extended to the p90, in ms. colour counts from 0; note stands after."""

    name: str
    avg: float
    p90: float
    colour: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """One line: a value for each bucket, None where there is none. colour counts from 0."""

    name: str
    values: Sequence[float | None]
    colour: int


def bars(rows: Sequence[Bar], longest: float | None = None) -> str:
    """Return one bar a row on a common scale from 0 to the longest p90 (or average)."""
    scale = longest or max((max(row.avg, row.p90) for row in rows), default=0.0) or 1.0
    lines = []
    for row in rows:
        average, extension = 100 * row.avg / scale, 100 * max(0.0, row.p90 - row.avg) / scale
        said = f"{escape(row.name)}: average {ms(row.avg)} ms, p90 {ms(row.p90)} ms"
        lines.append(
            f'<div class="bar c{row.colour}" title="{said}">'
            f'<span class="name">{escape(row.name)}</span>'
            f'<span class="track"><i class="avg" style="width:{average:.2f}%"></i>'
            f'<i class="ext" style="width:{extension:.2f}%"></i></span>'
            f'<span class="value"><b>{ms(row.avg)}</b><span class="p90"><span class="soft">p90'
            f'</span> {ms(row.p90)}</span><span class="note soft">{escape(row.note)}</span></span>'
            "</div>"
        )
    return f'<div class="bars">{"".join(lines)}</div>'


def lines(
    title: str,
    series: Sequence[Series],
    width: float,
    unit: str,
    *,
    columns: bool = False,
    least_top: float = 1.0,
) -> str:
    """Return a chart of values by bucket, each bucket so many seconds wide.

    columns draws the (single) series as columns from zero. The scale reaches least_top at least.
    """
    count = max((len(each.values) for each in series), default=0)
    top = nice_top(max([least_top, *(v for each in series for v in each.values if v is not None)]))
    drawn = "".join((_columns if columns else _line)(each, count, top) for each in series if count)
    hover = "".join(_hover(series, index, count, width, unit) for index in range(count))
    legend = "".join(
        f'<span class="key c{each.colour}">{escape(each.name)}</span>' for each in series
    )
    marks = "".join(f"<span>{_number(top * share)}</span>" for share in (1.0, 0.5, 0.0))
    seconds = count * width
    times = "".join(f"<span>{clock(seconds * share)}</span>" for share in (0, 0.25, 0.5, 0.75, 1))
    return (
        f'<figure class="chart"><figcaption><b>{escape(title)}</b> '
        f'<span class="soft">{escape(unit)}</span> {legend if len(series) > 1 else ""}'
        f'</figcaption><div class="plot"><div class="y">{marks}</div>'
        '<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(title)}, {escape(unit)}">'
        '<path class="grid" d="M0 0H1000M0 50H1000M0 100H1000"/>'
        f'{drawn}{hover}</svg></div><div class="x">{times}</div></figure>'
    )


def _line(each: Series, count: int, top: float) -> str:
    step = 1000.0 / count
    path, pen_down = [], False
    dots = []
    values = each.values
    for index, value in enumerate(values):
        if value is None:
            pen_down = False
            continue
        x, y = (index + 0.5) * step, 100.0 - 100.0 * value / top
        path.append(f"{'L' if pen_down else 'M'}{x:.1f} {y:.1f}")
        alone = not pen_down and (index + 1 == len(values) or values[index + 1] is None)
        if alone:  # a line needs two points
            dots.append(f"M{x - 2:.1f} {y:.1f}h4")
        pen_down = True
    return f'<path class="line c{each.colour}" d="{"".join(path + dots)}"/>'


def _columns(each: Series, count: int, top: float) -> str:
    step = 1000.0 / count
    path = "".join(
        f"M{index * step + step * 0.1:.1f} 100v{-100.0 * value / top:.1f}h{step * 0.8:.1f}V100z"
        for index, value in enumerate(each.values)
        if value
    )
    return f'<path class="fill c{each.colour}" d="{path}"/>'


def _hover(series: Sequence[Series], index: int, count: int, width: float, unit: str) -> str:
    step = 1000.0 / count
    said = [clock(index * width)]
    for each in series:
        value = each.values[index] if index < len(each.values) else None
        if value is not None:
            said.append(f"{each.name}: {_number(value)} {unit}")
    return (
        f'<rect class="hover" x="{index * step:.1f}" y="0" width="{step:.1f}" height="100">'
        f"<title>{escape(chr(10).join(said))}</title></rect>"
    )


def nice_top(value: float) -> float:
    """Return the least of 1, 2, 4, 5, 8 times a power of ten that is not below the value."""
    if value <= 0.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((m * power for m in (1.0, 2.0, 4.0, 5.0, 8.0) if m * power >= value), 10.0 * power)


def clock(seconds: float) -> str:
    """Return an offset from the run's begin as m:ss, or h:mm:ss."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    tail = f"{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
    return f"{hours}:{tail}" if hours else tail


def _number(value: float) -> str:
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
