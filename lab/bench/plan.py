"""How much is measured: the full run, and the quick one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a self-benchmark.

    harness         the folder of the harness that is measured
    rounds          of everything that is compared; medians are printed
    seconds         of each such run, after its warm-up
    agents          at once in one process; agents_per_s of them come, and agents_seconds they stay
    clock_seconds   of each run that is compared with the server's own record
    growth_seconds  for which memory is watched
    quick           leaves out what would not fit
    """

    harness: Path
    rounds: int
    seconds: float
    agents: int
    agents_per_s: float
    agents_seconds: float
    clock_seconds: float
    growth_seconds: float
    quick: bool

    @classmethod
    def full(cls, harness: Path, rounds: int | None = None) -> Plan:
        """Return the plan that the README's table is made by: under 25 minutes."""
        return cls(harness, rounds or 5, 5.0, 10_000, 500.0, 120.0, 6.0, 40.0, quick=False)

    @classmethod
    def fast(cls, harness: Path, rounds: int | None = None) -> Plan:
        """Return a plan for a look in between: under five minutes, and its figures are noisy."""
        return cls(harness, rounds or 1, 3.0, 10_000, 1000.0, 25.0, 4.0, 20.0, quick=True)
