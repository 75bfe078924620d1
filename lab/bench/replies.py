"""Large replies: CPU grows with their bytes and not faster, memory with the largest one only."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack

from lab.bench import contenders
from lab.bench.cost import Contender, Cost, measure
from lab.bench.plan import Plan
from lab.bench.row import Row, median_ratio
from lab.null_server import NullServer

LARGE = 5_000_000  # bytes of text in one event
EVENTS, EVENT_TEXT = 2000, 100
_USERS = 2
_COPIES = 8.0  # of its largest reply that a user may need at once: pieces, whole, text, and air


def rows(plan: Plan) -> Iterator[Row]:
    """Yield one event against JSON, many events against JSON in blocks, and the memory of both."""
    contender = contenders.locust(
        "large replies",
        contenders.PERF / "harness_null.py",
        env=contenders.environment(plan.harness),
        users=_USERS,
    )
    with ExitStack() as stack:
        small = stack.enter_context(NullServer("json"))
        event = stack.enter_context(NullServer("sse", text=LARGE))
        document = stack.enter_context(NullServer("json", text=LARGE))
        costs = _interleaved(contender, [small, event, document], plan)
        yield _ratio("a reply of 5 MB in one event / as JSON", 1.5, costs[1], costs[2])
        base, peak = (max(each.peak_rss for each in costs[i]) for i in (0, 1))
        yield Row("memory for replies of 5 MB, in replies for each user", _COPIES).measured(
            (peak - base) / LARGE / _USERS,
            f"{peak / 1e6:.0f} MB at most, {base / 1e6:.0f} MB with small replies, over"
            f" {sum(each.calls for each in costs[1])} calls of {_USERS} users",
        )
    with ExitStack() as stack:
        events = stack.enter_context(NullServer("sse", events=EVENTS, text=EVENT_TEXT))
        size = events.reply_size()
        twin = stack.enter_context(NullServer("json", blocks=EVENTS, text=_text_for(size)))
        costs = _interleaved(contender, [events, twin], plan)
        name = f"a reply of {EVENTS:,} events / as JSON in {EVENTS:,} blocks"
        yield _ratio(name, 2.0, costs[0], costs[1], f"{size} and {twin.reply_size()} bytes; ")


def _text_for(size: int) -> int:
    """Return the text of each block that makes a JSON reply as large."""
    with NullServer("json", blocks=EVENTS, text=0) as empty:
        return max(0, round((size - empty.reply_size()) / EVENTS))


def _interleaved(contender: Contender, servers: list[NullServer], plan: Plan) -> list[list[Cost]]:
    costs: list[list[Cost]] = [[] for _ in servers]
    for _ in range(plan.rounds):
        for found, server in zip(costs, servers, strict=True):
            found.append(measure(contender, server, min(plan.seconds, 3.0)))
    return costs


def _ratio(name: str, bound: float, ours: list[Cost], twin: list[Cost], detail: str = "") -> Row:
    ms = [[each.us / 1e3 for each in costs] for costs in (ours, twin)]
    first, second = (statistics.median(each) for each in ms)
    return Row(f"CPU, {name}", bound).measured(
        median_ratio(*ms), f"{detail}{first:.2f} / {second:.2f} ms"
    )
