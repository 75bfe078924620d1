"""The official suite, scenario by scenario, against our client in one real Locust user."""

from __future__ import annotations

import pytest

from lab.conform.scenarios import SCENARIOS, judge
from lab.node import NodeMissing, suite


@pytest.fixture(scope="session")
def program() -> list[str]:
    try:
        return suite()
    except NodeMissing as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(("scenario", "revision"), SCENARIOS, ids=str)
def test_our_client_passes_the_scenario_with_at_least_one_success(
    scenario: str, revision: str | None, program: list[str]
) -> None:
    outcome = judge(program, scenario, revision)

    assert outcome.failures == ()
    assert outcome.passed
