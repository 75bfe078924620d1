"""A locustfile with one User class for each server that the variable LIVE_PLAN (a file) names.

The users of a class take the harmless tools in turn, so that each is called as often as the others.
"""

from __future__ import annotations

from locust import task

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

from _base import MCPUserBase
from _checks import expect_contains, expect_not_empty


def _make(plan: dict[str, Any]) -> type:
    turns = itertools.cycle(
        [
            (
                tool,
                arguments,
                expect_contains(text, name="is_right") if text else expect_not_empty(),
            )
            for tool, (arguments, text) in plan["calls"].items()
        ]
    )

    def call_the_next(self: Any) -> None:
        tool, arguments, check = next(turns)
        self._call(tool, arguments, expect=check)

    facts = {
        "__module__": __name__,
        "host": plan["host"],
        "mcp_path": "/mcp",
        "server_label": plan["label"],
        "fixed_count": plan["users"],
        "requires_session": plan["sessions"],
        "protocol_versions": dict.fromkeys(plan["speaks"], 1.0),
        "call_the_next": task(call_the_next),
    }
    return type(plan["class"], (MCPUserBase,), facts)


for _plan in json.loads(Path(os.environ["LIVE_PLAN"]).read_text(encoding="utf-8")):
    _plan["class"] = "User" + re.sub(r"\W", "_", _plan["label"].title())
    globals()[_plan["class"]] = _make(_plan)
