"""``python -m lab selfbench``: the harness measures itself, and says whether its promises hold.

CPU for each call against stock Locust and k6, ten thousand agents in one process, the clock
against the server's own record, large replies, growth, a second process, start-up: all against
the bundled null server on this machine, in rounds, by medians. Exits 0 only if every row holds,
else 1, naming the rows. It needs Linux, cc and k6; leave the machine alone meanwhile.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from lab.bench import contenders, table
from lab.bench.plan import Plan
from lab.bench.row import Row
from lab.cli import CannotRun
from lab.machine import this_machine
from lab.null_server import program
from lab.readme import replace_between
from lab.sampler import busy_elsewhere, stolen_s

HELP = "the harness measures itself: speed, clock, memory, against its own bounds"

PARTS = (*("startup", "cpu", "instructions", "agents", "clock", "replies", "growth", "processes"),)
NEEDS_QUIET = 0.02


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add = parser.add_argument
    add("--quick", action="store_true", help="one round of each, under five minutes; noisy")
    add("--only", action="append", choices=PARTS, metavar="ROW", help=f"one of {', '.join(PARTS)}")
    add("--rounds", type=int, metavar="N", help="of what is compared (default: 5; --quick: 1)")
    add("--write-readme", action="store_true", help="put the table into README.md")
    add("--harness", type=Path, default=contenders.ROOT, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Measure; return 0 where every row holds, 1 where one does not."""
    began = time.monotonic()
    if args.rounds is not None and args.rounds < 1:
        raise CannotRun(f"--rounds {args.rounds}: at least 1")
    if args.write_readme and (args.only or args.quick):
        raise CannotRun("--write-readme: only a full run is fit for the README")
    plan = (Plan.fast if args.quick else Plan.full)(args.harness.resolve(), args.rounds)
    parts = [part for part in PARTS if not args.only or part in args.only]
    program()  # what is missing is said before the first measurement, not after ten minutes
    if "cpu" in parts:
        contenders.find_k6()
    machine = this_machine()
    print(f"{machine}; {plan.rounds} rounds", flush=True)
    busy = busy_elsewhere()
    if busy > NEEDS_QUIET:
        print(
            f"warning: others use {busy:.0%} of this machine: its figures are not to be trusted,"
            " stop them first",
            file=sys.stderr,
        )
    stolen = stolen_s()
    rows: list[Row] = []
    for part in parts:
        for row in importlib.import_module(f"lab.bench.{part}").rows(plan):
            rows.append(row)
            print(table.line(row), flush=True)
    broken = [row for row in rows if not row.holds]
    verdict = f"FAILED: {'; '.join(row.name for row in broken)}" if broken else "PASSED"
    took = time.monotonic() - began
    print(f"\n{verdict}\nselfbench took {took:.0f} s")
    share = (stolen_s() - stolen) / took / machine.cores
    if share > NEEDS_QUIET:
        print(
            f"warning: the hypervisor gave {share:.0%} of this machine to others meanwhile: what"
            " FAILS may be theirs, measure again when they are quiet",
            file=sys.stderr,
        )
    if args.write_readme:
        text = table.markdown(rows, machine, _said(args))
        replace_between(contenders.ROOT / "README.md", "selfbench", text)
    return 1 if broken else 0


def _said(args: argparse.Namespace) -> str:
    rounds = f" --rounds {args.rounds}" if args.rounds else ""
    return f"python -m lab selfbench{rounds}"
