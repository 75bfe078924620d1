"""A server in the process of the test that does as it is told, byte by byte, and remembers it all.

`FakeServer` speaks HTTP as far as a test wants to break it; `MCPServer` answers like a plain MCP
server, except for those methods that a test answers itself. Nothing here sleeps: a test waits for
what it wants to have happened (`heard`, `Peer.gone`), and fails when that does not come.
"""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import json
import socket
import ssl
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable

import gevent
from gevent.event import Event
from gevent.server import StreamServer

PATIENCE_S = 10.0  # after which what a test waits for will not come
OK = {"content": [{"type": "text", "text": "ok"}]}


@dataclass
class Request:
    """One request as it arrived; header names are in lower case."""

    verb: str
    target: str
    headers: dict[str, str]
    head: bytes
    body: bytes
    connection: int
    arrived: float

    @property
    def message(self) -> dict[str, Any]:
        found = json.loads(self.body) if self.body else {}
        assert isinstance(found, dict)
        return found

    @property
    def method(self) -> str:
        """The JSON-RPC method; "" for an answer, the HTTP verb where there is no body."""
        return str(self.message.get("method", "")) if self.body else self.verb

    @property
    def params(self) -> dict[str, Any]:
        found = self.message.get("params") or {}
        assert isinstance(found, dict)
        return found


class Peer:
    """The server's side of a connection, while it answers `request`."""

    def __init__(self, sock: Any, request: Request, server: FakeServer) -> None:
        self.request = request
        self.server = server
        self.open = True
        self._sock = sock

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def head(self, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        lines = [f"HTTP/1.1 {status} X"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def reply(
        self,
        body: bytes = b"",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        kind: str = "application/json",
    ) -> None:
        """Send a whole reply with its length."""
        usual = {"Content-Type": kind, "Content-Length": str(len(body))}
        self.head(status, {**usual, **(headers or {})})
        self.send(body)

    def json(
        self, message: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self.reply(json.dumps(message).encode(), status, headers)

    def result(self, result: Any, headers: Mapping[str, str] | None = None) -> None:
        self.json(answer(self.request, result), headers=headers)

    def error(self, code: int, status: int = 200, message: str = "no", data: Any = None) -> None:
        error = {"code": code, "message": message, **({"data": data} if data else {})}
        self.json({"jsonrpc": "2.0", "id": self.request.message.get("id"), "error": error}, status)

    def stream(self, headers: Mapping[str, str] | None = None) -> None:
        """Begin an event stream in chunks; `event` and `end` go on with it."""
        usual = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        self.head(200, {**usual, **(headers or {})})

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def event(self, message: Any, fields: str = "") -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        self.chunk(f"{fields}data: {text}\n\n".encode())

    def end(self) -> None:
        self.send(b"0\r\n\r\n")

    def events(self, *messages: Any) -> None:
        """Send a whole event stream."""
        self.stream()
        for message in messages:
            self.event(message)
        self.end()

    def close(self, reset: bool = False) -> None:
        self.open = False
        if reset:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()

    def gone(self) -> bool:
        """Wait until the client has closed the connection, and close it; false if it sent more."""
        with gevent.Timeout(PATIENCE_S):
            try:
                more = self._sock.recv(1)
            except OSError:
                more = b""
        self.close()
        return not more


Answer = Callable[[Peer], Any]


def answer(request: Request, result: Any) -> dict[str, Any]:
    """Return the JSON-RPC answer to a request."""
    return {"jsonrpc": "2.0", "id": request.message.get("id"), "result": result}


class FakeServer:
    """Serves `answers` on a free port of loopback; a context manager.

    requests: all that came, in order. connections: how many were opened.
    """

    def __init__(
        self, answers: Answer, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1"
    ) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.failures: list[BaseException] = []
        self._answers = answers
        self._news = Event()
        self._tls = tls
        more = {"ssl_context": tls} if tls is not None else {}
        self._server = StreamServer((address, 0), self._serve, **more)

    def __enter__(self) -> FakeServer:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stop(timeout=0.01)
        if self.failures and error is None:
            raise self.failures[0]

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    @property
    def url(self) -> str:
        host = self._server.server_host
        scheme = "http" if self._tls is None else "https"
        return (
            f"{scheme}://[{host}]:{self.port}" if ":" in host else f"{scheme}://{host}:{self.port}"
        )

    @property
    def methods(self) -> list[str]:
        """The JSON-RPC methods in order of arrival ("" for answers, verbs without a body)."""
        return [request.method for request in self.requests]

    def of(self, method: str) -> list[Request]:
        return [request for request in self.requests if request.method == method]

    def heard(self, enough: Callable[[], bool]) -> None:
        """Wait until `enough()`, looked at after each request."""
        end = time.monotonic() + PATIENCE_S
        while not enough():
            self._news.clear()
            assert self._news.wait(max(0.0, end - time.monotonic())), (
                f"it never happened; the server heard {self.methods}"
            )

    def _serve(self, sock: Any, _address: Any) -> None:
        self.connections += 1
        number = self.connections
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = sock.makefile("rb")
        try:
            while True:
                request = _read(stream, number)
                if request is None:
                    return
                self.requests.append(request)
                self._news.set()
                peer = Peer(sock, request, self)
                self._answers(peer)
                if not peer.open:
                    return
        except OSError:
            pass  # the client closed while we still wrote
        except gevent.GreenletExit:
            raise
        except BaseException as error:
            self.failures.append(error)
        finally:
            stream.close()
            sock.close()


def _read(stream: Any, number: int) -> Request | None:
    lines = []
    while True:
        line = stream.readline()
        if not line:
            return None
        lines.append(line)
        if line == b"\r\n":
            break
    first, *rest = [line.decode("latin-1").rstrip("\r\n") for line in lines[:-1]]
    assert first.count(" ") == 2, f"no request line: {first!r}"
    verb, target, _ = first.split(" ", 2)
    pairs = [line.split(": ", 1) for line in rest]
    headers = {name.lower(): value for name, value in pairs}
    assert len(headers) == len(pairs), f"a header came twice: {rest}"
    body = stream.read(int(headers.get("content-length", 0)))
    if "transfer-encoding" in headers:  # older geventhttpclient: a GET with an empty chunked body
        assert stream.read(5) == b"0\r\n\r\n"
    return Request(verb, target, headers, b"".join(lines), body, number, time.perf_counter())


class MCPServer(FakeServer):
    """A plain MCP server of the handshake era, or of the stateless one, as it is asked.

    on: method (or verb): how a test answers it instead. session: does initialize give an id?
    """

    def __init__(self, *, session: bool = True, tools: Any = None, **more: Any) -> None:
        super().__init__(self._answer, **more)
        self.on: dict[str, Answer] = {}
        self.session = session
        self.sessions: list[str] = []
        self.tools = tools or [{"name": "echo", "inputSchema": {"type": "object"}}]

    def __enter__(self) -> MCPServer:
        super().__enter__()
        return self

    def _answer(self, peer: Peer) -> None:
        method = peer.request.method
        usual = self.on.get(method, self._usual)
        usual(peer)

    def _usual(self, peer: Peer) -> None:
        request = peer.request
        method = request.method
        kind = {"resultType": "complete"} if "mcp-method" in request.headers else {}
        if method == "initialize":
            self.initialize(peer)
        elif method.startswith("notifications/") or method == "":
            peer.reply(status=202)
        elif method == "tools/list":
            peer.result({"tools": self.tools, **kind})
        elif method == "server/discover":
            peer.result({"supportedVersions": ["2026-07-28"], "capabilities": {}, **kind})
        elif method == "DELETE":
            peer.reply(status=200)
        elif method == "GET":
            peer.reply(status=405)
        else:
            peer.result({**OK, **kind})

    def initialize(self, peer: Peer, version: str | None = None) -> None:
        """Answer initialize as usual."""
        headers = {}
        if self.session:
            self.sessions.append(f"session-{len(self.sessions) + 1}")
            headers["Mcp-Session-Id"] = self.sessions[-1]
        agreed = version or peer.request.params["protocolVersion"]
        info = {"name": "fake", "version": "1"}
        result = {"protocolVersion": agreed, "capabilities": {}, "serverInfo": info}
        peer.result(result, headers)


def in_turn(*answers: Answer) -> Answer:
    """Answer the first request by the first, and so on; the last one goes on for ever."""
    left = list(answers)

    def one(peer: Peer) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(peer)

    return one
