"""A stand-in's own record of the requests it answered, one JSON object a line.

Rows wait in memory and a thread writes them, so that no disk ever delays a reply.
"""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FLUSH_SECONDS: Final = 0.5


@dataclass(slots=True)
class Row:
    """One HTTP request, as the stand-in saw it.

    t: epoch seconds of its arrival (its head was read).
    status: HTTP status answered; 0 when the client left before any answer.
    elapsed_ms: from arrival to the write of the last byte of our answer.
    drawn_ms: the latency that was drawn; None where none is drawn.
    """

    t: float
    label: str
    name: str
    http: str
    id: int | str | None = None
    session: str | None = None
    status: int = 0
    elapsed_ms: float = 0.0
    drawn_ms: float | None = None
    injected: str | None = None

    def line(self) -> str:
        """Give the row as a line of JSON, in the order of the fields."""
        values = {name: getattr(self, name) for name in self.__slots__}
        values["t"] = round(self.t, 6)
        values["elapsed_ms"] = round(self.elapsed_ms, 3)
        if self.drawn_ms is not None:
            values["drawn_ms"] = round(self.drawn_ms, 3)
        return json.dumps(values, separators=(",", ":")) + "\n"


class Journal:
    """The rows of one stand-in; `path` is started afresh."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[Row] = []
        self._writing = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")

    def add(self, row: Row) -> None:
        """Take a row; it is on disk within a second."""
        self._rows.append(row)

    def flush(self) -> None:
        """Write the rows that wait."""
        self._write(self._take())

    async def flush_for_ever(self, every_seconds: float = FLUSH_SECONDS) -> None:
        """Flush until cancelled; the last flush is the caller's."""
        while True:
            await asyncio.sleep(every_seconds)
            # Taken here, written there: a row added meanwhile must find the new list.
            await asyncio.to_thread(self._write, self._take())

    def _take(self) -> list[Row]:
        rows, self._rows = self._rows, []
        return rows

    def _write(self, rows: list[Row]) -> None:
        if rows:
            # The last flush may meet a write under way.
            with self._writing, self._path.open("a", encoding="utf-8") as file:
                file.writelines(row.line() for row in rows)
