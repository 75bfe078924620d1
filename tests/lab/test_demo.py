"""``python -m lab demo``: real stand-ins, real load, and a verdict that can be believed."""

from __future__ import annotations

import collections
import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab import demo, pairs, runs
from lab.cli import main
from lab.progress import Progress
from lab.run import gate_of
from lab.standins.guard import dummy_token
from tests.lab.folders import BEGAN, files_with, row, write_part
from tests.locust_process import ROOT, clean_environment

TOKEN = "planted+token/with=signs"
CRITERIA = """\
version: v0.1
testId: a-test
testType: Locust
testPlan: plan.py
failureCriteria:
  - percentage(error) > 25
  - "learn:tools/call:microsoft_docs_search": p95(response_time_ms) > 3000
"""


def _demo(folder: Path, *words: str) -> tuple[int, list[str], Path]:
    """A demo of 5 s; its exit code, what it printed, and its run folder."""
    (folder / "azure-loadtest.yaml").write_text(CRITERIA, encoding="utf-8")
    planted = dict.fromkeys(("GITHUB_MCP_TOKEN", "ADO_MCP_TOKEN", "SOME_API_KEY"), TOKEN)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "lab", "demo", "--minutes", "0.08", *words),
            *("--criteria", str(folder / "azure-loadtest.yaml")),
        ],
        cwd=folder,
        env=clean_environment(**planted, LEARN_USERS="50", MCP_TURN_MIN="900", LOCUST_USERS="3"),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    (run,) = (folder / "runs").iterdir()
    return done.returncode, (done.stdout + done.stderr).splitlines(), run


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[str], Path]:
    return _demo(tmp_path_factory.mktemp("demo"))


def test_a_demo_passes_and_its_samples_are_those_of_the_stand_ins_log(
    shown: tuple[int, list[str], Path],
) -> None:
    code, said, folder = shown

    assert code == 0, said
    run = runs.read(folder)
    counted = collections.Counter(each.label for each in run.requests)
    log = pairs.read_log(folder / "standins")
    assert counted == collections.Counter(each.label for each in log)
    assert any(f"stand-ins' own log: {len(run.requests)} in" in line for line in said)
    assert any(line.startswith("PASSED: criteria: 2 passed") for line in said)


def test_a_demo_has_the_published_users_at_its_own_pace_whatever_the_environment_says(
    shown: tuple[int, list[str], Path],
) -> None:
    _, _, folder = shown
    run = runs.read(folder)

    opened = collections.Counter(
        each.label for each in run.requests if each.label.endswith(":initialize")
    )
    assert opened == {f"{label}:initialize": count for label, count in demo.COUNTS.items()}
    assert run.facts["settings"]["MCP_TURN_MIN"] == "0.1"


def test_a_demos_folder_has_everything_and_says_that_stand_ins_answered(
    shown: tuple[int, list[str], Path],
) -> None:
    _, said, folder = shown

    names = {path.name for path in folder.iterdir()}
    assert names >= {"run.json", "results", "tallies-1.json", "ticks-1.jsonl", "standins"}
    assert names >= {"verdict.json", "summary.md", "junit.xml", "report.html", "locust.log"}
    assert "stand-ins on this machine, not the real servers: ado, context7, github, learn" in said
    assert json.loads((folder / "verdict.json").read_text(encoding="utf-8"))["stand_ins"] == [
        *("ado", "context7", "github", "learn")
    ]


def test_progress_is_shown_while_it_runs_and_ends_with_what_was_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(tmp_path, 60.0, 3.0)
    progress.look(2.9)
    progress.look(3.0)
    path = write_part(tmp_path, [row("a:x", 0.0), row("a:x", 1.0, failure=OSError("a,b"))])
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    progress.look(6.0)
    path.write_bytes(whole)
    progress.look(8.9)
    progress.look(9.0)

    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [
        "0:03 of 1:00: 0 users, 0 requests, 0 failed",
        "0:06 of 1:00: 0 users, 1 requests, 0 failed",
        "0:09 of 1:00: 0 users, 2 requests, 1 failed",
    ]


def test_neither_a_dummy_token_nor_a_real_one_is_in_any_file_of_a_demo(
    shown: tuple[int, list[str], Path],
) -> None:
    _, said, folder = shown

    dummies = [dummy_token(label) for label in ("github", "ado", "context7")]
    for secret in (TOKEN, *filter(None, dummies)):
        assert files_with(secret, folder) == []
        assert secret not in "\n".join(said)
    assert all(dummies)


def test_the_search_for_secrets_finds_each_form_that_it_is_meant_to(tmp_path: Path) -> None:
    forms = {
        "plain": TOKEN,
        "url": "planted%2Btoken%2Fwith%3Dsigns",
        "base64": "cGxhbnRlZCt0b2tlbi93aXRoPXNpZ25z",
        "basic": "dXNlcjpwbGFudGVkK3Rva2VuL3dpdGg9c2lnbnM=",  # user:<token>
    }
    for name, form in forms.items():
        (tmp_path / name).write_text(f"x {form} y", encoding="utf-8")
    (tmp_path / "clean").write_text("planted token", encoding="utf-8")

    assert files_with(TOKEN, tmp_path) == ["base64", "basic", "plain", "url"]


def test_a_slow_tool_fails_the_demo_and_the_verdicts_first_line_says_by_how_much(
    tmp_path: Path,
) -> None:
    code, said, _ = _demo(tmp_path, "--slow", "learn:microsoft_docs_search=3200")

    assert code == 1, said
    (verdict,) = (line for line in said if line.startswith("FAILED"))
    assert verdict.startswith(
        "FAILED: learn:tools/call:microsoft_docs_search: p95(response_time_ms) > 3000: measured "
    )
    assert verdict.partition(";")[0].endswith("limit 3000 ms")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--slow", "learn:nothing=5"], "--slow 'learn:nothing"),
        (["--broken", "x"], "--broken 'x'"),
        (["--users", "learn"], "--users 'learn': expected LABEL=N"),
        (["--users", *(f"{label}=0" for label in demo.COUNTS)], "all counts are 0"),
        (["--minutes", "0"], "--minutes 0: between"),
    ],
)
def test_what_cannot_run_is_said_before_anything_is_started(
    words: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["demo", *words]) == 2
    assert reason in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_demo_steers_locust_by_nothing_that_was_set_before() -> None:
    before = {"LOCUST_HOST": "http://x", "MCP_TURN_MIN": "9", "PATH": "/bin", "ADO_MCP_TOKEN": "r"}

    env = demo.environment(before, {"ADO_MCP_TOKEN": "dummy"}, "published", {"learn": 3})

    assert (env["MCP_TURN_MIN"], env["MCP_TURN_MAX"]) == ("8", "45")
    assert (env["PATH"], env["ADO_MCP_TOKEN"], env["LEARN_USERS"]) == ("/bin", "dummy", "3")
    assert env["PYTHON_DOTENV_DISABLED"] == "1"
    assert env["MCP_VAULT"] == "0"
    assert "127.0.0.1" in env["NO_PROXY"]
    assert "LOCUST_HOST" not in env


def test_the_demo_judges_by_the_projects_own_criteria() -> None:
    gate = gate_of(ROOT)

    assert gate.labels["LearnUser"] == "learn"
    named = {c.request for c in gate.criteria if c.request}
    assert len(named) == 13


def _log(folder: Path, *rows: tuple[str, float, float, int | None]) -> list[pairs.Answered]:
    folder.mkdir(exist_ok=True)
    lines = [
        {"t": BEGAN + at, "label": "a", "name": name, "elapsed_ms": ms, "id": request_id}
        for name, at, ms, request_id in rows
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "a.jsonl").write_text(text, encoding="utf-8")
    return pairs.read_log(folder)


def test_requests_are_paired_by_id_and_the_rest_in_the_order_of_time(tmp_path: Path) -> None:
    write_part(
        tmp_path,
        [
            row("a:x", 0.0, 10.0, request_id=2),
            row("a:x", 1.0, 20.0, request_id=1),
            row("a:n", 2.0, 3.0),
            row("a:n", 1.0, 1.0),
            row("a:alone", 1.0, 1.0, request_id=9),
        ],
    )
    log = _log(
        tmp_path / "log",
        *(("a:x", 0.1, 19.0, 1), ("a:x", 0.2, 9.5, 2)),
        *(("a:n", 1.1, 0.5, None), ("a:n", 2.1, 2.5, None)),
        ("a:client-response", 3.0, 1.0, 5),
    )

    notes, calls = pairs.pair(runs.read(tmp_path).requests, log)

    assert (calls.ours, calls.theirs) == ((10.0, 20.0), (9.5, 19.0))
    assert (notes.ours, notes.theirs) == ((1.0, 3.0), (0.5, 2.5))
    assert calls.at(50.0) == (15.0, 14.25)


@pytest.mark.parametrize(
    ("ours", "theirs", "agrees"),
    [(105.0, 100.0, True), (105.1, 100.0, False), (2019.9, 2000.0, True), (2020.1, 2000.0, False)],
)
def test_figures_agree_within_5_ms_or_1_percent(ours: float, theirs: float, agrees: bool) -> None:
    assert pairs.Pairing("a", (ours,), (theirs,)).agrees is agrees


def test_a_sample_lost_or_made_up_is_found_and_a_cut_one_is_not_counted_against_us(
    tmp_path: Path,
) -> None:
    write_part(tmp_path, [row("a:x", 0.0), row("a:y", 1.0)])
    requests = runs.read(tmp_path).requests
    log = _log(tmp_path / "log", ("a:x", 0.0, 1.0, 1), ("a:x", 0.0, 1.0, 2), ("a:z", 0.0, 1.0, 3))
    nobody: collections.Counter[str] = collections.Counter()

    assert pairs.differences(requests, log, nobody) == [
        "a:x: 1 samples, 2 in the stand-in's log",
        "a:y: 1 samples, 0 in the stand-in's log",
        "a:z: 0 samples, 1 in the stand-in's log",
    ]
    cut = collections.Counter({"a": 2})
    assert pairs.differences(requests, log, cut) == ["a:y: 1 samples, 0 in the stand-in's log"]


def test_a_session_that_nobody_ended_is_found(tmp_path: Path) -> None:
    counts = {"learn": {"opened": 5, "deleted": 4, "open": 1}}
    (tmp_path / "sessions.json").write_text(json.dumps(counts), encoding="utf-8")

    assert pairs.left_open(tmp_path, collections.Counter()) == ["learn: 1 of 5 sessions left open"]
    assert pairs.left_open(tmp_path, collections.Counter({"learn": 1})) == []


def test_the_comparison_is_a_line_a_label_and_names_what_does_not_agree() -> None:
    shown = pairs.table(
        [pairs.Pairing("a:x", (100.0,), (100.0,)), pairs.Pairing("a:y", (110.0,), (100.0,))]
    ).splitlines()

    assert shown[1].endswith("yes")
    assert shown[2].endswith("NO")
    assert "+10.00" in shown[2]
