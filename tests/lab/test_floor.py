"""This machine's floor: measured with the user's own classes, and flagged in reports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab import floor, floors, report, runs
from lab.cli import main
from lab.floor import Phase
from lab.floors import Floor
from lab.machine import this_machine
from tests.lab.folders import row, write_part, write_tallies

HERE = this_machine().as_facts()
FLOOR = Floor(0.2, 1.0, 9000.0, 18_000, "CPU", 20.0, HERE, ("multi.py",), {"a:DELETE": (5.0, 9.0)})


def _phase(users: int, cpu: float, ms: float = 1.0, rss: int = 50_000_000) -> Phase:
    return Phase(users, 10.0, cpu, rss, [("a:tools/list", ms)] * 100 + [("a:DELETE", ms)] * 5)


def _notes(tmp_path: Path, facts: dict[str, Any]) -> list[str]:
    rows = [row("a:tools/list", n, 2.9) for n in range(10)]
    rows += [row("a:initialize", n, 0.5) for n in range(10)]
    rows += [row("a:tools/call:x", n, 300.0) for n in range(10)]
    rows += [row("a:DELETE", n, 16.0) for n in range(10)]
    write_part(tmp_path, rows)
    write_tallies(tmp_path, len(rows))
    runs.write_facts(tmp_path, facts)
    return report.make(tmp_path).digest.notes


def test_figures_within_three_times_of_the_floor_are_flagged_by_label(tmp_path: Path) -> None:
    FLOOR.save(tmp_path)
    facts = floors.facts_here(tmp_path)
    notes = _notes(tmp_path, facts)

    assert json.loads(json.dumps(facts)) == facts

    (said,) = (each for each in notes if "floor" in each)
    own, _, flagged = said.partition(", so largely its own: ")
    assert own == (
        "within 3 times of this machine's own floor (p50 0.20 ms, p99 1.00 ms, by `lab floor`)"
    )
    assert flagged == "a:initialize (p50 and p99), a:tools/list (p99), a:DELETE (p99)"


def test_a_floor_of_another_machine_flags_nothing(tmp_path: Path) -> None:
    replace(FLOOR, machine={**HERE, "cpu": "another"}).save(tmp_path)

    assert floors.facts_here(tmp_path) == {}
    assert not any("floor" in each for each in _notes(tmp_path, {}))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"labels": 3}', '{"labels": {}, "files": []}'])
def test_a_spoilt_floor_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / floors.FILE).write_text(text, encoding="utf-8")

    assert Floor.load(tmp_path) is None
    assert not any("floor" in each for each in _notes(tmp_path, {"floor": json.loads(text or "0")}))


def test_agents_are_carried_by_the_cpu_that_each_one_more_costs() -> None:
    few, many = _phase(500, 0.0625), _phase(3000, 0.375)

    assert floor.carried(few, many, allowed_files=1 << 20) == (6_800, "CPU")
    assert floor.carried(few, many, allowed_files=2_400) == (1_999, "open files")


def test_the_floor_has_labels_of_their_own_only_with_enough_calls() -> None:
    made = floor.judge(_phase(500, 0.05), _phase(50, 1.0), _phase(3000, 0.25), HERE, ["multi.py"])

    assert made.labels == {"a:tools/list": (1.0, 1.0)}
    assert (made.p50_ms, made.rate) == (1.0, 10.5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-f", "nowhere.py"], "nowhere.py is no file"),
        (["--seconds", "1"], "--seconds 1: between 2 and 3600"),
        (["--seconds", "nan"], "--seconds nan: between 2 and 3600"),
    ],
)
def test_bad_input_is_one_clear_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["floor", *words]) == 2

    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("null_server_can_be_built")
def test_the_floor_of_the_shipped_classes_is_measured_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    multi = Path(__file__).parents[2] / "multi.py"
    monkeypatch.chdir(tmp_path)

    assert main(["floor", "-f", str(multi), "--seconds", "2"]) == 0

    stored = Floor.load(tmp_path / "runs")
    assert stored is not None
    assert 0.0 < stored.p50_ms <= stored.p99_ms
    assert stored.rate > 100
    assert stored.holds_on(HERE)
    assert "reports flag figures within three times of it" in capsys.readouterr().out
