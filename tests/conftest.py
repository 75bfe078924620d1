"""What every test shares: Locust first, and a run in which a skip is a failure."""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import os
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pluggy import Result

_SKIPS_FAIL = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips",
        action="store_true",
        default=os.environ.get("NO_SKIPS", "") not in ("", "0"),
        help="a skipped test is a failed one (.ci/run; also by the variable NO_SKIPS=1)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SKIPS_FAIL] = bool(config.getoption("--no-skips"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Result[Any], None]:
    """Fail a test that was skipped where every test has to run."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if report.skipped and not hasattr(report, "wasxfail") and item.config.stash[_SKIPS_FAIL]:
        _refuse(report)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, Result[Any], None]:
    """Fail a module that skips itself where every test has to run."""
    outcome = yield
    report: pytest.CollectReport = outcome.get_result()
    if report.skipped and collector.config.stash[_SKIPS_FAIL]:
        _refuse(report)


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"--no-skips: {reason}"
