"""``python -m lab floor``: your own classes against a server that answers at once.

What they measure then is this machine's own share: its p50 and p99, the highest rate of one
process, and the agents that one process carries at their own pace. It is stored in
runs/floor.json, and reports flag figures within three times of it. Nothing leaves this machine:
every class is pointed at the bundled null server, with dummies for what it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import stats
from lab.bench.contenders import PERF, ROOT, environment, locust_command
from lab.cli import CannotRun
from lab.floors import Floor
from lab.machine import this_machine
from lab.null_server import NullServer
from lab.runs import RUNS

HELP = "what this machine itself adds to every latency, and what one process carries"

FULL_PERCENT = 85.0  # of a core, as reports mark a process that used more
FEW, MANY, BUSY = 500, 3000, 50
ENOUGH = 50  # calls of a label, for figures of its own
_SPAWN_RATE = 500.0
_SPARE_FILES, _FILES_PER_AGENT = 200, 1.1


@dataclass(frozen=True, slots=True)
class Phase:
    """One run of the classes. cpu: share of a core; rss: bytes; samples: label, ms."""

    users: int
    seconds: float
    cpu: float
    rss: int
    samples: list[tuple[str, float]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add = parser.add_argument
    add("-f", "--locustfile", default="multi.py", metavar="FILES", help="as Locust's own -f")
    add("--seconds", type=float, default=15.0, metavar="N", help="of each of three runs")
    add("--mode", choices=("json", "sse"), default="json", help="the kind of reply")


def run(args: argparse.Namespace) -> int:
    """Measure, print and store the floor."""
    files = [Path(each.strip()).resolve() for each in args.locustfile.split(",")]
    for file in files:
        if not file.is_file():
            raise CannotRun(f"{file} is no file: name locustfiles, separated by commas")
    if not 2.0 <= args.seconds <= 3600.0:
        raise CannotRun(f"--seconds {args.seconds:g}: between 2 and 3600")
    machine = this_machine()
    print(
        f"{machine}\n{', '.join(file.name for file in files)} against the null server", flush=True
    )
    with NullServer(args.mode) as server:
        few = _measure(files, server, FEW, args.seconds, pauses=True)
        busy = _measure(files, server, BUSY, min(args.seconds, 6.0), pauses=False)
        many = _measure(files, server, MANY, args.seconds, pauses=True)
    floor = judge(few, busy, many, machine.as_facts(), [file.name for file in files])
    print(show(floor, few))
    print(f"stored in {floor.save(RUNS)}: reports flag figures within three times of it")
    return 0


def judge(
    few: Phase, busy: Phase, many: Phase, machine: dict[str, str | int], files: Sequence[str]
) -> Floor:
    """Make the floor of its three runs: few agents, agents without pauses, many agents."""
    by_label: dict[str, list[float]] = defaultdict(list)
    for label, ms in few.samples:
        by_label[label].append(ms)
    whole = stats.percentiles((ms for _, ms in few.samples), ("p50", "p99"))
    labels = {
        label: (found["p50"], found["p99"])
        for label, times in sorted(by_label.items())
        if len(times) >= ENOUGH
        for found in (stats.percentiles(times, ("p50", "p99")),)
    }
    agents, limit = carried(few, many, _allowed_files())
    return Floor(
        p50_ms=round(whole["p50"], 3),
        p99_ms=round(whole["p99"], 3),
        rate=round(len(busy.samples) / busy.seconds, 1),
        agents=agents,
        limit=limit,
        kib_per_agent=round(max(0.0, many.rss - few.rss) / (many.users - few.users) / 1024, 1),
        machine=machine,
        files=tuple(files),
        labels={name: (round(a, 3), round(b, 3)) for name, (a, b) in labels.items()},
    )


def carried(few: Phase, many: Phase, allowed_files: int) -> tuple[int, str]:
    """Return how many agents one process carries, and what bounds them.

    The CPU of an agent is the slope between the two runs; where the larger one was already at its
    limit, the smaller is taken alone.
    """
    full = FULL_PERCENT / 100.0
    each = (many.cpu - few.cpu) / (many.users - few.users)
    if many.cpu >= full or each <= 0.0:
        each = few.cpu / few.users
    own = max(0.0, few.cpu - each * few.users)
    by_cpu = int((full - own) / each) if each > 0.0 else 0
    by_files = int((allowed_files - _SPARE_FILES) / _FILES_PER_AGENT)
    return (by_cpu, "CPU") if by_cpu <= by_files else (by_files, "open files")


def show(floor: Floor, few: Phase) -> str:
    """Return the floor as text, with the labels that had calls enough."""
    requests, pace = f"{len(few.samples):,} requests of {few.users} agents", "at their own pace"
    rate, agents = f"{floor.rate:,.0f} requests/s", f"{floor.agents:,} in one process {pace}"
    lines = [
        "",
        f"latency      p50 {floor.p50_ms:.2f} ms, p99 {floor.p99_ms:.2f} ms ({requests} {pace})",
        f"highest rate {rate} by one process ({BUSY} users without pauses)",
        f"agents       {agents}, by its {floor.limit}; {floor.kib_per_agent:.1f} KiB each",
        "",
    ]
    width = max(map(len, floor.labels), default=0)
    for label, (p50, p99) in floor.labels.items():
        lines.append(f"{label:<{width}}  p50 {p50:6.2f} ms  p99 {p99:6.2f} ms")
    return "\n".join(lines)


def _allowed_files() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 1 << 20 if hard == resource.RLIM_INFINITY else hard


def _measure(
    files: Sequence[Path], server: NullServer, users: int, seconds: float, *, pauses: bool
) -> Phase:
    with tempfile.TemporaryDirectory(prefix="floor-") as folder:
        out = Path(folder) / "out.json"
        variables = {"FLOOR_URL": server.url, "FLOOR_OUT": out, "FLOOR_PAUSES": int(pauses)}
        rate = min(float(users), _SPAWN_RATE)
        lasts = users / rate + 2.0 + seconds
        own = {n: v for n, v in os.environ.items() if n.upper().startswith("MCP_")}
        own["PYTHON_DOTENV_DISABLED"] = ""  # the pace may be set there
        done = subprocess.run(
            [
                *locust_command((PERF / "floor.py", *files), lasts, users, rate),
                *("--exit-code-on-error", "0"),
            ],
            env={**environment(ROOT), **own, **{n: str(v) for n, v in variables.items()}},
            cwd=folder,  # not ours: Locust would read our locust.conf
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not out.exists():
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
            raise CannotRun(f"Locust ended with {done.returncode}: {' | '.join(last)}")
        found = json.loads(out.read_text(encoding="utf-8"))
    if found["failures"]:
        text, times = max(found["failures"].items(), key=lambda each: each[1])
        raise CannotRun(f"requests failed against the null server, {times} of them by: {text}")
    if not found["samples"]:
        raise CannotRun(f"no request in {seconds:g} s: give it more by --seconds")
    samples = [(str(name), float(ms)) for name, ms in found["samples"]]
    return Phase(users, found["seconds"], found["cpu"], found["rss"], samples)
