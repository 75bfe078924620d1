"""The recorder in real Locust processes: every request event is a row, however the run ends."""

from __future__ import annotations

from locust import __version__ as locust_version
from locust.env import Environment
from locust.event import Events

import collections
import csv
import io
import json
import signal
import socket
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import _base
from lab import runs
from lab.load import RECORDER
from lab.record import Part, Recorder, run_folder
from lab.rows import HEADER, Lines, redact, secret_values
from tests.lab.folders import BEGAN, Row, files_with, row
from tests.locust_process import LocustProcess, Seen, run_locust

PLAIN = Path(__file__).with_name("plain_user.py")
FILES = f"{PLAIN},{RECORDER}"
TOKEN = "planted+token/with=signs"  # plain, base64 and URL-encoded forms all differ


def _rows(folder: Path) -> list[dict[str, str]]:
    return [
        each
        for path in sorted(folder.glob("results/*.csv"))
        for each in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
    ]


def _count(folder: Path) -> collections.Counter[str]:
    return collections.Counter(each["label"] for each in _rows(folder))


def _await(what: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "what was awaited did not come"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Seen, Path]:
    folder = tmp_path_factory.mktemp("recorded")
    options = ["--headless", "-u", "3", "-r", "3", "-t", "1s"]
    variables = {"MCP_RUN_DIR": str(folder / "run"), "PLANTED_TOKEN": TOKEN}
    return run_locust(FILES, options, folder / "cwd", 60, **variables), folder / "run"


def test_every_request_event_is_one_row(recorded: tuple[Seen, Path]) -> None:
    seen, folder = recorded

    assert _count(folder) == seen.count()
    assert seen.count()["plain:bye"] == 3
    assert [p.name for p in (folder / "results").iterdir()] == ["engine1_results.csv"]


def test_a_row_begins_as_azures_do_and_says_who_ran(recorded: tuple[Seen, Path]) -> None:
    seen, folder = recorded
    witnessed = collections.Counter((each["name"], each["failure"] is None) for each in seen.rows)
    rows = _rows(folder)

    counted = collections.Counter((each["label"], each["success"] == "true") for each in rows)
    assert counted == witnessed
    last = rows[-1]
    assert (last["elapsed"], last["elapsed_ms"], last["method"]) == ("1", "1.250", "GET")
    assert last["URL"] == "http://127.0.0.1/path"
    assert (last["allThreads"], last["dataType"]) == ("3", "text")
    assert last["failure_kind"] == "ValueError"


def test_a_process_says_how_it_ended_and_how_many_users_it_had(
    recorded: tuple[Seen, Path],
) -> None:
    seen, folder = recorded
    run = runs.read(folder)

    facts = run.processes[1].facts
    assert facts["finished"] is True
    assert facts["rows"] == len(seen.rows)
    assert facts["locust"] == locust_version
    assert run.missing == []
    assert run.notes == []
    assert max(by_class["PlainUser"] for _, by_class in run.processes[1].users) == 3


def test_a_planted_token_is_in_no_file_of_the_run(recorded: tuple[Seen, Path]) -> None:
    seen, folder = recorded

    assert any(TOKEN in str(each["failure"]) for each in seen.rows), "nothing was planted"
    assert files_with(TOKEN, folder) == []
    assert "[secret]" in (folder / "results" / "engine1_results.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_stop_loses_no_row(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "run"
    variables = {"MCP_RUN_DIR": str(folder)}
    options = ["--headless", "-u", "2", "-r", "2"]
    with LocustProcess(FILES, options, tmp_path / "cwd", variables) as process:
        _await(lambda: bool(_count(folder)))
        process.signal(number)
        seen = process.end(30)

    assert _count(folder) == seen.count()
    assert runs.read(folder).missing == []


def test_a_killed_run_leaves_whole_lines_and_all_but_its_last_moment(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    variables = {"MCP_RUN_DIR": str(folder)}
    options = ["--headless", "-u", "2", "-r", "2"]
    with LocustProcess(FILES, options, tmp_path / "cwd", variables) as process:
        _await(lambda: sum(_count(folder).values()) > 20)
        process.signal(signal.SIGKILL)
        seen = process.end(30)

    text = (folder / "results" / "engine1_results.csv").read_text(encoding="utf-8")
    assert text.endswith("\n")
    last_written = max(each.start for each in runs.read(folder).requests)
    # Four times the recorder's own interval, as this machine may be busy.
    assert last_written > max(each["start"] for each in seen.rows) - 1.0
    assert runs.read(folder).missing


def test_each_test_of_the_web_ui_is_a_run_of_its_own(tmp_path: Path) -> None:
    folder, port = tmp_path / "run", _free_port()
    options = ["--web-host", "127.0.0.1", "--web-port", str(port)]
    variables = {"MCP_RUN_DIR": str(folder), "LOCUST_HEADLESS": "false"}

    def ask(path: str, form: dict[str, str] | None = None) -> None:
        body = urllib.parse.urlencode(form).encode() if form else None
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", body, 10) as answer:
            answer.read()

    def answers() -> bool:
        try:
            ask("/stats/requests")
        except OSError:
            return False
        return True

    with LocustProcess(FILES, options, tmp_path / "cwd", variables) as process:
        _await(answers)
        for test in (folder, folder / "test-2"):
            ask("/swarm", {"user_count": "2", "spawn_rate": "2", "host": ""})
            _await(lambda test=test: _count(test)["plain: a,b"] > 4)  # type: ignore[misc]
            ask("/stop", {"now": "yes"})
            _await(lambda test=test: _count(test)["plain:bye"] == 2)  # type: ignore[misc]
        process.signal(signal.SIGTERM)
        seen = process.end(30)

    assert _count(folder) + _count(folder / "test-2") == seen.count()
    assert runs.tests(folder) == [folder, folder / "test-2"]


def test_a_folder_that_cannot_be_written_stops_the_run_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    options = ["--headless", "-u", "1", "-t", "1s"]
    place = str(tmp_path / "taken")
    seen = run_locust(FILES, options, tmp_path / "cwd", 30, MCP_RUN_DIR=place)

    assert seen.code == 2
    assert f"lab/record.py cannot write to {place}" in seen.said
    assert "name another folder in MCP_RUN_DIR" in seen.said


def test_a_recorder_loaded_from_outside_its_checkout_finds_what_it_needs(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in (RECORDER, RECORDER.with_name("rows.py"), PLAIN):
        (elsewhere / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    files = f"{elsewhere / PLAIN.name},{elsewhere / RECORDER.name}"
    folder = tmp_path / "run"
    variables = {"MCP_RUN_DIR": str(folder), "PYTHONPATH": ""}
    options = ["--headless", "-u", "1", "-t", "1s"]
    with LocustProcess(files, options, tmp_path / "cwd", variables, witnessed=False) as process:
        seen = process.end(30)

    assert _count(folder)["plain:bye"] == 1, seen.said


class _FullDisk(io.RawIOBase):
    """A file that takes a few bytes at a time and, while it is full, none."""

    def __init__(self) -> None:
        self.taken = b""
        self.full = True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.full:
            self.full = False
            raise OSError(28, "No space left on device")
        self.taken += data[:40]
        return len(data[:40])


def test_rows_that_a_full_disk_refused_are_written_once_it_has_room(tmp_path: Path) -> None:
    part = Part(tmp_path)
    lines = [f"{at},a line\n" for at in range(20)]
    part.waiting.extend(lines)
    disk = _FullDisk()
    disk.full = False
    part.file.close()
    part.ticks.close()
    part.file = disk  # type: ignore[assignment]
    disk.full = True
    with pytest.raises(OSError, match="No space"):
        part.write()
    part.waiting.append("the last line\n")
    part.write()

    assert disk.taken.decode() == "".join([*lines, "the last line\n"])
    assert (part.rows, part.lost) == (21, 0)


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    monkeypatch.setenv("MCP_RUN_DIR", str(tmp_path))
    environment = Environment(events=Events())
    environment.create_local_runner()
    return Recorder(environment)


def _tallies(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "tallies-1.json").read_text(encoding="utf-8"))
    return facts


def test_an_event_that_cannot_be_worded_is_counted_and_the_others_are_kept(
    tmp_path: Path, recorder: Recorder
) -> None:
    recorder.on_test_start()
    for name in ("a:x", None, "a:x"):
        recorder.environment.events.request.fire(
            request_type="GET", name=name, response_time=1.0, response_length=1
        )
    recorder.close()

    assert _count(tmp_path) == {"a:x": 2}
    facts = _tallies(tmp_path)
    assert (facts["rows"], facts["lost"], facts["finished"]) == (2, 1, True)


def test_what_was_counted_in_a_test_is_kept_though_the_next_one_counts_anew(
    tmp_path: Path, recorder: Recorder
) -> None:
    _base.tallies.clear()
    recorder.on_test_start()
    _base.tallies["a", "sessions lost"] += 1
    recorder.on_test_stop()
    _base.tallies.clear()  # as _base does when a test starts, maybe before us
    recorder.on_test_start()
    _base.tallies["a", "sessions lost"] += 5
    recorder.close()
    _base.tallies.clear()

    assert _tallies(tmp_path)["tallies"] == [["a", "sessions lost", 1]]
    assert _tallies(tmp_path / "test-2")["tallies"] == [["a", "sessions lost", 5]]


def test_rows_that_come_after_the_stop_are_still_of_that_test(
    tmp_path: Path, recorder: Recorder
) -> None:
    recorder.on_test_start()
    recorder.on_test_stop()
    recorder.environment.events.request.fire(
        request_type="GET", name="a:late", response_time=1.0, response_length=1
    )
    recorder.on_quit(0)

    run = runs.read(tmp_path)
    assert [each.label for each in run.requests] == ["a:late"]
    assert (run.missing, run.processes[1].facts["exit_code"]) == ([], 0)


def test_processes_claim_different_numbers_in_one_folder(tmp_path: Path) -> None:
    parts = [Part(tmp_path) for _ in range(3)]
    for part in parts:
        part.file.close()
        part.ticks.close()

    assert [part.number for part in parts] == [1, 2, 3]


def test_the_first_test_of_a_process_has_the_folder_named_and_later_ones_lie_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCP_RUN_DIR", "here")

    assert [str(run_folder(test)) for test in (1, 2)] == ["here", "here/test-2"]


def test_without_a_folder_named_the_masters_stamp_is_taken_and_nothing_else_it_may_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MCP_RUN_DIR", raising=False)

    assert str(run_folder(1, "20261130T224900Z")) == "runs/20261130T224900Z-locust"
    assert ".." not in str(run_folder(1, "../../20261130T224900Z"))


def _cells(each: Row) -> dict[str, str]:
    (cells,) = csv.DictReader(io.StringIO(HEADER + Lines([]).line(*each), newline=""))
    return cells


def test_instants_are_milliseconds_after_the_clock_started() -> None:
    cells = _cells(
        row(
            *("a:x", 0.0, 250.0),
            planned=9.75,
            started=10.0,
            connected=10.0625,
            secured=10.125,
            headers=10.1875,
            first_event=10.2,
            replied=10.25,
            status=200,
            sent_bytes=11,
            received_bytes=22,
        )
    )

    assert cells["timeStamp"] == str(int(BEGAN * 1000))
    assert (cells["waited_ms"], cells["connect_ms"], cells["tls_ms"]) == (
        *("250.000", "62.500", "125.000"),
    )
    assert (cells["headers_ms"], cells["reply_ms"], cells["end_ms"]) == ("187.500", "250.000", "")
    assert (cells["Connect"], cells["Latency"]) == ("125", "188")
    assert (cells["sentBytes"], cells["bytes"]) == ("11", "22")
    assert (cells["responseCode"], cells["responseMessage"]) == ("200", "OK")


def test_a_request_on_a_kept_connection_has_no_connect() -> None:
    cells = _cells(row("a:x", 0.0, started=10.0, headers=10.1, replied=10.1))

    assert (cells["Connect"], cells["connect_ms"], cells["tls_ms"]) == ("0", "", "")


_ONE_READ: dict[str, Any] = {"planned": 9.999, "started": 10.0, "headers": 10.1, "replied": 10.1}


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"request_id": 7, "kind": "json", "sent_bytes": 11, "received_bytes": 22},
        {"planned": 9.0},  # a second late
        {"planned": 10.5},  # a clock that went back, or a trace that was never planned
        {"first_event": 10.1, "ended": 10.1},
        {"first_event": 10.05, "ended": 10.7, "kind": "sse"},
        {"status": 404},
        {"user_class": "", "session": 0},
    ],
)
def test_the_short_way_to_a_line_gives_what_the_long_way_does(facts: dict[str, Any]) -> None:
    traced: dict[str, Any] = {**_ONE_READ, **facts}
    each = row("a:x", 0.0, 100.0, **traced)
    lines = Lines([])
    lines.count({"AUser": 3, "BUser": 4})

    assert lines.line(*each) == lines.any_line(*each)


def test_rows_of_one_name_and_different_kinds_keep_their_own_cells() -> None:
    lines = Lines([])
    rows = [
        row("a:x", 0.0, **_ONE_READ, status=status, user_class=name, session=session)._replace(
            url=url
        )
        for status, name, session, url in (
            *((200, "AUser", 1, "http://a"), (202, "AUser", 2, "http://a")),
            *((200, "BUser", 1, "http://a"), (200, "AUser", 1, "http://b")),
        )
    ] * 2

    assert [lines.line(*each) for each in rows] == [lines.any_line(*each) for each in rows]


@pytest.mark.parametrize("text", ['a,"b"', "two\nlines", "\r\n", "plain"])
def test_a_failure_of_any_text_is_one_line_of_one_cell(text: str) -> None:
    line = Lines([]).line(*row("a:x", 0.0, failure=ValueError(text)))

    assert line.count("\n") == 1
    assert line.endswith("\n")
    (cells,) = csv.DictReader(io.StringIO(HEADER + line, newline=""))
    assert cells["failureMessage"] == " ".join(text.split())
    assert cells["end_ms"] == ""


def test_an_exception_that_cannot_be_printed_is_named() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert _cells(row("a:x", 0.0, failure=Mute()))["failureMessage"] == "Mute"


def test_an_empty_exception_is_a_success_as_it_is_for_locust() -> None:
    assert _cells(row("a:x", 0.0)._replace(exception=""))["success"] == "true"


def test_an_address_is_kept_without_query_fragment_and_user() -> None:
    url = "https://me:secret@h.example/mcp?code=abc#d"

    assert _cells(row("a:x", 0.0)._replace(url=url))["URL"] == "https://h.example/mcp"
    assert _cells(row("a:x", 0.0)._replace(url=None))["URL"] == "null"


def test_a_secret_of_the_environment_is_removed_in_every_form() -> None:
    secrets = secret_values({"GITHUB_MCP_TOKEN": TOKEN, "PATH": "/usr/local/bin", "A_KEY": "x"})
    for form in (TOKEN, urllib.parse.quote(TOKEN, safe=""), urllib.parse.quote_plus(TOKEN)):
        assert redact(f"<{form}>", secrets) == "<[secret]>"
    assert redact("/usr/local/bin x", secrets) == "/usr/local/bin x"


@pytest.mark.parametrize(
    "text",
    [
        "sent Authorization: Bearer abcdef0123456789",
        "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "GET /path?code=abcdef0123456789 failed",
    ],
)
def test_what_looks_like_a_secret_is_removed_too(text: str) -> None:
    shown = redact(text, [])

    assert "[secret]" in shown
    assert "abcdef" not in shown
    assert "eyJ" not in shown


def test_the_tallies_file_is_json_at_every_moment(recorded: tuple[Seen, Path]) -> None:
    _, folder = recorded

    assert json.loads((folder / "tallies-1.json").read_text(encoding="utf-8"))["process"] == 1
    assert list(folder.glob(".*")) == []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
