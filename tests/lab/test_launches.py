"""Every way to start the shipped files against the stand-ins: nothing lost, left open or told."""

from __future__ import annotations

import collections
import os
import signal
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab import pairs, runs
from lab.load import RECORDER
from lab.targets import Standins, standins
from tests.lab.folders import files_with
from tests.locust_process import ROOT, LocustProcess, Seen

BRISK = {
    "MCP_INTRA_MIN": "0.05",
    "MCP_INTRA_MAX": "0.1",
    "MCP_TURN_MIN": "0.1",
    "MCP_TURN_MAX": "0.3",
}
SECONDS = ("--run-time", "2s", "--spawn-rate", "20")
TOKEN = "planted+token/with=signs"
BYE = 40.0


class Launch:
    """One run in a folder of its own, recorded, against stand-ins of its own."""

    def __init__(self, folder: Path, served: Standins) -> None:
        self.folder = folder
        self.run_dir = folder / "run"
        self.variables = {
            **served.variables,
            **BRISK,
            "MCP_RUN_DIR": str(self.run_dir),
            "A_SPARE_TOKEN": TOKEN,
        }
        # As in the project's own folder, but results/ is written here.
        self.config = ["--config", str(ROOT / "locust.conf")]

    def locust(self, plan: str, *words: str, **more: str) -> LocustProcess:
        files = f"{ROOT / plan},{RECORDER}"
        arguments = [*self.config, *words]
        where = self.folder / "cwd"
        variables = {**self.variables, **more}
        return LocustProcess(files, arguments, where, variables, witnessed=False)


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    with standins(tmp_path, latency="none") as served:
        one = Launch(tmp_path, served)
        yield one
    # The stand-ins have ended, so their log is whole.
    run = runs.read(one.run_dir)
    log = pairs.read_log(tmp_path / "standins")
    nobody: collections.Counter[str] = collections.Counter()
    assert pairs.differences(run.requests, log, nobody) == []
    assert pairs.left_open(tmp_path / "standins", nobody) == []
    assert [each for each in run.requests if not each.success] == []
    assert run.missing == []
    assert run.notes == []
    assert files_with(TOKEN, tmp_path) == []
    for name in ("GITHUB_MCP_TOKEN", "ADO_MCP_TOKEN", "CONTEXT7_API_KEY"):
        assert files_with(served.variables[name], tmp_path) == []


def _ended(process: LocustProcess) -> Seen:
    seen = process.end(BYE)
    assert seen.code == 0, seen.said
    return seen


def _users(launch: Launch) -> dict[str, int]:
    """The most users that each class had, over all processes."""
    most: collections.Counter[str] = collections.Counter()
    for process in runs.read(launch.run_dir).processes.values():
        for name in {name for _, by_class in process.users for name in by_class}:
            most[name] += max(by_class.get(name, 0) for _, by_class in process.users)
    return {name: users for name, users in most.items() if users}


ALL = {"GitHubUser": 2, "LearnUser": 5, "Context7User": 5, "ADOUser": 5}


def test_multi_as_it_is(launch: Launch) -> None:
    with launch.locust("multi.py", *SECONDS) as process:
        _ended(process)

    assert _users(launch) == ALL


def test_a_single_class_with_a_number_of_its_own(launch: Launch) -> None:
    with launch.locust("multi.py", *SECONDS, "LearnUser", "-u", "7") as process:
        _ended(process)

    assert _users(launch) == {"LearnUser": 7}


def test_the_walk_through(launch: Launch) -> None:
    with launch.locust("learn_first.py", *SECONDS, "-u", "16") as process:
        _ended(process)

    labels = {each.label for each in runs.read(launch.run_dir).requests}
    assert labels == {
        "learn:initialize",
        "learn:notifications/initialized",
        "learn:tools/list",
        "learn:tools/call:microsoft_docs_search",
        "learn:tools/call:microsoft_code_sample_search",
        "learn:DELETE",
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="--processes needs fork")
def test_two_processes(launch: Launch) -> None:
    port = str(_free_port())
    ports = ["--master-bind-port", port, "--master-port", port]
    with launch.locust("multi.py", *SECONDS, "--processes", "2", *ports) as process:
        _ended(process)

    names = sorted(path.name for path in (launch.run_dir / "results").iterdir())
    assert names == ["engine1_results.csv", "engine2_results.csv"]
    assert _users(launch) == ALL


def test_a_master_with_two_workers_that_share_a_folder_though_none_was_named(
    launch: Launch,
) -> None:
    del launch.variables["MCP_RUN_DIR"]
    port = str(_free_port())
    master = ["--master", "--master-bind-port", port, "--expect-workers", "2", *SECONDS]
    worker = ["--worker", "--master-port", port]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(launch.locust("multi.py", *words))
            for words in (master, worker, worker)
        ]
        for process in processes:
            _ended(process)

    (launch.run_dir,) = (launch.folder / "cwd" / "runs").iterdir()
    assert len(runs.read(launch.run_dir).processes) == 2
    assert _users(launch) == ALL


def test_the_web_ui_started_by_its_own_form(launch: Launch) -> None:
    port = _free_port()
    options = ["--web-host", "127.0.0.1", "--web-port", str(port)]
    page = f"http://127.0.0.1:{port}"

    def form(path: str, **fields: str) -> None:
        body = urllib.parse.urlencode(fields).encode()
        with urllib.request.urlopen(f"{page}{path}", body, 10) as answer:
            answer.read()

    def answers() -> bool:
        try:
            urllib.request.urlopen(page, timeout=5).close()
        except OSError:
            return False
        return True

    with launch.locust("multi.py", *options, LOCUST_HEADLESS="false") as process:
        _await(answers)
        form("/swarm", user_count="17", spawn_rate="20", host="")
        _await(lambda: _recorded(launch) > 60)
        form("/stop", now="yes")
        _await(lambda: _recorded(launch, ":DELETE") == 7)
        process.signal(signal.SIGTERM)
        _ended(process)

    assert _users(launch) == ALL


def _recorded(launch: Launch, ending: str = "") -> int:
    if not (launch.run_dir / "results").is_dir():
        return 0
    return sum(each.label.endswith(ending) for each in runs.read(launch.run_dir).requests)


def _await(what: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "what was awaited did not come"
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
