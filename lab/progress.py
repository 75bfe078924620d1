"""How a run is getting on, a line every few seconds, read from the rows it has written."""

from __future__ import annotations

import csv
from pathlib import Path

from lab.plots import clock
from lab.rows import AZURE_COLUMNS

_SUCCESS = AZURE_COLUMNS.index("success")
_ALL_USERS = AZURE_COLUMNS.index("allThreads")


class Progress:
    """Prints a line when it is looked at and `every` seconds have gone by."""

    def __init__(self, folder: Path, seconds: float, every: float) -> None:
        self.requests = self.failures = self.users = 0
        self._folder = folder
        self._seconds = seconds
        self._every = every
        self._due = every
        self._read: dict[Path, int] = {}

    def look(self, gone: float) -> None:
        """Print how far the run is after so many seconds, if a line is due."""
        if gone < self._due:
            return
        self._due = gone + self._every
        self.count()
        print(
            f"  {clock(min(gone, self._seconds))} of {clock(self._seconds)}:"
            f" {self.users} users, {self.requests:,} requests, {self.failures:,} failed",
            flush=True,
        )

    def count(self) -> None:
        """Take in the complete lines that have been written since the last look."""
        users = []
        for path in sorted((self._folder / "results").glob("*_results*.csv")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, newline, _ = file.read().rpartition(b"\n")
            if not newline:
                continue
            first = path not in self._read
            self._read[path] = self._read.get(path, 0) + len(whole) + 1
            rows = list(csv.reader(whole.decode("utf-8", "replace").splitlines()))[int(first) :]
            self.requests += len(rows)
            self.failures += sum(row[_SUCCESS] == "false" for row in rows)
            if rows:
                users.append(int(rows[-1][_ALL_USERS]))
        self.users = sum(users) or self.users
