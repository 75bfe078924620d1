"""Agents who keep what the harness measured of each call, to be held against the server's record.

CLOCK_RATE is the calls a second that all users make together, 0 for as many as go. Writes a line
`id,tool,started,ms` per call to CLOCK_OUT when it ends; started is epoch seconds.
"""

from __future__ import annotations

from locust import constant, constant_pacing, events, task

import itertools
import os
import random
from pathlib import Path
from typing import Any

import gevent

from _base import MCPUserBase

TOOLS = tuple(os.environ["CLOCK_TOOLS"].split(","))
RATE = float(os.environ["CLOCK_RATE"])
USERS = int(os.environ["CLOCK_USERS"])
TURN_S = USERS / RATE if RATE else 0.0

_rows: list[str] = []


class Clocked(MCPUserBase):
    """One client that calls the tools in turn, at an even pace."""

    host = os.environ["MCP_URL"].removesuffix("/mcp")
    mcp_path = "/mcp"
    server_label = "null"
    wait_time = constant_pacing(TURN_S) if RATE else constant(0)

    def on_start(self) -> None:
        """Begin with the first tool, somewhere in the first turn of the pace."""
        super().on_start()
        self._turns = itertools.cycle(TOOLS)
        gevent.sleep(random.random() * TURN_S)

    @task
    def call(self) -> None:
        """Call the next tool."""
        self._call(next(self._turns), {"message": "hello"})


def _keep(
    name: str,
    response_time: float,
    start_time: float,
    exception: object = None,
    context: Any = None,
    **_: Any,
) -> None:
    tool = name.rpartition(":")[2]
    if exception is None and tool in TOOLS:
        trace = context["mcp"]
        _rows.append(f"{trace.request_id},{tool},{start_time:.6f},{response_time:.6f}\n")


def _save(**_: Any) -> None:
    Path(os.environ["CLOCK_OUT"]).write_text("".join(_rows), encoding="utf-8")


events.request.add_listener(_keep)
events.quit.add_listener(_save)
