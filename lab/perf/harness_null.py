"""The harness against the null server: the full lifecycle, then tools/call without think time."""

from __future__ import annotations

from locust import constant, task

import os

from _base import MCPUserBase


class Null(MCPUserBase):
    """One client that calls as fast as it is answered."""

    host = os.environ["MCP_URL"].removesuffix("/mcp")
    mcp_path = "/mcp"
    server_label = "null"
    wait_time = constant(0)

    @task
    def echo(self) -> None:
        """Call the one tool."""
        self._call("echo", {"message": "hello"})
