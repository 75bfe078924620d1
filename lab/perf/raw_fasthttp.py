"""The floor of stock Locust: FastHttpUser posts one body, reads the reply and checks nothing."""

from __future__ import annotations

from locust import FastHttpUser, constant, task

import os

BODY = (
    '{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    '"params":{"name":"echo","arguments":{"message":"hello"}}}'
)
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Raw(FastHttpUser):
    """One client that posts as fast as it is answered."""

    host = os.environ["MCP_URL"].removesuffix("/mcp")
    wait_time = constant(0)

    @task
    def post(self) -> None:
        """Post the one body."""
        self.client.post("/mcp", data=BODY, headers=HEADERS, name="raw")
