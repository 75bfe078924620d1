"""``python -m lab run -- <locust options>``: Locust, recorded, judged and reported.

Every option after ``--`` is Locust's. The failureCriteria of azure-loadtest.yaml decide, as they
do in Azure: a failed request fails the run only where a criterion says so, an absent request
where a criterion of a class that took part names it.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import floors, load, report, runs
from lab.cli import CannotRun
from lab.gate import Gate
from lab.manifest import FILE_NAME, ManifestError
from lab.rows import SECRET_NAME, redact, secret_values

HELP = "locust with recording, verdict and report; its options go after --"

_SETTINGS = re.compile(r"MCP_(?!RUN_DIR$)[A-Z_]+|[A-Z0-9]+_USERS")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--name", default="run", help="what the run folder is called after")
    parser.add_argument(
        "--criteria",
        type=Path,
        metavar="YAML",
        help=f"judge by this file (default: the {FILE_NAME} here)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="figures that this machine may have made: exit 2"
    )
    parser.add_argument("locust", nargs=argparse.REMAINDER, metavar="-- LOCUST OPTIONS")


def run(args: argparse.Namespace) -> int:
    """Run, judge, report; return the verdict's exit code."""
    if not re.fullmatch(r"[\w.-]+", args.name):
        raise CannotRun(f"--name {args.name!r}: use letters, digits, dots, dashes and underscores")
    words = args.locust[1:] if args.locust[:1] == ["--"] else args.locust
    gate = gate_of(args.criteria)
    line = load.command(words, load.plan(words, os.environ))
    folder = runs.new_folder(args.name)
    facts = begin(folder, "run", ["locust", *words], gate, os.environ, strict=args.strict)
    code = load.run(line, folder, os.environ, echo=True)
    return finish(folder, facts, code)


def gate_of(criteria: Path | None) -> Gate:
    """Return the gate that the manifest named, or the one here, gives. Raises CannotRun."""
    try:
        if criteria is not None or Path(FILE_NAME).exists():
            return Gate.of_manifest(criteria or Path(FILE_NAME))
    except ManifestError as wrong:
        raise CannotRun(str(wrong)) from wrong
    print(f"no {FILE_NAME} here and none named by --criteria: nothing is judged", file=sys.stderr)
    return Gate()


def begin(
    folder: Path,
    what: str,
    command: Sequence[str],
    gate: Gate,
    env: Mapping[str, str],
    *,
    strict: bool,
    **more: Any,
) -> dict[str, Any]:
    """Write run.json as far as it is known before the run, and return it."""
    facts = {
        "what": what,
        "command": redact(shlex.join(command), secret_values(env)),
        "began": time.time(),
        "settings": {
            name: value
            for name, value in sorted(env.items())
            if _SETTINGS.fullmatch(name) and not SECRET_NAME.search(name)
        },
        "strict": strict,
        "gate": gate.as_facts(),
        **floors.facts_here(),
        **more,
    }
    runs.write_facts(folder, facts)
    return facts


def finish(folder: Path, facts: dict[str, Any], code: int, problem: str = "") -> int:
    """Complete run.json, make and print every test's report; return the worst exit code."""
    facts |= {"ended": time.time(), "locust_exit_code": code}
    facts["problem"] = problem or (f"locust ended with exit code {code}" if code else "")
    worst = 0
    for test in runs.tests(folder):
        runs.write_facts(test, facts)
        try:
            outcome = report.make(test, problem=problem)
        except CannotRun as reason:
            words = f"{facts['problem']}; {report.last_words(folder)}"
            said = words if facts["problem"] else str(reason)
            report.publish(f"## COULD NOT RUN: {folder.name}\n\n{said}\n")
            raise CannotRun(said) from reason
        report.publish(report.summary(outcome))
        report.show(outcome, test)
        worst = max(worst, outcome.code)
    return worst
