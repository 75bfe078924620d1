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
from itertools import repeat

_PLAIN_HEADS = (b"event: message\r\n", b"event: message\n", b"")
_BLANK_LINES = (b"\r\n", b"\n")
_LARGE = 2048  # bytes of a chunk that holds many events, or is a part of a large one


Event = tuple[str, bytes]
"""A dispatched event: its type, "message" where the stream named none, and its data."""


def whole_event(chunk: bytes) -> bytes | None:
    """Return the data of a chunk that is one plain message event and nothing else, else None.

    Most replies are just that; it costs a third of what a parser would.
    """
    start = chunk.find(b"data:", 0, 24)
    if start < 0 or chunk[:start] not in _PLAIN_HEADS:
        return None
    end = chunk.find(b"\n", start)
    if chunk[end + 1 :] not in _BLANK_LINES:
        return None
    data = chunk[start + 5 : end].strip(b" \r")
    return data if data and b"\r" not in data else None


def _alike(many: bytes, blank_line: bytes) -> list[Event] | None:
    """Return events of which each has one line of data and the same head, else None.

    A stream of thousands is full of them; it costs a tenth of what line by line would.
    """
    end = blank_line[: len(blank_line) // 2]
    head = b"data: " if many[:1] == b"d" else b"event: message" + end + b"data: "
    if not many.startswith(head):
        return None
    found = many[len(head) :].split(blank_line + head)
    data = b"".join(found)
    if b"\n" in data or b"\r" in data or b"" in found:
        return None
    return list(zip(repeat("message"), found))


class SSEParser:
    """The state of one response body; make a new parser for each response.

    One that goes on with a broken stream is made from the parser of that one.

    `last_id` is the id of the last whole event, also of one without data ("" before the first);
    it is sent back as a header, so its bytes are kept as Latin-1. `retry_ms` is the last
    reconnection time asked for, or None.
    """

    __slots__ = (
        "_after_cr",
        "_data",
        "_id",
        "_partial",
        "_started",
        "_type",
        "last_id",
        "retry_ms",
    )

    def __init__(self, resumed: SSEParser | None = None) -> None:
        self._partial: list[bytes] = []  # the pieces of a line whose end has not arrived
        self._after_cr = False
        self._started = False
        self._type = ""
        self._data: list[bytes] = []
        self._id: str | None = None  # of an event whose blank line has not come
        self.last_id: str = resumed.last_id if resumed is not None else ""
        self.retry_ms: int | None = resumed.retry_ms if resumed is not None else None

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes, however split, and return the events they complete."""
        if len(chunk) < _LARGE or self._after_cr:
            return self._feed(chunk)
        has_cr = b"\r" in chunk
        if self._partial and not has_cr and b"\n" not in chunk:
            self._partial.append(chunk)
            return []
        blank_line = b"\r\n\r\n" if has_cr else b"\n\n"
        # After its first blank line the parser is as good as new.
        cut = chunk.find(blank_line) + len(blank_line)
        many, separator, rest = chunk[cut:].rpartition(blank_line)
        alike = _alike(many, blank_line) if separator and cut >= len(blank_line) else None
        if alike is None:
            return self._feed(chunk)
        return [*self._feed(chunk[:cut]), *alike, *self._feed(rest)]

    def _feed(self, chunk: bytes) -> list[Event]:
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[:1] == b"\n":
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
        """The body is over: return the last event if only its blank line was missing.

        It may be half an event, so that its id is no place to go on from.
        """
        line = b"".join(self._partial)
        self._partial = []
        if not self._started and line.startswith(BOM_UTF8):
            line = line[3:]
        last_id = self.last_id
        events = self._interpret([line, b""] if line else [b""])
        self.last_id = last_id
        return events

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
                        events.append((self._type or "message", joined))
                    data.clear()
                self._type = ""
                if self._id is not None:
                    self.last_id, self._id = self._id, None
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
                self._id = value.decode("latin-1")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)
