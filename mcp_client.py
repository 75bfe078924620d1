"""An MCP client over Streamable HTTP as data: what to send, and what the answer means. No I/O.

A `Session` knows what one virtual user must put on the wire now: the negotiated revision, the
session id it was given, the ids it may use. Connections carry the bytes it makes, a `Reply` reads
what comes back, a `Trace` holds the instants in between.

Spec: modelcontextprotocol.io/specification/2025-06-18/basic/{lifecycle,transports}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from _envelope import client_meta
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
from _jsonrpc import next_id
from _reply import Reply
from _revisions import REVISIONS, Era, Revision
from _trace import Trace

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
    "judge_result",
    "judge_tool_result",
    "next_id",
]

NAME = "mcp-load-test"
VERSION = "0.1.0"
USER_AGENT = f"{NAME}/{VERSION} (load test; Locust)"
LIST_PAGES_LIMIT = 100  # as the official Python client's
HEADS_KEPT = 32  # request heads of one user, each made once for many calls


class Session:
    """The protocol state of one user: from its start to DELETE, and again after a loss.

    `session_id` is None before a server gave one, `revision` None before one was agreed upon.
    `meta` is what each request says of its client in the stateless era, else empty.
    """

    def __init__(self, target: str, authority: str) -> None:
        self.session_id: str | None = None
        self.revision: Revision | None = None
        self.meta: dict[str, Any] = {}
        self._target = target
        self._authority = authority
        self._heads: dict[Any, bytes] = {}
        self._extra: dict[str, str] = {}
        self._cookie = ""

    def forget(self) -> None:
        """Drop the id and the revision, as a lost session asks for."""
        self.session_id = None
        self.revision = None
        self.meta = {}
        self._heads.clear()

    @property
    def stateless(self) -> bool:
        """Does each request stand alone now (2026-07-28)?"""
        return self.revision is not None and self.revision.era is Era.ENVELOPE

    def reply_to(self, request_id: int | None, on_request: Any = None) -> Reply:
        """Return what will read the answer to a message of this session."""
        revision = self.revision
        return Reply(
            request_id,
            in_session=self.session_id is not None,
            batches=revision is not None and revision.batches,
            on_request=on_request,
        )

    def stand_alone(
        self, revision: Revision, client_info: Mapping[str, str], capabilities: Mapping[str, Any]
    ) -> None:
        """Enter the stateless era, which needs no word with the server."""
        self.forget()
        self.revision = revision
        self.meta = client_meta(revision.name, client_info, capabilities)

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

    def describe(self, server_info: Any) -> dict[str, str]:
        """Return what a server said of itself, cut to a readable length, and what was agreed."""
        info = server_info if isinstance(server_info, dict) else {}
        return {
            "name": str(info.get("title") or info.get("name") or "")[:200],
            "version": str(info.get("version") or "")[:100],
            "protocolVersion": self.revision.name if self.revision else "",
            "session": "yes" if self.session_id else "no",
        }

    def request(
        self,
        verb: str,
        extra: dict[str, str],
        cookie: str,
        body: bytes,
        routing: tuple[tuple[str, str], ...] = (),
        target: str = "",
    ) -> bytes:
        """Return the bytes of one HTTP request.

        `routing` are headers of this message only, `extra` the user's own, which win. Raises
        MCPError where a header of the user's cannot be sent; its text holds no value.
        """
        if extra != self._extra or cookie != self._cookie:
            self._extra, self._cookie = dict(extra), cookie  # a hook may change its own
            self._heads.clear()
        head = self._heads.get((verb, routing, target))
        if head is None:
            head = self._head(verb, routing, target or self._target)
            if len(self._heads) >= HEADS_KEPT:
                self._heads.clear()
            self._heads[verb, routing, target] = head
        return b"%b%d\r\n\r\n%b" % (head, len(body), body)

    def _head(self, verb: str, routing: tuple[tuple[str, str], ...], target: str) -> bytes:
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
        headers.update(routing)
        own = {name.lower() for name in self._extra}
        lines = [f"{verb} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items() if name.lower() not in own]
        lines += [_header_line(name, value) for name, value in self._extra.items()]
        return ("\r\n".join(lines) + "\r\nContent-Length: ").encode("latin-1")


def judge_tool_result(result: dict[str, Any], expect: Any) -> None:
    """Raise ToolError (or what its text plainly says) for isError, CheckFailed for a bad result."""
    if result.get("isError"):
        raise tool_failure(result)
    if expect is not None:
        judge_result(result, expect)


def judge_result(result: dict[str, Any], expect: Any) -> None:
    """Raise CheckFailed where a result is not what `expect` wants.

    `expect` is a predicate with a `__name__`, or has `reason(result)`: the name of what failed.
    """
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
