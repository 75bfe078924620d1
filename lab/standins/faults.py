"""What goes wrong or slow on purpose, decided per request before the server sees it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Final

from lab.standins.catalogue import LABELS, published_run, tools
from lab.standins.latency import Millisecond, Quantiles

DEFAULT_SEED: Final = 20260509  # the published run's day


class FlagError(ValueError):
    """A flag that cannot be obeyed; its text is one line for the user."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the stand-ins behave in this run.

    slow: milliseconds added to the drawn latency, by `(label, tool)`.
    broken: `(label, tool)` pairs of which each call fails with isError.
    """

    seed: int = DEFAULT_SEED
    faults: bool = False
    latency: bool = True
    sessions: bool = True
    slow: dict[tuple[str, str], Millisecond] = field(default_factory=dict)
    broken: frozenset[tuple[str, str]] = frozenset()


def parse_tool(flag: str, text: str) -> tuple[str, str]:
    """Read `label:tool`; raise FlagError, with the choices, when there is no such tool."""
    label, colon, tool = text.partition(":")
    if not colon or label not in LABELS:
        raise FlagError(
            f"{flag} {text!r}: expected label:tool, the label one of {', '.join(LABELS)}"
        )
    if tool not in tools(label):
        start = f"{label}:tools/call:"
        called = sorted(n.removeprefix(start) for n in published_run() if n.startswith(start))
        raise FlagError(
            f"{flag} {text!r}: {label} has no tool {tool!r}; "
            f"the published run called {', '.join(called)}"
        )
    return label, tool


def parse_slow(text: str) -> tuple[tuple[str, str], Millisecond]:
    """Read `label:tool=ms`; raise FlagError when tool or number is none."""
    tool, _, number = text.partition("=")
    try:
        added = float(number)
    except ValueError:
        added = -1.0
    if not 0 <= added < 3_600_000:
        raise FlagError(
            f"--slow {text!r}: expected label:tool=ms, ms a number from 0 to an hour, "
            "as in context7:query-docs=6000"
        )
    return parse_tool("--slow", tool), added


@dataclass(frozen=True, slots=True)
class Fate:
    """What is decided for one request: its latency and, maybe, what was injected."""

    drawn_ms: Millisecond
    injected: str | None = None


class Fates:
    """One server's decisions, in the order of arrival per statistics name.

    A name that the published run does not have (a tool it never called, a `ping`) borrows
    the distribution of the server's most called tool, or of `tools/list`; DELETE and GET
    without one are answered at once, as they are refused anyway.
    """

    def __init__(self, label: str, options: Options) -> None:
        self._label = label
        self._options = options
        self._latencies: dict[str, Iterator[Millisecond]] = {}
        self._faults: dict[str, Iterator[bool]] = {}

    def decide(self, name: str, tool: str | None) -> Fate:
        """Decide one request's fate; `name` is its statistics name."""
        key = (self._label, tool or "")
        if key in self._options.broken:
            return Fate(self._latency(name), "broken")
        if self._options.faults and self._is_faulty(name):
            # The published failures were the quickest answers of their label.
            quickest = published_run()[name]["min"] if self._options.latency else 0.0
            return Fate(quickest, "fault")
        added = self._options.slow.get(key)
        if added is not None:
            return Fate(self._latency(name) + added, "slow")
        return Fate(self._latency(name))

    def _latency(self, name: str) -> Millisecond:
        if not self._options.latency:
            return 0.0
        if name not in self._latencies:
            row = _row_for(self._label, name)
            seed = f"{self._options.seed}:{name}"
            self._latencies[name] = Quantiles.of(row).draws(seed) if row else repeat(0.0)
        return next(self._latencies[name])

    def _is_faulty(self, name: str) -> bool:
        if name not in self._faults:
            row = published_run().get(name, {})
            count, failures = int(row.get("count", 1)), int(row.get("failures", 0))
            seed = f"{self._options.seed}:{name}:faults"
            self._faults[name] = _share(failures, count, seed)
        return next(self._faults[name])


def _row_for(label: str, name: str) -> dict[str, float] | None:
    rows = published_run()
    if name in rows:
        return dict(rows[name])
    if name.startswith(f"{label}:tools/call:"):
        called = [key for key in rows if key.startswith(f"{label}:tools/call:")]
        return dict(rows[max(called, key=lambda key: rows[key]["count"])])
    if name in (f"{label}:DELETE", f"{label}:GET"):
        return None
    return dict(rows[f"{label}:tools/list"])


def _share(failures: int, count: int, seed: str) -> Iterator[bool]:
    """Say for ever which request fails: `failures` out of each block of `count`, shuffled."""
    generator = random.Random(seed)
    while True:
        block = [True] * failures + [False] * (count - failures)
        generator.shuffle(block)
        yield from block
