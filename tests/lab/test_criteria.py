"""lab/criteria.py: which criteria have one meaning, and what a finished run makes of them."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.criteria import (
    Criterion,
    Judgement,
    Outcome,
    Verdict,
    auto_stop,
    effective,
    judge,
    measure,
    parse,
)
from lab.lint import schema
from lab.lint.finding import Finding, Level
from lab.manifest import read
from lab.stats import Sample, Window

DATA = Path(__file__).parents[2] / "lab" / "data" / "azure"
RECORDED: list[dict[str, Any]] = json.loads(
    (DATA / "parser_results_criteria.json").read_text(encoding="utf-8")
)["cases"]
MINIMAL = re.sub(  # without its criteria
    r"failureCriteria:\n(?: .*\n)+",
    "",
    (DATA / "minimal-valid-azure-loadtest.yaml").read_text(encoding="utf-8"),
)


# --- the 67 criteria that both real parsers were given ----------------------------------------


def sent_by_action(case: dict[str, Any]) -> list[tuple[object, ...]] | None:
    if "error" in case["action"]:
        return None
    sent: list[tuple[object, ...]] = [
        (c["requestName"], c["aggregate"], c["clientMetric"], c["condition"], float(c["value"]))
        for c in case["action"]["payload"] or []
    ]
    symbol = {"GreaterThan": ">", "LessThan": "<"}
    return sent + [
        (c["metricName"], symbol[c["condition"]], float(c["value"]))
        for c in case["action"].get("server", [])
    ]


def sent_by_cli(case: dict[str, Any]) -> list[tuple[object, ...]] | None:
    if "error" in case["cli"]:
        return None
    payload = case["cli"]["payload"]
    sent: list[tuple[object, ...]] = [
        (
            c.get("requestName"),
            c["aggregate"],
            c["clientMetric"],
            c["condition"],
            as_number(c["value"]),
        )
        for c in (payload if isinstance(payload, list) else [])
    ]
    return sent + [
        (c["metricName"], c["condition"], as_number(c["value"]))
        for c in case["cli"].get("server", [])
    ]


def as_number(value: object) -> object:
    plain = str(value).replace(".", "", 1)
    return float(str(value)) if plain.isascii() and plain.isdigit() else value


def how_many_are_written(text: str) -> int:
    """Count the limits that the author wrote, however they were put."""
    value = yaml.safe_load(text)["failureCriteria"]
    lists = list(value.values()) if isinstance(value, dict) else [value or []]
    items = [item for each in lists for item in (each if isinstance(each, list) else [each])]
    server = "serverMetrics" in (value or {})
    return sum(len(item) if isinstance(item, dict) and not server else 1 for item in items)


def one_whole_meaning(case: dict[str, Any]) -> bool:
    action, cli = sent_by_action(case), sent_by_cli(case)
    return (
        action is not None and action == cli and len(action) == how_many_are_written(case["yaml"])
    )


def test_there_are_67_recorded_criteria_and_both_kinds_among_them() -> None:
    assert len(RECORDED) == 67
    assert (
        20 < sum(one_whole_meaning(case) for case in RECORDED if "payload" in case["action"]) < 47
    )


@pytest.mark.parametrize("case", RECORDED, ids=[case["id"] for case in RECORDED])
def test_a_criterion_is_accepted_exactly_where_both_parsers_sent_the_same_whole_meaning(
    case: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "azure-loadtest.yaml"
    path.write_text(MINIMAL + case["yaml"], encoding="utf-8")

    manifest, findings = read(path)
    findings += schema.check(manifest) if manifest else []
    refused = [f for f in findings if f.level is Level.ERROR]

    assert (not refused) == one_whole_meaning(case), refused
    for finding in refused:
        assert finding.line >= 1
        assert finding.cure
    if not refused:
        assert manifest is not None
        client = [sent for sent in sent_by_action(case) or [] if len(sent) == 5]
        assert client == [
            (c.request, c.aggregate, c.metric, c.operator, c.limit) for c in manifest.criteria
        ]


@pytest.mark.parametrize(
    ("text", "trap", "cure"),
    [
        ("percentage(error) > 0.5", "cuts 0.5 to 0: any single error fails", "whole number"),
        ("avg(response_time_ms) > 1500.7", "cuts 1500.7 to 1500", "1500 or 1501"),
        ("avg(response_time_ms) > 300ms", 'unit or other text after the number, "ms"', "alone"),
        ("avg(response_time_ms) > 300 ms", "the action reads 300", "alone"),
        ("percentage(error) > 5%", '"%"', "alone"),
        ("avg(latency) > 1e3", "exponent: the action reads 1,", "Write 1000"),
        ("avg(latency) > 1_000", "underscore", "Write 1000"),
        ("avg(latency) > 1,000", "thousands separator", "Write 1000"),
        ("avg(response_time_ms) >= 300", 'the operator ">="', "Write >"),
        ("avg(response_time_ms) <= 300", 'the operator "<="', "Write <"),
        ("avg(response_time_ms) == 300", 'the operator "=="', "Write >"),
        ("avg(response_time_ms) > -1", "negative", "not negative"),
        ("percentage(error) < 5", "percentage(error) with <", "percentage(error) > N"),
        ("percentage(error) > 101", "above 100", "0 to 100"),
        ("avg( response_time_ms ) > 300", "spaces inside", "(response_time_ms)"),
        ("AVG(response_time_ms) > 300", "capitals", "avg(response_time_ms)"),
        ("p99.9(response_time_ms) > 300", "API's name", "p999(response_time_ms)"),
        ("p80(response_time_ms) > 300", 'no aggregate "p80"', "p75, p90"),
        ("median(response_time_ms) > 300", 'no aggregate "median"', "p50(response_time_ms)"),
        ("avg(responseTimeMs) > 300", "documents show it", "response_time_ms"),
        ("avg(throughput) > 300", 'unknown metric "throughput"', "requests_per_sec"),
        ("avg(requests) < 100", 'no aggregate "avg" of requests', "count"),
        ("avg(latency) > 300, continue", 'suffix ", continue"', "Write the number alone: 300"),
        ("avg(latency) > 300, stop", 'suffix ", stop"', "300"),
        ("avg(latency) >", "no value", "p95"),
        ("avg latency > 300", "without its parentheses", "p95"),
        ("avg(latency) is > 300", "no operator", "p95"),
        ("avg(latency) > many", "no number", "p95"),
    ],
)
def test_a_refused_criterion_names_its_trap_its_value_and_its_cure(
    text: str, trap: str, cure: str
) -> None:
    found = parse(text, file="azure-loadtest.yaml", line=9)

    assert isinstance(found, Finding)
    assert trap in found.what
    assert cure in found.cure
    assert (found.value, found.line, found.level) == (text, 9, Level.ERROR)


@pytest.mark.parametrize("value", [42, None, 1.5, True, ["a"]])
def test_a_criterion_that_is_not_text_is_refused(value: object) -> None:
    found = parse(value)

    assert isinstance(found, Finding)
    assert "not text" in found.what


def test_every_criterion_of_the_strict_grammar_is_accepted() -> None:
    grammar = json.loads((DATA / "criteria_grammar.json").read_text(encoding="utf-8"))
    written = 0
    for metric, rules in grammar["metrics"].items():
        for aggregate in rules.get("aggregates") or rules["aggregates_docs"]:
            for operator in rules["conditions"]:
                for limit in ("0", "7", "100", *(["3.25"] if metric == "requests_per_sec" else [])):
                    for blank in ("", " "):
                        text = f"{aggregate}({metric}){blank}{operator}{blank}{limit}"
                        found = parse(text)
                        assert isinstance(found, Criterion), found
                        assert (found.aggregate, found.metric) == (aggregate, metric)
                        assert (found.operator, found.limit) == (operator, float(limit))
                        written += 1
    assert written > 250


# --- judging ----------------------------------------------------------------------------------


def criterion(text: str, request: str | None = None) -> Criterion:
    found = parse(text, request=request)
    assert isinstance(found, Criterion), found
    return found


def run(*times: float, label: str = "learn:tools/list", failures: int = 0) -> list[Sample]:
    return [
        Sample(label, 1000.0 + i, t, i >= failures, "HTTP 502" if i < failures else "")
        for i, t in enumerate(times)
    ]


def one(samples: list[Sample], text: str, request: str | None = None) -> Judgement:
    (judgement,) = judge(samples, [criterion(text, request)]).judgements
    return judgement


@pytest.mark.parametrize(
    ("text", "passes", "fails"),
    [
        ("avg(response_time_ms) > 100", run(100.0, 100.4), run(100.0, 101.2)),
        ("avg(response_time_ms) < 100", run(100.0, 100.0), run(99.0, 99.8)),
        ("min(response_time_ms) > 100", run(100.0, 300.0), run(100.1, 300.0)),
        ("max(response_time_ms) > 100", run(1.0, 100.0), run(1.0, 100.1)),
        ("p50(response_time_ms) > 100", run(50.0, 100.0, 900.0), run(50.0, 100.1, 900.0)),
        ("p95(response_time_ms) < 100", run(*[100.0] * 20), run(*[99.9] * 20)),
        ("count(requests) < 3", run(1.0, 1.0, 1.0), run(1.0, 1.0)),
        ("count(requests) > 3", run(1.0, 1.0, 1.0), run(1.0, 1.0, 1.0, 1.0)),
        ("percentage(error) > 50", run(1.0, 1.0, failures=1), run(1.0, 1.0, failures=2)),
        ("percentage(error) > 0", run(1.0, 1.0), run(1.0, 1.0, failures=1)),
        ("avg(requests_per_sec) < 1", run(1000.0, 1000.0), run(1001.0, 2000.0)),
    ],
)
def test_the_same_criteria_line_gives_the_right_verdict_on_both_sides_of_its_limit(
    text: str, passes: list[Sample], fails: list[Sample]
) -> None:
    assert one(passes, text).outcome is Outcome.PASSED
    assert one(fails, text).outcome is Outcome.FAILED


def test_the_published_runs_figures_are_reproduced() -> None:
    """831 ms on average over 2,293 requests and 0.13 % errors, printed as the service printed."""
    dice = random.Random(1)
    times = [dice.lognormvariate(6.3, 0.9) for _ in range(2293)]
    shift = 831.05 - math.fsum(times) / 2293
    samples = run(*(t + shift for t in times), failures=3)

    verdict = judge(
        samples, [criterion("percentage(error) > 25"), criterion("avg(response_time_ms) > 8000")]
    )

    assert [j.measured for j in verdict.judgements] == [0.13, 831.0]
    assert verdict.word == "PASSED"


def test_what_is_printed_is_what_was_compared() -> None:
    judgement = one(run(8000.3), "avg(response_time_ms) > 8000")

    assert judgement.outcome is Outcome.PASSED
    assert judgement.why.startswith("measured 8000 ms, limit 8000 ms")


def test_a_percentile_criterion_is_from_raw_samples_not_from_buckets() -> None:
    samples = run(*(float(t) for t in range(1, 10002)))

    assert one(samples, "p95(response_time_ms) > 9501").outcome is Outcome.PASSED
    assert one(samples, "p95(response_time_ms) > 9500").outcome is Outcome.FAILED
    assert one(samples, "p9999(response_time_ms) > 10000").measured == 10000.0


def test_a_rate_is_over_the_whole_runs_window_for_every_label() -> None:
    samples = [*run(*[0.0] * 10), Sample("ado:tools/list", 1000.0, 20_000.0, True)]

    judgement = one(samples, "avg(requests_per_sec) < 1", "learn:tools/list")

    assert judgement.measured == 0.5


def test_the_first_line_of_a_failure_names_label_criterion_measured_value_and_limit() -> None:
    samples = run(*[6200.0] * 5, label="context7:tools/call:query-docs")

    verdict = judge(
        samples, [criterion("p95(response_time_ms) > 3000", "context7:tools/call:query-docs")]
    )

    assert verdict.first_line == (
        "FAILED: context7:tools/call:query-docs: p95(response_time_ms) > 3000: "
        "measured 6200 ms, limit 3000 ms"
    )


def test_of_several_failures_the_worst_named_label_comes_first_and_the_rest_are_counted() -> None:
    samples = [*run(900.0, label="a:x"), *run(5000.0, label="b:x")]

    verdict = judge(
        samples,
        [
            criterion("avg(response_time_ms) > 1"),
            criterion("avg(response_time_ms) > 800", "a:x"),
            criterion("avg(response_time_ms) > 800", "b:x"),
        ],
    )

    assert verdict.first_line.startswith("FAILED: b:x: avg(response_time_ms) > 800: measured 5000")
    assert verdict.first_line.endswith("(and 2 more)")
    assert len(verdict.lines) == 4


def test_a_passing_verdict_counts_what_it_is_made_of() -> None:
    verdict = judge(
        run(1.0), [criterion("count(requests) < 1"), criterion("count(requests) < 1", "ado:x")]
    )

    assert verdict.first_line == "PASSED: criteria: 1 passed, 1 not applicable"


def test_an_absent_request_of_a_class_that_took_part_fails_and_is_said_to_be_stricter() -> None:
    verdict = judge(run(1.0), [criterion("p95(response_time_ms) > 10", "learn:tools/call:gone")])

    assert verdict.judgements[0].outcome is Outcome.UNDETERMINED
    assert not verdict.passed
    assert "learn:tools/call:gone" in verdict.first_line
    assert "limit 10 ms" in verdict.first_line
    assert "stricter than the service" in verdict.first_line


def test_an_absent_request_of_a_class_that_took_no_part_is_not_applicable() -> None:
    verdict = judge(run(1.0), [criterion("p95(response_time_ms) > 10", "ado:tools/list")])

    assert verdict.judgements[0].outcome is Outcome.NOT_APPLICABLE
    assert verdict.passed
    assert "ado took no part" in verdict.lines[1]


def test_a_class_that_took_part_without_a_single_request_fails_its_criteria() -> None:
    verdict = judge(
        run(1.0), [criterion("count(requests) < 1", "ado:tools/list")], {"learn", "ado"}
    )

    assert verdict.judgements[0].outcome is Outcome.UNDETERMINED


def test_a_mistyped_label_cannot_hide_as_not_applicable_when_the_labels_are_known() -> None:
    verdict = judge(
        run(1.0),
        [criterion("count(requests) < 1", "laern:tools/list")],
        {"learn"},
        known={"learn", "ado"},
    )

    assert verdict.judgements[0].outcome is Outcome.UNDETERMINED


def test_an_absent_request_without_a_class_in_its_name_is_undetermined() -> None:
    assert one(run(1.0), "count(requests) < 1", "front page").outcome is Outcome.UNDETERMINED


def test_a_run_without_requests_fails_whatever_its_criteria() -> None:
    assert judge([], []).first_line.startswith("FAILED: no request was recorded")
    assert not judge([], [criterion("count(requests) > 5")]).passed


def test_a_run_without_criteria_passes() -> None:
    assert judge(run(1.0), []).first_line == "PASSED: criteria: none"


def test_latency_is_not_judged_here_and_says_so() -> None:
    judgement = one(run(1.0), "avg(latency) > 0")

    assert judgement.outcome is Outcome.NOT_JUDGED
    assert "only the service" in judgement.why
    with pytest.raises(ValueError, match=r"avg\(latency\)"):
        measure("avg", "latency", run(1.0), Window(0.0, 1.0))


@pytest.mark.parametrize(
    ("limit", "near"), [(949, False), (960, True), (1040, True), (1080, False)]
)
def test_a_percentile_close_to_its_limit_is_said_to_be_near(limit: int, near: bool) -> None:
    judgement = one(run(1000.0, 1000.0), f"p95(response_time_ms) > {limit}")

    assert judgement.near is near
    assert ("Azure's percentile" in judgement.why) is near


def test_an_average_is_never_near_because_the_service_computes_it_alike() -> None:
    assert not one(run(1000.0), "avg(response_time_ms) > 1001").near


def test_of_several_limits_for_one_thing_the_strictest_counts() -> None:
    kept = effective(
        criterion(text)
        for text in (
            "avg(response_time_ms) > 300",
            "avg(response_time_ms) > 200",
            "avg(response_time_ms) > 250",
            "count(requests) < 5",
            "count(requests) < 9",
            "avg(response_time_ms) < 10",
        )
    )

    assert [c.text for c in kept] == [
        "avg(response_time_ms) > 200",
        "count(requests) < 9",
        "avg(response_time_ms) < 10",
    ]


# --- autoStop ---------------------------------------------------------------------------------


def every_second(pattern: str) -> list[Sample]:
    """One request a second that takes no time; an x is a failure."""
    return [Sample("a", float(i), 0.0, mark != "x") for i, mark in enumerate(pattern)]


def test_auto_stop_triggers_once_the_window_is_full_and_the_share_is_exceeded() -> None:
    assert auto_stop(every_second("x" * 20), 80.0, 10.0) == 10.0


def test_auto_stop_looks_only_at_the_last_window() -> None:
    assert auto_stop(every_second("." * 30 + "x" * 30), 80.0, 10.0) == 38.0


def test_a_share_equal_to_the_limit_does_not_stop_a_run() -> None:
    assert auto_stop(every_second("xxxx." * 20), 80.0, 10.0) is None
    assert auto_stop(every_second("xxxx." * 20), 79.0, 10.0) == 10.0


def test_a_run_shorter_than_the_window_is_never_stopped() -> None:
    assert auto_stop(every_second("x" * 9), 0.0, 10.0) is None
    assert auto_stop([], 0.0, 10.0) is None


def test_a_verdict_holds_only_values() -> None:
    verdict = judge(run(1.0), [criterion("count(requests) < 1")])

    assert verdict == Verdict(verdict.judgements, 1)
    assert hash(verdict)
