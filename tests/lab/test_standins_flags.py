"""What the stand-ins' flags mean, and what is decided for each request."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.standins.__main__ import parse
from lab.standins.catalogue import LABELS, published_run, tools
from lab.standins.faults import Fates, FlagError, Options

ROOT = Path(__file__).parents[2]
SEARCH_CODE = "github:tools/call:search_code"
QUERY_DOCS = "context7:tools/call:query-docs"


def test_without_flags_the_published_latencies_run_without_faults() -> None:
    run_dir, options = parse(["--run-dir", "runs/x"])

    assert run_dir == Path("runs/x")
    assert options == Options()
    assert options.latency
    assert options.sessions
    assert not options.faults


def test_every_flag_is_obeyed() -> None:
    words = "--run-dir d --seed 3 --faults published --sessions off --latency none"
    more = "--slow context7:query-docs=6000 ado:wit_work_item=2.5 --broken github:get_me"

    _, options = parse([*words.split(), *more.split()])

    assert options == Options(
        seed=3,
        faults=True,
        latency=False,
        sessions=False,
        slow={("context7", "query-docs"): 6000.0, ("ado", "wit_work_item"): 2.5},
        broken=frozenset({("github", "get_me")}),
    )


@pytest.mark.parametrize(
    ("flag", "value", "complaint"),
    [
        ("--slow", "context7:query-docs", "expected label:tool=ms"),
        ("--slow", "context7:query-docs=soon", "expected label:tool=ms"),
        ("--slow", "context7:query-docs=-1", "expected label:tool=ms"),
        ("--slow", "context7:query-docs=nan", "expected label:tool=ms"),
        ("--slow", "context7:nosuch=5", "has no tool 'nosuch'"),
        ("--broken", "bing:search", "the label one of learn, github, context7, ado"),
        ("--broken", "search_code", "expected label:tool"),
        ("--broken", "learn:search_code", "called microsoft_code_sample_search, microsoft_docs"),
        ("--sessions", "maybe", "invalid choice: 'maybe'"),
        ("--seed", "x", "invalid int value: 'x'"),
    ],
)
def test_a_value_that_cannot_be_obeyed_is_named_with_its_cure(
    flag: str, value: str, complaint: str
) -> None:
    with pytest.raises(FlagError) as refused:
        parse(["--run-dir", "d", flag, value])

    text = str(refused.value)
    assert complaint in text
    assert flag in text
    assert "\n" not in text


def test_a_bad_value_ends_the_command_with_one_line_and_code_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lab.standins", "--run-dir", str(tmp_path)]

    done = subprocess.run(
        [*command, "--broken", "ado:nosuch"], capture_output=True, text=True, cwd=ROOT, check=False
    )

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "ado has no tool 'nosuch'" in done.stderr


def test_faults_are_as_many_as_published_and_quick() -> None:
    fates = Fates("github", Options(faults=True))

    decided = [fates.decide(SEARCH_CODE, "search_code") for _ in range(84 * 5)]

    for block in range(5):
        here = decided[84 * block : 84 * (block + 1)]
        assert [fate.injected for fate in here].count("fault") == 3
    assert {fate.drawn_ms for fate in decided if fate.injected} == {60.0}


def test_a_label_without_published_failures_never_fails() -> None:
    fates = Fates("context7", Options(faults=True))

    assert {fates.decide(QUERY_DOCS, "query-docs").injected for _ in range(500)} == {None}


def test_faults_come_only_when_asked_for() -> None:
    fates = Fates("github", Options())

    assert {fates.decide(SEARCH_CODE, "search_code").injected for _ in range(200)} == {None}


def test_slow_adds_to_what_was_drawn() -> None:
    plain = Fates("context7", Options())
    slow = Fates("context7", Options(slow={("context7", "query-docs"): 6000.0}))

    for _ in range(20):
        fate = slow.decide(QUERY_DOCS, "query-docs")
        assert fate.injected == "slow"
        assert fate.drawn_ms == plain.decide(QUERY_DOCS, "query-docs").drawn_ms + 6000.0


def test_a_broken_tool_fails_each_time_and_only_it() -> None:
    fates = Fates("github", Options(broken=frozenset({("github", "search_code")})))

    assert {fates.decide(SEARCH_CODE, "search_code").injected for _ in range(50)} == {"broken"}
    assert fates.decide("github:tools/call:get_me", "get_me").injected is None


def test_without_latency_only_the_asked_for_slowness_is_left() -> None:
    fates = Fates("context7", Options(latency=False, slow={("context7", "query-docs"): 40.0}))

    assert fates.decide("context7:initialize", None).drawn_ms == 0.0
    assert fates.decide(QUERY_DOCS, "query-docs").drawn_ms == 40.0


def test_latencies_of_one_label_do_not_depend_on_the_traffic_of_another() -> None:
    alone, mixed = Fates("github", Options()), Fates("github", Options())

    for _ in range(30):
        mixed.decide("github:tools/call:get_me", "get_me")
        assert mixed.decide(SEARCH_CODE, None) == alone.decide(SEARCH_CODE, None)


def test_a_tool_that_nobody_measured_borrows_the_most_called_one() -> None:
    fates = Fates("learn", Options())
    row = published_run()["learn:tools/call:microsoft_docs_search"]

    drawn = [
        fates.decide("learn:tools/call:microsoft_docs_fetch", "microsoft_docs_fetch").drawn_ms
        for _ in range(200)
    ]

    assert row["min"] <= min(drawn) < row["p50"] < max(drawn) <= row["max"]


def test_a_refused_delete_costs_nothing() -> None:
    assert Fates("ado", Options()).decide("ado:DELETE", None).drawn_ms == 0.0


@pytest.mark.parametrize(("label", "count"), [("learn", 3), ("github", 45), ("context7", 2)])
def test_a_server_lists_what_it_is_known_to_list(label: str, count: int) -> None:
    assert len(tools(label)) == count


def test_azure_devops_lists_its_remote_tools_but_no_private_preview() -> None:
    names = set(tools("ado"))

    assert len(names) == 38
    assert "core_list_orgs" in names
    assert not any(name.startswith(("enterprise_", "advsec_")) for name in names)


@pytest.mark.parametrize("label", LABELS)
def test_every_tool_of_the_published_run_is_listed_and_read_only(label: str) -> None:
    start = f"{label}:tools/call:"
    called = {n.removeprefix(start) for n in published_run() if n.startswith(start)}

    assert called
    assert called <= {name for name, tool in tools(label).items() if tool.read_only}


@pytest.mark.parametrize("label", LABELS)
def test_every_published_schema_is_a_schema(label: str) -> None:
    for tool in tools(label).values():
        tool.validator.check_schema(tool.validator.schema)
