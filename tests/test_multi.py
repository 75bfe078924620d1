"""Who takes part: counts, one class alone, what a run cannot start with. Real Locust processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOBODY = "http://127.0.0.1:9"  # the discard port: refuses at once
GIVEN = {
    "ADO_ORG": "org",
    "ADO_PROJECT": "project",
    "ADO_MCP_TOKEN": "dummy",
    "GITHUB_MCP_TOKEN": "dummy",
    "LEARN_MCP_URL": f"{NOBODY}/mcp",
    "GITHUB_MCP_URL": f"{NOBODY}/mcp",
    "CONTEXT7_MCP_URL": f"{NOBODY}/mcp",
    "ADO_MCP_URL": f"{NOBODY}/mcp",
}


def locust(
    *options: str, folder: Path, without: Sequence[str] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHON_DOTENV_DISABLED": "1"}
    env.update({name: value for name, value in GIVEN.items() if name not in without})
    return subprocess.run(
        [sys.executable, "-m", "locust", "-f", str(ROOT / "multi.py"), "--headless", *options],
        cwd=folder,
        env={**env, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_first_line_of_every_log_says_whose_permission_is_needed(tmp_path: Path) -> None:
    done = locust("LearnUser", "-u", "1", "-t", "1s", folder=tmp_path)

    lines = [line for line in done.stderr.splitlines() if "/locust." not in line]
    assert "only with its operator's permission" in lines[0]


def test_a_class_alone_obeys_the_number_of_users(tmp_path: Path) -> None:
    done = locust("LearnUser", "-u", "7", "-r", "7", "-t", "1s", folder=tmp_path)

    assert 'All users spawned: {"LearnUser": 7}' in done.stderr


def test_a_count_of_zero_leaves_a_class_out_with_what_it_needs(tmp_path: Path) -> None:
    done = locust(
        "-u", "12", "-r", "12", "-t", "1s",
        folder=tmp_path, without=("ADO_ORG", "GITHUB_MCP_TOKEN"), GITHUB_USERS="0", ADO_USERS="0",
        CONTEXT7_USERS="7",
    )  # fmt: skip

    assert 'All users spawned: {"Context7User": 7, "LearnUser": 5}' in done.stderr


@pytest.mark.parametrize(
    ("variable", "cure"),
    [("GITHUB_MCP_TOKEN", "GITHUB_USERS=0"), ("ADO_PROJECT", "ADO_USERS=0")],
)
def test_a_missing_variable_stops_the_run_with_variable_class_and_cure(
    variable: str, cure: str, tmp_path: Path
) -> None:
    done = locust("-t", "1s", folder=tmp_path, without=(variable,))

    assert done.returncode == 2
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith(f"{variable} is not set")
    assert cure in line
    assert "Traceback" not in done.stderr


def test_a_class_is_not_asked_for_what_another_needs(tmp_path: Path) -> None:
    done = locust("LearnUser", "-u", "1", "-t", "1s", folder=tmp_path, without=tuple(GIVEN)[:4])

    assert "All users spawned" in done.stderr


@pytest.mark.parametrize("way", ["option", "variable"])
def test_one_host_for_several_servers_stops_the_run(way: str, tmp_path: Path) -> None:
    elsewhere = "http://127.0.0.1:8/mcp"
    if way == "option":
        done = locust("-H", NOBODY, "-t", "1s", folder=tmp_path, ADO_MCP_URL=elsewhere)
    else:
        given = {"LOCUST_HOST": NOBODY, "ADO_MCP_URL": elsewhere}
        done = locust("-t", "1s", folder=tmp_path, **given)

    assert done.returncode == 2
    assert "would send every class, with its token, to one host" in done.stderr


def test_users_that_are_not_the_sum_of_the_counts_are_said_with_the_cure(tmp_path: Path) -> None:
    done = locust("-u", "10", "-r", "10", "-t", "1s", folder=tmp_path)

    assert "10 users are asked for and the classes count 17" in done.stderr
    assert "set -u/LOCUST_USERS to 17" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MCP_INTRA_MIN", "fast"),
        ("MCP_TURN_MAX", "1"),
        ("MCP_TURN_PROB", "1.5"),
        ("MCP_BURST_PROB", "-1"),
        ("MCP_HONOUR_RETRY_AFTER", "maybe"),
        ("MCP_PROTOCOL_VERSION", "2030-01-01"),
        ("LEARN_USERS", "five"),
        ("LEARN_MCP_URL", "learn.example.com"),
    ],
)
def test_a_value_that_cannot_be_used_stops_the_run_with_one_line(
    variable: str, value: str, tmp_path: Path
) -> None:
    done = locust("-t", "1s", folder=tmp_path, without=(), **{variable: value})

    assert done.returncode == 2
    assert variable in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
