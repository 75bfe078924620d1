"""CPU and memory of a process and of all that it has started."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process tree has used up to now: CPU seconds (user and system), resident bytes."""

    cpu_s: float
    rss: int


def usage(pid: int) -> Usage:
    """Return what the tree below a process uses; zeros when the process has gone.

    Children that ended and were waited for count with their CPU, as the system's accounts have it.
    """
    cpu, rss = 0.0, 0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess), process.oneshot():
                times = process.cpu_times()
                cpu += times.user + times.system + times.children_user + times.children_system
                rss += process.memory_info().rss
    return Usage(cpu, rss)


def busy_elsewhere(seconds: float = 1.0) -> float:
    """Watch the idle machine for some seconds; return the share of it that others use, 0 to 1."""
    return float(psutil.cpu_percent(interval=seconds)) / 100.0


def stolen_s() -> float:
    """Return the CPU seconds that the hypervisor gave to others so far; 0 where none is known."""
    return float(getattr(psutil.cpu_times(), "steal", 0.0))
