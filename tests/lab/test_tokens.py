"""Requests for tokens are no samples: kept beside them, in a section of their own."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest

from lab import report, runs
from lab.tokens import Sent, steps
from tests.lab.folders import BEGAN, row, write_part, write_tallies


def _sent(what: str, status: int = 200, error: str = "", took: float = 10.0) -> Sent:
    return Sent("acme", what, took, status, error)


def _write_sent(folder: Path, number: int, *lines: dict[str, Any]) -> None:
    usual = {"at": BEGAN, "label": "acme", "status": 200, "error": "", "milliseconds": 10.0}
    text = "".join(json.dumps({**usual, **line}) + "\n" for line in lines)
    (folder / f"ticks-{number}.jsonl").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("sent", "failure"),
    [
        (_sent("token"), ""),
        (_sent("token", 401), "HTTP 401"),
        (_sent("token", 302), "HTTP 302"),
        (_sent("token", 0, "ConnectTimeout"), "ConnectTimeout"),
        (_sent("challenge", 401), ""),  # it is what was asked for
        (_sent("challenge", 503), "HTTP 503"),
        (_sent("protected resource metadata", 404), ""),  # it is at the next place
        (_sent("authorization server metadata", 500), "HTTP 500"),
        (_sent("token", 200, "ChunkedEncodingError"), "ChunkedEncodingError"),
        (_sent("renewal", 0), ""),
        (_sent("renewal", 0, "OAuthError"), "OAuthError"),
    ],
)  # fmt: skip
def test_a_request_for_a_token_fails_where_it_did_not_do_what_it_was_to(
    sent: Sent, failure: str
) -> None:
    assert sent.failure == failure


def test_steps_come_in_the_order_in_which_they_are_taken_with_failures_by_kind() -> None:
    ends = [_sent("token", 500), _sent("token", 401), _sent("token", 500), _sent("token", took=90)]
    found = steps([_sent("renewal"), *ends, _sent("challenge", 401)])

    assert [(step.what, step.count, step.failed) for step in found] == [
        ("challenge", 1, 0),
        ("token", 4, 3),
        ("renewal", 1, 0),
    ]
    assert found[1].failures == {"HTTP 500": 2, "HTTP 401": 1}
    assert (found[1].p50, round(found[1].p95, 6), found[1].max) == (10.0, 78.0, 90.0)


def test_the_report_has_them_from_all_processes_and_in_none_of_its_figures(tmp_path: Path) -> None:
    for number in (1, 2):
        write_part(tmp_path, [row("acme:initialize", number, 100.0)], number)
        write_tallies(tmp_path, 1, number)
        _write_sent(
            tmp_path, number, {"what": "token", "status": 401}, {"what": "renewal", "status": 0}
        )
    outcome = report.make(tmp_path)
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    facts = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))

    assert outcome.digest.total.summary.count == 2
    assert facts["tokens"][0] == {
        "server": "acme",
        "what": "token",
        "count": 2,
        "failures": {"HTTP 401": 2},
        "p50": 10.0,
        "p95": 10.0,
        "max": 10.0,
    }
    assert "<h2>Tokens</h2>" in page
    assert "! 2 HTTP 401" in page
    assert "- for tokens, no sample: acme: token: 2, p95 10.0 ms, 2 failed (2 HTTP 401)" in (
        tmp_path / "summary.md"
    ).read_text(encoding="utf-8")


def test_a_run_that_asked_for_no_token_has_no_such_section(tmp_path: Path) -> None:
    write_part(tmp_path, [row("acme:initialize", 0)])
    report.make(tmp_path)

    assert "Tokens" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_line_that_a_crash_cut_short_is_left_out_and_told(tmp_path: Path) -> None:
    write_part(tmp_path, [row("acme:initialize", 0)])
    _write_sent(tmp_path, 1, {"what": "token"}, {"what": "token", "milliseconds": None})
    run = runs.read(tmp_path)

    assert len(run.processes[1].sent) == 1
    assert "ticks-1.jsonl: a line is cut short and was left out" in run.notes
