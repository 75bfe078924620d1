"""``python -m lab matrix``: real servers of both eras, and every revision that each accepts.

Each server is started on loopback. The real ``MCPUserBase`` calls its harmless tools in a real
Locust process, a few users for each revision and for auto, and what the recorder kept is judged:
a failed sample is a failure, a revision that a server does not accept is none. ``--install`` gets
the servers, pinned, from PyPI and npm.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from lab import load, runs
from lab.cli import CannotRun
from lab.readme import replace_between
from lab.real.cells import COLUMNS, Cell, judge, label_of, table
from lab.real.install import install
from lab.real.servers import SERVERS, Server, serving
from lab.results import RunError
from lab.targets import TargetFailed

HELP = "real servers of both eras, and every revision that each accepts"

ROOT = Path(__file__).parents[1]
USERS = 2  # for each revision
ROUNDS = 3  # of all harmless tools, by each user
SECONDS = 60.0  # for one server: a run ends by itself, long before
AT_ONCE = 2  # servers


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    labels = ", ".join(server.label for server in SERVERS)
    parser.add_argument("--server", metavar="NAME", help=f"this one only: {labels}")
    parser.add_argument(
        "--revision", metavar="REVISION", help=f"this one only: {', '.join(COLUMNS)}"
    )
    parser.add_argument("--write-readme", action="store_true", help="put the table into README.md")
    parser.add_argument(
        "--install", action="store_true", help="install the servers, and do nothing else"
    )


def run(args: argparse.Namespace) -> int:
    """Print a line per cell and the table; return 0 if none failed, 1 if one did."""
    if args.install:
        install()
        return 0
    if args.write_readme and (args.server or args.revision):
        raise CannotRun("--write-readme writes the whole table: use it without other options")
    servers = [server for server in SERVERS if args.server in (None, server.label)]
    columns = [asked for asked in COLUMNS if args.revision in (None, asked)]
    if not servers:
        labels = ", ".join(server.label for server in SERVERS)
        raise CannotRun(f"--server {args.server!r}: there are {labels}")
    if not columns:
        raise CannotRun(f"--revision {args.revision!r}: there are {', '.join(COLUMNS)}")
    if missing := [server.missing for server in servers if server.missing]:
        raise CannotRun("; ".join(missing))
    folder = runs.new_folder("matrix")
    cells = []
    for found in _all(servers, columns, folder):
        cells += found
        print("\n".join(map(str, found)), flush=True)
    passed = sum(cell.passed for cell in cells)
    print(f"\n{table(servers, cells)}\n\n{passed} of {len(cells)} cells without failure, {folder}")
    if args.write_readme:
        replace_between(ROOT / "README.md", "matrix", _for_readme(cells))
    return 0 if passed == len(cells) else 1


def _all(servers: Sequence[Server], columns: Sequence[str], folder: Path) -> Iterator[list[Cell]]:
    pool = ThreadPoolExecutor(max_workers=AT_ONCE)
    try:
        waiting = [pool.submit(cells_of, server, columns, folder) for server in servers]
        for each in as_completed(waiting):
            yield each.result()
    finally:
        pool.shutdown(cancel_futures=True)


def cells_of(server: Server, columns: Sequence[str], parent: Path) -> list[Cell]:
    """Start a server, let users of every column call it, and judge; raises CannotRun.

    parent: where the recorded run goes, in a folder called after the server.
    """
    folder = parent / server.label
    folder.mkdir()
    plan = folder / "plan.json"
    words = ["--headless", "-u", str(USERS * len(columns)), "-r", "100", "-t", f"{SECONDS:.0f}s"]
    line = load.command([*words, "--stop-timeout", "5"], str(ROOT / "lab" / "real" / "users.py"))
    try:
        with serving(server) as (port, _):
            plan.write_text(json.dumps(_plan(server, columns, port)), encoding="utf-8")
            code = load.run(line, folder, _environment(plan), echo=False, most_seconds=2 * SECONDS)
        if code:
            raise RunError(f"Locust ended with exit code {code}: see {folder / 'locust.log'}")
        recorded = runs.read(folder)
    except (TargetFailed, RunError) as reason:
        raise CannotRun(f"{server.label}: {' '.join(str(reason).split())}") from None
    if recorded.missing:
        raise CannotRun(f"{server.label}: {'; '.join(recorded.missing)}")
    return [judge(server, asked, recorded, USERS * ROUNDS) for asked in columns]


def _plan(server: Server, columns: Sequence[str], port: int) -> list[dict[str, object]]:
    return [
        {
            "label": label_of(server, asked),
            "host": f"http://127.0.0.1:{port}",
            "path": server.path,
            "headers": dict(server.headers),
            "users": USERS,
            "rounds": ROUNDS,
            "sessions": server.sessions,
            "speaks": [asked],
            "calls": {tool: list(call) for tool, call in server.calls.items()},
        }
        for asked in columns
    ]


def _environment(plan: Path) -> dict[str, str]:
    ours = {"PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", "PYTHON_DOTENV_DISABLED": "1"}
    return {**load.unsteered(), **ours, "REAL_PLAN": str(plan.resolve())}


def _for_readme(cells: Sequence[Cell]) -> str:
    passed = sum(cell.passed for cell in cells)
    return (
        f"{table(SERVERS, cells)}\n\n`python -m lab matrix` (`--install` gets the servers from PyPI"
        f" and npm): {passed} of {len(cells)} cells without a failed sample. A number is the calls"
        " of harmless tools by users who asked for that revision, under `auto` with the revision"
        " that the probe decided; a dash is a revision that the server does not accept, with its"
        " answer."
    )
