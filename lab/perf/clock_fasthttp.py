"""The same as clock.py by stock FastHttpUser: what a test without the harness would have measured.

It parses nothing, and so is measured at its best.
"""

from __future__ import annotations

from locust import FastHttpUser, constant, constant_pacing, events, task

import itertools
import os
import random
from pathlib import Path
from typing import Any

import gevent

TOOLS = tuple(os.environ["CLOCK_TOOLS"].split(","))
RATE = float(os.environ["CLOCK_RATE"])
USERS = int(os.environ["CLOCK_USERS"])
TURN_S = USERS / RATE if RATE else 0.0
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
BODY = (
    '{{"jsonrpc":"2.0","id":{},"method":"tools/call",'
    '"params":{{"name":"{}","arguments":{{"message":"hello"}}}}}}'
)

_ids = itertools.count(1)
_rows: list[str] = []


class Clocked(FastHttpUser):
    """One client that calls the tools in turn, at an even pace."""

    host = os.environ["MCP_URL"].removesuffix("/mcp")
    wait_time = constant_pacing(TURN_S) if RATE else constant(0)

    def on_start(self) -> None:
        """Begin with the first tool, somewhere in the first turn of the pace."""
        self._turns = itertools.cycle(TOOLS)
        gevent.sleep(random.random() * TURN_S)

    @task
    def call(self) -> None:
        """Call the next tool."""
        tool, number = next(self._turns), next(_ids)
        body = BODY.format(number, tool)
        headers = dict(HEADERS)
        self.client.post("/mcp", data=body, headers=headers, name=tool, context={"id": number})


def _keep(
    name: str,
    response_time: float,
    start_time: float,
    exception: object = None,
    context: Any = None,
    **_: Any,
) -> None:
    if exception is None:
        _rows.append(f"{context['id']},{name},{start_time:.6f},{response_time:.6f}\n")


def _save(**_: Any) -> None:
    Path(os.environ["CLOCK_OUT"]).write_text("".join(_rows), encoding="utf-8")


events.request.add_listener(_keep)
events.quit.add_listener(_save)
