"""`lab emulate`: the folder runs as Azure would run it, and fails as Azure would fail it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.engine import LOCUST, PYTHON, find_python
from lab.manifest import load
from lab.rows import AZURE_COLUMNS
from lab.runs import Run, read

ROOT = Path(__file__).parents[2]
MANIFEST = "azure-loadtest.yaml"
COUNTS = {"GITHUB_USERS": 2, "LEARN_USERS": 4, "CONTEXT7_USERS": 4, "ADO_USERS": 4}
_NOT_INHERITED = ("LOCUST_", "MCP_", "GITHUB_", "ADO_", "CONTEXT7_", "LEARN_")

Project = Callable[..., Path]
QUICK = ("--pace", "yaml", "--latency", "none")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of the shipped project: users that divide, a constant pause, and no bursts."""

    def make(pause: float = 0.2, **more: str) -> Path:
        folder = tmp_path / "project"
        manifest = load(ROOT)
        for file in manifest.files:
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file.path, target)
        pauses = dict.fromkeys(
            ("MCP_INTRA_MIN", "MCP_INTRA_MAX", "MCP_TURN_MIN", "MCP_TURN_MAX"), f"{pause:g}"
        )
        counts = {name: str(count) for name, count in COUNTS.items()}
        users = {"LOCUST_USERS": str(sum(COUNTS.values())), "MCP_BURST_PROB": "0"}
        text = manifest.path.read_text(encoding="utf-8")
        for name, value in {**counts, **users, **pauses, **more}.items():
            text = with_variable(text, name, value)
        (folder / MANIFEST).write_text(text, encoding="utf-8")
        return folder

    return make


def with_variable(text: str, name: str, value: str) -> str:
    entry = f'  - name: {name}\n    value: "{value}"\n'
    known = re.compile(rf'  - name: {name}\n    value: ".*"\n')
    return (
        known.sub(entry, text)
        if known.search(text)
        else text.replace("\nenv:\n", f"\nenv:\n{entry}")
    )


def edit(folder: Path, old: str, new: str) -> None:
    """Change the project's manifest; what is not there cannot be changed."""
    text = (folder / MANIFEST).read_text(encoding="utf-8")
    assert old in text
    (folder / MANIFEST).write_text(text.replace(old, new), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Done:
    """What the command came to, and where it was called and so left its run."""

    code: int
    out: str
    err: str
    at: Path

    @property
    def run(self) -> Run:
        (folder,) = self.at.glob("runs/*-emulate")
        return read(folder)


def emulate(folder: Path, *options: str, env: Mapping[str, str] | None = None) -> Done:
    at = Path(tempfile.mkdtemp(prefix="at-", dir=folder.parent))
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)
    }
    done = subprocess.run(
        [sys.executable, "-m", "lab", "emulate", str(folder), *options],
        cwd=at,
        env={**kept, "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr, at)


def peaks(run: Run) -> Counter[str]:
    """The most users of each class on each engine, all engines together."""
    total: Counter[str] = Counter()
    for process in run.processes.values():
        most: Counter[str] = Counter()
        for _, by_class in process.users:
            most |= Counter(by_class)
        total += most
    return total


@pytest.fixture
def engines_python() -> None:
    if not find_python().is_the_engines:
        pytest.skip(f"no Python {PYTHON} on this machine")


@pytest.mark.usefixtures("engines_python")
def test_the_shipped_folder_passes_on_the_engines_python_and_locust(project: Project) -> None:
    folder = project()

    done = emulate(folder, *QUICK, "--minutes", "0.2")

    assert done.code == 0, done.out + done.err
    run = done.run
    (process,) = run.processes.values()
    assert process.facts["python"].startswith(f"{PYTHON}.")
    assert process.facts["locust"] == LOCUST
    assert json.loads((run.folder / "verdict.json").read_text())["verdict"] == "PASSED"
    assert "PASSED: criteria: 28 passed" in done.out
    assert "autoStop: not triggered" in done.out
    header = (run.folder / "results" / "engine1_results.csv").read_text().splitlines()[0]
    assert tuple(header.split(",")[: len(AZURE_COLUMNS)]) == AZURE_COLUMNS
    assert peaks(run) == Counter(GitHubUser=2, LearnUser=4, Context7User=4, ADOUser=4)


def test_a_slow_tool_fails_the_run_by_its_criterion_and_the_report_agrees(
    project: Project,
) -> None:
    folder = project()

    done = emulate(folder, *QUICK, "--minutes", "0.2", "--slow", "learn:microsoft_docs_search=3000")

    assert done.code == 1, done.out + done.err
    failed = "FAILED: learn:tools/call:microsoft_docs_search: p95(response_time_ms) > 1900"
    assert failed in done.out
    run = done.run.folder
    again = subprocess.run(
        [sys.executable, "-m", "lab", "report", str(run)],
        cwd=run.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1
    assert failed in again.stdout


def test_two_engines_spawn_one_engines_users_and_send_its_requests(project: Project) -> None:
    """Side by side, so that a busy machine is busy for both; the pause rules the pace."""
    folder = project(pause=1.0)
    numbers = ("1", "2")

    def run(engines: str) -> Run:
        done = emulate(folder, *QUICK, "--minutes", "0.3", "--engines", engines)
        assert done.code in (0, 1), done.out + done.err
        return done.run

    with ThreadPoolExecutor() as both:
        one, two = both.map(run, numbers)

    assert [len(one.processes), len(two.processes)] == [1, 2]
    assert peaks(one) == peaks(two) == Counter(GitHubUser=2, LearnUser=4, Context7User=4, ADOUser=4)
    assert peaks_of_each(two) == [Counter(GitHubUser=1, LearnUser=2, Context7User=2, ADOUser=2)] * 2
    assert len(two.requests) == pytest.approx(len(one.requests), rel=0.1)
    assert sorted(path.name for path in (two.folder / "results").iterdir()) == [
        "engine1_results.csv",
        "engine2_results.csv",
    ]


def peaks_of_each(run: Run) -> list[Counter[str]]:
    return [
        peaks(Run(run.folder, {}, [], {number: process}, [], []))
        for number, process in run.processes.items()
    ]


def test_counts_that_do_not_divide_by_the_engines_stop_the_run_by_name(project: Project) -> None:
    done = emulate(project(ADO_USERS="5"), *QUICK, "--minutes", "0.1", "--engines", "2")

    assert done.code == 2
    assert "ADO_USERS=5 does not divide by MCP_ENGINES=2" in done.err


def everything_broken() -> list[str]:
    criteria = (ROOT / MANIFEST).read_text(encoding="utf-8")
    tools = re.findall(r'"(\w+):tools/call:([\w-]+)": p95', criteria)
    assert len(tools) == 13
    return ["--broken", *(f"{label}:{tool}" for label, tool in tools)]


def impatient(folder: Path) -> None:
    edit(folder, "errorPercentage: 80\n  timeWindow: 60", "errorPercentage: 60\n  timeWindow: 3")


def test_autostop_ends_the_engines_and_their_sessions_early(project: Project) -> None:
    folder = project()
    impatient(folder)

    done = emulate(folder, *QUICK, "--minutes", "10", *everything_broken())

    assert done.code == 1, done.out + done.err
    assert "percentage(error) > 25" in done.out
    assert "autoStop: the engines were stopped: more than 60 % of errors in 3 s" in done.out
    assert max(each.end for each in done.run.requests) - done.run.requests[0].start < 60.0
    assert {each.label for each in done.run.requests} >= {"learn:DELETE", "github:DELETE"}


def test_a_run_that_autostop_ended_does_not_pass_by_lenient_criteria(project: Project) -> None:
    folder = project()
    impatient(folder)
    text = (folder / MANIFEST).read_text(encoding="utf-8")
    lenient = "failureCriteria:\n  - avg(response_time_ms) > 60000\n"
    text = re.sub(r"failureCriteria:\n(?:  .*\n)+", lenient, text)
    (folder / MANIFEST).write_text(text, encoding="utf-8")

    done = emulate(folder, *QUICK, "--minutes", "10", *everything_broken())

    assert done.code == 2, done.out + done.err
    verdict = json.loads((done.run.folder / "verdict.json").read_text(encoding="utf-8"))
    assert verdict["exit_code"] == 2
    assert "autoStop ended the run" in verdict["first_line"]


def test_an_engine_without_a_listed_module_fails_as_azure_would(project: Project) -> None:
    folder = project()
    edit(folder, "  - _sse.py\n", "")

    done = emulate(folder, *QUICK, "--minutes", "0.1")

    assert done.code == 2
    assert "No module named '_sse'" in done.err
    assert (folder / "_sse.py").is_file()  # it was here, and the engine did not find it


def test_an_engine_without_a_query_file_names_it(project: Project) -> None:
    folder = project()
    edit(folder, "  - queries/learn_questions.txt\n", "")

    done = emulate(folder, *QUICK, "--minutes", "0.1")

    assert done.code == 2
    assert "learn_questions.txt is missing" in done.err


def test_a_variable_that_the_yaml_does_not_give_is_not_on_the_engine(project: Project) -> None:
    folder = project()
    edit(folder, '  - name: ADO_PROJECT\n    value: "YOUR-PROJECT"\n', "")

    done = emulate(folder, *QUICK, "--minutes", "0.1", env={"ADO_PROJECT": "the caller's own"})

    assert done.code == 2
    assert "ADO_PROJECT is not set, and ADOUser needs it" in done.err


def uncached(folder: Path) -> None:
    """Make the engine's packages others than those that are kept."""
    with (folder / "requirements.txt").open("a", encoding="utf-8") as file:
        file.write("# installed by nobody yet\n")


def test_a_package_index_that_cannot_be_reached_is_one_line_and_exit_code_2(
    project: Project,
) -> None:
    folder = project()
    uncached(folder)
    nowhere = {
        **{name: "" for name in os.environ if name.startswith("PIP_")},
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_NO_CACHE_DIR": "1",
    }

    done = emulate(folder, *QUICK, env=nowhere)

    assert done.code == 2
    assert done.err == (
        "lab emulate: pip cannot reach its package index: connect this machine, set PIP_INDEX_URL,"
        " or give a folder of wheels with --wheels\n"
    )


def test_a_package_that_does_not_exist_for_the_engine_is_named(
    project: Project, tmp_path: Path
) -> None:
    folder = project()
    uncached(folder)

    done = emulate(folder, *QUICK, "--wheels", str(tmp_path))

    assert done.code == 2
    assert "No matching distribution found for locust==2.33.2" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--minutes", "0"], "--minutes 0: between 0 and 1440"),
        (["--engines", "0"], "--engines 0: between 1 and 400"),
        (["--python", "no-such-python"], "--python no-such-python: it does not start"),
        (["--wheels", "no-such-folder"], "--wheels no-such-folder: no such folder"),
        (["--slow", "learn:no_such_tool=1"], "learn has no tool 'no_such_tool'"),
        (["--real"], "ADO_ORG is still the placeholder YOUR-ORG: fill it in"),
        (["--real", "--pace", "quick"], "--pace with --real: it is for stand-ins"),
    ],
)
def test_what_cannot_be_obeyed_is_one_line_and_exit_code_2(
    project: Project, options: list[str], said: str
) -> None:
    done = emulate(project(), *options)

    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_real_servers_need_every_secret_and_no_value_is_shown(project: Project) -> None:
    folder = project(ADO_ORG="an-org", ADO_PROJECT="a-project")

    done = emulate(folder, "--real", env={"GITHUB_MCP_TOKEN": "ghp-not-to-be-shown"})

    assert done.code == 2
    assert "no value here for ADO_MCP_TOKEN, CONTEXT7_API_KEY" in done.err
    assert "ghp-not-to-be-shown" not in done.out + done.err


def test_a_class_without_a_standin_is_not_sent_to_its_real_server(project: Project) -> None:
    folder = project()
    plan = folder / "multi.py"
    mine = (
        'from _base import MCPUserBase\n\n\nclass Mine(MCPUserBase):\n    server_label = "mine"\n'
    )
    text = plan.read_text(encoding="utf-8")
    plan.write_text(f'{text}\n\n{mine}    host = "https://mine.test"\n', encoding="utf-8")

    done = emulate(folder, *QUICK, "--minutes", "0.1")

    assert done.code == 2
    assert "Mine has no stand-in" in done.err
    assert not any(done.at.glob("runs/*/results"))


def test_secrets_of_the_caller_are_nowhere_in_a_run_against_standins(project: Project) -> None:
    folder = project()
    edit(folder, "  - _sse.py\n", "")  # it ends at once, and has written what it writes
    secret: dict[str, Any] = {"GITHUB_MCP_TOKEN": "ghp-the-callers-own"}

    done = emulate(folder, *QUICK, "--minutes", "0.1", env=secret)

    written = [path for path in done.at.rglob("*") if path.is_file()]
    assert written
    assert done.code == 2
    assert not any(b"ghp-the-callers-own" in path.read_bytes() for path in written)
