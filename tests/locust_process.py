"""A real Locust process, and what its witness saw."""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parent.parent
WITNESS = ROOT / "tests" / "witness.py"
_NOT_INHERITED = ("LOCUST_", "MCP_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "WITNESS_")


@dataclass(frozen=True)
class Seen:
    """One finished run. `rows` of all its processes, `ends` one per process, `said` its output."""

    code: int
    rows: list[dict[str, Any]]
    ends: list[dict[str, Any]]
    said: str
    folder: Path

    def named(self, label: str) -> list[dict[str, Any]]:
        """Rows of one server label, in the order of their starts."""
        return [row for row in self.rows if row["name"].startswith(f"{label}:")]

    def tally(self, label: str, what: str) -> int:
        """How often something that is no sample was counted, over all processes."""
        return sum(
            times
            for end in self.ends
            for whose, counted, times in end["tallies"]
            if (whose, counted) == (label, what)
        )

    def count(self) -> collections.Counter[str]:
        """Rows by statistics name."""
        return collections.Counter(row["name"] for row in self.rows)


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without what steers a run: no `.env` is read, no vault asked."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(_NOT_INHERITED)
    }
    paths = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    ours = {"PYTHONPATH": paths, "PYTHON_DOTENV_DISABLED": "1", "MCP_VAULT": "0"}
    return {**kept, **ours, **more}


@dataclass
class LocustProcess:
    """`locust -f <file>,tests/witness.py` in a folder of its own; killed when left by exception.

    Its output goes to a file, so that no full pipe can stop it.
    """

    locustfile: str
    arguments: list[str]
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    witnessed: bool = True

    def __enter__(self) -> LocustProcess:
        self.folder.mkdir(parents=True, exist_ok=True)
        files = f"{self.locustfile},{WITNESS}" if self.witnessed else self.locustfile
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "locust", "-f", files, *self.arguments],
                cwd=self.folder,
                env=clean_environment(WITNESS_DIR=str(self.folder), **self.variables),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def output(self) -> Path:
        return self.folder / "output.txt"

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, within: float) -> Seen:
        """Wait until it has ended by itself; a run that does not is a failed test, and killed."""
        try:
            code = self.process.wait(timeout=within)
        except subprocess.TimeoutExpired:
            tail = self.output.read_text(errors="replace")[-3000:]
            raise AssertionError(
                f"Locust still ran after {within:.0f} s; it said:\n{tail}"
            ) from None
        return self.seen(code)

    def seen(self, code: int) -> Seen:
        rows = [
            json.loads(line)
            for path in sorted(self.folder.glob("rows-*.jsonl"))
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        ends = [
            json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(self.folder.glob("end-*.json"))
        ]
        rows.sort(key=lambda row: row["start"])
        return Seen(code, rows, ends, self.output.read_text(errors="replace"), self.folder)


def run_locust(
    locustfile: str, arguments: list[str], folder: Path, within: float, **variables: str
) -> Seen:
    """Run Locust to its end."""
    with LocustProcess(locustfile, arguments, folder, variables) as process:
        return process.end(within)
