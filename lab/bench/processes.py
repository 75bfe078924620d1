"""Scale out on Locust's own engine: what a second process brings, and whether rows are lost."""

from __future__ import annotations

import csv
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager

from lab.bench import contenders
from lab.bench.cost import measure, scratch
from lab.bench.plan import Plan
from lab.bench.row import Row
from lab.cli import CannotRun
from lab.null_server import NullServer

SHARE = 0.90
_USERS = 100
_CORES = 2


def rows(plan: Plan) -> Iterator[Row]:
    """Yield the gain of `--processes 2` by 2h/(h+s), and rows that master and workers lost.

    h and s are the CPU for a request of harness and server: on two cores, one process makes 1/h
    requests a second, and two processes with the server 2/(h+s).
    """
    env = contenders.environment(plan.harness)
    file = contenders.PERF / "harness_null.py"
    two = ("--processes", "2")
    one_process = contenders.locust("one process", file, env=env, users=_USERS)
    both = contenders.locust("two processes", file, env=env, users=_USERS, options=two)
    shares, gains, ideals = [], [], []
    with _two_cores(), NullServer() as server:
        for _ in range(plan.rounds):
            alone = measure(one_process, server, plan.seconds)
            together = measure(both, server, plan.seconds)
            h, s = alone.cpu_s / alone.calls, alone.server_cpu_s / alone.calls
            ideals.append(2.0 * h / (h + s))
            gains.append(together.rate / alone.rate)
            shares.append(gains[-1] / ideals[-1])
    yield Row("--processes 2: gain / 2h/(h+s)", SHARE, least=True).measured(
        statistics.median(shares),
        f"{statistics.median(gains):.2f} times one process's rate, of"
        f" {statistics.median(ideals):.2f} that two cores allow",
    )
    yield _lost(plan)


def _lost(plan: Plan) -> Row:
    folder = scratch()
    env = contenders.environment(plan.harness, MCP_RUN_DIR=folder)
    files = (contenders.PERF / "harness_null.py", contenders.RECORDER)
    contender = contenders.locust(
        "master and workers", *files, env=env, users=20, options=("--processes", "2")
    )
    with NullServer() as server:
        measure(contender, server, min(plan.seconds, 3.0))
        answered = server.stats().requests
    recorded = 0
    for path in (folder / "results").glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            recorded += sum(1 for _ in csv.reader(file)) - 1
    return Row("--processes 2: requests without a row of their own", 0.0).measured(
        abs(answered - recorded), f"{recorded:,} rows of {answered:,} requests that were answered"
    )


@contextmanager
def _two_cores() -> Iterator[None]:
    """Keep us and all that we start on two cores, for which the formula is made."""
    before = os.sched_getaffinity(0)
    if len(before) < _CORES:
        raise CannotRun("two processes and a server need two cores, and there is one")
    os.sched_setaffinity(0, sorted(before)[:_CORES])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
