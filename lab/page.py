"""The report as one HTML file: no script, nothing from outside, light and dark, any width."""

from __future__ import annotations

import time
from html import escape
from pathlib import Path

from lab.annex import annex
from lab.digest import Digest
from lab.markup import grid, section
from lab.outcome import COULD_NOT_RUN, Outcome
from lab.plots import BAD, COLOURS, Bar, Series, bars, clock, lines
from lab.table import HEADINGS, cells
from lab.timeline import is_call, server_of
from lab.units import ms

_STYLE = Path(__file__).with_name("page.css")


def page(outcome: Outcome) -> str:
    """Return the whole page."""
    digest = outcome.digest
    title = f"{outcome.word}: {digest.run.name}"
    body = "".join(
        (
            _head(outcome),
            _waits(digest),
            _table(digest),
            _criteria(outcome),
            _failures(digest),
            _over_time(digest),
            annex(digest),
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_STYLE.read_text(encoding='utf-8')}</style>"
        f"</head><body><main>{body}</main></body></html>\n"
    )


def _head(outcome: Outcome) -> str:
    digest, facts = outcome.digest, outcome.digest.run.facts
    total = digest.total.summary
    users = max((point.users for point in digest.points), default=0)
    began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(digest.span.start))
    tiles = [
        ("requests", f"{total.count:,}"),
        ("failed", f"{total.failures:,}", f"{total.error_percent:.2f} %"),
        ("average", f"{ms(total.avg)} ms"),
        ("p50", f"{ms(total.p50)} ms"),
        ("p95", f"{ms(total.p95)} ms"),
        ("users", f"{users:,}"),
        ("rate", f"{total.rate:.2f}/s"),
        ("time", clock(digest.span.seconds)),
    ]
    shown = "".join(
        f"<div class=tile><span>{escape(name)}</span><b>{escape(value)}</b>"
        f"<span>{escape(''.join(more))}</span></div>"
        for name, value, *more in tiles
    )
    told = [
        *(f"Marked: {mark}." for mark in digest.marks),
        *(f"Note: {note}." for note in digest.notes),
    ]
    if digest.standins:
        told.insert(
            0,
            f"Stand-ins on the same machine answered as {', '.join(digest.standins)}, with"
            " made-up replies and latencies drawn from a published run: this shows the harness"
            " at work, and says nothing about the real servers.",
        )
    notices = "".join(f"<p class=notice>{escape(each)}</p>" for each in told)
    command = str(facts.get("command", ""))
    first = outcome.first_line if outcome.code == COULD_NOT_RUN else outcome.verdict.first_line
    first = first.removeprefix(f"{outcome.word}: ")
    return (
        f"<header><p class=kicker>{escape(str(facts.get('what', 'load test of MCP servers')))}"
        f" · {escape(digest.run.name)}</p>"
        f"<h1><span class='badge v{outcome.code}'>{escape(outcome.word)}</span></h1>"
        f"<p class=first>{escape(first)}</p>{notices}"
        f"<div class=tiles>{shown}</div><p class=soft>{escape(began)}"
        f"{f' · <code>{escape(command)}</code>' if command else ''}</p></header>"
    )


def _colours(digest: Digest) -> dict[str, int]:
    names = sorted({server_of(line.summary.label) for line in digest.lines})
    return {name: index % COLOURS for index, name in enumerate(names)}


def _waits(digest: Digest) -> str:
    colours = _colours(digest)
    if not digest.calls:
        return ""
    tools = [line.summary for line in digest.lines if is_call(line.summary.label)]
    longest = max(max(s.avg, s.p90) for s in [*tools, *digest.calls])
    servers = [
        Bar(s.label, s.avg, s.p90, colours[s.label], f"{s.count:,} calls") for s in digest.calls
    ]
    each = [
        Bar(
            s.label.replace(":tools/call:", " "),
            *(s.avg, s.p90, colours[server_of(s.label)]),
            f"{s.count:,} calls",
        )
        for s in tools
    ]
    return section(
        "What an agent waits for",
        "Tool calls only. The bar is the average, its pale extension reaches to the p90;"
        " milliseconds, one scale for both figures.",
        f"<h3>By server</h3>{bars(servers, longest)}<h3>By tool</h3>{bars(each, longest)}",
    )


def _table(digest: Digest) -> str:
    rows = [cells(line) for line in digest.lines]
    rows.append(cells(digest.total))
    heads = [*HEADINGS[:-1], "mark" if any(line.mark for line in digest.lines) else ""]
    return section(
        "All requests",
        "Response times in milliseconds, failed requests included, percentiles from raw samples;"
        " req/s over the whole run.",
        grid(heads, rows, total=True),
    )


def _criteria(outcome: Outcome) -> str:
    judged = outcome.verdict.judgements
    if not judged:
        return section("Criteria", "None were given, so nothing could fail this run.")
    failing_first = sorted(judged, key=lambda each: not each.fails)
    rows = [
        (("! " if j.fails else "") + j.outcome.value, j.criterion.subject, j.criterion.text, j.why)
        for j in failing_first
    ]
    lead = "A criterion that is true fails the run, as in Azure Load Testing."
    heads = ("outcome", "request", "fails if", "found")
    return section("Criteria", lead, grid(heads, rows, words=4))


def _failures(digest: Digest) -> str:
    if not digest.failures:
        return section("Failures", "None.")

    def offset(at: float) -> str:
        return clock(at - digest.span.start)

    rows = [
        (
            *(f.label, f.kind, f.text, f"{f.count:,}", f"{100 * f.count / f.of:.2f}"),
            *(offset(f.first), offset(f.last)),
        )
        for f in digest.failures
    ]
    heads = ("label", "kind", "text", "count", "% of label", "first", "last")
    return section("Failures", "By kind and text.", grid(heads, rows, words=3))


def _over_time(digest: Digest) -> str:
    points, width = digest.points, digest.bucket
    colours = _colours(digest)
    rates = [
        Series(name, [p.rates.get(name, 0.0) for p in points], colour)
        for name, colour in colours.items()
    ]
    charts = [
        lines("Requests by server", rates, width, "requests/s"),
        lines(
            "Response time",
            [Series("p50", [p.p50 for p in points], 0), Series("p95", [p.p95 for p in points], 1)],
            *(width, "ms"),
        ),
        lines("Users", [Series("users", [p.users for p in points], 2)], width, "users"),
        lines(
            "Failures",
            [Series("failed", [p.failures for p in points], BAD)],
            *(width, f"in each {width:g} s"),
            columns=True,
        ),
    ]
    if any(p.lag_ms is not None for p in points):
        lag = [Series("lag p99", [p.lag_ms for p in points], 4)]
        cpu = [Series("CPU", [p.cpu_percent for p in points], 5)]
        charts += [
            lines("This machine's own lag, the worst second", lag, width, "ms", least_top=5.0),
            lines("This process's CPU", cpu, width, "% of a core", least_top=100.0),
        ]
    lead = f"By the end of each request, in buckets of {width:g} s; point at one for its figures."
    if digest.load is not None:
        lead += f" This machine: {digest.load}."
    return section("Over time", lead, f"<div class=charts>{''.join(charts)}</div>")
