"""However a run ends: exit code 0, every request is a sample, no session is left open.

Real Locust processes against two paths of the faulty server that are not faulty (LOG.md I4, I5).
"""

from __future__ import annotations

import collections
import json
import signal
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable

import pytest

from tests.faulty.run import USERS, FaultyServer, Json, free_port, pace, plan, serving
from tests.locust_process import LocustProcess, Seen

QUICK, LONG = (0.1, 0.2), (60.0, 60.0)  # seconds of thinking between two calls
FAST, SLOW = "/sse", "/slow-headers"  # an answer at once, and one after 2 s
WITHIN = 30.0  # seconds in which any of these has to happen on a slow machine


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with serving() as running:
        yield running


def locust(
    server: FaultyServer,
    folder: Path,
    *arguments: str,
    path: str = FAST,
    users: int = 4,
    pause: tuple[float, float] = QUICK,
    witnessed: bool = True,
) -> LocustProcess:
    """Prepare a run of one class; it starts when it is entered."""
    folder.mkdir(parents=True, exist_ok=True)
    described = folder / "plan.json"
    described.write_text(json.dumps([plan(server, path, "ending", users=users)]), encoding="utf-8")
    variables = {**pace(pause), "FAULTY_PLAN": str(described)}
    return LocustProcess(USERS, list(arguments), folder, variables, witnessed)


def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for something that another process does; it is looked for, not slept for."""
    deadline = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < deadline, f"waited {WITHIN:.0f} s in vain: {what}"
        time.sleep(0.05)


def has_seen(server: FaultyServer, path: str, kind: str, times: int) -> Callable[[], bool]:
    return lambda: server.saw().get(path, {"kinds": {}})["kinds"].get(kind, 0) >= times


def assert_a_clean_end(server: FaultyServer, runs: list[Seen], path: str = FAST) -> Json:
    """Exit code 0, samples equal to the server's own count, each session closed."""
    saw = server.saw()[path]
    rows = [row for run in runs for row in run.rows]
    cut = sum(run.tally("ending", "cut at the end") for run in runs)
    ours = collections.Counter(row["name"].split(":")[1] for row in rows)
    theirs: collections.Counter[str] = collections.Counter(saw["kinds"])
    theirs["notifications/initialized"] = theirs.pop("notification", 0)

    assert [run.code for run in runs] == [0] * len(runs), runs[0].said
    assert [row for row in rows if row["failure"]] == []
    assert [end["exceptions"] for run in runs for end in run.ends if end["exceptions"]] == []
    assert 0 <= theirs.pop("tools/call") - ours.pop("tools/call") <= cut
    assert theirs == ours
    assert saw["open_sessions"] == 0
    assert saw["closed_sessions"] == saw["kinds"]["initialize"] == saw["kinds"]["DELETE"]
    return saw


HEADLESS = ("--headless", "-u", "4", "-r", "4")
SIGNALS = [signal.SIGINT, signal.SIGTERM]


def test_a_run_of_a_set_time_ends_clean(server: FaultyServer, tmp_path: Path) -> None:
    with locust(server, tmp_path, *HEADLESS, "-t", "3s") as process:
        run = process.end(WITHIN)

    saw = assert_a_clean_end(server, [run])
    assert saw["kinds"]["initialize"] == 4


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_run_that_is_told_to_stop_ends_clean(
    server: FaultyServer, tmp_path: Path, number: signal.Signals
) -> None:
    with locust(server, tmp_path, *HEADLESS) as process:
        until(has_seen(server, FAST, "tools/call", 20), "20 calls")
        process.signal(number)
        run = process.end(WITHIN)

    assert_a_clean_end(server, [run])


@pytest.mark.parametrize("number", [None, *SIGNALS], ids=["-t", "SIGINT", "SIGTERM"])
def test_users_in_a_long_pause_close_their_sessions(
    server: FaultyServer, tmp_path: Path, number: signal.Signals | None
) -> None:
    timed = () if number else ("-t", "3s")
    with locust(server, tmp_path, *HEADLESS, *timed, pause=LONG) as process:
        if number:
            until(has_seen(server, FAST, "tools/call", 4), "each user's first call")
            process.signal(number)
        run = process.end(WITHIN)

    saw = assert_a_clean_end(server, [run])
    assert saw["kinds"]["tools/call"] == 4


@pytest.mark.parametrize("number", [None, *SIGNALS], ids=["-t", "SIGINT", "SIGTERM"])
def test_a_call_that_is_on_its_way_is_waited_for_and_counted(
    server: FaultyServer, tmp_path: Path, number: signal.Signals | None
) -> None:
    """hot-path.md trap 15: with stop-timeout the running calls finish."""
    timed = ("--stop-timeout", "10") if number else ("--stop-timeout", "10", "-t", "3s")
    with locust(server, tmp_path, *HEADLESS, *timed, path=SLOW) as process:
        if number:
            until(has_seen(server, SLOW, "tools/call", 4), "each user's first call")
            process.signal(number)
        run = process.end(WITHIN)

    # (a wait that ends in the very moment of the stop may still start a call and lose it)
    assert_a_clean_end(server, [run], SLOW)
    calls = [row for row in run.rows if ":tools/call:" in row["name"]]
    stopped = run.ends[0]["stopped"]
    assert [row for row in calls if row["start"] + row["ms"] / 1000 > stopped]
    assert min(row["ms"] for row in calls) >= 2000


def test_a_call_that_is_cut_off_is_counted_apart(server: FaultyServer, tmp_path: Path) -> None:
    """Without stop-timeout the call is killed: no sample, but in no way forgotten."""
    with locust(server, tmp_path, *HEADLESS, path=SLOW) as process:
        until(has_seen(server, SLOW, "tools/call", 4), "each user's first call")
        process.signal(signal.SIGTERM)
        run = process.end(WITHIN)

    saw = assert_a_clean_end(server, [run], SLOW)
    calls = sum(1 for row in run.rows if ":tools/call:" in row["name"])
    assert saw["kinds"]["tools/call"] == calls + run.tally("ending", "cut at the end")


@pytest.mark.parametrize("number", [None, *SIGNALS], ids=["-t", "SIGINT", "SIGTERM"])
def test_two_processes_end_clean_and_their_totals_are_those_of_their_rows(
    server: FaultyServer, tmp_path: Path, number: signal.Signals | None
) -> None:
    timed = () if number else ("-t", "3s")
    files = ("--csv", "run", "--html", "run.html")
    with locust(server, tmp_path, *HEADLESS, *timed, "--processes", "2", *files) as process:
        if number:
            until(has_seen(server, FAST, "tools/call", 20), "20 calls")
            process.signal(number)
        run = process.end(WITHIN)

    assert_a_clean_end(server, [run])
    assert len(list(tmp_path.glob("rows-*.jsonl"))) == 2
    assert (tmp_path / "run.html").is_file()
    master = next(end for end in run.ends if end["stats"])
    assert master["stats"]["POST ending:initialize"] == [4, 0]


def test_a_master_and_two_workers_end_clean(server: FaultyServer, tmp_path: Path) -> None:
    port = str(free_port())
    master = ("--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", port)
    worker = ("--worker", "--master-host", "127.0.0.1", "--master-port", port)
    runs = []
    with ExitStack() as stack:
        expecting = (*HEADLESS, "-t", "3s", *master, "--expect-workers", "2")
        processes = [locust(server, tmp_path / "master", *expecting)]
        processes += [locust(server, tmp_path / name, *worker) for name in ("one", "other")]
        for process in processes:
            stack.enter_context(process)
        runs = [process.end(WITHIN) for process in processes]

    saw = assert_a_clean_end(server, runs)
    assert [bool(run.rows) for run in runs] == [False, True, True]
    assert runs[0].ends[0]["stats"]["POST ending:initialize"] == [4, 0]
    assert saw["kinds"]["initialize"] == 4


class WebForm:
    """Locust's own web interface, used as its page uses it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, **form: str) -> Json:
        data = urllib.parse.urlencode(form).encode() if form else None
        with urllib.request.urlopen(f"{self.url}{path}", data, timeout=10) as answer:
            found: Json = json.load(answer)
        return found

    def stop(self) -> Json:
        try:
            return self.ask("/stop", by="form")
        except urllib.error.HTTPError:  # older forms ask by GET
            return self.ask("/stop")

    def state(self) -> str:
        try:
            return str(self.ask("/stats/requests")["state"])
        except OSError:
            return "not there yet"


def test_a_run_from_the_web_form_ends_clean_and_can_be_started_again(
    server: FaultyServer, tmp_path: Path
) -> None:
    port = free_port()
    form = WebForm(port)
    with locust(server, tmp_path, "--web-host", "127.0.0.1", "--web-port", str(port)) as process:
        until(lambda: form.state() == "ready", "the form")
        for turn in (1, 2):
            assert form.ask("/swarm", user_count="3", spawn_rate="3")["success"]
            until(has_seen(server, FAST, "tools/call", 20 * turn), "20 calls more")
            assert form.stop()["success"]
            until(lambda: form.state() == "stopped", "the end of the run")
            assert server.saw()[FAST]["open_sessions"] == 0
        process.signal(signal.SIGTERM)
        run = process.end(WITHIN)

    saw = assert_a_clean_end(server, [run])
    assert saw["kinds"]["initialize"] == 6
