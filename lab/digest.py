"""What a run says: every figure of the report, computed once, from raw samples.

Renderings (table, page, JUnit, summary) read this and compute nothing themselves.

A label is marked where this machine, and not the server, may have made more than one in a hundred
of its latencies: they ended in a stretch of 5 s in which their process

* CPU: used over 85 % of a core all the time, or
* lag: was late by over 5 ms, and by over a tenth of the label's p50, at p99. The process keeps one
  figure a second, about the worst of 50 looks; the p99 of the stretch's 250 looks is the third
  worst, for which the median of the five figures stands.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from lab import floors, stats
from lab.eras import Era, eras
from lab.handshakes import Handshake, handshakes
from lab.results import Request
from lab.runs import Run
from lab.stats import Summary, Window
from lab.timeline import Point, bucket, is_call, points, server_of
from lab.tokens import Step, steps

HOT_PERCENT = 85.0
LATE_MS = 5.0
LATE_SHARE = 0.1
STRETCH = 5  # seconds
TOLERATED = 0.01  # of a label's requests

# Process -> (its seconds, the worst stretch of each).
_Loads = dict[int, tuple[list[float], list[tuple[float, float]]]]


@dataclass(frozen=True, slots=True)
class Line:
    """A label's line of the table.

    mark  why the figures may be this machine's own; "" where there is no reason
    """

    summary: Summary
    mark: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Failures of one kind and text in one label; first and last in epoch seconds."""

    label: str
    kind: str
    text: str
    count: int
    of: int
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class Load:
    """What the load cost this machine, over all processes' seconds: lag p99 in ms, CPU in percent.

    Of each the median second and the worst one.
    """

    lag_ms: tuple[float, float]
    cpu_percent: tuple[float, float]

    def __str__(self) -> str:
        lag, cpu = self.lag_ms, self.cpu_percent
        return (
            f"lag p99 {lag[0]:.1f} ms in the median second and {lag[1]:.1f} ms in the worst,"
            f" CPU {cpu[0]:.0f} % and {cpu[1]:.0f} % of a core"
        )


@dataclass(frozen=True, slots=True)
class Digest:
    """A whole run, ready to be shown. calls: the tools/call summaries of each server as one."""

    run: Run
    span: Window
    total: Line
    lines: tuple[Line, ...]
    calls: tuple[Summary, ...]
    failures: tuple[Failure, ...]
    handshakes: tuple[Handshake, ...]
    eras: tuple[Era, ...]
    tokens: tuple[Step, ...]
    bucket: float
    points: tuple[Point, ...]
    standins: tuple[str, ...]
    load: Load | None

    @property
    def notes(self) -> list[str]:
        """What the reader should know: of the run, and of figures near this machine's floor."""
        return [*self.run.notes, *floors.said(self.run.facts, (x.summary for x in self.lines))]

    @property
    def marks(self) -> list[str]:
        """The marks as sentences for the verdict, one for each reason."""
        marked = [(line.mark, line.summary.label) for line in self.lines if line.mark]
        said = []
        for mark, group in groupby(sorted(marked), key=lambda each: each[0].partition(" ")[0]):
            labels = [label for _, label in group]
            shown = ", ".join(labels[:4]) + (f" and {len(labels) - 4} more" * (len(labels) > 4))
            said.append(f"{_REASONS[mark]}: {shown}")
        return said


_REASONS = {
    "CPU": f"measured while this machine was busy (CPU above {HOT_PERCENT:.0f} % for {STRETCH} s)",
    "lag": f"measured while this machine was late (lag p99 above {LATE_MS:.0f} ms and 10 % of p50)",
}


def digest(run: Run) -> Digest:
    """Return every figure of a run that has requests. Raises ValueError where it has none."""
    span = stats.window(run.requests)
    groups: dict[str, list[Request]] = {}
    for each in run.requests:
        groups.setdefault(each.label, []).append(each)
    load = {
        number: ([each[0] for each in process.load], stretches(process.load))
        for number, process in run.processes.items()
    }
    lines = [_line(label, groups[label], span, load) for label in _in_order(groups)]
    total = stats.summarize(run.requests, span=span)
    width = bucket(span.seconds)
    return Digest(
        run=run,
        span=span,
        total=Line(total, ""),
        lines=tuple(lines),
        calls=tuple(_calls(groups, span)),
        failures=tuple(_failures(run.requests, groups)),
        handshakes=tuple(handshakes(run.requests)),
        eras=tuple(eras(run.requests, span)),
        tokens=tuple(steps(each for process in run.processes.values() for each in process.sent)),
        bucket=width,
        points=tuple(points(run, span, width)),
        standins=tuple(
            sorted(n for n, said in run.servers.items() if "stand-in" in str(said.get("name")))
        ),
        load=_load(run),
    )


def _load(run: Run) -> Load | None:
    seconds = [each for process in run.processes.values() for each in process.load]
    if not seconds:
        return None
    lags, cpus = sorted(each[1] for each in seconds), sorted(each[2] for each in seconds)
    return Load(
        (stats.percentile_of_sorted(lags, 50.0), lags[-1]),
        (stats.percentile_of_sorted(cpus, 50.0), cpus[-1]),
    )


def _in_order(groups: dict[str, list[Request]]) -> list[str]:
    """Server by server, and in each the life of a session: opened, called, closed."""
    rank = {"initialize": 0, "notifications/initialized": 1, "tools/list": 2, "DELETE": 9}
    return sorted(groups, key=lambda n: (server_of(n), rank.get(n.partition(":")[2], 5), n))


def stretches(load: Sequence[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """Return (lag in ms, CPU in percent) of the worst stretch that each second is part of.

    Seconds are those of the load, whose items are (epoch s, lag p99 in ms, CPU in percent).
    """
    if not load:
        return []
    length = min(STRETCH, len(load))
    windows = [load[i : i + length] for i in range(len(load) - length + 1)]
    lags = [stats.percentile((each[1] for each in window), 50.0) for window in windows]
    cpus = [min(each[2] for each in window) for window in windows]
    worst = []
    for second in range(len(load)):
        inside = slice(max(0, second - length + 1), second + 1)
        worst.append((max(lags[inside]), max(cpus[inside])))
    return worst


def _line(label: str, requests: list[Request], span: Window, load: _Loads) -> Line:
    summary = stats.summarize(requests, label=label, span=span)
    limit = max(LATE_MS, LATE_SHARE * summary.p50)
    hot = 0
    late: list[float] = []
    for each in requests:
        times, worst = load[each.process]
        second = bisect_left(times, each.end)  # a figure speaks of the second before it
        if second < len(times):
            lag, cpu = worst[second]
            hot += cpu > HOT_PERCENT
            late += [lag] if lag > limit else []
    mark = ""
    if hot > TOLERATED * len(requests):
        mark = "CPU"
    elif len(late) > TOLERATED * len(requests):
        mark = f"lag {max(late):.0f} ms"
    return Line(summary, mark)


def _calls(groups: dict[str, list[Request]], span: Window) -> list[Summary]:
    servers: dict[str, list[Request]] = {}
    for label, requests in groups.items():
        if is_call(label):
            servers.setdefault(server_of(label), []).extend(requests)
    return [stats.summarize(servers[n], label=n, span=span) for n in sorted(servers)]


def _failures(requests: list[Request], groups: dict[str, list[Request]]) -> list[Failure]:
    found: dict[tuple[str, str, str], list[Request]] = {}
    for each in requests:
        if not each.success:
            kind = each.failure_kind or (f"HTTP {each.code}" if each.code else "failure")
            found.setdefault((each.label, kind, each.failure), []).append(each)
    failures = [
        Failure(*key, len(group), len(groups[key[0]]), group[0].start, group[-1].start)
        for key, group in found.items()
    ]
    return sorted(failures, key=lambda each: (-each.count, each.label))
