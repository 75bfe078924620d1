"""This machine's floor, as ``lab floor`` has stored it: below it no figure says anything.

A latency within three times of what the same classes measure against a server that answers in
microseconds is largely this machine's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from lab.runs import RUNS

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
    def load(cls, folder: Path = RUNS) -> Self | None:
        """Return the stored floor, or None where there is none that can be read."""
        try:
            facts = json.loads((folder / FILE).read_text(encoding="utf-8"))
            labels = {name: (float(a), float(b)) for name, (a, b) in facts.pop("labels").items()}
            return cls(**{**facts, "files": tuple(facts["files"]), "labels": labels})
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def near(self, label: str, p50_ms: float, p99_ms: float) -> str:
        """Return what of a label is within three times of the floor: "p50", "p99", both or ""."""
        p50, p99 = self.labels.get(label, (self.p50_ms, self.p99_ms))
        found = [
            name
            for name, figure, floor in (("p50", p50_ms, p50), ("p99", p99_ms, p99))
            if figure < NEAR * floor
        ]
        return " and ".join(found)
