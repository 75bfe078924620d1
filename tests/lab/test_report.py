"""A report says what the run folder holds, the same in every rendering."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from lab import report, runs, table, units
from lab.cli import CannotRun, main
from lab.digest import Digest, digest, stretches
from lab.gate import Gate
from lab.outcome import Outcome
from lab.plots import Bar, Series, bars, clock, lines, nice_top
from tests.lab.folders import Row, row, write_azure, write_part, write_tallies, write_ticks

DATA = Path(__file__).parents[2] / "lab" / "data"

CRITERIA = """\
version: v0.1
testId: a-test
testType: Locust
testPlan: plan.py
failureCriteria:
  - percentage(error) > 25
  - "learn:tools/call:search": p95(response_time_ms) > 500
  - "github:tools/call:get_me": p95(response_time_ms) > 500
"""


def _yaml(tmp_path: Path) -> Path:
    path = tmp_path / "azure-loadtest.yaml"
    path.write_text(CRITERIA, encoding="utf-8")
    return path


def _session(label: str, at: float = 0.0, elapsed: float = 100.0, calls: int = 10) -> list[Row]:
    opened = [
        row(f"{label}:initialize", at, 30.0),
        row(f"{label}:notifications/initialized", at + 0.1, 10.0),
        row(f"{label}:tools/list", at + 0.2, 20.0),
    ]
    called = [row(f"{label}:tools/call:search", at + 1 + n, elapsed) for n in range(calls)]
    return [*opened, *called, row(f"{label}:DELETE", at + 2 + calls, 5.0)]


def _made(folder: Path, rows: Sequence[Row], criteria: Path | None = None, **more: Any) -> Outcome:
    write_part(folder, rows)
    write_tallies(folder, len(rows), **more)
    return report.make(folder, criteria)


def _digest(folder: Path, rows: Sequence[Row]) -> Digest:
    write_part(folder, rows)
    return digest(runs.read(folder))


def _junit(folder: Path) -> ET.Element:
    return ET.parse(folder / "junit.xml").getroot()[0]  # noqa: S314 - written by us


def test_a_run_within_its_criteria_passes_with_exit_code_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = _session("learn")
    write_part(tmp_path / "run", rows)

    code = main(["report", str(tmp_path / "run"), "--criteria", str(_yaml(tmp_path))])

    said = capsys.readouterr().out
    assert code == 0
    assert "PASSED: criteria: 2 passed, 1 not applicable" in said
    assert "learn:tools/call:search" in said


def test_a_run_over_a_limit_fails_with_label_criterion_measured_and_limit_first(
    tmp_path: Path,
) -> None:
    outcome = _made(tmp_path / "run", _session("learn", elapsed=900.0), _yaml(tmp_path))

    assert outcome.code == 1
    assert outcome.lines[0] == (
        "FAILED: learn:tools/call:search: p95(response_time_ms) > 500: measured 900 ms,"
        " limit 500 ms"
    )


def test_an_absent_request_of_a_class_that_had_users_fails(tmp_path: Path) -> None:
    rows = [*_session("learn"), row("github:initialize", 0.0)]
    outcome = _made(tmp_path / "run", rows, _yaml(tmp_path))

    assert outcome.code == 1
    assert "github:tools/call:get_me" in outcome.first_line
    assert "stricter than the service" in outcome.first_line


def test_a_class_that_had_users_and_sent_nothing_took_part(tmp_path: Path) -> None:
    gate = Gate.of_facts(
        {
            "gate": {
                "criteria": [{"request": "github:tools/call:x", "text": "count(requests) < 1"}],
                "labels": {"GitHubUser": "github"},
            }
        }
    )
    assert gate is not None
    write_part(tmp_path, _session("learn"))
    absent = gate.judge(runs.read(tmp_path))
    write_ticks(tmp_path, users=[(0.0, {"GitHubUser": 2})])
    present = gate.judge(runs.read(tmp_path))

    assert [j.outcome.value for j in absent.judgements] == ["not applicable"]
    assert [j.outcome.value for j in present.judgements] == ["undetermined"]


def test_one_failed_request_is_shown_and_does_not_fail_the_run(tmp_path: Path) -> None:
    rows = [*_session("learn", calls=40), row("learn:tools/call:search", 9.5, 50.0, OSError("no"))]
    outcome = _made(tmp_path / "run", rows, _yaml(tmp_path))

    assert outcome.code == 0
    (failure,) = outcome.digest.failures
    assert (failure.kind, failure.text, failure.count, failure.of) == ("OSError", "no", 1, 41)


def test_a_report_made_again_is_the_same_to_the_byte(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    _made(folder, _session("learn"), _yaml(tmp_path))
    names = ("verdict.json", "summary.md", "junit.xml", "report.html")
    before = [(folder / name).read_bytes() for name in names]

    report.make(folder, _yaml(tmp_path))

    assert [(folder / name).read_bytes() for name in names] == before


def test_a_report_judges_by_the_criteria_that_the_run_kept(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_part(folder, _session("learn", elapsed=900.0))
    gate = Gate.of_manifest(_yaml(tmp_path))
    runs.write_facts(folder, {"gate": gate.as_facts()})

    assert report.make(folder).code == 1


def test_a_problem_of_the_run_outweighs_its_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_part(folder, _session("learn"))
    runs.write_facts(folder, {"problem": "locust ended with exit code 3"})
    outcome = report.make(folder, _yaml(tmp_path))

    assert outcome.code == 2
    assert outcome.first_line == "COULD NOT JUDGE: locust ended with exit code 3"
    errors = _junit(folder).findall(".//error")
    assert [each.get("message") for each in errors] == ["locust ended with exit code 3"]


@pytest.mark.parametrize("told", [{"finished": False}, {"rows": 15}, {"lost": 1}])
def test_a_run_that_was_watched_and_lost_requests_cannot_be_judged(
    tmp_path: Path, told: dict[str, Any]
) -> None:
    folder = tmp_path / "run"
    write_part(folder, _session("learn"))
    write_tallies(folder, **{"rows": 14, **told})
    assert report.make(folder, _yaml(tmp_path)).code == 0
    runs.write_facts(folder, {"locust_exit_code": 0})

    outcome = report.make(folder, _yaml(tmp_path))
    assert outcome.code == 2
    assert outcome.first_line.startswith("COULD NOT JUDGE: engine1_results.csv: ")


def test_a_folder_without_a_request_cannot_be_reported_and_quotes_the_log(tmp_path: Path) -> None:
    write_part(tmp_path, [])
    (tmp_path / "locust.log").write_text("ADO_ORG is not set\n", encoding="utf-8")

    with pytest.raises(CannotRun, match=r"no request was recorded; .*ADO_ORG is not set"):
        report.make(tmp_path)


@pytest.mark.parametrize("seconds", [4, 5])
def test_figures_are_marked_after_five_seconds_of_a_busy_processor(
    tmp_path: Path, seconds: int
) -> None:
    load = [(float(t), 0.1, 90.0 if 3 <= t < 3 + seconds else 20.0) for t in range(1, 14)]
    write_ticks(tmp_path, load)
    outcome = _made(tmp_path, _session("learn"), _yaml(tmp_path))

    marked = {line.summary.label for line in outcome.digest.lines if line.mark}
    assert marked == ({"learn:tools/call:search"} if seconds == 5 else set())
    assert ("marked: measured while this machine was busy" in outcome.first_line) == (seconds == 5)
    assert outcome.code == 0


@pytest.mark.parametrize(
    ("lag", "unmarked"),
    [
        (4.9, {"initialize", "notifications/initialized", "tools/list", "DELETE", "search"}),
        (9.0, {"search"}),  # its p50 is 100 ms
        (11.0, set()),
    ],
)
def test_lag_marks_the_labels_of_which_it_is_over_5_ms_and_a_tenth(
    tmp_path: Path, lag: float, unmarked: set[str]
) -> None:
    write_ticks(tmp_path, [(float(t), lag, 20.0) for t in range(1, 14)])
    found = _digest(tmp_path, _session("learn"))

    clean = {line.summary.label for line in found.lines if not line.mark}
    assert {label.removeprefix("learn:").removeprefix("tools/call:") for label in clean} == unmarked


def test_a_single_late_second_marks_nothing(tmp_path: Path) -> None:
    write_ticks(tmp_path, [(float(t), 200.0 if t == 5 else 1.0, 20.0) for t in range(1, 14)])

    assert not any(line.mark for line in _digest(tmp_path, _session("learn")).lines)


def test_a_stretch_is_as_busy_as_its_idlest_second_and_as_late_as_its_median() -> None:
    load = [(float(t), float(t), 90.0 + t) for t in range(6)]

    assert stretches(load) == [(2.0, 90.0), *[(3.0, 91.0)] * 5]
    assert stretches([]) == []


def test_the_machines_own_lag_and_cpu_are_told_beside_the_latencies(tmp_path: Path) -> None:
    write_ticks(tmp_path, [(1.0, 1.0, 10.0), (2.0, 2.0, 30.0), (3.0, 9.0, 20.0)])
    found = _digest(tmp_path, _session("learn"))

    said = (
        "lag p99 2.0 ms in the median second and 9.0 ms in the worst, CPU 20 % and 30 % of a core"
    )
    assert str(found.load) == said
    assert f"this machine: {said}" in table.beneath(found)


def test_strictly_a_mark_is_exit_code_2(tmp_path: Path) -> None:
    write_ticks(tmp_path, [(float(t), 50.0, 20.0) for t in range(1, 14)])
    write_part(tmp_path, _session("learn"))
    outcome = report.make(tmp_path, _yaml(tmp_path), strict=True)

    assert outcome.code == 2
    assert outcome.first_line.startswith("COULD NOT JUDGE: measured while this machine was late")
    assert "(--strict)" in outcome.first_line


def test_the_handshakes_price_is_given_per_session_and_as_a_share(tmp_path: Path) -> None:
    rows = _session("learn", calls=10)  # 60 ms of handshake, 1,000 of calls, 5 of DELETE; 12.005 s
    (found,) = _digest(tmp_path, rows).handshakes

    assert (found.server, found.sessions) == ("learn", 1)
    assert (found.initialize_ms, found.initialized_ms, found.list_ms) == (30.0, 10.0, 20.0)
    assert found.total_ms == 60.0
    assert found.share_of_waiting == pytest.approx(100 * 60 / 1065)
    assert found.share_of_time == pytest.approx(100 * 0.060 / 12.005)


def test_a_servers_drop_is_visible_in_its_own_rate(tmp_path: Path) -> None:
    steady = [row("learn:x", at / 2, 1.0) for at in range(40)]
    dropped = [row("ado:x", at / 2, 1.0) for at in range(20)]
    points = _digest(tmp_path, [*steady, *dropped]).points

    assert [point.rates.get("learn") for point in points] == [2.0] * 20
    assert [point.rates.get("ado", 0.0) for point in points] == [2.0] * 10 + [0.0] * 10


def test_users_over_time_are_the_sum_over_the_processes(tmp_path: Path) -> None:
    for number in (1, 2):
        write_part(tmp_path, [row("a:x", 0.0), row("a:x", 5.5)], number)
        write_ticks(
            tmp_path,
            users=[(0.2, {"A": 1}), (1.2, {"A": 2, "B": 1}), (4.1, {"A": 0})],
            number=number,
        )
    found = digest(runs.read(tmp_path))

    assert [point.users for point in found.points] == [2, 6, 6, 6, 0, 0]


def test_users_of_a_download_are_those_of_its_rows(tmp_path: Path) -> None:
    rows = [
        f"{1778327964000 + ms},1,a:x,200,OK,t,text,true,,0,0,{users},{users},null,0,0,0"
        for ms, users in ((0, 3), (2000, 7))
    ]
    write_azure(tmp_path / "engine1_results.csv", [[each] for each in rows])

    assert [p.users for p in digest(runs.read(tmp_path)).points] == [3, 3, 7]


def test_the_published_run_is_judged_as_the_service_did(tmp_path: Path) -> None:
    """831 ms, 0.13 % errors and PASSED over 2,293 requests, from rows in the service's format."""
    published = json.loads((DATA / "run-2026-05-09.json").read_text(encoding="utf-8"))
    rows = []
    for label, figures in published["requests"].items():
        for n in range(figures["count"]):
            bad = n < figures["failures"]
            at = 1778327964000 + n * 900_000 // figures["count"]
            rows.append(
                f"{at},{figures['avg']:.0f},{label},200,OK,t,text,{str(not bad).lower()},"
                f"{'tool error' if bad else ''},0,0,5,17,null,0,0,0"
            )
    write_azure(tmp_path / "run" / "engine1_results.csv", [[each] for each in rows])
    yaml = tmp_path / "azure-loadtest.yaml"
    criteria = "  - percentage(error) > 25\n  - avg(response_time_ms) > 8000\n"
    yaml.write_text(CRITERIA.partition("  - ")[0] + criteria, encoding="utf-8")

    outcome = report.make(tmp_path / "run", yaml)

    assert outcome.code == 0
    assert [j.measured for j in outcome.verdict.judgements] == [0.13, 831.0]
    assert outcome.digest.total.summary.count == 2293


def test_the_page_needs_nothing_from_outside_and_runs_no_script(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    _made(folder, _session("learn"), _yaml(tmp_path), servers={"learn": {"url": "https://x.test"}})
    page = (folder / "report.html").read_text(encoding="utf-8")

    assert not re.search(r"<(script|link|img|iframe|object|embed)\b|@import|url\(", page)
    assert not re.search(r"\b(src|href|action)\s*=", page)
    assert "prefers-color-scheme:dark" in page
    assert 'name="viewport"' in page


def test_the_page_names_every_label_failure_and_tally(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    rows = [*_session("learn", calls=40), row("learn:tools/call:search", 3.3, 9.0, OSError("odd"))]
    _made(
        folder,
        *(rows, _yaml(tmp_path)),
        tallies=[["learn", "DELETE answered 405", 3]],
        servers={"learn": {"name": "stand-in for Learn", "version": "9.9"}},
    )
    page = (folder / "report.html").read_text(encoding="utf-8")

    for text in (*{each.name for each in rows}, "DELETE answered 405", "OSError", "odd", "9.9"):
        assert text in page
    assert "Stand-ins on the same machine answered as learn" in page
    assert page.count('class="bar ') == 2  # one server, one tool
    assert "average 97.8 ms, p90 100 ms" in page


def test_what_a_server_says_of_itself_is_text_and_never_markup(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    evil = "<script>alert(1)</script>"
    rows = [*_session("learn"), row(f"learn:{evil}", 3.3, 9.0, OSError(evil))]
    _made(folder, rows, _yaml(tmp_path), servers={"learn": {"name": evil}})
    page = (folder / "report.html").read_text(encoding="utf-8")

    assert "<script" not in page
    assert page.count(html.escape(evil)) >= 3


def test_junit_has_a_case_for_each_criterion_and_each_label(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    _made(folder, _session("learn", elapsed=900.0), _yaml(tmp_path))
    suite = _junit(folder)

    cases = {(case.get("classname"), case.get("name")): case for case in suite}
    criteria = [case for (group, _), case in cases.items() if group == "criteria"]
    labels = [name for group, name in cases if group == "requests"]
    assert len(criteria) == 3
    assert len(labels) == 5
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("8", "2", "1")
    failed = cases["requests", "learn:tools/call:search"].find("failure")
    assert failed is not None
    assert "measured 900 ms, limit 500 ms" in str(failed.get("message"))


def test_junit_stays_xml_whatever_a_failure_says(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    _made(folder, [*_session("learn"), row("learn:\x00\x1b]<&", 1.0)], _yaml(tmp_path))

    names = [case.get("name") for case in _junit(folder)]
    assert "learn:\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}]<&" in names


def test_the_json_summary_has_the_verdict_and_every_figure(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    _made(folder, _session("learn"), _yaml(tmp_path))
    said = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))

    assert (said["verdict"], said["exit_code"]) == ("PASSED", 0)
    assert said["labels"]["learn:tools/call:search"]["p99"] == 100.0
    assert said["labels"]["Total"]["requests"] == 14
    assert [each["outcome"] for each in said["criteria"]] == ["passed", "passed", "not applicable"]


def test_the_markdown_summary_is_a_table_by_label_under_the_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    _made(folder, _session("learn"), _yaml(tmp_path))
    lines = (folder / "summary.md").read_text(encoding="utf-8").splitlines()

    assert lines[0] == "## PASSED: run"
    assert any(line.startswith("| learn:tools/call:search | 10 | 0 | 0.00 |") for line in lines)
    widths = {line.count("|") for line in lines if line.startswith("| learn") or "| label" in line}
    assert len(widths) == 1


def test_a_report_on_a_file_goes_into_a_folder_beside_it(tmp_path: Path) -> None:
    write_part(tmp_path, _session("learn"))
    place = (tmp_path / "results" / "engine1_results.csv").rename(tmp_path / "azure.csv")

    report.make(place, _yaml(tmp_path))

    assert (tmp_path / "azure-report" / "report.html").exists()


def test_without_a_name_the_last_run_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == 2
    assert "no run in runs/" in capsys.readouterr().err
    write_part(tmp_path / "runs" / "20261130T000000Z-demo", _session("learn"))

    assert main(["report"]) == 0
    assert "nothing is judged" in capsys.readouterr().out


def test_every_test_of_a_web_ui_run_is_reported_and_the_worst_code_counts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_part(folder, _session("learn"))
    write_part(folder / "test-2", _session("learn", elapsed=900.0))

    assert main(["report", str(folder), "--criteria", str(_yaml(tmp_path))]) == 1
    assert (folder / "test-2" / "report.html").exists()


def test_the_table_of_a_terminal_has_its_columns_aligned(tmp_path: Path) -> None:
    shown = table.text(_digest(tmp_path, _session("learn"))).splitlines()

    assert shown[-1].startswith("Total")
    assert len({len(line) for line in shown if line.strip("-")}) == 1


@pytest.mark.parametrize(("value", "shown"), [(9.876, "9.88"), (98.76, "98.8"), (9876.5, "9,876")])
def test_milliseconds_have_as_many_digits_as_they_deserve(value: float, shown: str) -> None:
    assert units.ms(value) == shown


@pytest.mark.parametrize(
    ("value", "top"), [(0.0, 1.0), (0.9, 1.0), (1.1, 2.0), (3.0, 4.0), (81.0, 100.0), (100.0, 100)]
)
def test_a_scale_ends_at_a_round_number_above_its_values(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


def test_offsets_are_minutes_and_hours() -> None:
    assert [clock(s) for s in (0, 59.6, 61, 3600, 36_061)] == [
        *("0:00", "1:00", "1:01", "1:00:00", "10:01:01")
    ]


def test_a_bar_is_as_long_as_its_average_and_its_extension_ends_at_the_p90() -> None:
    drawn = bars([Bar("a", 50.0, 80.0, 0), Bar("b", 100.0, 90.0, 1)])

    assert re.findall(r"width:([\d.]+)%", drawn) == ["50.00", "30.00", "100.00", "0.00"]


def test_a_line_is_broken_where_there_is_no_value_and_a_lone_value_is_seen() -> None:
    drawn = lines("t", [Series("s", [1.0, 2.0, None, 2.0, None], 0)], 1.0, "ms")

    (path,) = re.findall(r'class="line c0" d="([^"]+)"', drawn)
    assert path == "M100.0 50.0L300.0 0.0M700.0 0.0M698.0 0.0h4"
    assert drawn.count("<title>") == 5


def test_the_job_page_of_github_gets_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "job.md"))
    report.publish("first")
    report.publish("second")

    assert (tmp_path / "job.md").read_text(encoding="utf-8") == "first\nsecond\n"
