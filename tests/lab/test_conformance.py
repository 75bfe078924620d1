"""The official suite, scenario by scenario: our client in one real Locust user, and our servers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lab.conform.claims import CLAIMS, Claim, judge_claim, serving
from lab.conform.outcome import weigh
from lab.conform.scenarios import INTERACTIVE, OTHER_EXTENSIONS, REVISIONS, SCENARIOS, judge
from lab.node import NodeMissing, suite

HANDSHAKE = ("server-initialize", "ping", "tools-list")
CALLS = ("tools-call-simple-text",)
SESSION = ("server-session-lifecycle",)
STREAMS = ("server-sse-multiple-streams",)
NULL = {
    "2025-06-18": {*HANDSHAKE, *CALLS, *SESSION},
    "2025-11-25": {*HANDSHAKE, *CALLS, *SESSION, *STREAMS},
    "2026-07-28": {"tools-list", *CALLS, *STREAMS, "caching", "server-stateless"},
}
STANDIN_STATELESS = {
    *("tools-list", "caching", "server-stateless", "http-header-validation"),
    *(*STREAMS, "input-required-result-unsupported-methods"),
}
WITH_SESSIONS = {
    "2025-06-18": {*HANDSHAKE, *SESSION},
    "2025-11-25": {*HANDSHAKE, *SESSION, *STREAMS},
    "2026-07-28": STANDIN_STATELESS,
}
WITHOUT_SESSIONS = {
    "2025-06-18": {*HANDSHAKE},
    "2025-11-25": {*HANDSHAKE},
    "2026-07-28": STANDIN_STATELESS,
}
PASSED_BY_OUR_SERVERS = {
    "null-json": NULL,
    "null-sse": NULL,
    "null-open": NULL,
    "learn": WITH_SESSIONS,
    "github": WITH_SESSIONS,
    "context7": WITHOUT_SESSIONS,
    "ado": WITHOUT_SESSIONS,
}


@pytest.fixture(scope="session")
def program() -> list[str]:
    try:
        return suite()
    except NodeMissing as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def urls(
    tmp_path_factory: pytest.TempPathFactory, null_server_can_be_built: None
) -> Iterator[Mapping[str, str]]:
    with serving(Path(tmp_path_factory.mktemp("servers"))) as found:
        yield found


@pytest.mark.parametrize(("scenario", "revision"), SCENARIOS, ids=str)
def test_our_client_passes_the_scenario_with_at_least_one_success(
    scenario: str, revision: str | None, program: list[str]
) -> None:
    outcome = judge(program, scenario, revision)

    assert outcome.failures == ()
    assert outcome.passed


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_our_server_passes_the_scenario_for_what_it_claims(
    claim: Claim, program: list[str], urls: Mapping[str, str]
) -> None:
    outcome = judge_claim(program, claim, urls)

    assert outcome.failures == ()
    assert outcome.passed


def test_our_servers_claim_no_less_than_is_listed_here() -> None:
    claimed: dict[str, dict[str, set[str]]] = {}
    for each in CLAIMS:
        claimed.setdefault(each.server, {}).setdefault(each.revision, set()).add(each.scenario)

    assert claimed == PASSED_BY_OUR_SERVERS


def test_every_client_scenario_of_the_suite_is_run_or_left_out_by_name(program: list[str]) -> None:
    said = subprocess.run([*program, "list"], capture_output=True, text=True, check=True).stdout
    part = said.partition("Client scenarios")[2].partition("Authorization server scenarios")[0]
    theirs = {
        (name, revision)
        for name, revisions in re.findall(r"^  - (\S+) \[([^]]+)\]$", part, re.MULTILINE)
        for revision in revisions.split(",")
    }
    left_out = {*INTERACTIVE, *OTHER_EXTENSIONS}
    ours = {(name, revision or "extension") for name, revision in SCENARIOS}

    assert ours == {
        (name, revision)
        for name, revision in theirs
        if revision in {*REVISIONS, "extension"} and name not in left_out
    }
    assert left_out <= {name for name, _ in theirs}


def check(name: str, status: str) -> dict[str, str]:
    return {"id": name, "status": status, "errorMessage": "why"}


def test_a_scenario_in_which_nothing_was_tested_is_not_passed() -> None:
    outcome = weigh("ping", "2025-06-18", [check("a", "SKIPPED")])

    assert not outcome.passed
    assert outcome.failures == ("no check succeeded: nothing was tested",)


def test_an_unclaimed_check_may_fail_but_no_other() -> None:
    checks = [check("a", "SUCCESS"), check("b", "FAILURE"), check("c", "FAILURE")]

    assert weigh("ping", None, checks, unclaimed={"b": "", "c": ""}).passed
    assert weigh("ping", None, checks, unclaimed={"b": ""}).failures == ("c: why",)


def test_an_exception_that_is_none_any_more_is_a_failure() -> None:
    checks = [check("a", "SUCCESS"), check("b", "SUCCESS")]

    assert weigh("ping", None, checks, unclaimed={"b": "no prompts"}).failures == (
        "b: passes now, so it need not be left out (no prompts)",
    )
