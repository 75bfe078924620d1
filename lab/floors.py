"""This machine's floor, as ``lab floor`` has stored it: below it no figure says anything.

A latency within three times of what the same classes measure against a server that answers in
microseconds is largely this machine's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from lab.machine import this_machine
from lab.runs import RUNS
from lab.stats import Summary

NEAR = 3.0
FILE = "floor.json"


@dataclass(frozen=True, slots=True)
class Floor:
    """What `lab floor` has measured: ms, calls a second, agents in one process.

    limit    what the number of agents is bounded by: "CPU", "open files"
    labels   label -> (p50, p99) in ms, of the labels with calls enough
    machine  the machine, as lab.machine has it
    """

    p50_ms: float
    p99_ms: float
    rate: float
    agents: int
    limit: str
    kib_per_agent: float
    machine: Mapping[str, Any]
    files: tuple[str, ...] = ()
    labels: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def save(self, folder: Path = RUNS) -> Path:
        """Store it where reports look for it; return the file."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        return path

    @classmethod
    def of(cls, facts: object) -> Self | None:
        """Return a floor from its JSON, or None where that is no floor."""
        try:
            named = dict(facts)  # type: ignore[call-overload]
            labels = {name: (float(a), float(b)) for name, (a, b) in named.pop("labels").items()}
            return cls(**{**named, "files": tuple(named["files"]), "labels": labels})
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    @classmethod
    def load(cls, folder: Path = RUNS) -> Self | None:
        """Return the stored floor, or None where there is none that can be read."""
        try:
            return cls.of(json.loads((folder / FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    def holds_on(self, machine: Mapping[str, Any]) -> bool:
        """Was it measured on such a machine, whenever that was? Another has another floor."""
        return {**self.machine, "date": ""} == {**machine, "date": ""}

    def near(self, label: str, figures: Summary) -> str:
        """Return what of a label is within three times of the floor: "p50", "p99", both or ""."""
        p50, p99 = self.labels.get(label, (self.p50_ms, self.p99_ms))
        pairs = (("p50", figures.p50, p50), ("p99", figures.p99, p99))
        return " and ".join(name for name, figure, floor in pairs if figure < NEAR * floor)


def facts_here(folder: Path = RUNS) -> dict[str, Any]:
    """Return what a run keeps of this machine's floor: {} where none was measured on it."""
    floor = Floor.load(folder)
    if floor is None or not floor.holds_on(this_machine().as_facts()):
        return {}
    return {"floor": json.loads(json.dumps(asdict(floor)))}  # as run.json gives it back


def said(facts: Mapping[str, Any], summaries: Iterable[Summary]) -> list[str]:
    """Return the line that flags figures of labels near the floor that a run kept, if any are."""
    floor = Floor.of(facts.get("floor"))
    if floor is None:
        return []
    flagged = [
        f"{each.label} ({near})" for each in summaries if (near := floor.near(each.label, each))
    ]
    own = f"p50 {floor.p50_ms:.2f} ms, p99 {floor.p99_ms:.2f} ms, by `lab floor`"
    text = f"within {NEAR:g} times of this machine's own floor ({own}), so largely its own: "
    return [text + ", ".join(flagged)] if flagged else []
