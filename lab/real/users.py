"""A locustfile with one User class for each entry of the plan that REAL_PLAN (a file) holds.

An entry is an object: `label`, `host`, `path`, `headers`, `users`, `sessions` (must ids be given?),
`speaks` (the revisions its users are dealt among, or auto), `calls` (tool -> arguments and a text
that a good answer has) and `rounds`: how often each user calls as many tools as there are, or 0
for as long as the run is. Where all users have done their rounds, or could not open a session,
the run is over.

The users of a class take the tools in turn, so that each is called as often as the others.
"""

from __future__ import annotations

from locust import constant, events, task
from locust.exception import StopUser

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import gevent

from _base import MCPUserBase
from _checks import expect_contains, expect_not_empty

PLAN = json.loads(Path(os.environ["REAL_PLAN"]).read_text(encoding="utf-8"))
ALL_USERS = sum(entry["users"] for entry in PLAN)
_runner: list[Any] = []
_left = [ALL_USERS]


def _keep_the_runner(environment: Any, **_: Any) -> None:
    _runner.append(environment.runner)


events.init.add_listener(_keep_the_runner)


def _is_done(user: Any) -> None:
    if user.is_done:
        return
    user.is_done = True
    _left[0] -= 1
    if not _left[0]:
        gevent.spawn(_runner[0].quit)


class RealUser(MCPUserBase):
    """Calls the harmless tools of its server in turn."""

    abstract = True
    turns: Any
    headers: dict[str, str]
    left: float

    def _extra_headers(self) -> dict[str, str]:
        return dict(self.headers)

    @task
    def call_the_next(self) -> None:
        """Call the tool whose turn it is, or be done."""
        if not self.left:
            raise StopUser
        self.left -= 1
        tool, arguments, check = next(self.turns)
        self._call(tool, arguments, expect=check)


class BoundedUser(RealUser):
    """Does its rounds without pauses, and says so when it is done; a session is tried for once."""

    abstract = True
    is_done = False
    wait_time = constant(0)

    def _open_session(self) -> Any:
        failure = super()._open_session()
        if self._session.revision is None:
            _is_done(self)
        return failure

    def on_stop(self) -> None:
        """End the session before the last word."""
        super().on_stop()
        _is_done(self)


def _make(entry: dict[str, Any]) -> type:
    calls = [
        (tool, arguments, expect_contains(text, name="is_right") if text else expect_not_empty())
        for tool, (arguments, text) in entry["calls"].items()
    ]
    rounds = entry["rounds"]
    facts = {
        "__module__": __name__,
        "host": entry["host"],
        "mcp_path": entry["path"],
        "headers": entry["headers"],
        "server_label": entry["label"],
        "fixed_count": entry["users"],
        "requires_session": entry["sessions"],
        "protocol_versions": dict.fromkeys(entry["speaks"], 1.0),
        "turns": itertools.cycle(calls),
        "left": rounds * len(calls) if rounds else float("inf"),
    }
    name = "User" + re.sub(r"\W", "_", entry["label"].title())
    return type(name, (BoundedUser if rounds else RealUser,), facts)


globals().update({made.__name__: made for made in map(_make, PLAN)})
