"""What a measurement was made on: a figure without its machine means nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine and what ran on it; `date` is of the measurement, in UTC."""

    date: str
    cpu: str
    cores: int
    system: str
    python: str
    locust: str

    def __str__(self) -> str:
        return (
            f"{self.date}, {self.cpu}, {self.cores} cores, {self.system},"
            f" Python {self.python}, Locust {self.locust}"
        )

    def as_facts(self) -> dict[str, str | int]:
        """Return it as JSON keeps it."""
        return asdict(self)


def this_machine() -> Machine:
    """Describe the machine that we run on, now."""
    return Machine(
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _cores(),
        system=f"{platform.system()} {platform.release().partition('-')[0]}",
        python=platform.python_version(),
        locust=importlib.metadata.version("locust"),
    )


def _cores() -> int:
    return os.cpu_count() or 1


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
