"""Real runs against the stand-ins, in an era that is probed for and in two at once."""

from __future__ import annotations

import csv
import html
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.targets import Standins, standins
from tests.locust_process import ROOT, clean_environment

OLD, NEW = "2025-06-18", "2026-07-28"
LEARN_ONLY = {"GITHUB_USERS": "0", "CONTEXT7_USERS": "0", "ADO_USERS": "0", "LEARN_USERS": "4"}
PACE = {
    "MCP_INTRA_MIN": "0.01",
    "MCP_INTRA_MAX": "0.03",
    "MCP_TURN_MIN": "0.03",
    "MCP_TURN_MAX": "0.05",
}
BOTH = f"""\
from learn import LearnUser as _LearnUser


class BothUser(_LearnUser):
    fixed_count = 4
    protocol_versions = {{"{OLD}": 1, "{NEW}": 1}}
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standins]:
    with standins(tmp_path_factory.mktemp("standins"), latency="none") as target:
        yield target


class Ran:
    """A recorded run of three seconds, and what its report says."""

    def __init__(self, folder: Path, servers: Standins, *words: str, **variables: str) -> None:
        short = ("--headless", "-u", "4", "-r", "10", "-t", "3s")
        made = subprocess.run(
            [sys.executable, "-m", "lab", "run", "--", *words, *short],
            cwd=folder,
            env=clean_environment(**servers.variables, **PACE, **variables),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.said = made.stdout + made.stderr
        assert made.returncode == 0, self.said
        (self.folder,) = (folder / "runs").iterdir()
        self.log = (self.folder / "locust.log").read_text(encoding="utf-8")
        text = (self.folder / "report.html").read_text(encoding="utf-8")
        self.page = html.unescape(text)
        self.facts: dict[str, Any] = json.loads(
            (self.folder / "verdict.json").read_text(encoding="utf-8")
        )

    def rows(self) -> Iterator[dict[str, str]]:
        """Every sample."""
        for path in (self.folder / "results").glob("*.csv"):
            with path.open(encoding="utf-8", newline="") as file:
                yield from csv.DictReader(file)


@pytest.mark.parametrize("processes", [1, 2])
def test_the_era_that_auto_decided_stands_in_the_log_and_the_report_and_probes_are_no_samples(
    processes: int, servers: Standins, tmp_path: Path
) -> None:
    words = ("--processes", str(processes)) if processes > 1 else ()
    plan = ("-f", str(ROOT / "multi.py"), *words)
    ran = Ran(tmp_path, servers, *plan, MCP_PROTOCOL_VERSION="auto", **LEARN_ONLY)
    counted = {(each["server"], each["what"]): each["count"] for each in ran.facts["counted"]}

    assert ran.log.count(f"learn: speaks {NEW} (server/discover lists it)") == processes
    assert counted["learn", "era probed"] == processes
    assert counted["learn", f"era decided: {NEW}"] == processes
    assert f"era decided: {NEW}" in ran.page
    # Each user's own discovery is a sample, as its client's is load; the probe is one more.
    assert Counter(row["label"] for row in ran.rows())["learn:server/discover"] == 4


def test_a_class_weighted_between_eras_is_compared_in_the_report(
    servers: Standins, tmp_path: Path
) -> None:
    (tmp_path / "both.py").write_text(BOTH, encoding="utf-8")
    ran = Ran(tmp_path, servers, "-f", "both.py", LEARN_USERS="0")
    (era,) = ran.facts["revisions"]
    calls = Counter(row["revision"] for row in ran.rows() if ":tools/call:" in row["label"])

    assert [(each["revision"], each["users"]) for each in era["spoken"]] == [(OLD, 2), (NEW, 2)]
    assert {each["revision"]: each["calls"] for each in era["spoken"]} == calls
    assert all(each["sessions"] == 2 and each["opening"] > 0 for each in era["spoken"])
    # The envelope is what the stateless era sends with each call.
    assert era["spoken"][1]["sent_bytes"] > era["spoken"][0]["sent_bytes"]
    assert "calls a session on, the handshake of" in " ".join(era["said"])
    assert all(said in ran.page and said in ran.said for said in era["said"])
