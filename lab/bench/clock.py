"""The clock against the truth: what was measured beside what the server's own record says.

The server answers three tools after delays that it draws and keeps: a constant, two peaks, and a
tail. At half of the rate that so many clients reach without a pause, each at an even pace from an
instant of its own, the percentiles of both sides are compared over the same requests, paired by
their ids.
"""

from __future__ import annotations

import csv
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import stats
from lab.bench import contenders
from lab.bench.cost import WARM_S, Contender, measure, scratch
from lab.bench.plan import Plan
from lab.bench.row import Row
from lab.cli import CannotRun
from lab.null_server import NullServer, ports_waiting, read_record
from lab.sampler import stolen_s

# The tail's share is a little above 1 %, so that p99 lies inside it and not on its edge, where
# one sample more or less would move it by the whole tail.
DELAYS = {"constant": "20", "two_peaks": "10,40:0.3", "tail": "10,150:0.015"}
USERS = 100
_MIDDLE = 0.15  # of the time: left out at both ends
_P50, _P99, _P99_OPEN = 1.0, 3.0, 5.0  # ms
_STOLEN = 0.01  # of a core's time: more of it makes a round not ours


@dataclass(frozen=True, slots=True)
class Side:
    """A client against a mode of the server: ours with its bounds, or stock Locust for scale."""

    name: str
    mode: str
    file: str
    p99: float | None = None


SIDES = (
    Side("JSON", "json", "clock.py", _P99),
    Side("event streams", "sse", "clock.py", _P99),
    Side("streams held open", "open", "clock.py", _P99_OPEN),
    Side("FastHttpUser", "json", "clock_fasthttp.py"),
)


@dataclass(frozen=True, slots=True)
class Gap:
    """Measured less true, in ms, at one round of one tool; and the truth itself."""

    p50: float
    p99: float
    true_p50: float
    true_p99: float


def rows(plan: Plan) -> Iterator[Row]:
    """Measure each side's highest rate, then half of it in rounds; yield the gaps, worst tool."""
    highest, waiting, calls = _highest_rates(plan)
    # Each user closes its last connection in peace, which leaves one port behind.
    yield Row("streams held open: ports left waiting, per 100 calls", 1.0).measured(
        max(0, waiting - USERS) / calls * 100.0,
        f"{waiting} after {calls:,} calls of {USERS} users",
    )
    gaps: dict[str, dict[str, list[Gap]]] = {each.name: defaultdict(list) for each in SIDES}
    for number in range(plan.rounds):
        for side in SIDES:
            half = highest[side.name] / 2.0
            for tool, gap in _calm_round(plan, side, half, seed=number + 1).items():
                gaps[side.name][tool].append(gap)
    stock = {what: _worst(gaps["FastHttpUser"], what) for what in ("p50", "p99")}
    for side in SIDES:
        if side.p99 is None:
            continue
        for what, bound in (("p50", _P50), ("p99", side.p99)):
            value, tool, truth = _worst(gaps[side.name], what)
            yield Row(f"clock, {side.name}: {what} off by", bound, unit=" ms").measured(
                value,
                f"{tool}, true {truth:.1f} ms, at {highest[side.name] / 2:,.0f}/s;"
                f" FastHttpUser {stock[what][0]:.2f} ms at {highest['FastHttpUser'] / 2:,.0f}/s",
            )


def _highest_rates(plan: Plan) -> tuple[dict[str, float], int, int]:
    """Return each side's calls a second with no pauses; and ports left waiting, after calls."""
    rates: dict[str, float] = {}
    waiting = calls = 0
    for side in SIDES:
        with NullServer(side.mode, delays=DELAYS) as server:
            contender = _contender(plan, side, 0.0, scratch() / "unused.csv")
            cost = measure(contender, server, plan.seconds)
            rates[side.name] = cost.rate
            if side.mode == "open":
                waiting, calls = ports_waiting(server.port), cost.calls
    return rates, waiting, calls


def _contender(plan: Plan, side: Side, rate: float, out: Path) -> Contender:
    variables = {"CLOCK_TOOLS": ",".join(DELAYS), "CLOCK_USERS": USERS, "CLOCK_RATE": rate}
    env = contenders.environment(plan.harness, CLOCK_OUT=out, **variables)
    return contenders.locust(side.name, contenders.PERF / side.file, env=env, users=USERS)


def _calm_round(plan: Plan, side: Side, rate: float, seed: int) -> dict[str, Gap]:
    """Measure a round; once more where a hypervisor took CPU meanwhile, and keep the calmer one."""
    tries = []
    for _ in range(1 if plan.quick else 2):
        stolen, began = stolen_s(), time.monotonic()
        gaps = _round(plan, side, rate, seed)
        share = (stolen_s() - stolen) / (time.monotonic() - began)
        tries.append((share, gaps))
        if share <= _STOLEN:
            break
    return min(tries, key=lambda each: each[0])[1]


def _round(plan: Plan, side: Side, rate: float, seed: int) -> dict[str, Gap]:
    folder = scratch()
    ours, theirs = folder / "ours.csv", folder / "server.csv"
    with NullServer(side.mode, delays=DELAYS, seed=seed, record=theirs) as server:
        measure(_contender(plan, side, rate, ours), server, plan.clock_seconds)
    return compare(ours, theirs, WARM_S + plan.clock_seconds)


def compare(ours: Path, theirs: Path, seconds: float) -> dict[str, Gap]:
    """Return tool -> gap over the middle of a run, from the client's file and the server's."""
    truth = {each.id: each.took_us / 1e3 for each in read_record(theirs)}
    with ours.open(newline="", encoding="ascii") as file:
        kept = [(r[0], r[1], float(r[2]), float(r[3])) for r in csv.reader(file)]
    if not kept:
        raise CannotRun("the clock: no call was kept")
    first = min(start for _, _, start, _ in kept)
    low, high = first + _MIDDLE * seconds, first + (1.0 - _MIDDLE) * seconds
    measured: dict[str, list[float]] = defaultdict(list)
    true: dict[str, list[float]] = defaultdict(list)
    for request_id, tool, start, ms in kept:
        if low <= start <= high:
            measured[tool].append(ms)
            true[tool].append(truth[request_id])
    return {tool: _gap(measured[tool], true[tool]) for tool in measured}


def _gap(measured: Sequence[float], true: Sequence[float]) -> Gap:
    ours, theirs = (stats.percentiles(each, ("p50", "p99")) for each in (measured, true))
    return Gap(
        ours["p50"] - theirs["p50"], ours["p99"] - theirs["p99"], theirs["p50"], theirs["p99"]
    )


def _worst(gaps: Mapping[str, Sequence[Gap]], what: str) -> tuple[float, str, float]:
    """Return the largest of the tools' medians, as (ms, tool, its true ms)."""
    medians = [
        (
            statistics.median(abs(getattr(each, what)) for each in rounds),
            tool,
            statistics.median(getattr(each, f"true_{what}") for each in rounds),
        )
        for tool, rounds in gaps.items()
    ]
    return max(medians)
