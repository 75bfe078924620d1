"""The published run of 2026-05-09, built again as raw samples, judged as `lab run` judges.

Percentiles and rates are computed a second time here, from the file itself and by other code.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from lab.run import begin, finish, gate_of
from tests.lab.folders import row, write_part, write_tallies

ROOT = Path(__file__).parents[2]
PUBLISHED: Final[dict[str, Any]] = json.loads(
    (ROOT / "lab" / "data" / "run-2026-05-09.json").read_text(encoding="utf-8")
)
WINDOW_SECONDS = 905.0  # lab/data/azure/real_run_observations.json, throughput_denominator_s
_POINTS = ((0.0, "min"), (0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (1.0, "max"))


def elapsed_times(figures: dict[str, float]) -> list[float]:
    """As many response times as were published, through the published points, of their mean."""
    count = int(figures["count"])
    times = [through_the_points(figures, i / max(1, count - 1)) for i in range(count)]
    off = figures["avg"] * count - math.fsum(times)
    inner = range(1, count - 1)
    for i in inner:  # all but the extremes share what the mean is off by
        times[i] = min(figures["max"], max(figures["min"], times[i] + off / len(inner)))
    rest = figures["avg"] * count - math.fsum(times)
    times[count // 2] += rest  # what clipping has left over
    return times


def through_the_points(figures: dict[str, float], level: float) -> float:
    for (low, a), (high, b) in itertools.pairwise(_POINTS):
        if level <= high:
            share = (level - low) / (high - low)
            return figures[a] + (figures[b] - figures[a]) * share
    return figures["max"]


@dataclass(frozen=True, slots=True)
class Published:
    """One request of the run; at in seconds after its begin, elapsed in ms."""

    name: str
    at: float
    elapsed: float
    failed: bool


def as_published() -> list[Published]:
    """2,293 requests in one window of 905 s, three of them failed, in the order of their starts."""
    found = []
    for name, figures in PUBLISHED["requests"].items():
        times = elapsed_times(figures)
        step = (WINDOW_SECONDS - 10.0) / len(times)
        for i, elapsed in enumerate(times):
            found.append(Published(name, 1.0 + i * step, elapsed, i < figures["failures"]))
    found[0] = replace(found[0], at=0.0)
    found[1] = replace(found[1], at=WINDOW_SECONDS - found[1].elapsed / 1000.0)
    return sorted(found, key=lambda each: each.at)


def write_run(folder: Path, requests: list[Published]) -> None:
    """Leave a run folder as a recorder would."""
    failure = RuntimeError("tool error")
    rows = [row(r.name, r.at, r.elapsed, failure if r.failed else None) for r in requests]
    write_part(folder, rows)
    write_tallies(folder, len(rows))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder as a recorder would have left it."""
    folder = tmp_path_factory.mktemp("published") / "20260509T120000Z-published"
    write_run(folder, as_published())
    return folder


@pytest.fixture(scope="module")
def verdict(folder: Path) -> dict[str, Any]:
    """verdict.json, made by what `lab run` does once Locust has ended."""
    facts = begin(folder, "run", ["locust"], gate_of(ROOT), {}, strict=False)
    code = finish(folder, facts, 0)
    made: dict[str, Any] = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert made["exit_code"] == code
    return made


@pytest.fixture(scope="module")
def written(folder: Path) -> dict[str, list[tuple[float, float, bool]]]:
    """Label -> (start in s, elapsed in ms, success), read by nothing of the lab's."""
    by_label: dict[str, list[tuple[float, float, bool]]] = {"Total": []}
    with (folder / "results" / "engine1_results.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            fact = (
                int(line["timeStamp"]) / 1000,
                float(line["elapsed_ms"]),
                line["success"] == "true",
            )
            by_label.setdefault(line["label"], []).append(fact)
            by_label["Total"].append(fact)
    return by_label


def judged(verdict: dict[str, Any], criterion: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        each
        for each in verdict["criteria"]
        if each["criterion"] == criterion and each["request"] is None
    )
    return found


def test_the_published_run_passes_with_its_printed_figures(verdict: dict[str, Any]) -> None:
    error = judged(verdict, "percentage(error) > 25")
    average = judged(verdict, "avg(response_time_ms) > 8000")

    assert (verdict["verdict"], verdict["exit_code"]) == ("PASSED", 0)
    assert (error["measured"], error["outcome"]) == (0.13, "passed")
    assert (average["measured"], average["outcome"]) == (831.0, "passed")


def test_no_criterion_of_the_shipped_gate_fails_the_published_run(verdict: dict[str, Any]) -> None:
    outcomes = {each["outcome"] for each in verdict["criteria"]}

    assert len(verdict["criteria"]) == 28
    assert outcomes == {"passed"}


def test_every_label_has_its_published_count_failures_and_average(verdict: dict[str, Any]) -> None:
    ours = {
        name: (figures["requests"], figures["failures"], round(figures["avg"]))
        for name, figures in verdict["labels"].items()
    }
    published = {**PUBLISHED["requests"], "Total": PUBLISHED["total"]}

    assert ours == {
        name: (figures["count"], figures["failures"], figures["avg"])
        for name, figures in published.items()
    }


def test_rates_are_over_one_window_as_published(verdict: dict[str, Any]) -> None:
    """Every published throughput is the label's count / 905.000 s."""
    assert verdict["seconds"] == pytest.approx(WINDOW_SECONDS, abs=0.002)
    for name, figures in PUBLISHED["requests"].items():
        expected = figures["count"] / WINDOW_SECONDS

        assert verdict["labels"][name]["per_second"] == pytest.approx(expected, abs=1e-4), name


def test_percentiles_agree_with_a_second_computation(
    verdict: dict[str, Any], written: dict[str, list[tuple[float, float, bool]]]
) -> None:
    """The second is the standard library's cut points, "inclusive"."""
    assert set(written) == set(verdict["labels"])
    for name, facts in written.items():
        times = [elapsed for _, elapsed, _ in facts]
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        ours = verdict["labels"][name]

        assert [ours[p] for p in ("p50", "p75", "p90", "p95", "p99")] == pytest.approx(
            [cuts[49], cuts[74], cuts[89], cuts[94], cuts[98]], abs=0.001
        ), name
        assert [ours["min"], ours["max"]] == pytest.approx([min(times), max(times)], abs=0.001)


def test_averages_errors_and_rates_agree_with_a_second_computation(
    verdict: dict[str, Any], written: dict[str, list[tuple[float, float, bool]]]
) -> None:
    begin_, end = (
        min(start for start, _, _ in written["Total"]),
        max(start + elapsed / 1000 for start, elapsed, _ in written["Total"]),
    )
    for name, facts in written.items():
        ours = verdict["labels"][name]
        failed = [success for _, _, success in facts].count(False)

        assert ours["avg"] == pytest.approx(statistics.fmean(e for _, e, _ in facts), abs=0.001)
        assert ours["error_percent"] == pytest.approx(100 * failed / len(facts), abs=1e-4)
        assert ours["per_second"] == pytest.approx(len(facts) / (end - begin_), abs=1e-4), name


def test_the_measured_percentiles_of_criteria_are_those_of_the_second_computation(
    verdict: dict[str, Any], written: dict[str, list[tuple[float, float, bool]]]
) -> None:
    measured = {
        each["request"]: each["measured"]
        for each in verdict["criteria"]
        if each["criterion"].startswith("p95(")
    }

    assert len(measured) == 13
    for name, value in measured.items():
        times = [elapsed for _, elapsed, _ in written[name]]
        expected = statistics.quantiles(times, n=20, method="inclusive")[18]

        assert value == pytest.approx(expected, abs=0.001), name


def test_the_same_rows_with_more_failures_fail_by_the_same_gate(tmp_path: Path) -> None:
    """The gate is not one that passes anything."""
    broken = "github:tools/call:search_code"
    write_run(tmp_path, [replace(r, failed=r.failed or r.name == broken) for r in as_published()])
    facts = begin(tmp_path, "run", ["locust"], gate_of(ROOT), {}, strict=False)

    assert finish(tmp_path, facts, 0) == 1
