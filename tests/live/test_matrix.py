"""The whole matrix: every real server, asked for every revision, by the command itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lab.real.cells import COLUMNS
from lab.real.servers import SERVERS
from tests.locust_process import ROOT, clean_environment

pytestmark = pytest.mark.live

README = ROOT / "README.md"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[str]]:
    missing = [server.missing for server in SERVERS if server.missing]
    if missing:
        pytest.skip("; ".join(missing))
    done = subprocess.run(
        [sys.executable, "-m", "lab", "matrix"],
        cwd=tmp_path_factory.mktemp("matrix"),
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_every_cell_is_without_a_failure(said: tuple[int, list[str]]) -> None:
    code, lines = said
    verdicts = {tuple(line.split()[1:3]): line.split()[0] for line in lines if "  " in line}

    assert [line for line in lines if "FAILED" in line] == []
    assert verdicts == {(server.label, asked): "passed" for server in SERVERS for asked in COLUMNS}
    assert code == 0


def test_the_readme_has_the_table_that_the_command_makes(said: tuple[int, list[str]]) -> None:
    _, lines = said
    whole = README.read_text(encoding="utf-8")
    written = whole.partition("<!-- matrix:begin -->")[2].partition("<!-- matrix:end -->")[0]

    made = [line for line in lines if line.startswith("|")]
    assert made
    assert [line for line in written.splitlines() if line.startswith("|")] == made
