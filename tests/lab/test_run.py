"""``python -m lab run``: Locust as it is, and a verdict that the criteria alone decide."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab import load, runs
from lab.cli import CannotRun
from lab.gate import Gate
from lab.run import begin
from tests.locust_process import clean_environment

ROOT = Path(__file__).parents[2]
PLAIN = Path(__file__).with_name("plain_user.py")
TOKEN = "planted+token/with=signs"

MANIFEST = """\
version: v0.1
testId: a-test
testType: Locust
testPlan: plan.py
failureCriteria:
"""
SHORT = ("--headless", "-u", "2", "-r", "2", "-t", "1s")


class Lab:
    """`python -m lab run` in a folder with a plan and criteria of its own."""

    def __init__(self, folder: Path, *criteria: str) -> None:
        self.folder = folder
        (folder / "plan.py").write_text(PLAIN.read_text(encoding="utf-8"), encoding="utf-8")
        text = MANIFEST + "".join(f"  - {each}\n" for each in criteria)
        (folder / "azure-loadtest.yaml").write_text(text, encoding="utf-8")

    def start(self, words: Sequence[str], **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "lab", "run", *words],
            cwd=self.folder,
            env=clean_environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, **variables: str) -> tuple[int, str, str]:
        process = self.start(words, **variables)
        said, complained = process.communicate(timeout=60)
        return process.returncode, said, complained

    @property
    def last(self) -> Path:
        (folder,) = (self.folder / "runs").iterdir()
        return folder


def test_failed_requests_do_not_turn_a_run_red_unless_the_criteria_say_so(tmp_path: Path) -> None:
    lab = Lab(tmp_path, "percentage(error) > 50", '"plain:bye": avg(response_time_ms) > 9')
    job = tmp_path / "job.md"
    code, said, _ = lab.run("--", "-f", "plan.py", *SHORT, GITHUB_STEP_SUMMARY=str(job))

    assert code == 0, said
    assert "PASSED: criteria: 2 passed" in said
    assert "failed: plain:bye: ValueError: refused, (2 of 2)" in said
    run = runs.read(lab.last)
    assert sum(not each.success for each in run.requests) >= 2
    assert run.facts["locust_exit_code"] == 0
    assert "PASSED" in job.read_text(encoding="utf-8")
    for name in ("verdict.json", "summary.md", "junit.xml", "report.html", "locust.log"):
        assert (lab.last / name).stat().st_size > 0


def test_a_failed_criterion_is_exit_code_1_and_an_absent_request_is_one(tmp_path: Path) -> None:
    lab = Lab(tmp_path, '"plain:never sent": p95(response_time_ms) > 9')
    code, said, _ = lab.run("--name", "absent", "--", "-f", "plan.py", *SHORT)

    assert code == 1, said
    assert "FAILED: plain:never sent: p95(response_time_ms) > 9: no such request" in said
    assert lab.last.name.endswith("-absent")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--", "-f", "absent.py", "--headless"), "absent.py"),
        (("--", "-f", "plan.py", "--no-such-option"), "no-such-option"),
        (("--name", "a/b", "--", "-f", "plan.py"), "--name 'a/b': use letters"),
        (("--criteria", "absent.yaml", "--", "-f", "plan.py"), "absent.yaml"),
    ],
)
def test_what_cannot_run_is_exit_code_2_and_says_why(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    code, said, complained = Lab(tmp_path, "percentage(error) > 50").run(*words)

    assert code == 2, said
    assert complained.startswith("lab run: ")
    assert reason in complained


def test_a_locust_that_crashes_is_exit_code_2_whatever_the_criteria_find(tmp_path: Path) -> None:
    lab = Lab(tmp_path, "percentage(error) > 50")
    with (tmp_path / "plan.py").open("a", encoding="utf-8") as plan:
        plan.write(
            "\nfrom locust import events\n@events.quitting.add_listener\n"
            "def crash(environment, **_): environment.process_exit_code = 7\n"
        )
    code, said, _ = lab.run("--", "-f", "plan.py", *SHORT)

    assert code == 2
    assert "COULD NOT JUDGE: locust ended with exit code 7" in said
    assert json.loads((lab.last / "verdict.json").read_text(encoding="utf-8"))["exit_code"] == 2


def test_a_run_that_is_told_to_stop_ends_its_users_and_is_judged(tmp_path: Path) -> None:
    lab = Lab(tmp_path, "percentage(error) > 50")
    process = lab.start(["--", "-f", "plan.py", "--headless", "-u", "2", "-r", "2"])
    deadline = time.monotonic() + 30
    while not any(": 2}}" in ticks.read_text() for ticks in tmp_path.glob("runs/*/ticks-*.jsonl")):
        assert time.monotonic() < deadline  # both users are there
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)

    assert process.returncode == 0, said
    assert sum(each.label == "plain:bye" for each in runs.read(lab.last).requests) == 2


def test_a_planted_token_is_in_no_file_though_it_was_on_the_command_line(tmp_path: Path) -> None:
    gate = Gate()
    facts = begin(
        tmp_path,
        *("run", ["locust", "--key", TOKEN], gate, {"A_TOKEN": TOKEN, "MCP_TOKEN": TOKEN}),
        strict=False,
    )

    assert facts["command"] == "locust --key [secret]"
    assert facts["settings"] == {}


def test_the_settings_of_a_run_are_kept(tmp_path: Path) -> None:
    env = {"MCP_TURN_PROB": "0.2", "LEARN_USERS": "5", "HOME": "/x", "MCP_RUN_DIR": "y"}

    facts = begin(tmp_path, "run", ["locust"], Gate(), env, strict=True)

    assert facts["settings"] == {"LEARN_USERS": "5", "MCP_TURN_PROB": "0.2"}
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8")) == facts


@pytest.mark.parametrize(
    ("words", "variables", "files"),
    [
        ([], {}, "from_conf.py"),
        (["-f", "a.py,b.py", "-u", "3"], {}, "a.py,b.py"),
        (["--locustfile=c.py", "LearnUser"], {}, "c.py"),
        ([], {"LOCUST_LOCUSTFILE": "from_env.py"}, "from_env.py"),
    ],
)
def test_the_plan_is_the_one_that_locust_would_take(
    tmp_path: Path, words: list[str], variables: dict[str, str], files: str
) -> None:
    (tmp_path / "locust.conf").write_text("locustfile = from_conf.py\nusers = 3\n", "utf-8")

    assert load.plan(words, clean_environment(**variables), tmp_path) == files


def test_a_configuration_that_locust_cannot_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"locust refuses these options: .*nowhere\.conf"):
        load.plan(["--config", "nowhere.conf"], dict(os.environ), tmp_path)


def test_the_callers_options_stay_and_failures_do_not_become_locusts_exit_code() -> None:
    line = load.command(["LearnUser", "-u", "7"], "multi.py")

    assert line[1:6] == ["-m", "locust", "LearnUser", "-u", "7"]
    assert line[6:] == ["-f", f"multi.py,{load.RECORDER}", "--exit-code-on-error", "0"]
