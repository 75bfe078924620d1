"""The matrix: real runs against small servers of ours, and what is said of each cell."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab import cli
from lab.matrix import ROUNDS, USERS, cells_of
from lab.null_server import program
from lab.real import install
from lab.real.cells import COLUMNS, Cell, table
from lab.real.servers import BOTH_ERAS, HANDSHAKES, Calls, Server

OLD = str(Path(__file__).parent / "old_server.py")
EACH = USERS * ROUNDS  # calls of a tool in a cell
OLDEST, STATELESS = BOTH_ERAS[0], BOTH_ERAS[-1]


def null(accepts: tuple[str, ...], text: str = "") -> Server:
    command = (str(program()), "{port}", "--mode", "json", "--text", "200", "--seed", "1")
    calls: Calls = {"echo": ({}, text)}
    return Server("null", "ours", "", command, "json", sessions=True, calls=calls, accepts=accepts)


def old(*status: str) -> Server:
    command = (sys.executable, OLD, "{port}", *status)
    calls: Calls = {"echo": ({}, "again")}
    return Server(
        "old", "ours", "", command, "json", sessions=False, calls=calls, accepts=(OLDEST,)
    )


def test_every_revision_that_a_server_accepts_is_spoken_and_auto_is_the_newest(
    tmp_path: Path,
) -> None:
    cells = cells_of(null(BOTH_ERAS), COLUMNS, tmp_path)

    assert [(cell.asked, cell.spoke) for cell in cells] == [
        *((revision, revision) for revision in BOTH_ERAS),
        ("auto", STATELESS),
    ]
    assert {cell.calls for cell in cells} == {EACH}
    assert all(cell.passed and not cell.refusal for cell in cells)


def test_a_revision_that_is_accepted_against_the_description_is_a_failure(tmp_path: Path) -> None:
    modern, auto = cells_of(null(HANDSHAKES), (STATELESS, "auto"), tmp_path)

    assert modern.failures == (
        "accepts it, and its description says that it does not: add it to `accepts`",
    )
    assert auto.failures == (f"answers {STATELESS}, and not 2025-11-25",)


def test_a_failed_sample_is_named_and_counted(tmp_path: Path) -> None:
    (cell,) = cells_of(null(BOTH_ERAS, "no such text"), ("2025-06-18",), tmp_path)

    assert cell.failures == (
        f"tools/call:echo: check failed: is_right ({EACH} times)",
        f"echo: 0 of {EACH} calls",
    )
    assert cell.short == "FAILED"
    assert str(cell).startswith("FAILED")


def test_another_revision_or_a_refusal_is_no_failure_and_says_what_was_answered(
    tmp_path: Path,
) -> None:
    cells = {cell.asked: cell for cell in cells_of(old(), COLUMNS, tmp_path)}

    assert [cell.failures for cell in cells.values()] == [()] * len(COLUMNS)
    assert cells[OLDEST].short == str(EACH)
    assert cells["2025-06-18"].short == f"- (answers {OLDEST})"
    assert cells[STATELESS].short == "- (HTTP 404)"
    assert cells["auto"].short == f"{EACH} at {OLDEST}"


def test_a_server_that_does_not_accept_what_its_description_says_has_failed(
    tmp_path: Path,
) -> None:
    described = replace(old(), accepts=BOTH_ERAS)
    later, modern = cells_of(described, ("2025-06-18", STATELESS), tmp_path)

    assert later.failures == (f"answers {OLDEST}, and not 2025-06-18",)
    assert modern.failures[-2:] == (
        f"answers no revision, and not {STATELESS}",
        f"echo: 0 of {EACH} calls",
    )


def test_an_outage_is_no_refusal(tmp_path: Path) -> None:
    (cell,) = cells_of(old("500"), (STATELESS,), tmp_path)

    assert cell.refusal == ""
    assert cell.failures[-1] == "neither accepts nor refuses it: nothing was answered"
    assert "server/discover: HTTP 500" in cell.failures[0]


def test_a_server_that_does_not_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    broken = replace(old(), label="broken", command=(sys.executable, "-c", "exit('no luck')"))

    with pytest.raises(cli.CannotRun, match=r"^broken: .* before a connection .* no luck$"):
        cells_of(broken, ("auto",), tmp_path)


def test_servers_of_one_sdk_with_equal_cells_share_a_row() -> None:
    servers = [replace(old(), label=label) for label in ("a", "b", "c")]
    cells = [Cell(label, "auto", calls, OLDEST) for label, calls in (("a", 6), ("b", 6), ("c", 9))]

    assert table(servers, cells).splitlines()[2:] == [
        "| ours | a, b |  |  |  |  | 6 at 2025-03-26 |",
        "| ours | c |  |  |  |  | 9 at 2025-03-26 |",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--server", "nobody"], "--server 'nobody': there are mcp1.10,"),
        (["--revision", "2024"], "--revision '2024': there are 2025-03-26,"),
        (["--write-readme", "--revision", "auto"], "--write-readme writes the whole table"),
    ],
)
def test_what_cannot_be_run_is_named_with_its_cure(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["matrix", *words]) == 2
    assert said in capsys.readouterr().err


def test_what_is_not_installed_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stamp = tmp_path / "installed.json"
    stamp.write_text(json.dumps({"mcp1": ["mcp==1.2.3"]}), encoding="utf-8")  # older pins
    monkeypatch.setattr(install, "STAMP", stamp)

    assert cli.main(["matrix", "--server", "mcp1-sessions-sse"]) == 2
    assert capsys.readouterr().err == (
        "lab matrix: mcp1-sessions-sse is not installed: python -m lab matrix --install\n"
    )
