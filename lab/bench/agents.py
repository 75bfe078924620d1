"""Ten thousand agents in one process: their memory, their lives, and how late the process was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lab import stats
from lab.bench import contenders
from lab.bench.cost import Contender, measure, scratch
from lab.bench.plan import Plan
from lab.bench.row import Row
from lab.null_server import NullServer

MEMORY = 300.0
LAG = 10.0


def rows(plan: Plan) -> Iterator[Row]:
    """Run them once; yield memory, the living, failures and lag."""
    spawn_s = plan.agents / plan.agents_per_s
    out = scratch() / "agents.json"
    env = contenders.environment(plan.harness, AGENTS_OUT=out)
    files = (contenders.PERF / "agents.py",)

    def command(seconds: float) -> list[str]:
        return contenders.locust_command(files, seconds, plan.agents, plan.agents_per_s)

    with NullServer() as server:
        cost = measure(Contender("agents", command, env), server, spawn_s + plan.agents_seconds)
    found: Mapping[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    agents = f"{plan.agents:,} agents, {found['seconds']:.0f} s"
    running = max(rss for _, rss in found["memory"]) / 1e6
    settled = stats.percentile((rss for _, rss in found["memory"][-20:]), 50.0)
    base = found["memory"][0][1]
    yield Row(f"{agents}: memory, peak", MEMORY, unit=" MB").measured(
        cost.peak_rss / 1e6,
        f"{running:.0f} MB while they ran, {(settled - base) / plan.agents / 1024:.1f} KiB each",
    )
    living, detail = found["alive"], "all of their greenlets run"
    if found["seconds"] > found["quiet"]:
        living = min(living, found["called"])
        detail = f"{found['called']:,} called in the last {found['quiet']:.0f} s"
    yield Row(f"{agents}: not alive at the end", 0.0).measured(
        plan.agents - living + found["deaths"], detail
    )
    yield Row(f"{agents}: failed requests", 0.0).measured(
        found["failures"], f"of {found['calls']:,} once all were there"
    )
    lags = stats.percentiles(found["lags"], ("p50", "p99", "p999"))
    yield Row(f"{agents}: lag, p99", LAG, unit=" ms").measured(
        lags["p99"],
        f"p50 {lags['p50']:.1f}, p99.9 {lags['p999']:.1f} ms;"
        f" {found['cpu'] / found['seconds']:.2f} of a core",
    )
