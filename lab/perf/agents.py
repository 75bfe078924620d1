"""Thousands of thinking agents in one process, which keeps its own account of itself.

Writes one JSON object to the file AGENTS_OUT when it ends: times in seconds since the start of the
test, memory in bytes, lag in milliseconds.
"""

from __future__ import annotations

from locust import events, task
from locust.runners import Runner

import json
import os
import time
from pathlib import Path
from typing import Any

import gevent
import psutil

from _base import MCPUserBase

TICK_S = 0.01
QUIET_S = 65.0  # longer than two long pauses: who has not called since then is no more


class Agent(MCPUserBase):
    """One agent with the default think time."""

    host = os.environ["MCP_URL"].removesuffix("/mcp")
    mcp_path = "/mcp"
    server_label = "null"

    @task
    def echo(self) -> None:
        """Call the one tool."""
        self._call("echo", {"message": "hello"})


class _Account:
    def __init__(self) -> None:
        self.began = self.spawned = self.cpu = 0.0
        self.lags: list[float] = []
        self.memory: list[tuple[float, int]] = []
        self.called: dict[int, float] = {}
        self.failures = self.calls = self.deaths = self.users = 0

    def on_request(self, exception: object = None, context: Any = None, **_: Any) -> None:
        self.calls += 1
        self.failures += exception is not None
        self.called[context["mcp"].session] = time.perf_counter()

    def on_error(self, **_: Any) -> None:
        self.deaths += 1

    def on_spawned(self, user_count: int, **_: Any) -> None:
        self.spawned, self.users = time.perf_counter(), user_count
        self.cpu = time.process_time()
        self.calls = 0
        gevent.spawn(self._tick)

    def _tick(self) -> None:
        gevent.sleep(1.0)  # what tidies up after the spawn is no lag of a measured run
        while True:
            due = time.perf_counter() + TICK_S
            gevent.sleep(TICK_S)
            self.lags.append((time.perf_counter() - due) * 1e3)

    def watch_memory(self) -> None:
        me = psutil.Process()
        while True:
            self.memory.append((time.perf_counter() - self.began, me.memory_info().rss))
            gevent.sleep(0.5)

    def save(self, runner: Runner) -> None:
        now = time.perf_counter()
        recently = now - QUIET_S
        alive = sum(not greenlet.dead for greenlet in runner.user_greenlets)
        account = {
            "spawned": self.spawned - self.began if self.spawned else None,
            "seconds": now - self.spawned,
            "users": self.users,
            "alive": alive,
            "called": sum(at >= recently for at in self.called.values()),
            "quiet": QUIET_S,
            "deaths": self.deaths,
            "failures": self.failures,
            "calls": self.calls,
            "cpu": time.process_time() - self.cpu,
            "lags": self.lags,
            "memory": self.memory,
        }
        Path(os.environ["AGENTS_OUT"]).write_text(json.dumps(account), encoding="utf-8")


def _follow(environment: Any, **_: Any) -> None:
    account = _Account()

    def begin(**_: Any) -> None:
        account.began = time.perf_counter()
        gevent.spawn(account.watch_memory)

    def end(**_: Any) -> None:
        account.save(environment.runner)

    environment.events.request.add_listener(account.on_request)
    environment.events.user_error.add_listener(account.on_error)
    environment.events.spawning_complete.add_listener(account.on_spawned)
    environment.events.test_start.add_listener(begin)
    environment.events.test_stopping.add_listener(end)


events.init.add_listener(_follow)
