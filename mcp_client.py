"""An MCP client over Streamable HTTP as data: what to send, and what the answer means. No I/O.

A `Session` knows what one virtual user must put on the wire now: the negotiated revision, the
session id it was given, the ids it may use. Connections carry the bytes it makes, a `Reply` reads
what comes back, a `Trace` holds the instants in between.

Spec: modelcontextprotocol.io/specification/2025-06-18/basic/{lifecycle,transports}.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Mapping
from typing import Any

from _failures import (
    AuthError,
    CheckFailed,
    HTTPStatusError,
    MCPError,
    ProtocolError,
    RPCError,
    SessionLost,
    Throttled,
    Timeout,
    ToolError,
    TransportError,
    tool_failure,
)
from _reply import Reply
from _revisions import REVISIONS, Era, Revision, revision_to_offer

__all__ = [
    "NAME",
    "VERSION",
    "AuthError",
    "CheckFailed",
    "HTTPStatusError",
    "MCPError",
    "ProtocolError",
    "RPCError",
    "Reply",
    "Session",
    "SessionLost",
    "Throttled",
    "Timeout",
    "ToolError",
    "Trace",
    "TransportError",
    "judge_tool_result",
    "next_id",
]

NAME = "mcp-load-test"
VERSION = "0.1.0"
USER_AGENT = f"{NAME}/{VERSION} (load test; Locust)"
LIST_PAGES_LIMIT = 100  # as the official Python client's


class Trace:
    """The instants of one exchange, as `time.perf_counter()` seconds; 0.0 for what never came.

    `planned` is when the task asked, `started` just before the request is written or a connection
    opened for it, `replied` the read that completed the reply, `ended` the end of its stream.
    """

    planned = started = connected = secured = sent = 0.0
    headers = first_event = replied = ended = 0.0
    at = 0.0
    """`started` as epoch seconds."""
    status = 0
    kind = ""
    request_id: int | None = None
    sent_bytes = received_bytes = 0
    user_class = ""
    session = 0
    killed = False
    """The user was killed meanwhile, and has yet to obey."""


def _first_id() -> int:
    # Servers with one shared transport route replies by id alone (GHSA-345p-7cg4-v4c7): ids are
    # unique in the process, and start where no other process of the run is likely to be. They
    # stay below 2**53, which is all that a JavaScript server can tell apart.
    return (random.SystemRandom().getrandbits(20) << 32) + 1


_ids = itertools.count(_first_id())


def next_id() -> int:
    """A JSON-RPC id that no other request of this process has."""
    return next(_ids)


def _start_ids_anew() -> None:
    global _ids
    _ids = itertools.count(_first_id())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_ids_anew)


class Session:
    """The protocol state of one user: from `initialize` to DELETE, and again after a loss.

    `session_id` is None before a server gave one, `revision` None before one was negotiated.
    """

    def __init__(self, target: str, authority: str, protocol_version: str) -> None:
        self.offered = revision_to_offer(protocol_version)
        self.session_id: str | None = None
        self.revision: Revision | None = None
        self._target = target
        self._authority = authority
        self._heads: dict[str, bytes] = {}
        self._extra: dict[str, str] = {}
        self._cookie = ""

    def forget(self) -> None:
        """Drop the id and the revision, as a lost session asks for."""
        self.session_id = None
        self.revision = None
        self._heads.clear()

    @property
    def batches(self) -> bool:
        """May a reply be an array now?"""
        return self.revision is not None and self.revision.batches

    def initialize_params(self, client_info: Mapping[str, str]) -> dict[str, Any]:
        """What `initialize` says of us: a client without capabilities of its own."""
        return {
            "protocolVersion": self.offered.name,
            "capabilities": {},
            "clientInfo": dict(client_info),
        }

    def adopt(self, result: dict[str, Any], headers: Mapping[bytes, bytes]) -> None:
        """Take the revision and the id of a successful initialize, and of nothing else.

        Raises ProtocolError for a revision that no client of ours can go on with.
        """
        named = result.get("protocolVersion")
        revision = REVISIONS.get(named) if isinstance(named, str) else None
        if revision is None or revision.era is not Era.HANDSHAKE:
            raise ProtocolError("unknown protocol version")
        given = headers.get(b"mcp-session-id")
        if given is not None and not _is_visible_ascii(given):
            raise ProtocolError("invalid session id")
        self.revision = revision
        self.session_id = given.decode("ascii") if given else None
        self._heads.clear()

    def describe(self, result: Mapping[str, Any]) -> dict[str, str]:
        """What the server said of itself in an initialize result, cut to a readable length."""
        info = result.get("serverInfo")
        info = info if isinstance(info, dict) else {}
        return {
            "name": str(info.get("title") or info.get("name") or "")[:200],
            "version": str(info.get("version") or "")[:100],
            "protocolVersion": self.revision.name if self.revision else "",
            "session": "yes" if self.session_id else "no",
        }

    def request(
        self, verb: str, extra: dict[str, str], cookie: str, body: bytes, target: str = ""
    ) -> bytes:
        """The bytes of one HTTP request. `extra` are the user's own headers, which win.

        Raises MCPError where a header of the user's cannot be sent; its text holds no value.
        """
        if extra != self._extra or cookie != self._cookie:
            self._extra, self._cookie = extra, cookie
            self._heads.clear()
        if target:
            return self._head(verb, target) + b"%d\r\n\r\n%b" % (len(body), body)
        head = self._heads.get(verb)
        if head is None:
            head = self._heads[verb] = self._head(verb, self._target)
        return b"%b%d\r\n\r\n%b" % (head, len(body), body)

    def _head(self, verb: str, target: str) -> bytes:
        headers = {
            "Host": self._authority,
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "gzip, deflate",
            "User-Agent": USER_AGENT,
        }
        if verb == "POST":
            headers["Content-Type"] = "application/json"
        if self.session_id is not None:
            headers["Mcp-Session-Id"] = self.session_id
        if self.revision is not None:
            headers["MCP-Protocol-Version"] = self.revision.name
        if self._cookie:
            headers["Cookie"] = self._cookie
        own = {name.lower() for name in self._extra}
        lines = [f"{verb} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items() if name.lower() not in own]
        lines += [_header_line(name, value) for name, value in self._extra.items()]
        return ("\r\n".join(lines) + "\r\nContent-Length: ").encode("latin-1")


def judge_tool_result(result: dict[str, Any], expect: Any) -> None:
    """Raises ToolError (or what its text plainly says) for isError, CheckFailed for a bad result.

    `expect` is a predicate with a `__name__`, or has `reason(result)`: the name of what failed.
    """
    if result.get("isError"):
        raise tool_failure(result)
    if expect is None:
        return
    reason = getattr(expect, "reason", None)
    try:
        failed = reason(result) if reason is not None else not expect(result)
    except Exception as error:
        raise CheckFailed(f"check raised {type(error).__name__}: {_name_of(expect)}") from error
    if failed:
        raise CheckFailed(f"check failed: {failed if reason is not None else _name_of(expect)}")


def _name_of(check: Any) -> str:
    return str(getattr(check, "__name__", type(check).__name__))


def _is_visible_ascii(value: bytes) -> bool:
    return len(value) > 0 and all(0x21 <= byte <= 0x7E for byte in value)


def _header_line(name: str, value: str) -> str:
    line = f"{name}: {value}"
    try:
        line.encode("latin-1")
    except UnicodeEncodeError:
        raise MCPError(f"header {name} is not latin-1") from None
    if "\r" in line or "\n" in line or "\0" in line or ":" in name:
        raise MCPError(f"header {name} holds a line break")
    return line
