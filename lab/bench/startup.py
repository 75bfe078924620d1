"""What it costs to import the test plan, over what Locust costs by itself."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator

from lab.bench import contenders
from lab.bench.plan import Plan
from lab.bench.row import Row
from lab.cli import CannotRun

BOUND = 0.2
_PROGRAM = """
import json, sys, time
import locust
began = time.perf_counter()
import multi
print(json.dumps([time.perf_counter() - began, sorted({n.split(".")[0] for n in sys.modules})]))
"""
_FIRST = 2  # runs that fill the disk's cache and are not counted


def rows(plan: Plan) -> Iterator[Row]:
    """Yield the seconds, and the Azure libraries that were loaded though nobody needs them."""
    times, loaded = [], set()
    for turn in range(_FIRST + 5):
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env=contenders.environment(plan.harness),
            cwd=plan.harness,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CannotRun(f"multi.py cannot be imported: {done.stderr.strip()[-300:]}")
        seconds, modules = json.loads(done.stdout.splitlines()[-1])
        loaded |= {"azure", "msal"} & set(modules)
        if turn >= _FIRST:
            times.append(seconds)
    yield Row("import of multi.py, over Locust's own", BOUND, unit=" s").measured(
        statistics.median(times), f"rounds {min(times):.3f} to {max(times):.3f} s"
    )
    yield Row("Azure libraries loaded by it", 0.0).measured(
        len(loaded), ", ".join(sorted(loaded)) or "none"
    )
