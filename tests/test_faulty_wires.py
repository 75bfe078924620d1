"""Every wire of the faulty server ends as its own line says, and seven things hold for all.

The server's list holds a line per case (`python tests/faulty/faulty_server.py --list`). All cases
run at once, each as a User class of its own, in one Locust process; the tests only read what the
two sides wrote down.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faulty.run import (
    PAUSE,
    TIMEOUT,
    TOKEN,
    FaultyServer,
    Json,
    cases,
    free_port,
    plan,
    run_plans,
    serving,
)
from tests.locust_process import Seen

SECONDS = 15.0
CASES = {case["path"]: case for case in cases()}
STEP = {
    "call": "tools/call:echo",
    "init": "initialize",
    "notify": "notifications/initialized",
    "list": "tools/list",
    "delete": "DELETE",
}

# Case: what its failures say. The step that fails is the case's own, or else the one named here.
REASONS = {
    "/no-content-type": "missing content-type",
    "/text-plain": "unexpected content-type text/plain",
    "/html-200": "unexpected content-type text/html",
    "/html-as-json": "invalid JSON",
    "/truncated-json": "invalid JSON",
    "/empty-200": "empty body",
    "/empty-sse": "stream ended before the reply",
    "/202-call": "HTTP 202 to a request",
    "/204-call": "HTTP 204 to a request",
    "/null-body": "reply is not an object",
    "/latin1-json": "invalid JSON",
    "/wrong-id": "no response for this id",
    "/wrong-id-sse": "no response for this id",
    "/error-200": "JSON-RPC error -32602",
    "/event-error": "JSON-RPC error -32603",
    "/null-id-error": "JSON-RPC error -32600",
    "/null-id-error-sse": "JSON-RPC error -32000",
    "/server-error-id": "HTTP 400, JSON-RPC error -32600",
    "/no-result": "neither result nor error",
    "/json-notification": "no response for this id",
    "/batch": "unexpected JSON-RPC batch",
    "/batch-sse": "unexpected JSON-RPC batch",
    "/iserror": "tool error",
    "/iserror-false-text": "check failed: has_marker",
    "/quota-200": "check failed: within_quota",
    "/auth-in-200": "tool error, not authorized",
    "/empty-content": "check failed: not_empty",
    "/result-list": "result is not an object",
    "/error-string": "JSON-RPC error without a code",
    "/huge-error": "JSON-RPC error -32603",
    "/400-notify": "HTTP 400",
    "/notify-hang": "timeout",
    "/delete-501": "HTTP 501",
    "/delete-hang": "timeout",
    "/session-404-after-3": "session lost",
    "/session-400-after-3": "session lost",
    "/session-503-after-3": "session lost",
    "/session-404-forever": "session lost",
    "/replicas": "session lost",
    "/modern-only": "HTTP 400, JSON-RPC error -32022",
    "/init-flaky": "HTTP 503",
    "/init-error-200": "JSON-RPC error -32603",
    "/init-hang": "timeout",
    "/429": "HTTP 429",
    "/429-init": "HTTP 429",
    "/401-midrun": "HTTP 401",
    "/403-midrun": "HTTP 403",
    "/401-always": "HTTP 401",
    "/403-ratelimit": "HTTP 403, rate limit",
    "/400-sse": "HTTP 400, JSON-RPC error -32602",
    "/500-html": "HTTP 500",
    "/503-retry-after": "HTTP 503",
    "/504-slow": "HTTP 504",
    "/500-open": "HTTP 500",
    "/500-truncated": "HTTP 500",
    "/500-gzip-bad": "HTTP 500",
    "/no-answer": "timeout",
    "/early-close": "stream ended before the reply",
    "/reset-race": "connection reset",
    "/accept-close": "connection closed",
    "/reset-mid-headers": "connection closed",
    "/reset-mid-body": "connection reset",
    "/truncated-cl": "incomplete body",
    "/truncated-chunked": "incomplete body",
    "/cl-short": "invalid JSON",
    "/enc-zstd": "unsupported content-encoding zstd",
    "/truncated-gzip": "bad gzip body",
    "/gzip-wrong-cl": "timeout",
    "/redirect301": "HTTP 301",
    "/redirect302-login": "HTTP 302",
    "/redirect-loop": "too many redirects",
}
# Cases whose line leaves the choice to the client: our choice is to succeed.
WE_RESUME = {"/sse-poll"}  # by GET and Last-Event-ID, the whole wait counted once
FAILS_ON_INITIALIZE = {"/modern-only", "/401-always", "/redirect301"}
SOMETIMES = {"/403-midrun", "/reset-race"}  # their other calls succeed, as their lines say
NO_CALL_IS_MADE = {"/modern-only", "/401-always", "/redirect301", "/init-error-200", "/init-hang"}
WAITS_AS_TOLD = {"/403-ratelimit"}  # Retry-After: 60, longer than the run
BACKOFF_LIMIT = 16  # long pauses between two attempts to initialize

# What the server sees more often than it was called: each redirect is one more delivery.
REDIRECTS = {"/redirect307", "/redirect308", "/redirect-loop"}
MOST_DELIVERIES = 6  # of one request: five redirects are followed
# Sessions that no client can close: the server refuses, or another replica answers the DELETE.
KEEPS_SESSIONS = {path for path, case in CASES.items() if case["when"] == "delete"} | {"/replicas"}

NEVER_NOTED = (
    "request with unknown session",
    "initialize carried an old session id",
    "DELETE of unknown session",
    "DELETE without session id",
    "redirected POST became GET",
    "body lost on redirect",
    "two requests with one id in flight",
    "session id was given but not echoed",
    "client invented a session id",
    "cookie not sent back",
    "called before Retry-After",
    "session limit reached",
    "client did not offer gzip",
)

AT_LEAST_MS = {
    "/slow-headers": 2000,
    "/slow-body": 2000,
    "/slow-json": 1500,
    "/504-slow": 1500,
    "/sse-poll": 300,
}
HELD_OPEN = ("/hold-open", "/hold-open-all", "/hold-open-drip", "/hold-open-json", "/notify-stream")


@dataclass(frozen=True)
class Evidence:
    """The big run as both sides tell it: ours in `run`, the server's by path in `saw`."""

    run: Seen
    saw: dict[str, Json]
    plans: list[Json]

    def labels(self, path: str) -> list[Json]:
        """The classes that reach this case."""
        return [each for each in self.plans if each["path"] == path and not each["unreachable"]]

    def rows(self, path: str) -> list[Json]:
        return [row for each in self.labels(path) for row in self.run.named(each["label"])]

    @property
    def end(self) -> Json:
        return self.run.ends[0]


def _plans(server: FaultyServer) -> list[Json]:
    special: dict[str, Json] = {
        "/structured-only": {"check": "not_empty"},
        "/empty-content": {"check": "not_empty"},
        "/chunked-split": {"check": "is_intact"},
        "/session-optional": {"stateless": True},
        "/no-session": {"stateless": True},
        "/401-midrun": {"renews": True},
        "/init-flaky": {"users": 5},
        "/429": {"users": 3},
        "/cross-talk": {"users": 3},
        "/session-cap": {"users": 3},
        "/replicas": {"users": 2},
        "/replicas-cookie": {"users": 3},
        "/json": {"users": 3},
        "/sse": {"users": 3},
        # longer than a busy server may be late with its idle close: that race nobody can win
        "/reset-keepalive": {"pause": [0.9, 1.2]},
        # each of their replies costs both sides what a hundred others do
        "/big": {"pause": [2.0, 2.5]},
        "/big-json": {"pause": [2.0, 2.5]},
        "/many-events": {"pause": [2.0, 2.5]},
    }
    plans = [plan(server, path, unreachable=False, **special.get(path, {})) for path in CASES]
    return [
        *plans,
        plan(server, "/401-midrun", "static-token", token="static", unreachable=False),
        plan(server, "/no-session", "wants-a-session", requires_session=True, unreachable=False),
        plan(server, "/json", "tls-verified", host=server.tls, unreachable=True),
        plan(server, "/json", "tls-insecure", host=server.tls, insecure=True, unreachable=False),
    ]


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def evidence(server: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    plans = _plans(server)
    run = run_plans(plans, tmp_path_factory.mktemp("all-cases"), SECONDS)
    return Evidence(run, server.saw(), plans)


every_case = pytest.mark.parametrize("path", CASES)


def of_verdict(*verdicts: str) -> set[str]:
    return {path for path, case in CASES.items() if case["verdict"] in verdicts}


def _failures(rows: list[Json]) -> list[tuple[str, str]]:
    return [(row["name"].partition(":")[2], row["failure"]) for row in rows if row["failure"]]


def _calls(rows: list[Json]) -> list[Json]:
    return [row for row in rows if ":tools/call:" in row["name"]]


def _own(evidence: Evidence, path: str) -> list[Json]:
    """Rows of the class that is named after the case."""
    return evidence.run.named(path.lstrip("/"))


# ---- each case as its line says


def test_every_failing_case_has_the_reason_that_it_must_give() -> None:
    failing = {path for path, case in CASES.items() if case["verdict"].startswith("fail")}

    assert set(REASONS) | WE_RESUME == failing


@pytest.mark.parametrize("path", sorted(of_verdict("ok", "server-check") | WE_RESUME))
def test_a_wire_that_is_only_unusual_gives_no_failure(evidence: Evidence, path: str) -> None:
    rows = _own(evidence, path)

    assert _failures(rows) == [], CASES[path]["expected"]
    assert len(_calls(rows)) >= 3


@pytest.mark.parametrize("path", sorted(of_verdict("fail") - WE_RESUME))
def test_a_faulty_step_is_one_failure_with_its_reason_each_time(
    evidence: Evidence, path: str
) -> None:
    rows = _own(evidence, path)
    step = "initialize" if path in FAILS_ON_INITIALIZE else STEP[CASES[path]["when"]]
    faulty = [row for row in rows if row["name"].endswith(f":{step}")]
    expected = CASES[path]["expected"]

    assert faulty, expected
    assert {failure for _, failure in _failures(faulty)} == {REASONS[path]}, expected
    assert [each for each in _failures(rows) if each[0] != step] == [], expected
    if path not in SOMETIMES:
        assert all(row["failure"] for row in faulty), expected


@pytest.mark.parametrize("path", sorted(of_verdict("fail-recover")))
def test_a_fault_that_passes_is_failed_and_then_recovered_from(
    evidence: Evidence, path: str
) -> None:
    # the run may end between a loss and the next call: then DELETE meets the dead session
    rows = [row for row in _own(evidence, path) if row["method"] != "DELETE"]
    failures = _failures(rows)
    expected = CASES[path]["expected"]

    assert {reason for _, reason in failures} == {REASONS[path]}, expected
    first = next(place for place, row in enumerate(rows) if row["failure"])
    assert [row for row in _calls(rows[first:]) if not row["failure"]], expected


@pytest.mark.parametrize("path", sorted(NO_CALL_IS_MADE))
def test_without_an_initialize_that_succeeded_nothing_else_is_sent(
    evidence: Evidence, path: str
) -> None:
    assert {row["name"].partition(":")[2] for row in _own(evidence, path)} == {"initialize"}
    assert set(evidence.saw[path]["kinds"]) == {"initialize"}


# ---- the seven checks that hold for every case


@every_case
def test_1_each_request_that_was_started_is_one_row(evidence: Evidence, path: str) -> None:
    rows = evidence.rows(path)
    ours = collections.Counter(row["name"].split(":")[1] for row in rows)
    notified = sum(times for what, times in ours.items() if what.startswith("notifications/"))
    labels = [each["label"] for each in evidence.labels(path)]
    cut = sum(evidence.run.tally(label, "cut at the end") for label in labels)
    hops = sum(evidence.run.tally(label, "redirect followed") for label in labels)
    resumed = sum(evidence.run.tally(label, "stream resumed") for label in labels)
    answered = sum(evidence.run.tally(label, "server ping answered") for label in labels)
    theirs: collections.Counter[str] = collections.Counter(evidence.saw[path]["kinds"])

    assert theirs.pop("GET", 0) == resumed
    assert theirs.pop("client-response", 0) == answered
    if path in REDIRECTS:
        assert 0 <= sum(theirs.values()) - len(rows) - hops <= cut * MOST_DELIVERIES
        return
    assert theirs.pop("notification", 0) == notified
    for what in ("initialize", "tools/list", "DELETE"):
        assert (what, theirs.pop(what, 0)) == (what, ours[what])
    # a call that was killed before its end is no sample, whether or not it was sent
    assert 0 <= theirs.pop("tools/call", 0) - ours["tools/call"] <= cut
    assert not theirs


@every_case
def test_1_locust_counts_what_was_recorded(evidence: Evidence, path: str) -> None:
    rows = evidence.rows(path)
    counted = {f"{row['method']} {row['name']}": [0, 0] for row in rows}
    for row in rows:
        entry = counted[f"{row['method']} {row['name']}"]
        entry[0] += 1
        entry[1] += row["failure"] is not None

    assert {name: evidence.end["stats"][name] for name in counted} == counted


def test_2_no_exception_reaches_locusts_table(evidence: Evidence) -> None:
    assert evidence.end["exceptions"] == []
    assert "Traceback" not in evidence.run.said


@every_case
def test_3_its_users_are_alive_at_the_end_and_keep_their_pace(
    evidence: Evidence, path: str
) -> None:
    stopped = evidence.end["stopped"]
    for each in evidence.labels(path):
        assert evidence.end["alive"][each["class"]] == each["users"]
        by_user = collections.defaultdict(list)
        for row in evidence.run.named(each["label"]):
            if row["name"].split(":")[1] in ("initialize", "tools/call"):
                by_user[row["trace"]["session"]].append(row)
        assert len(by_user) == each["users"]
        for rows in by_user.values():
            quiet = stopped - rows[-1]["start"] - rows[-1]["ms"] / 1000
            longest = BACKOFF_LIMIT * PAUSE[1] if path in NO_CALL_IS_MADE else TIMEOUT + PAUSE[1]
            assert quiet < longest + 1 or path in WAITS_AS_TOLD
            _assert_no_tight_loop(rows)


def _assert_no_tight_loop(rows: list[Json]) -> None:
    """Between two turns lies a pause; only a lost session is opened anew at once."""
    for before, after in zip(rows, rows[1:]):
        pause = after["trace"]["planned"] - before["trace"]["replied"]
        opens_a_session = after["name"].endswith(":initialize")
        if not (opens_a_session and before["failure"] == "session lost") and (
            before["trace"]["replied"] and ":tools/call" in before["name"]
        ):
            assert pause >= PAUSE[0] - 0.01


@every_case
def test_4_reasons_are_few_short_and_without_secrets(evidence: Evidence, path: str) -> None:
    reasons = {row["failure"] for row in evidence.rows(path) if row["failure"]}

    assert len(reasons) <= 2
    for reason in reasons:
        assert len(reason) <= 60
        assert re.fullmatch(r"[\x20-\x7e]+", reason)


def test_4_no_secret_and_no_page_reaches_any_output(evidence: Evidence) -> None:
    written = [
        path.read_text(errors="replace")
        for path in evidence.run.folder.iterdir()
        if path.name != "plan.json"
    ]

    for text in written:
        for secret in (TOKEN, "trace 8f3a", "VS30063", "error_description", "Monthly quota"):
            assert secret not in text


@every_case
def test_5_the_time_covers_the_way_to_the_reply(evidence: Evidence, path: str) -> None:
    for row in evidence.rows(path):
        trace = row["trace"]
        happened = [trace[key] for key in ("started", "sent", "headers", "first_event", "replied")]
        happened = [instant for instant in happened if instant]
        assert happened == sorted(happened), row
        assert row["ms"] >= 0
        if trace["replied"]:
            assert row["ms"] == pytest.approx((trace["replied"] - trace["started"]) * 1000)
    for row in _calls(_own(evidence, path)):
        if path in AT_LEAST_MS:
            assert row["ms"] >= AT_LEAST_MS[path]
        if row["failure"] == "timeout":
            assert TIMEOUT * 1000 - 1 <= row["ms"] < TIMEOUT * 1000 + 1000


@every_case
def test_6_no_request_is_sent_again_unseen(evidence: Evidence, path: str) -> None:
    most = evidence.saw[path]["max_deliveries_of_one_id"]

    assert most == 1 or (path in REDIRECTS and most <= MOST_DELIVERIES)


@every_case
def test_7_no_session_is_left_open(evidence: Evidence, path: str) -> None:
    saw = evidence.saw[path]

    assert saw["open_sessions"] == 0 or path in KEEPS_SESSIONS


@every_case
def test_the_server_has_nothing_to_complain_about(evidence: Evidence, path: str) -> None:
    noted = evidence.saw[path]["notes"]
    # a user that is stopped right after its session was lost says goodbye to that one
    forgiven = {"DELETE of unknown session"} if REASONS.get(path) == "session lost" else set()

    assert [note for note in NEVER_NOTED if note in noted and note not in forgiven] == []
    assert "request without session id" not in noted or path == "/no-session"


# ---- what single lines say beyond that


@pytest.mark.parametrize("path", HELD_OPEN)
def test_a_stream_held_open_after_the_reply_holds_nobody(evidence: Evidence, path: str) -> None:
    """LOG.md G2: success within milliseconds, and the connection is closed by us."""
    assert max(row["ms"] for row in _own(evidence, path)) < 1000
    assert max(evidence.saw[path]["held_seconds"]) < 1.5
    assert len(_calls(_own(evidence, path))) >= 10


def test_ended_streams_keep_their_connection(evidence: Evidence) -> None:
    """LOG.md G3: connections about = users."""
    users = sum(each["users"] for each in evidence.labels("/sse"))

    assert evidence.saw["/sse"]["connections"] <= users + 1


@pytest.mark.parametrize("path", ["/big", "/big-json"])
def test_a_big_reply_is_measured_whole(evidence: Evidence, path: str) -> None:
    for row in _calls(_own(evidence, path)):
        assert row["bytes"] == pytest.approx(5_000_000, rel=0.01)
        assert row["trace"]["received_bytes"] >= 5_000_000


def test_a_ping_in_the_stream_is_answered_while_it_is_read(evidence: Evidence) -> None:
    calls = len(_calls(_own(evidence, "/ping-first")))

    assert evidence.saw["/ping-first"]["notes"]["client answered ping"] == calls


def test_a_rejected_token_is_renewed_and_a_static_one_goes_on_failing(evidence: Evidence) -> None:
    renewed = _calls(_own(evidence, "/401-midrun"))
    static = _calls(evidence.run.named("static-token"))

    assert [bool(row["failure"]) for row in renewed[:9]] == [False, False, False, True] * 2 + [
        False
    ]
    assert [bool(row["failure"]) for row in static] == [False] * 3 + [True] * (len(static) - 3)
    assert len(static) >= 10


def test_every_user_gets_in_after_a_flaky_start(evidence: Evidence) -> None:
    """LOG.md I2: five users, and calls from five sessions."""
    rows = _own(evidence, "/init-flaky")

    assert [reason for _, reason in _failures(rows)] == ["HTTP 503"] * 2
    assert len({row["trace"]["session"] for row in _calls(rows)}) == 5


def test_initialize_that_is_refused_once_succeeds_at_the_next_try(evidence: Evidence) -> None:
    assert _failures(_own(evidence, "/429-init")) == [("initialize", "HTTP 429")]


def test_a_server_without_the_session_that_it_owes_fails_once_and_is_used(
    evidence: Evidence,
) -> None:
    rows = evidence.run.named("wants-a-session")

    assert _failures(rows) == [("initialize", "no session id")]
    assert len(_calls(rows)) >= 10
    assert not [row for row in rows if row["name"].endswith(":DELETE")]


def test_a_lost_session_costs_one_call_and_one_initialize(evidence: Evidence) -> None:
    for path in ("/session-404-after-3", "/session-400-after-3", "/session-503-after-3"):
        told = [row["name"].split(":")[1] for row in _own(evidence, path)]
        lost = sum(1 for row in _own(evidence, path) if row["failure"] == "session lost")

        # a user that is stopped right after its last loss does not open another one
        assert told.count("initialize") in (lost, 1 + lost)
        assert evidence.run.tally(path.lstrip("/"), "session lost") == lost


def test_a_session_that_is_always_lost_is_opened_at_most_once_a_call(evidence: Evidence) -> None:
    kinds = evidence.saw["/session-404-forever"]["kinds"]

    assert kinds["initialize"] <= kinds["tools/call"] + 1


def test_a_list_whose_cursor_never_moves_is_left_after_a_handful_of_pages(
    evidence: Evidence,
) -> None:
    assert evidence.saw["/tools-paginated"]["kinds"]["tools/list"] == 3
    assert evidence.saw["/tools-cursor-loop"]["kinds"]["tools/list"] <= 5


def test_a_redirect_loop_ends_after_a_bounded_number_of_hops(evidence: Evidence) -> None:
    calls = len(_calls(_own(evidence, "/redirect-loop")))

    assert evidence.saw["/redirect-loop"]["kinds"]["tools/call"] <= 11 * calls


def test_a_polled_stream_is_resumed_and_counted_once(evidence: Evidence) -> None:
    """LOG.md G5, our choice: resume by GET and Last-Event-ID, the whole wait is one sample."""
    calls = len(_calls(_own(evidence, "/sse-poll")))

    assert evidence.saw["/sse-poll"]["notes"]["client resumed the stream"] == calls


def test_a_stream_that_cannot_be_resumed_is_asked_for_once(evidence: Evidence) -> None:
    """mcp-wire 1.4.6: 405 on the resume = request failed."""
    calls = len(_calls(_own(evidence, "/early-close")))

    assert evidence.saw["/early-close"]["kinds"]["GET"] == calls


def test_a_call_that_is_given_up_is_cancelled_at_the_server(evidence: Evidence) -> None:
    rows = _own(evidence, "/no-answer")
    cancelled = [row for row in rows if row["name"].endswith(":notifications/cancelled")]

    assert len(cancelled) == len(_calls(rows)) >= 2


def test_a_stateless_user_returns_the_session_that_it_was_given(evidence: Evidence) -> None:
    assert evidence.saw["/session-optional"]["kinds"]["DELETE"] == 1
    assert "DELETE" not in evidence.saw["/no-session"]["kinds"]


def test_refused_deletes_are_counted_and_no_failures(evidence: Evidence) -> None:
    assert evidence.run.tally("delete-405", "DELETE answered 405") == 1
    assert evidence.run.tally("delete-404", "DELETE answered 404") == 1


def test_a_poisoned_connection_is_not_used_again(evidence: Evidence) -> None:
    saw = evidence.saw["/cl-short"]

    assert saw["connections"] >= saw["kinds"]["tools/call"]


def test_an_id_is_used_once_in_the_whole_run(evidence: Evidence) -> None:
    ids = [row["trace"]["request_id"] for row in evidence.run.rows if row["trace"]["request_id"]]

    assert len(ids) == len(set(ids))


def test_a_wrong_certificate_fails_each_try_unless_told_otherwise(evidence: Evidence) -> None:
    """LOG.md G15: one failure 'TLS' per try; a switch turns it off."""
    verified = evidence.run.named("tls-verified")
    insecure = evidence.run.named("tls-insecure")

    assert {row["name"] for row in verified} == {"tls-verified:initialize"}
    assert all(row["failure"].startswith("TLS") for row in verified)
    assert len(verified) >= 2
    assert _failures(insecure) == []
    assert len(_calls(insecure)) >= 10


# ---- runs of their own


def test_sessions_are_closed_even_by_users_killed_in_a_long_pause(
    server: FaultyServer, tmp_path: Path
) -> None:
    """LOG.md D6: three users, 60 s of thinking, two short runs in a row: no 503, none open."""
    server.reset()
    classes = [plan(server, "/session-cap", users=3)]
    for turn in ("first", "second"):
        run = run_plans(classes, tmp_path / turn, 2, pause=(60.0, 60.0))

        assert _failures(run.rows) == []
        assert server.saw()["/session-cap"]["open_sessions"] == 0

    saw = server.saw()["/session-cap"]
    assert saw["kinds"]["initialize"] == saw["kinds"]["DELETE"] == 6
    assert "session limit reached" not in saw["notes"]


def test_no_two_processes_use_one_id(server: FaultyServer, tmp_path: Path) -> None:
    """LOG.md C13: with --processes 2 no reply goes to another client."""
    server.reset()
    classes = [plan(server, "/cross-talk", users=6)]
    run = run_plans(classes, tmp_path, 6, "--processes", "2")

    saw = server.saw()["/cross-talk"]
    assert _failures(run.rows) == []
    assert saw["max_deliveries_of_one_id"] == 1
    assert "two requests with one id in flight" not in saw["notes"]
    assert saw["kinds"]["tools/call"] == len(_calls(run.rows)) >= 20
    assert len(list(run.folder.glob("rows-*.jsonl"))) == 2


@pytest.mark.parametrize("exempt", [False, True], ids=["used", "NO_PROXY"])
def test_a_proxy_of_the_environment_is_used_unless_the_host_is_exempt(
    server: FaultyServer, tmp_path: Path, exempt: bool
) -> None:
    """LOG.md G16: no silent difference to what else in the process uses the variable."""
    nobody = f"http://127.0.0.1:{free_port()}"
    variables: dict[str, Any] = {"HTTP_PROXY": nobody, "http_proxy": nobody}
    if exempt:
        variables.update(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    run = run_plans([plan(server, "/json")], tmp_path, 2, **variables)

    reasons = {row["failure"] for row in run.rows}
    assert reasons == ({None} if exempt else {"connection refused"})
