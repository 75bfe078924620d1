"""The outermost layer of a stand-in: reads what is asked, keeps the drawn time, writes the log.

The latency of a request runs from the arrival of its head to the write of its answer, so
the gate holds the answer back until that instant, whatever the SDK's own work took: a JSON
answer whole, of an event stream only the event that answers (its head goes out at once, as
real servers do).  A tool's handler has waited nearly that long already, see `nearly_due`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lab.standins.faults import Fate, Fates
from lab.standins.guard import Guard
from lab.standins.journal import Journal, Row

SESSION: Final = "mcp-session-id"
STATS_PATH: Final = "/__stats"
_LEAD: Final = 0.003  # seconds that the SDK may need after a handler returned
_BODY_LIMIT: Final = 4 * 1024 * 1024  # the SDK's own; it refuses longer ones


@dataclass(slots=True)
class Exchange:
    """One request between its arrival and its answer; `due` in time.perf_counter seconds."""

    began: float
    row: Row
    due: float = 0.0

    def settle(self, fate: Fate) -> None:
        """Take the latency and the fault that were decided."""
        self.row.drawn_ms, self.row.injected = fate.drawn_ms, fate.injected
        self.due = self.began + fate.drawn_ms / 1000

    async def nearly_due(self) -> None:
        """Wait as a tool's work would; a cancelled request ends here."""
        await _sleep_until(self.due - _LEAD)

    async def until_due(self) -> None:
        """Wait for the instant of the answer."""
        await _sleep_until(self.due)

    def writing(self) -> None:
        """Note the instant just before the answer's last byte, the first time this is said.

        After the write would be too late: the client may have read it before we run again.
        """
        if not self.row.elapsed_ms:
            self.row.elapsed_ms = (time.perf_counter() - self.began) * 1000


async def _sleep_until(instant: float) -> None:
    left = instant - time.perf_counter()
    if left > 0:
        await asyncio.sleep(left)


def exchange_of(request: HTTPConnection) -> Exchange:
    """Give the exchange that a handler's request belongs to."""
    exchange: Exchange = request.scope["lab.exchange"]
    return exchange


@dataclass(slots=True)
class Sessions:
    """The sessions of one stand-in, as its own answers tell."""

    ids: set[str] = field(default_factory=set)
    opened: int = 0
    deleted: int = 0

    def opens(self, session: str) -> None:
        """Note an id given on a successful initialize."""
        self.ids.add(session)
        self.opened += 1

    def ends(self, session: str) -> None:
        """Note a DELETE that was answered 200."""
        if session in self.ids:
            self.ids.remove(session)
            self.deleted += 1

    def counts(self) -> dict[str, int]:
        """Give opened, deleted and still open."""
        return {"opened": self.opened, "deleted": self.deleted, "open": len(self.ids)}


@dataclass(slots=True)
class Gate:
    """An ASGI app around the SDK's: `label`'s endpoint, its metadata, its live counts."""

    label: str
    app: ASGIApp
    guard: Guard
    fates: Fates
    journal: Journal
    has_get_stream: bool
    sessions: Sessions = field(default_factory=Sessions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        began, epoch = time.perf_counter(), time.time()
        if scope["path"] == STATS_PATH:
            await JSONResponse({self.label: self.sessions.counts()})(scope, receive, send)
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        row = Row(epoch, self.label, "", scope["method"], session=headers.get(SESSION))
        exchange = scope["lab.exchange"] = Exchange(began, row)
        body, receive = await _read(receive) if scope["method"] == "POST" else (b"", receive)
        row.name, row.id, tool = _identify(self.label, scope["method"], body)

        answer: ASGIApp | None = self._without_sdk(scope, headers, row)
        if answer is None:
            answer = self.app
            exchange.settle(self.fates.decide(row.name, tool))
        try:
            await answer(scope, receive, self._held(exchange, send))
        finally:
            exchange.writing()
            self.journal.add(row)

    def _without_sdk(self, scope: Scope, headers: Mapping[str, str], row: Row) -> Response | None:
        path = scope["path"]
        if scope["method"] == "GET" and (document := self.guard.metadata(path)) is not None:
            row.name = f"{self.label}:metadata"
            return document
        if path.rstrip("/") != self.guard.path.rstrip("/"):
            row.name = f"{self.label}:not found"
            return PlainTextResponse("not found\n", 404)
        if (refusal := self.guard.refusal(headers)) is not None:
            return refusal
        if scope["method"] == "GET" and not self.has_get_stream:
            return PlainTextResponse("method not allowed\n", 405, {"Allow": "POST"})
        return None

    def _held(self, exchange: Exchange, send: Send) -> Send:
        row = exchange.row
        streams = False

        async def held(message: Message) -> None:
            nonlocal streams
            if message["type"] == "http.response.start":
                given = {k.lower(): v.decode("latin-1") for k, v in message["headers"]}
                streams = given.get(b"content-type", "").startswith("text/event-stream")
                if not streams:
                    await exchange.until_due()
                if given.get(b"content-length") == "0":
                    exchange.writing()  # the head is the whole answer
                row.status = message["status"]
                self._note_session(row, given.get(SESSION.encode()))
                await send(message)
                return
            # The stand-ins send no notifications, so a stream's first message is the answer.
            if streams and row.http == "POST" and b"event: message" in message.get("body", b""):
                await exchange.until_due()
                exchange.writing()
            elif not streams and not message.get("more_body", False):
                exchange.writing()
            await send(message)

        return held

    def _note_session(self, row: Row, given: str | None) -> None:
        if row.status != 200:
            return
        if given is not None and row.name == f"{self.label}:initialize":
            row.session = given
            self.sessions.opens(given)
        elif row.http == "DELETE" and row.session is not None:
            self.sessions.ends(row.session)


async def _read(receive: Receive) -> tuple[bytes, Receive]:
    """Read a body, and give it together with a `receive` that tells it once more."""
    told: list[Message] = []
    size = 0
    while True:
        message = await receive()
        told.append(message)
        size += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body") or size > _BODY_LIMIT:
            break
    again = iter(told)

    async def replay() -> Message:
        message = next(again, None)
        return await receive() if message is None else message

    return b"".join(message.get("body", b"") for message in told), replay


def _identify(label: str, http: str, body: bytes) -> tuple[str, int | str | None, str | None]:
    """Name a request as the harness's statistics do: name, JSON-RPC id, tool."""
    if http != "POST":
        return f"{label}:{http}", None, None
    try:
        message: Any = json.loads(body)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        return f"{label}:unreadable", None, None
    request_id = message.get("id")
    if not isinstance(request_id, int | str):
        request_id = None
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        answers = "result" in message or "error" in message
        return f"{label}:{'client-response' if answers else 'unreadable'}", request_id, None
    tool = params.get("name") if method == "tools/call" and isinstance(params, dict) else None
    if isinstance(tool, str):
        return f"{label}:{method}:{tool}", request_id, tool
    return f"{label}:{method}", request_id, None
