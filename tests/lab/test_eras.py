"""A run that spoke more than one revision says what each cost, and when a handshake pays."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from lab import report, runs
from lab.digest import digest
from lab.eras import Era
from tests.lab.folders import Row, row, write_part, write_tallies

OLD, NEW = "2025-06-18", "2026-07-28"


def _user(
    number: int,
    revision: str,
    calls: Sequence[float],
    *,
    opening: Sequence[float] = (),
    tool: str = "search",
    label: str = "learn",
) -> list[Row]:
    """A user's life: its opening and its calls, by what each took in ms."""
    names = ["server/discover"] if revision == NEW else ["initialize", "notifications/initialized"]
    opened = [(f"{label}:{name}", took) for name, took in zip(names, opening, strict=False)]
    called = [(f"{label}:tools/call:{tool}", took) for took in calls]
    return [
        row(name, 10 * number + at, took, session=number, revision=revision, sent_bytes=400)
        for at, (name, took) in enumerate([*opened, *called])
    ]


def _eras(folder: Path, *lives: list[Row]) -> list[Era]:
    write_part(folder, sorted(chain(*lives), key=lambda each: each.at))
    return list(digest(runs.read(folder)).eras)


def test_each_revision_has_its_users_sessions_opening_and_calls(tmp_path: Path) -> None:
    (era,) = _eras(
        tmp_path,
        _user(1, OLD, [100.0, 110.0], opening=[50.0, 10.0]),
        _user(2, OLD, [120.0, 130.0], opening=[30.0, 10.0]),
        _user(3, NEW, [200.0, 300.0], opening=[20.0]),
    )
    old, new = era.spoken

    assert (era.server, old.revision, new.revision) == ("learn", OLD, NEW)
    assert (old.users, old.sessions, old.opening_ms, old.calls.count) == (2, 2, 50.0, 4)
    assert (new.users, new.sessions, new.opening_ms, new.calls.count) == (1, 1, 20.0, 2)
    assert (old.calls.p50, new.calls.avg) == (115.0, 250.0)
    assert (old.sent_bytes, old.calls_per_session) == (400.0, 2.0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        # opening and call at each revision, in ms; 140 - 20 = 120 to be earned
        ((140, 100), (20, 110), "a session: the handshake pays from 12 calls a session on."),
        ((140, 100), (20, 90), "no number of calls pays for the handshake."),
        ((20, 100), (140, 110), "a session is cheaper from its first call on."),
        ((20, 100), (140, 90), "going without is cheaper from 12 calls on."),
        ((140, 100), (20, 100), "so no number of calls is known to pay for the handshake."),
        ((20, 100), (140, 100), "and a session opens no slower."),
    ],
)  # fmt: skip
def test_it_is_said_in_one_sentence_from_how_many_calls_on_which_is_cheaper(
    tmp_path: Path, old: tuple[float, float], new: tuple[float, float], said: str
) -> None:
    (era,) = _eras(
        tmp_path,
        _user(1, OLD, [old[1]] * 5, opening=[old[0]]),
        _user(2, NEW, [new[1]] * 5, opening=[new[0]]),
    )

    assert era.said[0].endswith(said)


def test_a_difference_that_chance_can_make_is_none(tmp_path: Path) -> None:
    (era,) = _eras(
        tmp_path,
        _user(1, OLD, [50.0, 150.0, 100.0], opening=[60.0]),
        _user(2, NEW, [60.0, 160.0, 110.0]),
    )

    # 2.576 * sqrt(2500 / 3 * 2)
    assert "no difference between their calls can be told (±105 ms)" in era.said[0]


def test_how_sure_a_number_of_calls_is_stands_beside_it(tmp_path: Path) -> None:
    (era,) = _eras(
        tmp_path,
        _user(1, OLD, [100.0, 101.0] * 8, opening=[60.0]),
        _user(2, NEW, [103.0, 104.0] * 8),
    )

    # 3 ms apart, give or take 2.576 * sqrt(2 * (0.25 * 16 / 15) / 16) = 0.47
    assert era.said[0].endswith("the handshake pays from 20 calls (18 to 24) a session on.")


def test_a_handshake_is_small_from_19_times_its_share_of_a_call_on(tmp_path: Path) -> None:
    lives = [_user(1, OLD, [100.0] * 4, opening=[90.0, 10.0]), _user(2, NEW, [100.0] * 4)]
    (era,) = _eras(tmp_path, *lives)

    # 100 / (100 + 20 * 100) is below 5 %, 100 / (100 + 19 * 100) is not
    assert era.said[1] == (
        f"From 20 calls a session on, the handshake of {OLD} is less than 5 % of handshake and"
        " calls together; here it was 20.0 %, at 4.0 calls a session."
    )


def test_revisions_are_compared_by_the_tools_that_both_called(tmp_path: Path) -> None:
    """Else the era whose users happened to call the slow tool would look slow."""
    (era,) = _eras(
        tmp_path,
        _user(1, OLD, [100.0] * 5, opening=[60.0]),
        _user(2, NEW, [100.0] * 5),
        _user(3, NEW, [900.0] * 20, tool="report"),
    )

    assert "no difference between their calls can be told" in era.said[0]


def test_what_failed_before_a_revision_was_agreed_upon_is_of_its_users_revision(
    tmp_path: Path,
) -> None:
    late = [row("learn:initialize", 9, 500.0, TimeoutError("time is up"), session=1)]
    (era,) = _eras(
        tmp_path,
        late,
        _user(1, OLD, [100.0] * 2, opening=[60.0, 40.0]),
        _user(2, NEW, [100.0] * 2),
    )

    assert (era.spoken[0].sessions, era.spoken[0].opening_ms) == (1, 600.0)


def test_the_handshakes_price_is_that_of_users_with_sessions(tmp_path: Path) -> None:
    lists = [row("learn:tools/list", 21, 1000.0, session=2, revision=NEW)]
    write_part(tmp_path, [*_user(1, OLD, [100.0], opening=[60.0, 40.0]), *lists])
    (price,) = digest(runs.read(tmp_path)).handshakes

    assert (price.list_ms, price.share_of_waiting) == (0.0, 50.0)


def test_every_rendering_has_the_revisions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = _user(1, OLD, [100.0] * 5, opening=[60.0, 40.0]) + _user(2, NEW, [110.0] * 5)
    write_part(tmp_path, rows)
    write_tallies(tmp_path, len(rows), servers={"learn": {"name": "n", "protocolVersion": OLD}})
    outcome = report.make(tmp_path)
    report.show(outcome, tmp_path)
    said = outcome.digest.eras[0].said
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    (facts,) = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))["revisions"]

    assert "Revisions compared" in page
    assert f"<td>{OLD}, {NEW}</td>" in page  # what the server speaks
    assert f"| {OLD} | 1 | 1 | 100 | 5 | 0 | 100 |" in summary
    assert all(each in page and f"- revisions: learn: {each}" in summary for each in said)
    assert f"revisions: learn: {said[0]}" in capsys.readouterr().out
    assert facts["said"] == list(said)
    assert [(each["revision"], each["p50"]) for each in facts["spoken"]] == [
        (OLD, 100.0),
        (NEW, 110.0),
    ]


def test_a_run_of_one_revision_says_nothing_about_eras(tmp_path: Path) -> None:
    rows = _user(1, OLD, [100.0] * 5, opening=[60.0]) + _user(2, NEW, [100.0], label="github")
    write_part(tmp_path, rows)
    write_tallies(tmp_path, len(rows))
    outcome = report.make(tmp_path)

    assert outcome.digest.eras == ()
    assert "Revisions compared" not in (tmp_path / "report.html").read_text(encoding="utf-8")
