"""The real servers: how each is started, what it does, and which of its tools are harmless.

Facts as of 2026-11-30 (versions in install.py). `calls` holds each harmless tool with its
arguments and a text that a good answer has; what changes the server or asks the internet is left
out. `speaks` are the revisions that its users are dealt among.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.live.install import LIVE

HERE = Path(__file__).parent
NODE_MODULES = LIVE / "node_modules"
EXAMPLES = NODE_MODULES / "@modelcontextprotocol/sdk/dist/esm/examples/server"
EVERYTHING = NODE_MODULES / "@modelcontextprotocol/server-everything/dist/index.js"
CONTEXT7 = NODE_MODULES / "@upstash/context7-mcp/dist/index.js"
NODE = ("node", "--require", str(HERE / "loopback.cjs"))
STATELESS_ERA = ("2026-07-28",)
HANDSHAKES = ("2025-03-26", "2025-06-18", "2025-11-25")

Calls = Mapping[str, tuple[Mapping[str, Any], str]]


@dataclass(frozen=True)
class Server:
    """One real server; `{port}` in its command and variables is filled in.

    form: "sse" or "json", how it answers a call.  sessions: does it give ids, to be DELETEd?
    backend: a program of ours that it asks, as `command`; `{backend}` is its port.
    """

    label: str
    command: tuple[str, ...]
    form: str
    sessions: bool
    calls: Calls
    variables: Mapping[str, str] = field(default_factory=dict)
    speaks: tuple[str, ...] = HANDSHAKES
    backend: tuple[str, ...] = ()

    @property
    def installed(self) -> bool:
        """Is there what its command runs?"""
        return all(Path(word).exists() for word in self.command if word.startswith(str(LIVE)))


OF_SDK: Calls = {
    "echo": ({"text": "say it again: é 日本"}, "say it again: é 日本"),
    "add": ({"a": 40, "b": 2}, "42"),
    "weather": ({"city": "Oslo"}, "Oslo"),
    "count": ({"to": 3}, "counted to 3"),
}
OF_EVERYTHING: Calls = {
    "echo": ({"message": "again"}, "again"),
    "get-annotated-message": ({"messageType": "success", "includeImage": True}, ""),
    "get-env": ({}, ""),
    "get-resource-links": ({"count": 3}, "resource"),
    "get-resource-reference": ({"resourceType": "Text", "resourceId": 1}, ""),
    "get-structured-content": ({"location": "Chicago"}, "humidity"),
    "get-sum": ({"a": 40, "b": 2}, "42"),
    "get-tiny-image": ({}, ""),
    "gzip-file-as-resource": ({"data": "data:text/plain,hello", "outputType": "resource"}, ""),
    "trigger-long-running-operation": ({"duration": 0.2, "steps": 2}, "completed"),
}
OF_ECHO: Calls = {
    "echo": ({"message": "again"}, "again"),
    "printHeader": ({}, ""),
    "authContext": ({}, ""),
    "requestTiming": ({}, ""),
    "corsAnalysis": ({}, ""),
    "environmentDump": ({}, ""),
    "healthProbe": ({}, ""),
    "whoIStheGOAT": ({}, ""),
}


def _of_python_sdk(sdk: str, speaks_the_stateless_era: bool) -> list[Server]:
    start = (str(LIVE / sdk / "bin" / "python"), str(HERE / "sdk_server.py"), sdk, "{port}")
    found = []
    for sessions in (True, False):
        for form in ("sse", "json"):
            words = [*start, *([] if sessions else ["--stateless"])]
            words += ["--json"] if form == "json" else []
            label = f"{sdk}-{'sessions' if sessions else 'stateless'}-{form}"
            found.append(Server(label, tuple(words), form, sessions, OF_SDK))
    if speaks_the_stateless_era:
        era = f"{sdk}-2026-07-28"
        found.append(Server(era, start, "json", False, OF_SDK, speaks=STATELESS_ERA))
    return found


SERVERS = [
    *_of_python_sdk("mcp1", speaks_the_stateless_era=False),
    *_of_python_sdk("mcp2", speaks_the_stateless_era=True),
    *_of_python_sdk("fastmcp", speaks_the_stateless_era=True),
    Server(
        "everything",
        (*NODE, str(EVERYTHING), "streamableHttp"),
        "sse",
        sessions=True,
        calls=OF_EVERYTHING,
        variables={"PORT": "{port}"},
    ),
    Server(
        "ts-example-json",
        (*NODE, str(EXAMPLES / "jsonResponseStreamableHttp.js")),
        "json",
        sessions=True,
        calls={
            "greet": ({"name": "Ada"}, "Hello, Ada!"),
            "multi-greet": ({"name": "Ada"}, "Good morning, Ada!"),
        },
        variables={"LOOPBACK_PORT": "{port}"},
    ),
    Server(
        "npm-proxy-stateless",
        (
            *("node", str(NODE_MODULES / "mcp-proxy/dist/bin/mcp-proxy.mjs")),
            *("--host", "127.0.0.1", "--port", "{port}", "--server", "stream", "--stateless"),
            *("--", "node", str(EVERYTHING), "stdio"),
        ),
        "sse",
        sessions=False,
        calls=OF_EVERYTHING,
    ),
    Server(
        "context7",
        (*NODE, str(CONTEXT7), "--transport", "http", "--port", "{port}"),
        "sse",
        sessions=False,
        calls={
            "resolve-library-id": (
                {"libraryName": "flask", "query": "blueprints"},
                "Context7-compatible library ID",
            ),
            "query-docs": ({"libraryId": "/pallets/flask", "query": "blueprints"}, "Source:"),
        },
        variables={"CONTEXT7_API_URL": "http://127.0.0.1:{backend}", "OTEL_SDK_DISABLED": "true"},
        backend=(sys.executable, str(HERE / "context7_backend.py"), "{backend}"),
    ),
    Server(
        "py-proxy-time",
        (
            *(str(LIVE / "mcp1/bin/mcp-proxy"), "--host", "127.0.0.1", "--port", "{port}"),
            str(LIVE / "mcp1/bin/mcp-server-time"),
        ),
        "json",
        sessions=True,
        calls={
            "get_current_time": ({"timezone": "Etc/UTC"}, "datetime"),
            "convert_time": (
                {"source_timezone": "Etc/UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
                "21:00",
            ),
        },
    ),
    Server(
        "echo-stateless",
        (
            str(LIVE / "echo/bin/mcp-echo-streamablehttp-server-stateless"),
            *("--host", "127.0.0.1", "--port", "{port}"),
        ),
        "json",
        sessions=True,  # it gives ids, keeps none, and answers 405 to DELETE
        calls=OF_ECHO,
        speaks=("2025-06-18",),  # it refuses every other revision
    ),
]
