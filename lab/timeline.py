"""A run over time: what happened in each of its buckets."""

from __future__ import annotations

from dataclasses import dataclass

from lab import stats
from lab.results import Request
from lab.runs import Run
from lab.stats import Window

MOST_BUCKETS = 120


@dataclass(frozen=True, slots=True)
class Point:
    """One bucket of the time line: requests that ended in it. Percentiles None where none did.

    at  seconds since the run's first request
    """

    at: float
    rate: float
    failures: int
    p50: float | None
    p95: float | None
    users: int
    rates: dict[str, float]
    lag_ms: float | None
    cpu_percent: float | None


def server_of(label: str) -> str:
    """Return the server's label in a statistics name; the name itself where it has none."""
    return label.partition(":")[0]


def is_call(label: str) -> bool:
    """Is this the statistics name of a tool's calls?"""
    return ":tools/call:" in label


def bucket(seconds: float) -> float:
    """Return a width in seconds that makes at most 120 buckets of the run."""
    widths = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 600.0)
    return next((w for w in widths if seconds / w <= MOST_BUCKETS), 3600.0)


def points(run: Run, span: Window, width: float) -> list[Point]:
    """Return the run's buckets of the width, in seconds."""
    count = int(span.seconds // width) + 1
    buckets: list[list[Request]] = [[] for _ in range(count)]
    for each in run.requests:
        buckets[min(count - 1, int((each.end - span.start) // width))].append(each)
    users = _users(run, span, width, count)
    loads: list[list[tuple[float, float]]] = [[] for _ in range(count)]
    for process in run.processes.values():
        for at, lag, cpu in process.load:
            if span.start <= at < span.start + count * width:
                loads[int((at - span.start) // width)].append((lag, cpu))
    made = []
    for index, rows in enumerate(buckets):
        times = sorted(each.elapsed_ms for each in rows)
        rates: dict[str, float] = {}
        for each in rows:
            server = server_of(each.label)
            rates[server] = rates.get(server, 0.0) + 1.0 / width
        load = loads[index]
        made.append(
            Point(
                at=index * width,
                rate=len(rows) / width,
                failures=sum(not each.success for each in rows),
                p50=stats.percentile_of_sorted(times, 50.0) if times else None,
                p95=stats.percentile_of_sorted(times, 95.0) if times else None,
                users=users[index],
                rates=rates,
                lag_ms=max(each[0] for each in load) if load else None,
                cpu_percent=max(each[1] for each in load) if load else None,
            )
        )
    return made


def _users(run: Run, span: Window, width: float, count: int) -> list[int]:
    """Users in each bucket: by the processes' own account, else by the rows' allThreads."""
    totals = [0] * count
    for number, process in run.processes.items():
        told = [(at, sum(by_class.values())) for at, by_class in process.users] or [
            (each.start, each.all_users) for each in run.requests if each.process == number
        ]
        most = [-1] * count
        for at, users in told:
            index = int((at - span.start) // width)
            if index < count:
                most[max(0, index)] = max(most[max(0, index)], users)
        now = 0
        for index, users in enumerate(most):
            now = users if users >= 0 else now
            totals[index] += now
    return totals
