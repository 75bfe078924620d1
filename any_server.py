"""Any MCP server, without a line of code: it is asked for its tools, and they are called.

    ANY_MCP_URL=https://mcp.example.com/mcp locust -f any_server.py -u 5 -t 1m --headless

auth       none, or a bearer: ANY_MCP_TOKEN; an OAuth client, ANY_CLIENT_ID with its secret or key;
           or ANY_CREDENTIALS_FILE, with a token or client a line for as many callers
tools      those with readOnlyHint, or those that ANY_TOOLS names, whatever they do
arguments  made from each tool's input schema: required properties only
"""

from __future__ import annotations

from locust import task

from typing import Any

import _roster
from _auth import StaticToken
from _base import StatelessMCPUser
from _checks import expect_not_empty
from _examples import NoExample, example_of
from _identities import Identities, WithIdentity
from _oauth import ClientCredentials
from _workload import count, endpoint, text

NAMED = tuple(name.strip() for name in text("ANY_TOOLS").split(",") if name.strip())

has_content = expect_not_empty("has_content")


def _callers(url: str) -> Identities:
    client = ClientCredentials.from_variables("any", url)
    return Identities.from_variables("any", url) or Identities(
        [client or StaticToken("ANY_MCP_TOKEN")]
    )


class AnyUser(WithIdentity, StatelessMCPUser):
    """A client that calls whatever a server says can be called without harm."""

    host, mcp_path = endpoint("ANY_MCP_URL", "https://ANY_MCP_URL.invalid/mcp")
    identities = _callers(host + mcp_path)
    server_label = "any"
    fixed_count = count("ANY_USERS", 1)
    needs = ("ANY_MCP_URL",)

    @task
    def call_a_tool(self) -> None:
        callable_now = self._callable()
        if not callable_now:
            _roster.warn_once(self.server_label, "no tool can be called: name some in ANY_TOOLS")
            return
        tool, arguments = callable_now[int(self._random.random() * len(callable_now))]
        self._call(tool, arguments, expect=has_content)

    def _callable(self) -> list[tuple[str, dict[str, Any]]]:
        key = id(self.tools)
        if getattr(self, "_made_for", None) != key:
            self._made_for = key
            self._made = [made for tool in self.tools if (made := self._made_call(tool))]
        return self._made

    def _made_call(self, tool: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
        name = str(tool.get("name"))
        annotations = tool.get("annotations")
        harmless = isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
        if name not in NAMED if NAMED else not harmless:
            return None
        execution = tool.get("execution")
        if isinstance(execution, dict) and execution.get("taskSupport") == "required":
            return None
        try:
            return name, example_of(tool.get("inputSchema") or {"type": "object"})
        except NoExample as reason:
            _roster.warn_once(self.server_label, f"the tool {name!r} is left out: {reason}")
            return None
