"""An extra locustfile, loaded before a user's own: sends all of its classes to the null server.

They keep their tasks, their pauses (unless FLOOR_PAUSES=0) and their proportions, but no checks;
nobody signs in anywhere, and no address of theirs is used. What was measured is written to
FLOOR_OUT as JSON.
"""

from __future__ import annotations

from locust import constant, events

import json
import os
import time
from pathlib import Path
from typing import Any

import gevent
import psutil

SETTLES_S = 2.0
URL = os.environ["FLOOR_URL"]
PAUSES = os.environ.get("FLOOR_PAUSES", "1") != "0"


def _own_headers(self: Any) -> dict[str, str]:
    return dict(self.auth_headers)


def _redirect(user_class: Any) -> None:
    """Point a class at the null server; what it needs from the environment gets a dummy."""
    for name in user_class.needs:
        os.environ.setdefault(name, "floor")
    user_class.host, user_class.mcp_path = URL.removesuffix("/mcp"), "/mcp"
    user_class._extra_headers = _own_headers
    user_class.requires_session = False
    call_now = user_class._call_now  # what `_call` and `_call_all` have in common

    def call(self: Any, tool: str, arguments: Any, name: Any = None, expect: Any = None) -> Any:
        # Checks look for what a real server says; to fail them all would cost more than the rest.
        return call_now(self, tool, arguments, name)

    user_class._call_now = call
    if not PAUSES:
        user_class.wait_time = constant(0)


class _Account:
    def __init__(self) -> None:
        self.samples: list[tuple[str, float]] = []
        self.failures: dict[str, int] = {}
        self.from_when = self.cpu = float("inf")

    def on_request(
        self, name: str, response_time: float, exception: object = None, **_: Any
    ) -> None:
        if time.perf_counter() < self.from_when:
            return
        self.samples.append((name, response_time))
        if exception is not None:
            self.failures[str(exception)] = self.failures.get(str(exception), 0) + 1

    def on_spawned(self, **_: Any) -> None:
        gevent.spawn_later(SETTLES_S, self._begin)

    def _begin(self) -> None:
        self.from_when, self.cpu = time.perf_counter(), time.process_time()

    def save(self, environment: Any) -> None:
        seconds = time.perf_counter() - self.from_when
        account = {
            "seconds": seconds,
            "cpu": (time.process_time() - self.cpu) / seconds,
            "rss": psutil.Process().memory_info().rss,
            "users": environment.runner.user_count,
            "samples": self.samples,
            "failures": self.failures,
        }
        Path(os.environ["FLOOR_OUT"]).write_text(json.dumps(account), encoding="utf-8")


def _follow(environment: Any, **_: Any) -> None:
    """Listen before `_base` does: its judgement of the classes is that of what they are here."""
    account = _Account()
    hosted = [c for c in environment.user_classes if hasattr(c, "mcp_path")]
    for user_class in hosted:
        _redirect(user_class)
    environment.shape_class = None

    def on_test_start(**_: Any) -> None:
        for user_class in environment.user_classes:
            if user_class.fixed_count:  # so many of each, of any number of users
                user_class.weight, user_class.fixed_count = user_class.fixed_count, 0

    def on_stopping(**_: Any) -> None:
        account.save(environment)

    environment.events.request.add_listener(account.on_request)
    environment.events.spawning_complete.add_listener(account.on_spawned)
    environment.events.test_start.add_listener(on_test_start)
    environment.events.test_stopping.add_listener(on_stopping)


events.init.add_listener(_follow)
