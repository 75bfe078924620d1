"""CPU for each validated tools/call: the harness against stock FastHttpUser, k6, and itself."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence

from lab.bench import contenders
from lab.bench.cost import WARM_S, Cost, interleave, measure, scratch
from lab.bench.plan import Plan
from lab.bench.row import Row, median_ratio
from lab.null_server import NullServer

STATELESS = "harness, 2026-07-28"
_MODES = {"json": "JSON", "sse": "event streams"}
_VS_FASTHTTP = {"json": (0.34, 0.25), "sse": (0.34, 0.26)}
_VS_K6 = {"json": (0.38, 0.30), "sse": (0.34, 0.26)}
_RECORDED = (1.12, 1.05)
_SLICE_S, _SLICED = 0.5, 3  # and so many times as many rounds


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
    """Compare the recorder on and off, in slices of one process: on, off, off, on in each round.

    It costs less than what two processes, or two moments, differ by.
    """
    folder, rounds = scratch(), plan.rounds * _SLICED
    variables = {"SLICES_WARM_S": WARM_S, "SLICES_S": _SLICE_S, "SLICES_ROUNDS": rounds}
    out = folder / "slices.json"
    files = [contenders.PERF / name for name in ("harness_null.py", "recorder.py")]
    env = contenders.environment(plan.harness, MCP_RUN_DIR=folder, SLICES_OUT=out, **variables)
    contender = contenders.locust(
        "recorder on and off", files[0], contenders.RECORDER, files[1], env=env
    )
    with NullServer() as server:
        measure(contender, server, WARM_S + rounds * 4 * _SLICE_S + 5.0)
    costs = json.loads(out.read_text(encoding="utf-8"))
    ratios = [(a + d) / (b + c) for a, b, c, d in costs]
    off = statistics.median((b + c) / 2.0 for _, b, c, _ in costs)
    value = statistics.median(ratios)
    row = Row("CPU per call: with / without lab/record.py", _RECORDED[0], aim=_RECORDED[1])
    return row.measured(
        value,
        f"{off * value:.0f} / {off:.0f} us, {rounds} rounds {min(ratios):.3f} to {max(ratios):.3f}",
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
