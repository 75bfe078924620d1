"""The real servers: how each is started, what it accepts, and which of its tools are harmless.

Facts as of 2026-11-30 (versions in install.py). `calls` holds each harmless tool with its
arguments and a text that a good answer has; what changes the server or asks the internet is left
out.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _revisions import AUTO
from lab.null_server import free_port
from lab.real.install import LIVE, NODE_KIT, installed
from lab.targets import Target

HERE = Path(__file__).parent
NODE_MODULES = LIVE / NODE_KIT
EXAMPLES = NODE_MODULES / "@modelcontextprotocol/sdk/dist/esm/examples/server"
EVERYTHING = NODE_MODULES / "@modelcontextprotocol/server-everything/dist/index.js"
CONTEXT7 = NODE_MODULES / "@upstash/context7-mcp/dist/index.js"
NODE = ("node", "--require", str(HERE / "loopback.cjs"))
HANDSHAKES = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
BOTH_ERAS = (*HANDSHAKES, STATELESS)

Calls = Mapping[str, tuple[Mapping[str, Any], str]]


@dataclass(frozen=True)
class Server:
    """One real server; `{port}` in its command and variables is filled in.

    sdk: what it is made of.  kit: what has to be installed.
    form: "sse" or "json", how it answers a call after a handshake.
    sessions: does it give ids after a handshake, to be DELETEd?
    accepts: the revisions that it answers with the same, in the order of their dates.
    refuses: is all else an error, even in a handshake, where others answer with their own?
    backend: a program of ours that it asks, as `command`; `{backend}` is its port.
    """

    label: str
    sdk: str
    kit: str
    command: tuple[str, ...]
    form: str
    sessions: bool
    calls: Calls
    accepts: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    backend: tuple[str, ...] = ()
    refuses: bool = False
    path: str = "/mcp"

    def speaks(self, asked: str) -> str:
        """Return the revision that a client which asks for `asked` ends up with, "" if none."""
        if asked != AUTO:
            return asked if asked in self.accepts else ""
        newest = self.accepts[-1]
        return "" if self.refuses and newest not in (HANDSHAKES[-1], STATELESS) else newest

    @property
    def missing(self) -> str:
        """Say what keeps it from being started, with the cure, or ""."""
        if self.command[0] == "node" and not shutil.which("node"):
            return f"{self.label}: node is not on the PATH: install Node.js"
        if self.kit not in installed():
            return f"{self.label} is not installed: python -m lab matrix --install"
        return ""


@contextmanager
def serving(server: Server) -> Iterator[tuple[int, Target]]:
    """Start a server, and its backend if it has one; yield its port and its process, and stop it.

    Raises TargetFailed where it does not start.
    """
    ports = {"port": free_port(), "backend": free_port()}
    with ExitStack() as stack:
        if server.backend:
            command = _fill(server.backend, ports)
            stack.enter_context(Target(command, ports["backend"], stop_seconds=2))
        env = {name: value.format(**ports) for name, value in server.variables.items()}
        command = _fill(server.command, ports)
        target = Target(command, ports["port"], env=env, stop_seconds=2)
        yield ports["port"], stack.enter_context(target)


def _fill(words: tuple[str, ...], ports: Mapping[str, int]) -> list[str]:
    return [word.format(**ports) for word in words]


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


OF_GITLAB: Calls = {
    "gitlab_find_action": ({"query": "project list"}, "project.list"),
    "gitlab_execute_action": ({"action": "project.list", "params": {}}, "pallets/flask"),
}


def _sdk_server(kit: str, api: str) -> tuple[str, ...]:
    return (str(LIVE / kit / "bin" / "python"), str(HERE / "sdk_server.py"), api, "{port}")


def _of_python_sdk(kit: str, sdk: str, accepts: tuple[str, ...]) -> list[Server]:
    start = _sdk_server(kit, kit)
    found = []
    for sessions in (True, False):
        for form in ("sse", "json"):
            words = [*start, *([] if sessions else ["--stateless"])]
            words += ["--json"] if form == "json" else []
            label = f"{kit}-{'sessions' if sessions else 'stateless'}-{form}"
            found.append(Server(label, sdk, kit, tuple(words), form, sessions, OF_SDK, accepts))
    return found


def _of_typescript_sdk(label: str, *flags: str) -> Server:
    command = ("node", str(HERE / "ts_server.cjs"), "{port}", *flags)
    variables = {"NODE_PATH": str(NODE_MODULES)}
    sdk, sessions = "TypeScript SDK 2.4.0", "--sessions" in flags
    return Server(label, sdk, NODE_KIT, command, "sse", sessions, OF_SDK, BOTH_ERAS, variables)


def _of_gitlab(label: str, form: str, accepts: tuple[str, ...], *flags: str) -> Server:
    return Server(
        label,
        "Go SDK 1.8.0 (GitLab 3.3.0)",
        "go",
        (
            *(str(LIVE / "go/bin/gitlab-mcp-server"), "-http", "-http-addr", "127.0.0.1:{port}"),
            *("-gitlab-url", "http://127.0.0.1:{backend}", "-read-only"),
            *("-rate-limit-rps", "0", *flags),
        ),
        form,
        sessions="-stateless=false" in flags,
        calls=OF_GITLAB,
        accepts=accepts,
        headers={"PRIVATE-TOKEN": "glpat-dummy"},
        backend=(sys.executable, str(HERE / "gitlab_backend.py"), "{backend}"),
    )


SERVERS = [
    Server(
        "mcp1.10",
        "Python SDK 1.10.1",
        "mcp1.10",
        _sdk_server("mcp1.10", "mcp1"),
        "sse",
        sessions=True,
        calls=OF_SDK,
        accepts=HANDSHAKES[:2],
        path="/mcp/",  # it redirects from /mcp, each time
    ),
    *_of_python_sdk("mcp1", "Python SDK 1.30.0", HANDSHAKES),
    Server(
        "py-proxy-time",
        "Python SDK 1.30.0 (mcp-proxy 0.13.0)",
        "mcp1",
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
        accepts=HANDSHAKES,
    ),
    *_of_python_sdk("mcp2", "Python SDK 2.3.0", BOTH_ERAS),
    *_of_python_sdk("fastmcp", "FastMCP 4.2.3", BOTH_ERAS),
    Server(
        "everything",
        "TypeScript SDK 1.32.2",
        NODE_KIT,
        (*NODE, str(EVERYTHING), "streamableHttp"),
        "sse",
        sessions=True,
        calls=OF_EVERYTHING,
        accepts=HANDSHAKES,
        variables={"PORT": "{port}"},
    ),
    Server(
        "ts-example-json",
        "TypeScript SDK 1.32.2",
        NODE_KIT,
        (*NODE, str(EXAMPLES / "jsonResponseStreamableHttp.js")),
        "json",
        sessions=True,
        calls={
            "greet": ({"name": "Ada"}, "Hello, Ada!"),
            "multi-greet": ({"name": "Ada"}, "Good morning, Ada!"),
        },
        accepts=HANDSHAKES,
        variables={"LOOPBACK_PORT": "{port}"},
    ),
    _of_typescript_sdk("ts2-sessions", "--sessions"),
    _of_typescript_sdk("ts2-stateless"),
    Server(
        "npm-proxy-stateless",
        "TypeScript SDK 2.4.0 (mcp-proxy 6.7.19)",
        NODE_KIT,
        (
            *("node", str(NODE_MODULES / "mcp-proxy/dist/bin/mcp-proxy.mjs")),
            *("--host", "127.0.0.1", "--port", "{port}", "--server", "stream", "--stateless"),
            *("--", "node", str(EVERYTHING), "stdio"),
        ),
        "sse",
        sessions=False,
        calls=OF_EVERYTHING,
        accepts=BOTH_ERAS,
    ),
    Server(
        "context7",
        "TypeScript SDK 2.0.0 (Context7 4.1.1)",
        NODE_KIT,
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
        accepts=BOTH_ERAS,
        variables={"CONTEXT7_API_URL": "http://127.0.0.1:{backend}", "OTEL_SDK_DISABLED": "true"},
        backend=(sys.executable, str(HERE / "context7_backend.py"), "{backend}"),
    ),
    _of_gitlab("go-sessions-json", "json", HANDSHAKES, "-stateless=false", "-json-response"),
    _of_gitlab("go-stateless-sse", "sse", BOTH_ERAS),
    Server(
        "echo-stateless",
        "no SDK (mcp-echo 0.2.0)",
        "echo",
        (
            str(LIVE / "echo/bin/mcp-echo-streamablehttp-server-stateless"),
            *("--host", "127.0.0.1", "--port", "{port}"),
        ),
        "json",
        sessions=True,  # it gives ids, keeps none, and answers 405 to DELETE
        calls=OF_ECHO,
        accepts=("2025-06-18",),
        refuses=True,
    ),
]
