"""What a run folder means, whole or cut short, and what Azure lets one download."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from lab import runs
from lab.results import RunError
from lab.rows import AZURE_COLUMNS
from tests.lab.folders import BEGAN, row, write_azure, write_part, write_tallies, write_ticks

# Azure's own documented form, synthetic (how-to-export-test-results.md): a pass, two failures.
AZURE_ROWS = (
    "1778327964000,153,github:initialize,200,OK,x-1,text,true,,0,0,2,17,https://h/mcp,153,0,0",
    '1778327966871,60,github:tools/call:search_code,200,OK,x-2,text,false,"no, retry",0,0,2,17,,,,',
    "1778327970001,30001,learn:tools/call:x,0,,x-3,text,false,ReadTimeout,0,0,5,14,null,0,0,0",
)


def test_a_row_comes_back_as_it_was_measured(tmp_path: Path) -> None:
    failure = ValueError('no, "really"\nnot')
    traced = {"planned": 9.9, "started": 10.0, "connected": 10.002, "headers": 10.1}
    write_part(
        tmp_path,
        [row("learn:tools/list", 2.5, 123.456, failure, request_id=7, session=3, **traced)],
    )

    run = runs.read(tmp_path)

    (request,) = run.requests
    assert request.label == "learn:tools/list"
    assert request.start == BEGAN + 2.5
    assert request.elapsed_ms == 123.456
    assert not request.success
    assert request.failure == 'no, "really" not'
    assert (request.failure_kind, request.code) == ("ValueError", "200")
    assert (request.user_class, request.session, request.request_id) == ("LearnUser", 3, 7)
    assert request.connect_ms == 2.0
    assert request.headers_ms == 100.0
    assert request.first_event_ms is None
    assert run.notes == []


def test_the_parts_of_several_processes_are_one_run_in_the_order_of_time(tmp_path: Path) -> None:
    write_part(tmp_path, [row("a:x", 1.0), row("a:x", 3.0)], 1)
    write_part(tmp_path, [row("a:x", 0.0), row("a:x", 2.0)], 2)

    run = runs.read(tmp_path)

    assert [each.start - BEGAN for each in run.requests] == [0.0, 1.0, 2.0, 3.0]
    assert [each.process for each in run.requests] == [2, 1, 2, 1]
    assert run.notes == []


def test_a_last_line_that_a_crash_cut_short_is_left_out_and_said(tmp_path: Path) -> None:
    path = write_part(tmp_path, [row("a:x", 0.0), row("a:x", 1.0)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-60])

    run = runs.read(tmp_path)

    assert len(run.requests) == 1
    assert run.notes == ["engine1_results.csv: its last line is cut short and was left out"]


def test_a_file_cut_at_any_byte_gives_every_row_that_is_whole(tmp_path: Path) -> None:
    path = write_part(tmp_path, [row("a:x", float(at), failure=ValueError("a,b")) for at in (0, 1)])
    whole = path.read_bytes()
    header, first, second = (len(line) for line in whole.splitlines(keepends=True))
    for cut in range(header, header + first + second + 1):
        path.write_bytes(whole[:cut])

        run = runs.read(tmp_path)

        complete = (cut >= header + first) + (cut >= header + first + second)
        # A line without only its newline, or a digit of its last column, still is a row.
        assert complete <= len(run.requests) <= complete + 1
        assert all(each.start - BEGAN in {0.0, 1.0} for each in run.requests)


def test_lines_that_are_no_rows_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    path = write_part(tmp_path, [row("a:x", 0.0)])
    text = path.read_text(encoding="utf-8")
    header, first = text.splitlines()
    path.write_text("\n".join([header, "rubbish", first, "more", first, ""]), encoding="utf-8")

    run = runs.read(tmp_path)

    assert len(run.requests) == 2
    assert run.notes == ["engine1_results.csv: 2 lines are no rows and were left out, first: 2"]


def test_fewer_rows_than_the_process_wrote_are_said(tmp_path: Path) -> None:
    write_part(tmp_path, [row("a:x", 0.0)])
    write_tallies(tmp_path, rows=2)

    assert runs.read(tmp_path).notes == ["engine1_results.csv: 1 rows, but its process wrote 2"]


def test_a_process_that_did_not_end_by_itself_is_said_and_the_run_is_not_whole(
    tmp_path: Path,
) -> None:
    write_part(tmp_path, [row("a:x", 0.0)])
    write_tallies(tmp_path, rows=0, finished=False)

    run = runs.read(tmp_path)

    assert run.missing == run.notes
    assert "did not end by itself" in run.notes[0]


def test_two_runs_in_one_folder_are_said(tmp_path: Path) -> None:
    write_part(tmp_path, [row("a:x", 0.0)], 1)
    write_part(tmp_path, [row("a:x", 60.0)], 2)

    (note,) = runs.read(tmp_path).notes

    assert note == "engine2 began after engine1 had ended: are these two runs in one folder?"


def test_tallies_and_servers_of_all_processes_are_put_together(tmp_path: Path) -> None:
    for number in (1, 2):
        write_part(tmp_path, [row("a:x", 0.0)], number)
        write_tallies(
            tmp_path,
            *(1, number),
            tallies=[["a", "server ping answered", number]],
            servers={f"s{number}": {"name": "n"}},
        )
    write_ticks(tmp_path, [(1.0, 2.0, 3.0)], [(0.0, {"AUser": 4})])

    run = runs.read(tmp_path)

    assert run.tallies == {("a", "server ping answered"): 3}
    assert sorted(run.servers) == ["s1", "s2"]
    assert run.processes[1].load == [(BEGAN + 1.0, 2.0, 3.0)]
    assert run.processes[1].users == [(BEGAN, {"AUser": 4})]


def test_a_tick_that_a_crash_cut_short_is_said(tmp_path: Path) -> None:
    write_part(tmp_path, [row("a:x", 0.0)])
    write_ticks(tmp_path, [(1.0, 2.0, 3.0)])
    ticks = tmp_path / "ticks-1.jsonl"
    ticks.write_text(ticks.read_text(encoding="utf-8") + '{"t": 18000', encoding="utf-8")

    run = runs.read(tmp_path)

    assert len(run.processes[1].load) == 1
    assert run.notes == ["ticks-1.jsonl: a line is cut short and was left out"]


def _azure_file(path: Path) -> Path:
    return write_azure(path, [[line] for line in AZURE_ROWS])


def _azure_folder(tmp_path: Path) -> Path:
    _azure_file(tmp_path / "engine1_results.csv")
    return tmp_path


def _azure_zip(tmp_path: Path) -> Path:
    path = _azure_file(tmp_path / "engine1_results.csv")
    with zipfile.ZipFile(tmp_path / "results.zip", "w") as archive:
        archive.write(path, "engine1_results.csv")
    path.unlink()
    return tmp_path / "results.zip"


def _folder_of_azure_zip(tmp_path: Path) -> Path:
    return _azure_zip(tmp_path).parent


def _single_file(tmp_path: Path) -> Path:
    return _azure_file(tmp_path / "whatever.csv")


@pytest.mark.parametrize(
    "download", [_azure_folder, _azure_zip, _folder_of_azure_zip, _single_file]
)
def test_a_download_from_azure_is_a_run(tmp_path: Path, download: object) -> None:
    assert callable(download)
    run = runs.read(download(tmp_path))

    assert [each.label for each in run.requests] == [
        "github:initialize",
        "github:tools/call:search_code",
        "learn:tools/call:x",
    ]
    assert [each.elapsed_ms for each in run.requests] == [153.0, 60.0, 30001.0]
    assert run.requests[1].failure == "no, retry"
    assert [each.all_users for each in run.requests] == [17, 17, 14]
    assert run.notes == []


def test_a_file_without_azures_columns_is_refused_with_the_line_it_should_begin_with(
    tmp_path: Path,
) -> None:
    path = tmp_path / "engine1_results.csv"
    path.write_text("Type,Name\nGET,x\n", encoding="utf-8")

    with pytest.raises(RunError, match=r"no column timeStamp, elapsed, label, success; .*begins"):
        runs.read(path)


def test_what_is_no_run_is_refused_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such run"):
        runs.read(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"neither results/engineN_results.csv"):
        runs.read(tmp_path)


def test_every_run_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    first, second = runs.new_folder("demo", tmp_path), runs.new_folder("demo", tmp_path)

    assert first != second
    assert first.name.endswith("-demo")


def test_the_further_tests_of_a_web_ui_are_runs_inside_the_first(tmp_path: Path) -> None:
    for name in ("test-10", "test-2", "results"):
        (tmp_path / name).mkdir()

    assert [each.name for each in runs.tests(tmp_path)[1:]] == ["test-2", "test-10"]


def test_azures_columns_are_those_that_it_documents() -> None:
    """learn.microsoft.com/azure/load-testing/how-to-export-test-results, the JMeter form."""
    assert ",".join(AZURE_COLUMNS) == (
        "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,"
        "failureMessage,bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect"
    )
