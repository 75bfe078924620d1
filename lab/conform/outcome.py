"""What the suite said of one scenario, and the rule by which that is a pass.

The suite passes a client that does nothing, and a server of which nothing could be tested. Here a
scenario passes with at least one SUCCESS among its checks and no FAILURE, but for checks of what
the tested side does not claim; an exception that is none any more is a failure, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.load import unsteered

ROOT = Path(__file__).parents[2]
SECONDS = 60.0
"""For one scenario; the suite itself gives up after 30."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One scenario's checks, counted by status, with one line for each reason not to pass."""

    scenario: str
    revision: str | None
    statuses: Counter[str]
    failures: tuple[str, ...] = ()
    subject: str = ""
    unclaimed: Mapping[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """At least one SUCCESS, and no FAILURE of what is claimed."""
        return self.statuses["SUCCESS"] > 0 and not self.failures

    def __str__(self) -> str:
        word = "passed" if self.passed else "FAILED"
        line = f"{word}  {self.subject:10}" if self.subject else word
        line += f"  {self.revision or 'extension':10}  {self.scenario:38}"
        line += f"{self.statuses['SUCCESS']:3} checks"
        if self.unclaimed:
            line += f", beside {', '.join(self.unclaimed)}"
        return "\n".join([line, *(f"        {failure}" for failure in self.failures)])


def weigh(
    scenario: str,
    revision: str | None,
    checks: Sequence[Mapping[str, Any]],
    *,
    subject: str = "",
    unclaimed: Mapping[str, str] | None = None,
) -> Outcome:
    """Judge the checks of a scenario (as in its checks.json: `id`, `status`, `errorMessage`).

    unclaimed: id of a check -> why the tested side does not claim what it is about.
    """
    unclaimed = unclaimed or {}
    failed = [check for check in checks if check.get("status") == "FAILURE"]
    reasons = [
        f"{check.get('id')}: {check.get('errorMessage') or check.get('description')}"[:300]
        for check in failed
        if check.get("id") not in unclaimed
    ]
    ids = {check.get("id") for check in failed}
    reasons += [
        f"{name}: passes now, so it need not be left out ({why})"
        for name, why in unclaimed.items()
        if name not in ids
    ]
    statuses = Counter(str(check.get("status")) for check in checks)
    if not statuses["SUCCESS"]:
        reasons.append("no check succeeded: nothing was tested")
    return Outcome(scenario, revision, statuses, tuple(reasons), subject, unclaimed)


def ask(words: Sequence[str]) -> tuple[int, list[dict[str, Any]]]:
    """Run the suite once with these words; return its exit code and its checks.

    A suite that hangs is stopped with all that it started, and that is a failed check.
    """
    env = {**unsteered(), "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1,localhost"}
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*words, "-o", folder],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            late = {"id": "time", "status": "FAILURE", "errorMessage": f"over {SECONDS:.0f} s"}
            return 1, [late]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return code, [
            check
            for path in sorted(Path(folder).rglob("checks.json"))
            for check in json.loads(path.read_text(encoding="utf-8"))
        ]
