"""``python -m lab demo``: the whole thing on this machine, against stand-ins of the four servers.

Starts the stand-ins, runs multi.py with locust.conf against them, records and judges every
request, compares the samples with the stand-ins' own log, and leaves a run folder with a report.
No network, no account, no ``.env``: the tokens are dummies.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lab import load, pairs, runs
from lab.cli import CannotRun
from lab.plots import clock
from lab.progress import Progress
from lab.results import RunError
from lab.run import begin, finish, gate_of
from lab.standins.faults import FlagError, parse_slow, parse_tool
from lab.targets import TargetFailed, standins

HELP = "a minute of load against stand-ins on this machine, with verdict and report"

ROOT = Path(__file__).parents[1]
COUNTS = {"github": 2, "learn": 5, "context7": 5, "ado": 5}
# Pauses in seconds: within a turn, and between turns. Four in five are short at every pace.
PACES = {
    "quick": ("0.01", "0.05", "0.1", "0.3"),  # each of 13 tools several times in a minute
    "article": ("0.1", "0.5", "5", "30"),
    "published": ("0.5", "2", "8", "45"),  # the published run's own
}
NO_BURSTS = ("published",)  # its users called one tool at a time
_PAUSES = ("MCP_INTRA_MIN", "MCP_INTRA_MAX", "MCP_TURN_MIN", "MCP_TURN_MAX")
_STOPPING_SECONDS = 60.0  # of requests that still run at the end, by locust.conf's stop-timeout


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add = parser.add_argument
    add("--minutes", type=float, default=1.0, metavar="N", help="how long (default: 1)")
    add("--pace", choices=sorted(PACES), default="quick", help="the pauses (default: quick)")
    add("--users", action="extend", nargs="+", default=[], metavar="LABEL=N", help="other counts")
    add("--seed", type=int, default=1, metavar="N", help="of the stand-ins' latencies")
    add("--faults", choices=("published",), help="the failures of the published run as well")
    add("--slow", action="extend", nargs="+", default=[], metavar="LABEL:TOOL=MS")
    add("--broken", action="extend", nargs="+", default=[], metavar="LABEL:TOOL")
    add("--sessions", choices=("on", "off"), default="on", help="of the stand-ins that have any")
    add("--strict", action="store_true", help="figures that this machine may have made: exit 2")
    add("--criteria", type=Path, default=ROOT, metavar="YAML", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run the demo; return the verdict's exit code."""
    began = time.monotonic()
    counts = _counts(args.users)
    gate = gate_of(args.criteria)
    _check_tools(args)
    options = {"seed": args.seed, "faults": args.faults, "slow": args.slow}
    options |= {"broken": args.broken, "sessions": args.sessions}
    if not 0.0 < args.minutes <= 24 * 60:
        raise CannotRun(f"--minutes {args.minutes:g}: between 0 and {24 * 60}")
    seconds = max(1, round(args.minutes * 60))
    folder = runs.new_folder("demo")
    print(f"stand-ins of {', '.join(COUNTS)} on this machine; run folder {folder}", flush=True)
    try:
        with standins(folder, **options) as target:
            env = environment(os.environ, target.variables, args.pace, counts)
            words = ["--users", str(sum(counts.values())), "--run-time", f"{seconds}s"]
            facts = begin(
                folder,
                f"demo, {args.pace} pace, stand-ins",
                _spoken(args),
                *(gate, env),
                strict=args.strict,
                stand_ins=options,
            )
            code = _load(folder, words, env, seconds)
    except TargetFailed as reason:
        raise CannotRun(str(reason)) from reason
    problem, compared = _compare(folder)
    result = finish(folder, facts, code, problem if not code else "")
    if args.pace == "published" and compared:
        print(f"\nours against the stand-ins' own record, ms:\n{compared}")
    print(f"the demo took {time.monotonic() - began:.0f} s")
    return result


def environment(
    base: Mapping[str, str], servers: Mapping[str, str], pace: str, counts: Mapping[str, int]
) -> dict[str, str]:
    """Return Locust's environment: ours without what steers a run, then the stand-ins' and pace."""
    loopback = "127.0.0.1,localhost"
    return {
        **load.unsteered(base),
        **{f"{label.upper()}_USERS": str(count) for label, count in counts.items()},
        **dict(zip(_PAUSES, PACES[pace], strict=True)),
        "MCP_BURST_PROB": "0" if pace in NO_BURSTS else "0.2",
        **servers,
        "PYTHON_DOTENV_DISABLED": "1",
        "MCP_VAULT": "0",
        "NO_PROXY": loopback,
        "no_proxy": loopback,
    }


def _load(folder: Path, words: list[str], env: Mapping[str, str], seconds: float) -> int:
    own = folder.resolve() / "locust"
    own.mkdir()
    words = [*words, "--csv", str(own / "run"), "--html", str(own / "run.html")]
    progress = Progress(folder, seconds, 3.0 if sys.stdout.isatty() else 15.0)
    return load.run(
        load.command(words, str(ROOT / "multi.py")),
        folder,
        env,
        echo=False,
        cwd=ROOT,
        look=progress.look,
        most_seconds=seconds + _STOPPING_SECONDS,
    )


def _compare(folder: Path) -> tuple[str, str]:
    """Return what is wrong between samples and the stand-ins' log, and the table of both."""
    try:
        run = runs.read(folder)
    except RunError:
        return "", ""  # nothing was recorded, which is said where the report is made
    log = pairs.read_log(folder / "standins")
    cut: Counter[str] = Counter()
    for (label, what), count in run.tallies.items():
        if what == "cut at the end":
            cut[label] += count
    wrong = pairs.differences(run.requests, log, cut) + pairs.left_open(folder / "standins", cut)
    compared = pairs.table(pairs.pair(run.requests, log))
    (folder / "pairs.txt").write_text(compared + "\n", encoding="utf-8")
    if wrong:
        return "it differs from the stand-ins' own record: " + "; ".join(wrong), compared
    print(f"samples equal to the stand-ins' own log: {len(run.requests)} in {clock(_span(run))}")
    return "", compared


def _span(run: runs.Run) -> float:
    return max(r.end for r in run.requests) - run.requests[0].start if run.requests else 0.0


def _counts(words: list[str]) -> dict[str, int]:
    counts = dict(COUNTS)
    for word in words:
        label, _, number = word.partition("=")
        if label not in COUNTS or not number.isdigit():
            raise CannotRun(f"--users {word!r}: expected LABEL=N, LABEL one of {', '.join(COUNTS)}")
        counts[label] = int(number)
    if not sum(counts.values()):
        raise CannotRun("--users: at least one user is needed, all counts are 0")
    return counts


def _check_tools(args: argparse.Namespace) -> None:
    try:
        for text in args.slow:
            parse_slow(text)
        for text in args.broken:
            parse_tool("--broken", text)
    except FlagError as wrong:
        raise CannotRun(str(wrong)) from wrong


def _spoken(args: argparse.Namespace) -> list[str]:
    words = ["python", "-m", "lab", "demo", "--minutes", f"{args.minutes:g}", "--pace", args.pace]
    words += ["--seed", str(args.seed), "--sessions", args.sessions]
    words += ["--faults", args.faults] if args.faults else []
    for flag in ("users", "slow", "broken"):
        given = getattr(args, flag)
        words += [f"--{flag}", *given] if given else []
    return words + (["--strict"] if args.strict else [])
