"""HTTP/1.1 replies out of bytes: what httptools calls back, turned into one `Reply` after another.

One parser serves a connection for its whole life, as a new one for each reply costs 5 % of a call.
Its traps: interim replies (1xx) also complete a message; trailers arrive as headers after the body;
whether a connection may live on is known only inside `on_message_complete`; a body that ends with
the connection never completes; bytes after a whole reply raise although the reply is fine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from _failures import TransportError

if TYPE_CHECKING:
    from _reply import Reply
    from _trace import Trace

GRACE_FOR_ERROR_BODY_S = 1.0  # that an error status waits for its body; some never end it


class Framing:
    """The parser of one connection. `cookies` are the Set-Cookie values of the last reply."""

    def __init__(self) -> None:
        self._parser: Any = None
        self._reply: Reply = None  # type: ignore[assignment]
        self._trace: Trace = None  # type: ignore[assignment]
        self._headers: dict[bytes, bytes] = {}
        self._interim = self._complete = self._keep_alive = False
        self._now = 0.0
        self.cookies: list[bytes] = []

    def start_parsing(self) -> None:
        """A new connection: an abandoned parser would take the next head for a body."""
        self._parser = HttpResponseParser(self)

    def expect(self, reply: Reply, trace: Trace) -> None:
        """The next reply is this one's."""
        self._reply = reply
        self._trace = trace
        self._headers = {}
        if self.cookies:
            self.cookies = []
        self._complete = self._keep_alive = self._interim = False

    def parse(self, data: bytes) -> None:
        """Take the next bytes. Raises TransportError for what is no HTTP."""
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            ours = error.__context__
            if ours is not None and not isinstance(ours, HttpParserError):
                raise ours from None
            if not self._complete:
                raise TransportError("malformed HTTP reply") from None
            self._keep_alive = False  # bytes after a whole reply: take it, and start afresh
        except HttpParserUpgrade:
            raise TransportError("unexpected protocol upgrade") from None

    def ends_with_connection(self) -> bool:
        """Has the body neither a length nor chunks, so that only the end of all ends it?"""
        headers = self._headers
        return b"content-length" not in headers and b"transfer-encoding" not in headers

    def _shorten(self, seconds: float) -> None:
        raise NotImplementedError

    # ---- httptools' callbacks

    def on_message_begin(self) -> None:
        if self._complete:
            self._keep_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self._headers[name] = value
        if name == b"set-cookie":
            self.cookies.append(value)

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._interim = status < 200
        if self._interim or self._complete:
            return
        self._trace.headers = self._trace.headers or self._now
        self._reply.begin(status, self._headers)
        if status >= 400 and not self._reply.done:
            self._shorten(GRACE_FOR_ERROR_BODY_S)

    def on_body(self, chunk: bytes) -> None:
        if not self._complete and self._reply.feed(chunk) and not self._trace.first_event:
            self._trace.first_event = self._now

    def on_message_complete(self) -> None:
        if self._interim:
            self._headers = {}
        elif not self._complete:
            self._complete = True
            self._keep_alive = self._parser.should_keep_alive()
