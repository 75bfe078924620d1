"""CPU for each validated tools/call: the harness against stock FastHttpUser, k6, and itself."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from lab.bench import contenders
from lab.bench.cost import Cost, interleave, measure, scratch
from lab.bench.plan import Plan
from lab.bench.row import Row, median_ratio
from lab.null_server import NullServer

STATELESS = "harness, 2026-07-28"
_MODES = {"json": "JSON", "sse": "event streams"}
_VS_FASTHTTP = {"json": (0.34, 0.25), "sse": (0.34, 0.26)}
_VS_K6 = {"json": (0.38, 0.30), "sse": (0.34, 0.26)}
_RECORDED = (1.12, 1.05)


def rows(plan: Plan) -> Iterator[Row]:
    """Measure both kinds of reply; yield a row for each ratio, and one for the recorder."""
    k6 = contenders.k6(contenders.find_k6())
    for mode, replies in _MODES.items():
        stateless = contenders.harness(plan.harness, STATELESS, MCP_PROTOCOL_VERSION="2026-07-28")
        field = [contenders.harness(plan.harness), contenders.fasthttp(plan.harness), k6, stateless]
        with NullServer(mode) as server:
            costs = interleave(field, server, plan.rounds, plan.seconds)
        for ours, era in (("harness", ""), (STATELESS, ", 2026-07-28")):
            for other, bounds in (("FastHttpUser", _VS_FASTHTTP), ("k6", _VS_K6)):
                name = f"CPU per call, {replies}{era}: harness / {other}"
                yield _ratio(Row(name, bounds[mode][0], aim=bounds[mode][1]), costs, ours, other)
    yield _recorder(plan)


def _recorder(plan: Plan) -> Row:
    """Compare a run with and without the recorder: a tenth is less than the weather between two.

    So each round is with, without, without, with: a drift within it cancels out.
    """
    loaded = contenders.recorded(plan.harness, scratch())
    plain = contenders.harness(plan.harness)
    ratios, us = [], []
    with NullServer() as server:
        for _ in range(plan.rounds):
            costs = [
                measure(each, server, plan.seconds / 2.0) for each in (loaded, plain, plain, loaded)
            ]
            first, without, again, last = (each.us for each in costs)
            ratios.append((first + last) / (without + again))
            us.append((without + again) / 2.0)
    row = Row("CPU per call: with / without lab/record.py", _RECORDED[0], aim=_RECORDED[1])
    middle, value = statistics.median(us), statistics.median(ratios)
    return row.measured(
        value,
        f"{middle * value:.0f} / {middle:.0f} us, rounds {min(ratios):.3f} to {max(ratios):.3f}",
    )


def _ratio(row: Row, costs: Mapping[str, Sequence[Cost]], ours: str, other: str) -> Row:
    us = {name: [each.us for each in costs[name]] for name in (ours, other)}
    value = median_ratio(us[ours], us[other])
    spread = [a / b for a, b in zip(us[ours], us[other], strict=True)]
    middle = {name: statistics.median(figures) for name, figures in us.items()}
    return row.measured(
        value,
        f"{middle[ours]:.0f} / {middle[other]:.0f} us, rounds {min(spread):.3f}"
        f" to {max(spread):.3f}",
    )
