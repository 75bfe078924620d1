"""The run as text: a table for a terminal, a table in Markdown, and what belongs under it."""

from __future__ import annotations

from collections.abc import Sequence

from lab.digest import Digest, Line
from lab.units import ms

HEADINGS = (
    *("label", "requests", "failed", "failed %", "avg", "p50", "p90", "p95", "p99", "max"),
    *("req/s", ""),
)


def cells(line: Line) -> tuple[str, ...]:
    """Return a line's cells in the order of HEADINGS; times in ms."""
    s = line.summary
    return (
        s.label,
        f"{s.count:,}",
        f"{s.failures:,}",
        f"{s.error_percent:.2f}",
        *(ms(value) for value in (s.avg, s.p50, s.p90, s.p95, s.p99, s.max)),
        f"{s.rate:.2f}" if s.rate < 100 else f"{s.rate:,.0f}",
        f"! {line.mark}" if line.mark else "",
    )


def text(digest: Digest) -> str:
    """Return the table for a terminal, the total under a rule."""
    rows = [cells(line) for line in digest.lines]
    total = cells(digest.total)
    widths = [max(len(row[i]) for row in [HEADINGS, total, *rows]) for i in range(len(HEADINGS))]

    def show(row: Sequence[str]) -> str:
        first, *middle, last = row
        numbers = [each.rjust(width) for each, width in zip(middle, widths[1:-1], strict=True)]
        return "  ".join([first.ljust(widths[0]), *numbers, last]).rstrip()

    rule = "-" * len(show([*("x" * width for width in widths[:-1]), ""]))
    return "\n".join([show(HEADINGS), rule, *map(show, rows), rule, show(total)])


def markdown(digest: Digest) -> str:
    """Return the same table in Markdown."""
    rows = [cells(line) for line in [*digest.lines, digest.total]]
    heads = [*HEADINGS[:-1], "mark"]
    return piped([heads, [":--", *["--:"] * (len(heads) - 2), ":--"], *rows])


def piped(lines: Sequence[Sequence[str]]) -> str:
    """Return rows of cells, heads and their rule first, as a table in Markdown."""
    return "\n".join("| " + " | ".join(_escaped(each) for each in line) + " |" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def beneath(digest: Digest) -> list[str]:
    """Return the lines that belong under a table: failures, counts, tokens, revisions."""
    lines = [
        f"failed: {each.label}: {each.kind}: {each.text} ({each.count} of {each.of})"
        for each in digest.failures[:10]
    ]
    if len(digest.failures) > 10:
        lines.append(f"failed: {len(digest.failures) - 10} more kinds, all in the report")
    lines += [
        f"counted, no sample: {label}: {what}: {count}"
        for (label, what), count in sorted(digest.run.tallies.items())
    ]
    lines += [
        f"for tokens, no sample: {step}"
        for step in digest.tokens
        if step.failed or step.what in ("token", "renewal")
    ]
    lines += [f"revisions: {era.server}: {said}" for era in digest.eras for said in era.said]
    if digest.load is not None:
        lines.append(f"this machine: {digest.load}")
    if digest.standins:
        lines.append(
            f"stand-ins on this machine, not the real servers: {', '.join(digest.standins)}"
        )
    return lines
