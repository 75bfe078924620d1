"""What it took to get tokens: requests that are no samples, by server and step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lab import stats
from lab.units import ms

# In the order in which they are taken; a renewal is all of them, as users wait for it.
STEPS = (
    *("challenge", "protected resource metadata", "authorization server metadata", "token"),
    "renewal",
)
HEADINGS = ("server", "what", "requests", "failed", "p50", "p95", "max", "failures")


@dataclass(frozen=True, slots=True)
class Sent:
    """One request. status 0 is no answer; then error says why, unless it is a whole renewal."""

    label: str
    what: str
    milliseconds: float
    status: int
    error: str

    @classmethod
    def of_tick(cls, tick: Mapping[str, Any]) -> Sent:
        """Read a line of the recorder's; raises KeyError, TypeError or ValueError where none."""
        taken, status = float(tick["milliseconds"]), int(tick["status"])
        return cls(str(tick["label"]), str(tick["what"]), taken, status, str(tick["error"]))

    @property
    def failure(self) -> str:
        """Its kind, "" where it did what it was to do.

        A challenge is what a 401 gives, and metadata may be at another place than the one asked.
        """
        if self.error or self.what == "renewal":
            return self.error
        expected = {"challenge": range(200, 500), "token": range(200, 300)}
        if self.status in expected.get(self.what, (*range(200, 300), 404)):
            return ""
        return f"HTTP {self.status}"


@dataclass(frozen=True, slots=True)
class Step:
    """All requests of one step at one server; times in ms."""

    server: str
    what: str
    count: int
    failures: Mapping[str, int]
    p50: float
    p95: float
    max: float

    @property
    def failed(self) -> int:
        """How many failed, of any kind."""
        return sum(self.failures.values())

    @property
    def kinds(self) -> str:
        """The failures by kind."""
        return ", ".join(f"{count} {kind}" for kind, count in self.failures.items())

    def __str__(self) -> str:
        failed = f", {self.failed} failed ({self.kinds})" if self.failed else ""
        return f"{self.server}: {self.what}: {self.count}, p95 {ms(self.p95)} ms{failed}"

    def cells(self) -> tuple[str, ...]:
        """Return its line in the order of HEADINGS; one with failures stands out."""
        times = (ms(value) for value in (self.p50, self.p95, self.max))
        mark = "! " if self.failed else ""
        counts = (f"{self.count:,}", f"{self.failed:,}")
        return (self.server, self.what, *counts, *times, f"{mark}{self.kinds}")

    def as_json(self) -> dict[str, Any]:
        """Return the figures."""
        times = {name: round(getattr(self, name), 3) for name in ("p50", "p95", "max")}
        named = {"server": self.server, "what": self.what, "count": self.count}
        return {**named, "failures": dict(self.failures), **times}


def steps(sent: Iterable[Sent]) -> list[Step]:
    """Return the steps of each server, in the order in which they are taken."""
    groups: dict[tuple[str, str], list[Sent]] = {}
    for each in sent:
        groups.setdefault((each.label, each.what), []).append(each)
    rank = {what: place for place, what in enumerate(STEPS)}
    found = []
    for label, what in sorted(groups, key=lambda key: (key[0], rank.get(key[1], 0), key[1])):
        group = groups[label, what]
        taken = sorted(each.milliseconds for each in group)
        kinds = Counter(each.failure for each in group if each.failure)
        p50, p95 = (stats.percentile_of_sorted(taken, p) for p in (50.0, 95.0))
        found.append(Step(label, what, len(group), dict(kinds.most_common()), p50, p95, taken[-1]))
    return found
