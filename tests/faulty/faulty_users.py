"""A locustfile with the User classes that the file named by FAULTY_PLAN asks for."""

from __future__ import annotations

from locust import task

import json
import os
import random
from pathlib import Path
from typing import Any, Callable

from _base import MCPUserBase, StatelessMCPUser
from _checks import expect_contains, expect_not_empty

CHECKS: dict[str, Any] = {
    "has_marker": expect_contains("ok-marker", name="has_marker"),
    "is_intact": expect_contains("café 日本語 🦀 end-of-text", name="is_intact"),
    "not_empty": expect_not_empty(),
}


def _pause(shortest: float, longest: float) -> Callable[[Any], float]:
    return lambda _: random.uniform(shortest, longest)


def _make(plan: dict[str, Any]) -> type:
    check = CHECKS[plan["check"]]

    def call(self: Any) -> None:
        self._call("echo", {"text": "x"}, expect=check)

    def token(self: Any) -> dict[str, str]:
        return {"Authorization": f"Bearer {plan['token']}-{type(self).renewals}"}

    def renew(self: Any) -> None:
        if plan["renews"]:
            type(self).renewals += 1

    base = StatelessMCPUser if plan["stateless"] else MCPUserBase
    facts: dict[str, Any] = {
        "__module__": __name__,
        "host": plan["host"],
        "mcp_path": plan["path"],
        "server_label": plan["label"],
        "fixed_count": plan["users"],
        "requires_session": plan["requires_session"],
        "network_timeout": plan["timeout"],
        "insecure": plan["insecure"],
        "renewals": 0,
        "call": task(call),
        "_extra_headers": token,
        "_token_rejected": renew,
    }
    if plan["pause"]:
        facts["wait_time"] = _pause(*plan["pause"])
    return type(plan["class"], (base,), facts)


for _plan in json.loads(Path(os.environ["FAULTY_PLAN"]).read_text(encoding="utf-8")):
    globals()[_plan["class"]] = _make(_plan)
