"""``python -m lab conformance``: the official suite against our client, scenario by scenario.

Each scenario runs alone, with the real ``MCPUserBase`` in one Locust user. It passes only with at
least one SUCCESS among its checks and no FAILURE: the suite itself also passes a client that does
nothing, and times out when it starts all of them at once.

With ``--servers`` the suite's server scenarios run against the stand-ins and the null server
instead, for what each of them claims.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.cli import CannotRun
from lab.conform.claims import CLAIMS, judge_claim, serving
from lab.conform.outcome import ROOT, Outcome
from lab.conform.scenarios import INTERACTIVE, OTHER_EXTENSIONS, SCENARIOS, judge
from lab.node import SUITE, NodeMissing, suite
from lab.readme import replace_between

HELP = "the official MCP conformance suite against our client, scenario by scenario"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--scenario", metavar="NAME", help="this one only")
    parser.add_argument("--spec-version", metavar="REVISION", help="this revision only")
    parser.add_argument(
        "--servers", action="store_true", help="our stand-ins and null server instead of our client"
    )
    parser.add_argument("--write-readme", action="store_true", help="put the table into README.md")


def run(args: argparse.Namespace) -> int:
    """Print a line per scenario; return 0 if all passed, 1 if one failed."""
    if args.write_readme and (args.servers or args.scenario or args.spec_version):
        raise CannotRun("--write-readme writes the whole table: use it without other options")
    outcomes = []
    for outcome in _of_servers(args) if args.servers else _of_client(args):
        outcomes.append(outcome)
        print(outcome, flush=True)
    if not outcomes:
        raise CannotRun(
            f"no scenario {args.scenario or ''} at {args.spec_version or 'any revision'}:"
            " run it without --scenario and --spec-version to see all"
        )
    if not args.servers:
        print(f"left out, as a person has to sign in: {', '.join(INTERACTIVE)}")
        print(f"left out, as extensions that it does not speak: {', '.join(OTHER_EXTENSIONS)}")
    passed = sum(outcome.passed for outcome in outcomes)
    print(f"{passed} of {len(outcomes)} scenarios passed")
    if args.write_readme:
        replace_between(ROOT / "README.md", "conformance", table(outcomes))
    return 0 if passed == len(outcomes) else 1


def _program() -> list[str]:
    try:
        return suite()
    except NodeMissing as reason:
        raise CannotRun(str(reason)) from None


def _of_client(args: argparse.Namespace) -> Iterator[Outcome]:
    for scenario, revision in SCENARIOS:
        if args.scenario in (None, scenario) and args.spec_version in (None, revision):
            yield judge(_program(), scenario, revision)


def _of_servers(args: argparse.Namespace) -> Iterator[Outcome]:
    chosen = [
        claim
        for claim in CLAIMS
        if args.scenario in (None, claim.scenario) and args.spec_version in (None, claim.revision)
    ]
    if not chosen:
        return
    program = _program()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as urls:
        for claim in chosen:
            yield judge_claim(program, claim, urls)


def table(outcomes: Sequence[Outcome]) -> str:
    """One row per revision: each scenario with how many of its checks succeeded."""
    rows: dict[str, list[str]] = {}
    for outcome in outcomes:
        said = str(outcome.statuses["SUCCESS"]) if outcome.passed else "FAILED"
        rows.setdefault(outcome.revision or "extension", []).append(f"{outcome.scenario} {said}")
    lines = ["| revision | scenario and checks passed |", "|---|---|"]
    lines += [f"| {revision} | {', '.join(said)} |" for revision, said in rows.items()]
    names = ", ".join(name.removeprefix("auth/") for name in INTERACTIVE)
    lines.append(
        f"\n`python -m lab conformance` ({SUITE}). Left out are the interactive scenarios, in"
        f" which a person signs in by a browser (auth/: {names}), and other extensions"
        f" ({', '.join(OTHER_EXTENSIONS)}). `--servers` runs the suite's server scenarios"
        " against the stand-ins and the null server, for what each claims."
    )
    return "\n".join(lines)
