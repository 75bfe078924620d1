"""What a run is judged by: the manifest's criteria, and whose requests they speak of.

A run folder keeps its gate in run.json, so that a report made later judges by the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from lab import criteria
from lab.criteria import Criterion, Verdict
from lab.lint.classes import participants
from lab.lint.sources import read_project
from lab.manifest import load
from lab.runs import Run
from lab.timeline import server_of


@dataclass(frozen=True, slots=True)
class Gate:
    """Criteria, and user class -> server label of every class that the test plan has."""

    criteria: tuple[Criterion, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_manifest(cls, path: Path) -> Self:
        """Return the gate of an azure-loadtest.yaml, or of the folder it is in.

        Raises ManifestError, in one line, where it cannot be used.
        """
        manifest = load(path)
        classes = [each for each in participants(read_project(manifest)[0]) if each.hosted]
        return cls(manifest.criteria, {each.name: each.label for each in classes})

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Self | None:
        """Return the gate that a run.json has kept, or None where it has none."""
        kept = facts.get("gate")
        if not isinstance(kept, dict):
            return None
        parsed = [
            criteria.parse(each["text"], request=each["request"])
            for each in kept.get("criteria", ())
        ]
        sound = tuple(each for each in parsed if isinstance(each, Criterion))
        return cls(sound, dict(kept.get("labels", {})))

    def as_facts(self) -> dict[str, Any]:
        """Return what run.json keeps."""
        return {
            "criteria": [{"request": c.request, "text": c.text} for c in self.criteria],
            "labels": dict(self.labels),
        }

    def judge(self, run: Run) -> Verdict:
        """Return the verdict: by the criteria, on the labels whose classes had users."""
        took_part = {server_of(each.label) for each in run.requests} | {
            self.labels[name]
            for process in run.processes.values()
            for _, by_class in process.users
            for name, users in by_class.items()
            if users and name in self.labels
        }
        known = set(self.labels.values()) | took_part if self.labels else None
        return criteria.judge(run.requests, self.criteria, took_part, known=known)
