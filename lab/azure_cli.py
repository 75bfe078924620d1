"""The Azure CLI's `load` extension, as far as a submission needs it.

Options are those of `az load test` and `az load test-run`. There is no upsert: create fails on an
existing id, update on a missing one. The CLI ignores the YAML's testId, so it is passed again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LAST_LINES = 5  # of what the CLI said, shown where it failed
CURE_FOR_NO_CLI = (
    "az is not on the PATH: install the Azure CLI, then run `az extension add --name load`"
    " and `az login`"
)


class AzureCliError(Exception):
    """A command of the CLI that failed; the text is its own last words."""


@dataclass(frozen=True, slots=True)
class LoadTests:
    """The load tests of one Azure Load Testing resource."""

    resource: str
    group: str

    def has_test(self, test_id: str) -> bool:
        """Is there a test of this id? Raises AzureCliError where that cannot be known."""
        done = _az(["load", "test", "show", *self._where, "--test-id", test_id])
        if done.returncode == 0:
            return True
        if "not exist" in done.stderr or "NotFound" in done.stderr or "not found" in done.stderr:
            return False
        raise AzureCliError(_last_words(done))

    def upload(self, test_id: str, config_file: Path) -> str:
        """Update the test, or create it with its first upload; return which of the two it was."""
        verb = "update" if self.has_test(test_id) else "create"
        self._run("test", verb, "--test-id", test_id, "--load-test-config-file", str(config_file))
        return verb

    def start(self, test_id: str, run_id: str, display_name: str) -> None:
        """Start a run and return at once."""
        self._run(
            "test-run", "create", "--test-id", test_id, "--test-run-id", run_id,
            "--display-name", display_name, "--no-wait",
        )  # fmt: skip

    def run(self, run_id: str) -> dict[str, Any]:
        """Return a run's state: `status`, and once it is done `testResult` and its criteria."""
        found = self._run("test-run", "show", "--test-run-id", run_id)
        return found if isinstance(found, dict) else {}

    def stop(self, run_id: str) -> None:
        """Stop a run."""
        self._run("test-run", "stop", "--test-run-id", run_id, "--yes")

    def download(self, run_id: str, folder: Path) -> None:
        """Bring a run's results and report into a folder."""
        self._run(
            "test-run", "download-files", "--test-run-id", run_id, "--path", str(folder),
            "--result", "--report", "--force",
        )  # fmt: skip

    @property
    def _where(self) -> list[str]:
        return ["--load-test-resource", self.resource, "--resource-group", self.group]

    def _run(self, kind: str, verb: str, *options: str) -> Any:
        done = _az(["load", kind, verb, *self._where, *options])
        if done.returncode != 0:
            raise AzureCliError(_last_words(done))
        try:
            return json.loads(done.stdout) if done.stdout.strip() else {}
        except ValueError:
            raise AzureCliError(f"az load {kind} {verb} printed no JSON") from None


def _az(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    program = shutil.which("az")
    if program is None:
        raise AzureCliError(CURE_FOR_NO_CLI)
    return subprocess.run(
        [program, *words, "--output", "json"], capture_output=True, text=True, check=False
    )


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()] or ["(it said nothing)"]
    command = " ".join(done.args[1:4])
    return f"az {command} failed: {' '.join(lines[-LAST_LINES:])}"
