"""Memory over many calls: what a call leaves behind, of which an hour would make a leak."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence

from lab.bench import contenders
from lab.bench.cost import scratch
from lab.bench.plan import Plan
from lab.bench.row import Row
from lab.cli import CannotRun
from lab.null_server import NullServer
from lab.sampler import usage

BOUND = 20.0  # MB over the calls that 10,000 agents make in an hour
HOUR = 2_650 * 3600
_SETTLES_S = 6.0  # until all caches are full and Locust's dicts are made
_EVERY_S = 0.25


def rows(plan: Plan) -> Iterator[Row]:
    """Yield the growth for as many calls as 10,000 agents make in an hour, recorder loaded."""
    contender = contenders.recorded(plan.harness, scratch())
    with NullServer() as server:
        process = subprocess.Popen(
            [str(word) for word in contender.command(_SETTLES_S + plan.growth_seconds + 30.0)],
            env={**contender.env, "MCP_URL": server.url},
            cwd=scratch(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            points = _watch(process, server, plan.growth_seconds)
        finally:
            process.terminate()
            process.wait()
    calls, grown = growth(points)
    slope = grown / calls
    yield Row("memory after the calls of 10,000 agents' hour: growth", BOUND, unit=" MB").measured(
        max(0.0, slope * HOUR / 1e6),
        f"{slope:+.2f} bytes a call over {calls:,} calls, recorder loaded,"
        f" at {points[-1][1] / 1e6:.0f} MB",
    )


def growth(points: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return calls and bytes between the lowest points of the first third and of the last.

    The lowest, as memory swings by what waits to be written at the moment.
    """
    third = max(1, len(points) // 3)
    first, last = (
        min(part, key=lambda point: point[1]) for part in (points[:third], points[-third:])
    )
    return last[0] - first[0], last[1] - first[1]


def _watch(
    process: subprocess.Popen[bytes], server: NullServer, seconds: float
) -> Sequence[tuple[int, int]]:
    """Return (calls, resident bytes) over time, once the process has settled."""
    time.sleep(_SETTLES_S)
    points = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise CannotRun(f"the harness ended with {process.returncode} while it was watched")
        points.append((server.stats().requests, usage(process.pid).rss))
        time.sleep(_EVERY_S)
    if points[-1][0] == points[0][0]:
        raise CannotRun("the harness made no call while its memory was watched")
    return points
