"""How a run ended: its verdict, its marks, and the exit code that they come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lab.criteria import Verdict
from lab.digest import Digest

PASSED, FAILED, COULD_NOT_RUN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """A judged run.

    problem  why the run cannot be judged at all; "" where it can
    strict   whether figures that this machine may have made are a problem too
    """

    digest: Digest
    verdict: Verdict
    problem: str = ""
    strict: bool = False

    @property
    def code(self) -> int:
        """0 PASSED, 1 FAILED, 2 could not run (or, strictly, could not measure)."""
        if self.problem or (self.strict and self.digest.marks):
            return COULD_NOT_RUN
        return PASSED if self.verdict.passed else FAILED

    @property
    def word(self) -> str:
        """The verdict in a word or three."""
        return ("PASSED", "FAILED", "COULD NOT JUDGE")[self.code]

    @property
    def first_line(self) -> str:
        """The whole outcome in one line; what failed comes with label, criterion and limit."""
        if self.problem:
            return f"COULD NOT JUDGE: {self.problem}"
        marks = "; ".join(self.digest.marks)
        if self.code == COULD_NOT_RUN:
            return f"COULD NOT JUDGE: {marks} (--strict); else {self.verdict.first_line}"
        return f"{self.verdict.first_line}{f'; marked: {marks}' if marks else ''}"

    @property
    def lines(self) -> list[str]:
        """The outcome, then a line for each criterion, then what the reader should know."""
        return [
            self.first_line,
            *(f"  {each}" for each in self.verdict.judgements),
            *(f"  note: {each}" for each in self.digest.notes),
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the machine's summary: verdict, criteria, and every label's figures in ms."""
        digest = self.digest
        return {
            "verdict": self.word,
            "exit_code": self.code,
            "first_line": self.first_line,
            "run": digest.run.name,
            "began": digest.span.start,
            "seconds": round(digest.span.seconds, 3),
            "stand_ins": list(digest.standins),
            "marks": digest.marks,
            "notes": digest.notes,
            "criteria": [
                {
                    "request": each.criterion.request,
                    "criterion": each.criterion.text,
                    "outcome": each.outcome.value,
                    "measured": each.measured,
                    "limit": each.criterion.limit,
                    "why": each.why,
                }
                for each in self.verdict.judgements
            ],
            "labels": {
                line.summary.label: {
                    "requests": line.summary.count,
                    "failures": line.summary.failures,
                    "error_percent": round(line.summary.error_percent, 4),
                    **{
                        name: round(getattr(line.summary, name), 3)
                        for name in ("avg", "min", "p50", "p75", "p90", "p95", "p99", "max")
                    },
                    "per_second": round(line.summary.rate, 4),
                    "mark": line.mark,
                }
                for line in [*digest.lines, digest.total]
            },
            "tokens": [step.as_json() for step in digest.tokens],
            "revisions": [era.as_json() for era in digest.eras],
            "failures": [
                {"label": f.label, "kind": f.kind, "text": f.text, "count": f.count}
                for f in digest.failures
            ],
            "counted": [
                {"server": label, "what": what, "count": count}
                for (label, what), count in sorted(digest.run.tallies.items())
            ],
        }
