"""autoStop on this machine: reads the rows while they are written, and says when to stop.

The rule is lab.criteria's. A YAML without autoStop gets the service's default, 90 % of errors in
60 s. A run that it stops is CANCELLED in Azure, which fails the pipeline's step whatever the
criteria say.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from lab import criteria, results
from lab.manifest import AutoStop, Manifest
from lab.results import Request

DEFAULT = AutoStop(90.0, 60.0, None, 0)

_BUSY_SHARE = 0.05  # of the time that looking may take
_EVERY = 1.0  # seconds between two looks, at least


class Watch:
    """Follows the results files of a run folder.

    stopped  why the service would have stopped the run, "" as long as it would not
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.rule = None if manifest.auto_stop_disabled else manifest.auto_stop or DEFAULT
        self.stopped = ""
        self._by_default = manifest.auto_stop is None
        self._folder = folder
        self._due = 0.0
        self._read: dict[Path, tuple[str, int]] = {}  # its header, and how far it is read
        self._requests: list[Request] = []

    def look(self, gone: float) -> bool:
        """Return whether to stop, after so many seconds of the run; cheap where no look is due."""
        if self.rule is None or self.stopped or gone < self._due:
            return bool(self.stopped)
        began = time.perf_counter()
        self.take_in()
        self.stopped = self._judge(self.rule)
        cost = time.perf_counter() - began
        self._due = gone + max(_EVERY, cost / _BUSY_SHARE)
        return bool(self.stopped)

    def take_in(self) -> None:
        """Read the complete lines that have been written since the last time."""
        for path in sorted((self._folder / "results").glob("*_results*.csv")):
            header, offset = self._read.get(path, ("", 0))
            with path.open("rb") as file:
                file.seek(offset)
                whole, newline, _ = file.read().rpartition(b"\n")
            if not newline:
                continue
            lines = whole.decode("utf-8", "replace").splitlines(keepends=True)
            header = header or lines.pop(0)
            self._read[path] = header, offset + len(whole) + 1
            text = itertools.chain([header], lines)
            number = int("".join(filter(str.isdigit, path.name)) or 1)
            self._requests += results.requests(text, number, path.name, [])

    @property
    def said(self) -> str:
        """What autoStop came to, in one line."""
        if self.rule is None:
            return "autoStop: disabled by the YAML"
        default = ", the service's default" if self._by_default else ""
        if self.stopped:
            return f"autoStop{default}: the engines were stopped: {self.stopped}"
        return f"autoStop{default}: not triggered, {_words(self.rule)}"

    def _judge(self, rule: AutoStop) -> str:
        most = rule.maximum_users_per_engine
        users = max((each.all_users for each in self._requests), default=0)
        if most is not None and users > most:
            return f"{users} users on one engine, and maximumVirtualUsersPerEngine is {most}"
        when = criteria.auto_stop(self._requests, rule.error_percentage, rule.time_window)
        if when is None:
            return ""
        since = when - min(each.start for each in self._requests)
        return f"{_words(rule)}, {since:.0f} s after the first request"


def _words(rule: AutoStop) -> str:
    return f"more than {rule.error_percentage:g} % of errors in {rule.time_window:g} s"
