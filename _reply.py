"""One HTTP reply to one JSON-RPC message, read as it arrives; no I/O.

A connection calls `begin` at the end of the headers, `feed` with each piece of the decoded
transfer, and `finish` once the body is over, whole or cut. `done` says that nothing more need be
read; `result` then returns or raises.

Which message is the reply (basic/transports, "Sending Messages to the Server"):
* one with our id, also where a gateway turned 7 into "7" or 7.0;
* an error without a usable id (null, "", "server-error", none), as it answers this POST;
* never a request or a notification, and never another id.
"""

from __future__ import annotations

import time
import zlib
from typing import Any, Callable

from orjson import JSONDecodeError, dumps, loads

from _failures import HTTPStatusError, MCPError, ProtocolError, status_failure
from _jsonrpc import Message, decode, decode_or_none, error_code, is_notice, result_of
from _sse import SSEParser, whole_event

ERROR_BODY_LIMIT = 65536  # bytes of an error reply that are looked at
_IDS_OF_NOBODY = (None, "", "server-error")
_NOT_OURS = "no response for this id"
_KINDS = {b"application/json": "json", b"text/event-stream": "sse"}
_ANSWER, _ERROR, _IGNORED = 1, 2, 3


class Reply:
    """What came back for one request, or for one message that only wants a status.

    `request_id` is None where a status is all that is wanted. `on_request` is called with each
    request of the server's, `on_notification` with each notification, which else is only counted.
    """

    def __init__(
        self,
        request_id: int | None,
        *,
        in_session: bool = False,
        batches: bool = False,
        on_request: Callable[[dict[str, Any]], None] | None = None,
        on_notification: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.request_id = request_id
        self._in_session = in_session
        self._batches = batches
        self._on_request = on_request
        self._on_notification = on_notification
        self.notifications = self.hops = self.resumptions = 0
        self.reset()

    def reset(self) -> None:
        """Forget what came, as another reply to the same message follows (a redirect's)."""
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.kind = ""
        self.done = self._ended = False
        self.failure: MCPError | None = None
        self.message: Message = None
        self.size = 0
        self.foreign = False
        self._chunks: list[bytes] = []
        self._sse: SSEParser | None = None
        self._resumed: SSEParser | None = None
        self._inflate: Any = None
        self._tried = 0
        self._body_of = _IGNORED

    @property
    def last_event_id(self) -> str:
        sse = self._sse or self._resumed
        return sse.last_id if sse is not None else ""

    @property
    def retry_ms(self) -> int | None:
        sse = self._sse or self._resumed
        return sse.retry_ms if sse is not None else None

    @property
    def awaits_resumption(self) -> bool:
        """Did the stream end without our reply, but with an event id to go on from?"""
        unanswered = self._ended and self.message is None and not self.foreign
        return unanswered and self.status == 200 and self.last_event_id != ""

    def resume(self) -> None:
        """Read on in another stream of the same reply; the last event id is kept."""
        sse = self._sse or self._resumed
        self.reset()
        self._resumed = sse

    def give_up(self, failure: MCPError | None) -> None:
        """Leave it at that: the server would not go on with the stream."""
        self.status, self.kind, self.done, self._ended = 200, "", True, False
        self.failure, self.message = failure, None

    def begin(self, status: int, headers: dict[bytes, bytes]) -> None:
        """The head has arrived; header names are in lower case."""
        self.status = status
        self.headers = headers
        if self.request_id is None or 300 <= status < 400:
            self.done = True
            return
        named = headers.get(b"content-type", b"")
        self.kind = _KINDS.get(named) or _KINDS.get(named.partition(b";")[0].strip().lower(), "")
        if status >= 400:
            self._body_of = _ERROR
        elif status in (202, 204):
            self._fail(ProtocolError(f"HTTP {status} to a request"))
            return
        else:
            self._body_of = _ANSWER
        if not self.kind and self._body_of == _ANSWER:
            other = named.partition(b";")[0].strip().lower().decode("latin-1")[:60]
            text = f"unexpected content-type {other}" if other else "missing content-type"
            self._fail(ProtocolError(text))
            return
        encoding = headers.get(b"content-encoding")
        if encoding is not None:
            self._decode_as(encoding.strip().lower())

    def _decode_as(self, encoding: bytes) -> None:
        if encoding in (b"gzip", b"x-gzip", b"deflate"):
            self._inflate = zlib.decompressobj(47)  # 32 + 15: gzip or zlib, whichever it is
        elif encoding not in (b"", b"identity"):
            named = encoding.decode("latin-1")[:20]
            self._fail(ProtocolError(f"unsupported content-encoding {named}"))

    def _fail(self, failure: MCPError) -> None:
        self.failure = failure
        self.done = True

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes of the body; true if they held something of the answer's."""
        if self.done:
            return False
        if self._inflate is not None:
            try:
                chunk = self._inflate.decompress(chunk)
            except zlib.error:
                if self._body_of == _ERROR:
                    self.done = True
                else:
                    self._fail(ProtocolError("bad gzip body"))
                return False
        self.size += len(chunk)
        if self.kind == "sse":
            return self._feed_stream(chunk)
        self._chunks.append(chunk)
        if self._body_of == _ERROR:
            if self.size > ERROR_BODY_LIMIT:
                self.done = True
        elif chunk[-1:] == b"}" and b"content-length" not in self.headers:
            self._try_early()
        return True

    def _feed_stream(self, chunk: bytes) -> bool:
        if self._sse is None:
            data = whole_event(chunk)
            if data is not None:
                self._take("message", data)
                return True
            self._sse = SSEParser(self._resumed)
        events = self._sse.feed(chunk)
        others = events
        if self._on_notification is None:
            others = [each for each in events if each[0] != "message" or not is_notice(each[1])]
            self.notifications += len(events) - len(others)
        for event in others:
            self._take(*event)
            if self.done:
                return True
        return bool(events)

    def _try_early(self) -> None:
        # A server may send whole JSON in a chunked body that it never ends. Each failed attempt at
        # a long one doubles the size at which the next is made, so that it costs no more than 2x.
        if ERROR_BODY_LIMIT < self.size < 2 * self._tried:
            return
        self._tried = self.size
        try:
            message = loads(b"".join(self._chunks))
        except JSONDecodeError:
            return
        self._consider_document(message)

    def finish(self, whole: bool) -> None:
        """The body is over; `whole` is false where the connection ended inside it."""
        if self.done:
            return
        self.done = True
        if self._body_of == _ERROR:
            return
        if self.kind == "sse":
            for event in self._sse.end() if self._sse is not None else ():
                self._take(*event)
            if self.message is None and self.failure is None:
                text = _NOT_OURS if self.foreign else "stream ended before the reply"
                self.failure = ProtocolError(text)
            self._ended = True
        elif not whole:
            self.failure = ProtocolError("incomplete body")
        elif self._inflate is not None and not self._inflate.eof:
            self.failure = ProtocolError("bad gzip body")

    def _take(self, kind: str, data: bytes) -> None:
        if kind != "message" and kind != "error":
            return
        if self._on_notification is None and is_notice(data):
            self.notifications += 1
            return
        try:
            message = decode(data)
        except ValueError:
            if kind == "message":
                self._fail(ProtocolError("invalid JSON"))
            return
        self._consider(message)

    def _consider(self, message: Message) -> None:
        if isinstance(message, dict):
            if "method" in message:
                if "id" not in message:
                    self.notifications += 1
                    if self._on_notification is not None:
                        self._on_notification(message)
                elif self._on_request is not None:
                    self._on_request(message)
            elif self._is_ours(message):
                self.message = message
                self.done = True
            else:
                self.foreign = True
        elif isinstance(message, list):
            if not self._batches:
                self._fail(ProtocolError("unexpected JSON-RPC batch"))
            for one in message if self._batches else ():
                if self.message is None and self.failure is None:
                    self._consider(one)
        else:
            self._fail(ProtocolError("reply is not an object"))

    def _is_ours(self, message: dict[str, Any]) -> bool:
        found = message.get("id")
        if found == self.request_id or found == str(self.request_id):
            return True
        return "error" in message and found in _IDS_OF_NOBODY

    def _consider_document(self, message: Message) -> None:
        self._consider(message)
        if self.message is None and self.failure is None:
            self._fail(ProtocolError(_NOT_OURS))

    def result(self) -> dict[str, Any]:
        """The JSON-RPC result, or {} where only a status was wanted.

        Raises MCPError: the one thing that was wrong, an HTTP status before all else.
        """
        if self.status >= 300:
            raise self._status_failure()
        if self.failure is not None:
            raise self.failure
        if self.request_id is None:
            return {}
        if self.message is None:
            self._read_document()
        if self.failure is not None:
            raise self.failure
        return result_of(self.message, self._in_session)

    def document(self) -> Message:
        """Return the decoded answer whatever the status was, or None; for a probe of the era."""
        if self.message is None:
            return decode_or_none(b"".join(self._chunks))
        return self.message

    def _read_document(self) -> None:
        body = b"".join(self._chunks)
        if not body.strip():
            raise ProtocolError("empty body")
        try:
            message = decode(body)
        except ValueError:
            raise ProtocolError("invalid JSON") from None
        self._consider_document(message)

    def _status_failure(self) -> MCPError:
        body = (b"".join(self._chunks) or dumps(self.message))[:ERROR_BODY_LIMIT]
        failure = status_failure(self.status, self.headers, body, self._in_session, time.time())
        if type(failure) is HTTPStatusError:
            message = self.message
            if message is None and self.kind == "json":
                message = decode_or_none(body)
            code = error_code(message)
            if code is not None:
                return HTTPStatusError(f"HTTP {self.status}, JSON-RPC error {code}", code)
        return failure
