"""Server-Sent Events as a parser that does no I/O: bytes in, events out.

The rules are WHATWG's "Interpreting an event stream" (HTML standard, 9.2.6).
Three of them, got wrong, quietly change a load test's error rate:

* a chunk may end anywhere, even between a CR and its LF;
* a line ends at CR, LF or CRLF and nowhere else: JSON may hold a bare U+2028;
* an event without data is never dispatched, so a keep-alive is not a reply.

Our choice, where the standard says to discard: `SSEParser.end` returns a last event whose
blank line never came, as some servers close right after the data line and the JSON is whole.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import NamedTuple


class Event(NamedTuple):
    """One dispatched event: `type` is "message" where the stream named none."""

    type: str
    data: bytes


class SSEParser:
    """The state of one response body; make a new parser for each response.

    `last_id` is the last event id seen, also from an event without data ("" before the first),
    `retry_ms` the last reconnection time asked for, or None.
    """

    __slots__ = ("_after_cr", "_data", "_partial", "_started", "_type", "last_id", "retry_ms")

    def __init__(self) -> None:
        self._partial: list[bytes] = []  # the pieces of a line whose end has not arrived
        self._after_cr = False
        self._started = False
        self._type = ""
        self._data: list[bytes] = []
        self.last_id = ""
        self.retry_ms: int | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes, however split, and return the events they complete."""
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        if not chunk:
            return []
        last = chunk[-1]
        self._after_cr = last == 13
        lines = chunk.splitlines()  # of bytes: at CR, LF and CRLF only
        if self._partial:
            if len(lines) == 1 and last != 10 and last != 13:
                self._partial.append(chunk)
                return []
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
            self._partial = []
        if last != 10 and last != 13:
            self._partial = [lines.pop()]
        if not self._started and lines:
            self._started = True
            if lines[0].startswith(BOM_UTF8):
                lines[0] = lines[0][3:]
        return self._interpret(lines)

    def end(self) -> list[Event]:
        """The body is over: return the last event if only its blank line was missing."""
        lines = [b"".join(self._partial), b""] if self._partial else [b""]
        self._partial = []
        return self._interpret(lines)

    def _interpret(self, lines: list[bytes]) -> list[Event]:
        events = []
        data = self._data
        for line in lines:
            if line[:5] == b"data:":
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if data:
                    joined = b"\n".join(data)
                    if joined:
                        events.append(Event(self._type or "message", joined))
                    data.clear()
                self._type = ""
            else:
                self._field(line)
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"event":
            self._type = value.decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(value)
        elif name == b"id":
            if b"\0" not in value:
                self.last_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self.retry_ms = int(value)
