"""User-space instructions for each call, by callgrind: a witness that no noisy neighbour moves.

It is blind to system calls, and runs some fifty times slower; two runs that differ by so many
calls are compared, so that what is not a call cancels out.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from lab.bench import contenders
from lab.bench.cost import scratch
from lab.bench.plan import Plan
from lab.bench.row import Row
from lab.cli import CannotRun
from lab.null_server import NullServer

FEW, MANY = 300, 1300
_USERS = 10
_MODES = {"json": ("JSON", 0.25), "sse": ("event streams", 0.26)}
_FILES = {"harness": "harness_null.py", "FastHttpUser": "raw_fasthttp.py"}
_BOUND = 0.34
_MOST_SECONDS = 300.0


def rows(plan: Plan) -> Iterator[Row]:
    """Yield harness / FastHttpUser in instructions, for both kinds of reply."""
    for mode, (replies, aim) in _MODES.items():
        if plan.quick and mode != "json":
            continue
        row = Row(
            f"instructions per call, {replies}: harness / FastHttpUser",
            _BOUND,
            aim=aim,
            optional=True,
        )
        valgrind = shutil.which("valgrind")
        if valgrind is None:
            yield row.missing("valgrind is not installed")
            continue
        with NullServer(mode) as server, ThreadPoolExecutor(2) as both:
            count = partial(_per_call, valgrind, plan.harness, server)
            ours, theirs = both.map(count, _FILES.values())
        yield row.measured(ours / theirs, f"{ours / 1e3:.0f} / {theirs / 1e3:.0f} thousand")


def _per_call(valgrind: str, harness: Path, server: NullServer, file: str) -> float:
    few, many = (_counted(valgrind, harness, file, server, calls) for calls in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def _counted(valgrind: str, harness: Path, file: str, server: NullServer, calls: int) -> int:
    files = [contenders.PERF / file, contenders.PERF / "stop_after.py"]
    variables = {"STOP_AFTER": calls, "PYTHONHASHSEED": 0, "MCP_URL": server.url}
    done = subprocess.run(
        [
            *(valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null"),
            *contenders.locust_command(files, _MOST_SECONDS, _USERS),
        ],
        env=contenders.environment(harness, **variables),
        cwd=scratch(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_MOST_SECONDS,
        check=False,
    )
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode or found is None:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise CannotRun(f"callgrind ended with {done.returncode}: {' | '.join(last)}")
    return int(found[1])
