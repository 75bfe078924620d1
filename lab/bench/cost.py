"""What a load generator spends on a call: one run, its CPU by the system, its calls by the server.

A run is started, left alone until it is warm, and then counted to its end: so its start costs
nothing, and work that it put off does. Calls are those that the null server has answered, and a
run that failed any of them is no measurement.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.cli import CannotRun
from lab.null_server import NullServer
from lab.sampler import usage

WARM_S = 1.0
_STARTS_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class Contender:
    """A load generator: its command line for a run of so many seconds, and its environment."""

    name: str
    command: Callable[[float], Sequence[str]]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run has spent once it was warm.

    peak_rss is that of its largest process, in bytes, over its whole life.
    """

    cpu_s: float
    calls: int
    seconds: float
    server_cpu_s: float
    peak_rss: int

    @property
    def us(self) -> float:
        """Microseconds of CPU for each call."""
        return self.cpu_s / self.calls * 1e6

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds


def measure(contender: Contender, server: NullServer, seconds: float) -> Cost:
    """Run a contender against a server; return what the part of `seconds` after the warm-up cost.

    Raises CannotRun where it does not start, or fails.
    """
    lasts = WARM_S + seconds
    with tempfile.TemporaryFile("w+") as output:
        before = server.stats()
        process = subprocess.Popen(
            [str(word) for word in contender.command(lasts)],
            env={**contender.env, "MCP_URL": server.url},
            cwd=scratch(),  # Locust reads the locust.conf of its folder, and Python imports from it
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _await_calls(process, server, before.requests)
            time.sleep(WARM_S)
            began, warm, used = time.perf_counter(), server.stats(), usage(process.pid).cpu_s
            status, spent = _await_end(process, lasts + _STARTS_WITHIN_S)
            ended, after = time.perf_counter(), server.stats()
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)  # it has a group of its own
                process.wait()
        if status:
            output.seek(0)
            last = [line.strip() for line in output.read().splitlines() if line.strip()][-6:]
            raise CannotRun(f"{contender.name} ended with {status}: {' | '.join(last)}")
    calls = after.requests - warm.requests
    if not calls:
        raise CannotRun(f"{contender.name} made no call once it was warm")
    return Cost(
        cpu_s=spent.ru_utime + spent.ru_stime - used,
        calls=calls,
        seconds=min(seconds, ended - began),
        server_cpu_s=after.cpu_s - warm.cpu_s,
        peak_rss=spent.ru_maxrss * 1024,
    )


def _await_calls(process: subprocess.Popen[bytes], server: NullServer, before: int) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN_S
    while server.stats().requests == before and process.returncode is None:
        if time.monotonic() > deadline:
            raise CannotRun(f"no call within {_STARTS_WITHIN_S:.0f} s")
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return  # it ended at once; its status says how
        time.sleep(_LOOK_EVERY_S)


def _await_end(
    process: subprocess.Popen[bytes], most_seconds: float
) -> tuple[int, resource.struct_rusage]:
    """Wait for the process itself, as only that gives the accounts of it and its children."""
    deadline = time.monotonic() + most_seconds
    while True:
        pid, status, spent = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, spent
        if time.monotonic() > deadline:
            raise CannotRun(f"it did not end within {most_seconds:.0f} s")
        time.sleep(_LOOK_EVERY_S)


def interleave(
    contenders: Sequence[Contender], server: NullServer, rounds: int, seconds: float
) -> dict[str, list[Cost]]:
    """Measure all contenders in turn, round after round; return each one's costs by its name."""
    costs: dict[str, list[Cost]] = {each.name: [] for each in contenders}
    for turn in range(rounds):
        # The order is turned as well, so that nobody always runs after the same neighbour.
        for each in (*contenders[turn % len(contenders) :], *contenders[: turn % len(contenders)]):
            costs[each.name].append(measure(each, server, seconds))
    return costs


def scratch() -> Path:
    """Return a fresh folder for a run's own files, removed when we exit."""
    return Path(tempfile.mkdtemp(prefix="selfbench-", dir=_scratch.name))


_scratch = tempfile.TemporaryDirectory(prefix="selfbench-")
