"""The whole life of one MCP client by hand, for a reader who wants to see the wire.

    locust -f learn_first.py

Locust and the standard library only. What is written out here once is what `MCPUserBase` does for
every server: read this file first, then `learn.py`. Six rows come of it: initialize,
notifications/initialized, tools/list, two tools, DELETE. LEARN_MCP_URL points it elsewhere.

The specification: modelcontextprotocol.io/specification/2025-06-18/basic/transports
"""

from __future__ import annotations

from locust import FastHttpUser, between, task

import itertools
import json
import os
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

URL = urlsplit(os.environ.get("LEARN_MCP_URL", "https://learn.microsoft.com/api/mcp"))
REVISION = "2025-06-18"
QUESTIONS = itertools.cycle(
    ["Azure Functions cold start", "Key Vault secret rotation", "AKS node image upgrade"]
)


class LearnFirstUser(FastHttpUser):
    """One client of Microsoft Learn's server: one session, two tools, asked in turn."""

    host = f"{URL.scheme}://{URL.netloc}"
    wait_time = between(1, 3)
    insecure = False  # FastHttpUser verifies no certificate unless it is told to
    network_timeout = 30.0

    session_id = ""
    revision = ""

    def on_start(self) -> None:
        """1 initialize, 2 say that we heard, 3 ask what there is."""
        self.ids = itertools.count(1)
        hello = {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "learn-first", "version": "1"},
        }
        result = self.request("learn:initialize", "initialize", hello)
        # The server may choose another revision; from now on every request names it.
        self.revision = str(result.get("protocolVersion", REVISION))
        self.notify("learn:notifications/initialized", "notifications/initialized")
        self.request("learn:tools/list", "tools/list", {})

    @task
    def search_the_documentation(self) -> None:
        """4 call a tool, as often as Locust asks for it."""
        self.call("microsoft_docs_search", {"query": next(QUESTIONS)})

    @task
    def search_for_code(self) -> None:
        """4 call another."""
        self.call("microsoft_code_sample_search", {"query": next(QUESTIONS), "language": "python"})

    def on_stop(self) -> None:
        """5 close the session; a server may refuse (405) or have forgotten it (404)."""
        if not self.session_id:
            return
        with self.client.request(
            "DELETE", URL.path, name="learn:DELETE", headers=self.headers(), catch_response=True
        ) as response:
            if response.status_code in (200, 202, 204, 404, 405):
                response.success()

    def call(self, tool: str, arguments: dict[str, Any]) -> None:
        """Send tools/call, whose reply is a success only if the tool says so."""
        params = {"name": tool, "arguments": arguments}
        self.request(f"learn:tools/call:{tool}", "tools/call", params)

    # ---- the wire

    def headers(self) -> dict[str, str]:
        """Both reply forms must be accepted; revision and session follow from initialize."""
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",  # the body is read as it arrives, and so undecoded
        }
        if self.revision:
            headers["MCP-Protocol-Version"] = self.revision
        if self.session_id:
            headers["Mcp-Session-Id"] = self.session_id
        return headers

    def notify(self, name: str, method: str) -> None:
        """Send a notification: no id, so no reply but a status (202)."""
        body = json.dumps({"jsonrpc": "2.0", "method": method})
        with self.client.request(
            "POST", URL.path, name=name, data=body, headers=self.headers(), catch_response=True
        ) as response:
            if not 200 <= response.status_code < 300:
                response.failure(f"HTTP {response.status_code}")

    def request(self, name: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and read up to its reply; {} where it failed, which is then recorded.

        The stream may stay open after the reply, and other messages may come before it. The time
        that is recorded ends with the reply.
        """
        request_id = next(self.ids)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        started = time.perf_counter()
        with self.client.request(
            "POST",
            URL.path,
            name=name,
            data=json.dumps(message),
            headers=self.headers(),
            stream=True,
            catch_response=True,
        ) as response:
            try:
                reply = self.read(response, request_id)
                response.request_meta["response_time"] = (time.perf_counter() - started) * 1000
                result = judge(reply)
            except (ValueError, OSError) as error:
                response.failure(str(error) or type(error).__name__)
                return {}
            if method == "initialize":
                self.session_id = response.headers.get("Mcp-Session-Id", "")
            response.success()
            return result

    def read(self, response: Any, request_id: int) -> dict[str, Any]:
        """Return the message with our id from a JSON body or an event stream."""
        if response.status_code != 200:
            raise ValueError(f"HTTP {response.status_code}")
        body = response._response  # geventhttpclient's, which can be read line by line
        kind = (response.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if kind == "application/json":
            messages = iter([json.loads(body.read())])
        elif kind == "text/event-stream":
            messages = events(body)
        else:
            raise ValueError(f"unexpected content-type {kind}")
        for message in messages:
            if isinstance(message, dict) and message.get("id") == request_id:
                return message
        raise ValueError("stream ended before the reply")


def events(body: Any) -> Iterator[Any]:
    """Yield the JSON messages of an event stream: `data:` lines up to a blank one are one event."""
    data: list[str] = []
    while True:
        line = body.readline(b"\n").decode("utf-8")
        text = line.rstrip("\r\n")
        if text.startswith("data:"):
            data.append(text[5:].strip())
        elif not text and "".join(data):
            yield json.loads("\n".join(data))
            data = []
        if not line:
            return


def judge(reply: dict[str, Any]) -> dict[str, Any]:
    """Return the result; ValueError for a JSON-RPC error and for a tool that says isError."""
    if "error" in reply:
        raise ValueError(f"JSON-RPC error {reply['error'].get('code')}")
    result: dict[str, Any] = reply.get("result", {})
    if result.get("isError"):
        raise ValueError("tool error")
    return result
