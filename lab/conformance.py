"""``python -m lab conformance``: the official suite against our client, scenario by scenario.

Each scenario runs alone, with the real ``MCPUserBase`` in one Locust user. It passes only with at
least one SUCCESS among its checks and no FAILURE: the suite itself also passes a client that does
nothing, and times out when it starts all of them at once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.node import SUITE, NodeMissing, suite

HELP = "the official MCP conformance suite against our client, scenario by scenario"

ROOT = Path(__file__).parents[1]
SECONDS = 60  # for one scenario; the suite's own limit is 30
SCENARIOS: tuple[tuple[str, str | None], ...] = (
    ("initialize", "2025-06-18"),
    ("tools_call", "2025-06-18"),
    ("initialize", "2025-11-25"),
    ("tools_call", "2025-11-25"),
    ("sse-retry", "2025-11-25"),
    ("elicitation-sep1034-client-defaults", "2025-11-25"),
    ("json-schema-2020-12-preservation", "2025-11-25"),
    ("tools_call", "2026-07-28"),
    ("request-metadata", "2026-07-28"),
    ("http-standard-headers", "2026-07-28"),
    ("http-custom-headers", "2026-07-28"),
    ("http-invalid-tool-headers", "2026-07-28"),
    ("sep-2322-client-request-state", "2026-07-28"),
    ("json-schema-ref-no-deref", "2026-07-28"),
    ("json-schema-2020-12-preservation", "2026-07-28"),
    ("auth/client-credentials-basic", None),
    ("auth/client-credentials-jwt", None),
)
LEFT_OUT = (
    "the other auth/* scenarios (authorization code, DCR, CIMD, DPoP, ID-JAG, workload identity):"
    " they need a person in a browser, or an extension that no load test uses"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the suite said of one scenario: how many checks of each status, and what failed."""

    scenario: str
    revision: str | None
    statuses: Counter[str]
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """At least one SUCCESS, and no FAILURE."""
        return self.statuses["SUCCESS"] > 0 and self.statuses["FAILURE"] == 0

    def __str__(self) -> str:
        word = "passed" if self.passed else "FAILED"
        line = f"{word}  {self.revision or 'extension':10}  {self.scenario:38}"
        line += f"{self.statuses['SUCCESS']:3} checks"
        return "\n".join([line, *(f"        {failure}" for failure in self.failures)])


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--scenario", help="this one only")
    parser.add_argument("--spec-version", help="this revision only")
    parser.add_argument("--write-readme", action="store_true", help="put the table into README.md")


def run(args: argparse.Namespace) -> int:
    """Print a line per scenario; return 0 if all passed, 1 if one failed, 2 without Node."""
    chosen = [
        (scenario, revision)
        for scenario, revision in SCENARIOS
        if args.scenario in (None, scenario) and args.spec_version in (None, revision)
    ]
    if not chosen:
        print("lab conformance: no such scenario; see SCENARIOS in it", file=sys.stderr)
        return 2
    try:
        program = suite()
    except NodeMissing as reason:
        print(f"lab conformance: {reason}", file=sys.stderr)
        return 2
    outcomes = []
    for scenario, revision in chosen:
        outcomes.append(judge(program, scenario, revision))
        print(outcomes[-1], flush=True)
    print(f"left out: {LEFT_OUT}")
    passed = sum(outcome.passed for outcome in outcomes)
    print(f"{passed} of {len(outcomes)} scenarios passed")
    if args.write_readme:
        _write(outcomes)
    return 0 if passed == len(outcomes) else 1


def judge(program: Sequence[str], scenario: str, revision: str | None) -> Outcome:
    """Run one scenario; what the suite did not write down is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        words = [
            *program, "client", "--command", f"{sys.executable} -m lab.conformance_client",
            "--scenario", scenario, "-o", folder,
        ]  # fmt: skip
        if revision is not None:
            words += ["--spec-version", revision]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1,localhost"}
        env = {n: v for n, v in env.items() if not n.startswith(("LOCUST_", "MCP_"))}
        try:
            subprocess.run(
                words, cwd=ROOT, env=env, capture_output=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return Outcome(scenario, revision, Counter(FAILURE=1), (f"took over {SECONDS} s",))
        checks = [
            check
            for path in Path(folder).rglob("checks.json")
            for check in json.loads(path.read_text(encoding="utf-8"))
        ]
    statuses = Counter(str(check.get("status")) for check in checks)
    failures = tuple(
        f"{check.get('id')}: {check.get('errorMessage') or check.get('description')}"[:300]
        for check in checks
        if check.get("status") == "FAILURE"
    )
    return Outcome(scenario, revision, statuses, failures or _silence(statuses))


def _silence(statuses: Counter[str]) -> tuple[str, ...]:
    return () if statuses["SUCCESS"] else ("no check succeeded: the client did nothing",)


def _write(outcomes: Sequence[Outcome]) -> None:
    """One row per revision: each scenario with how many of its checks succeeded."""
    rows: dict[str, list[str]] = {}
    for outcome in outcomes:
        said = str(outcome.statuses["SUCCESS"]) if outcome.passed else "FAILED"
        rows.setdefault(outcome.revision or "extension", []).append(f"{outcome.scenario} {said}")
    lines = ["| revision | scenario and checks passed |", "|---|---|"]
    lines += [f"| {revision} | {', '.join(said)} |" for revision, said in rows.items()]
    lines.append(f"\n`python -m lab conformance` ({SUITE}). Left out: {LEFT_OUT}.")
    replace_between(ROOT / "README.md", "conformance", "\n".join(lines))


def replace_between(path: Path, marker: str, text: str) -> None:
    """Put a text between `<!-- marker:begin -->` and `<!-- marker:end -->` of a file."""
    begin, end = f"<!-- {marker}:begin -->", f"<!-- {marker}:end -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
