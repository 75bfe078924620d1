"""`MCPUserBase` in a real Locust environment, against a server that does as it is told."""

from __future__ import annotations

from locust.env import Environment
from locust.exception import StopUser

import json
import logging
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Callable

import gevent
import pytest
from gevent.event import Event

import _origin
import _roster
import _workload
from _base import MCPUserBase, servers, tallies
from _lifecycle import Lifecycle
from tests.fake_server import (
    OK,
    PATIENCE_S,
    FakeServer,
    MCPServer,
    Peer,
    Request,
    answer,
    in_turn,
)

LIFE = ["initialize", "notifications/initialized", "tools/list"]
MODERN = "2026-07-28"
WITH_A_SECRET = "token s3cret"


@dataclass
class Row:
    """One request event of Locust's."""

    name: str
    method: str
    failure: str
    ms: float
    size: int
    trace: Any
    context: dict[str, Any]


_runs: list[Run] = []


class Run:
    """An environment with one class of users, and what it recorded."""

    def __init__(self, user_class: type[Any], stop_timeout: float | None = None) -> None:
        self.rows: list[Row] = []
        self.environment = Environment(user_classes=[user_class], stop_timeout=stop_timeout)
        self.environment.events.request.add_listener(self._record)
        self.runner = self.environment.create_local_runner()
        self.user_class = user_class
        self.news = Event()
        _runs.append(self)

    def _record(self, **event: Any) -> None:
        failure = event["exception"]
        named = "" if failure is None else f"{type(failure).__name__}: {failure}"
        context = event["context"]
        self.rows.append(
            Row(
                event["name"],
                event["request_type"],
                named,
                event["response_time"],
                event["response_length"],
                context["mcp"],
                context,
            )
        )
        self.news.set()

    def user(self) -> Any:
        """One user, in the hands of the test."""
        user = self.user_class(self.environment)
        user._state = "running"
        return user

    @property
    def names(self) -> list[str]:
        return [row.name.partition(":")[2] for row in self.rows]

    @property
    def failures(self) -> dict[str, str]:
        return {r.name.partition(":")[2]: r.failure for r in self.rows if r.failure}

    def until(self, enough: Callable[[], bool]) -> None:
        """Wait until `enough()`, looked at after each request event."""
        with gevent.Timeout(PATIENCE_S):
            while not enough():
                self.news.clear()
                self.news.wait()


def _class(server: FakeServer, **attributes: Any) -> type[MCPUserBase]:
    facts: dict[str, Any] = {
        "host": server.url,
        "server_label": "t",
        "fixed_count": 1,
        "network_timeout": 5.0,
        "__module__": __name__,
        **attributes,
    }
    return type("TestedUser", (MCPUserBase,), facts)


def _run(server: FakeServer, **attributes: Any) -> tuple[Run, Any]:
    run = Run(_class(server, **attributes))
    return run, run.user()


@pytest.fixture(autouse=True)
def _quick_and_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Short pauses, nothing left of another test, nothing of this machine's environment."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "MCP_PROTOCOL_VERSION"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for kind in ("INTRA", "TURN"):
        monkeypatch.setenv(f"MCP_{kind}_MIN", "0.001")
        monkeypatch.setenv(f"MCP_{kind}_MAX", "0.002")
    _forget()
    yield
    _forget()


def _until(enough: Callable[[], bool]) -> None:
    with gevent.Timeout(PATIENCE_S):
        while not enough():
            gevent.idle()


def _pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let no user really pause, and return the pauses in seconds."""
    pauses: list[float] = []
    monkeypatch.setattr(_roster, "gevent", SimpleNamespace(sleep=pauses.append))
    return pauses


def _forget() -> None:
    while _runs:
        _runs.pop().runner.greenlet.kill(block=False)
    for cached in (
        _workload.think_time,
        _roster.honours_retry_after,
        _roster.burst_probability,
        _roster.pinned_revision,
    ):
        cached.cache_clear()
    for kept in (tallies, servers, Lifecycle._decided, Lifecycle._listed, Lifecycle._asked):
        kept.clear()
    _roster._said.clear()
    _roster._last_start[0] = 0
    _origin._shared.clear()


# ---- the life of a user of the handshake era


def test_a_life_is_initialize_initialized_list_calls_and_delete() -> None:
    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()
        assert user._call("echo", {"text": "x"}) == OK
        user.on_stop()

    assert server.methods == [*LIFE, "tools/call", "DELETE"]
    assert run.names == [*LIFE, "tools/call:echo", "DELETE"]
    assert run.failures == {}
    assert [row.method for row in run.rows] == ["POST"] * 4 + ["DELETE"]
    assert server.connections == 1


def test_initialize_offers_the_class_s_revision_and_says_who_we_are() -> None:
    with MCPServer() as server:
        _, user = _run(server, protocol_version="2025-11-25")
        user.on_start()
        user.on_stop()

    first = server.requests[0]
    assert first.params["protocolVersion"] == "2025-11-25"
    assert first.params["capabilities"] == {}
    assert first.params["clientInfo"]["name"] == "mcp-load-test"
    assert first.headers["user-agent"].startswith("mcp-load-test/")
    assert first.headers["accept"] == "application/json, text/event-stream"
    assert first.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in first.headers
    assert "mcp-protocol-version" not in first.headers
    assert "origin" not in first.headers


@pytest.mark.parametrize("agreed", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_all_later_requests_carry_the_revision_that_was_agreed_and_the_session(
    agreed: str,
) -> None:
    with MCPServer() as server:
        server.on["initialize"] = lambda peer: server.initialize(peer, agreed)
        run, user = _run(server)
        user.on_start()
        user._call("echo", {})
        user.on_stop()

    later = server.requests[1:]
    assert run.failures == {}
    assert {request.headers["mcp-protocol-version"] for request in later} == {agreed}
    assert {request.headers["mcp-session-id"] for request in later} == {"session-1"}
    assert servers["t"]["protocolVersion"] == agreed


@pytest.mark.parametrize("answered", ["2099-01-01", MODERN, None, 7, ["2025-06-18"]])
def test_a_revision_that_nobody_knows_is_a_failed_initialize_and_is_tried_again(
    answered: Any,
) -> None:
    def unknown(peer: Peer) -> None:
        peer.result({"protocolVersion": answered}, {"Mcp-Session-Id": "s"})

    with MCPServer() as server:
        server.on["initialize"] = in_turn(unknown, server.initialize)
        run, user = _run(server)
        user.on_start()

    assert run.rows[0].failure == "ProtocolError: unknown protocol version"
    assert server.methods == ["initialize", *LIFE]
    assert "mcp-session-id" not in server.requests[1].headers


def test_a_session_id_comes_from_a_successful_initialize_and_from_nothing_else() -> None:
    def refuse(peer: Peer) -> None:
        peer.json({"error": {"code": -32600}}, 400, {"Mcp-Session-Id": "of-an-error"})

    def call(peer: Peer) -> None:
        peer.result(OK, {"Mcp-Session-Id": "of-a-call"})

    with MCPServer(session=False) as server:
        server.on["initialize"] = in_turn(refuse, server.initialize)
        server.on["tools/call"] = call
        _, user = _run(server, requires_session=False)
        user.on_start()
        user._call("echo", {})
        user._call("echo", {})
        user.on_stop()

    assert not any("mcp-session-id" in request.headers for request in server.requests)
    assert "DELETE" not in server.methods


@pytest.mark.parametrize("requires", [True, False])
def test_no_session_id_is_one_failure_where_one_is_required_and_the_user_goes_on(
    requires: bool,
) -> None:
    with MCPServer(session=False) as server:
        run, user = _run(server, requires_session=requires)
        user.on_start()
        assert user._call("echo", {}) == OK
        user.on_stop()

    expected = {"initialize": "ProtocolError: no session id"} if requires else {}
    assert run.failures == expected
    assert server.methods == [*LIFE, "tools/call"]


@pytest.mark.parametrize("given", ["a b", "é", "x\ty"])
def test_a_session_id_that_no_header_may_carry_is_a_failure_and_is_never_sent(given: str) -> None:
    def invalid(peer: Peer) -> None:
        result = {"protocolVersion": "2025-06-18", "serverInfo": {}}
        peer.result(result, {"MCP-SESSION-ID": given})

    with MCPServer() as server:
        server.on["initialize"] = in_turn(invalid, server.initialize)
        run, user = _run(server)
        user.on_start()

    assert run.rows[0].failure == "ProtocolError: invalid session id"
    assert user.session_id == "session-1"


def test_a_session_header_is_read_in_any_case() -> None:
    def shouting(peer: Peer) -> None:
        peer.result({"protocolVersion": "2025-06-18"}, {"MCP-SESSION-ID": "s-1"})

    with MCPServer() as server:
        server.on["initialize"] = shouting
        _, user = _run(server)
        user.on_start()

    assert user.session_id == "s-1"


@pytest.mark.parametrize("status", [404, 405])
def test_a_server_that_has_no_delete_is_counted_and_is_no_failure(status: int) -> None:
    with MCPServer() as server:
        server.on["DELETE"] = lambda peer: peer.reply(status=status)
        run, user = _run(server)
        user.on_start()
        user.on_stop()

    assert run.names[-1] == "DELETE"
    assert run.failures == {}
    assert tallies["t", f"DELETE answered {status}"] == 1


def test_another_refusal_of_delete_is_a_failure_of_its_own() -> None:
    with MCPServer() as server:
        server.on["DELETE"] = lambda peer: peer.reply(status=501)
        run, user = _run(server)
        user.on_start()
        user.on_stop()

    assert run.failures == {"DELETE": "HTTPStatusError: HTTP 501"}


def test_a_delete_that_is_never_answered_has_a_short_limit_of_its_own() -> None:
    with MCPServer() as server:
        server.on["DELETE"] = lambda peer: peer.gone()
        run, user = _run(server, network_timeout=60.0)
        user.on_start()
        user.on_stop()

    assert run.failures == {"DELETE": "Timeout: timeout"}
    assert run.rows[-1].ms < 10_000


def test_initialized_is_answered_before_the_tools_are_listed() -> None:
    answered: list[str] = []

    def late(peer: Peer) -> None:
        gevent.idle()
        answered.append("initialized")
        peer.reply(status=202)

    def tools(peer: Peer) -> None:
        assert answered == ["initialized"]
        peer.result({"tools": []})

    with MCPServer() as server:
        server.on["notifications/initialized"] = late
        server.on["tools/list"] = tools
        run, user = _run(server)
        user.on_start()

    assert run.failures == {}


@pytest.mark.parametrize(
    "script",
    [
        lambda peer: peer.reply(status=200),
        lambda peer: peer.reply(status=204),
        lambda peer: peer.reply(b"Accepted", 202, kind="text/plain"),
        lambda peer: peer.json({"jsonrpc": "2.0", "result": {}}),
        lambda peer: peer.reply(status=202, headers={"Content-Encoding": "gzip"}),
        lambda peer: (peer.stream(), peer.chunk(b": open\n\n"), peer.gone()),
    ],
    ids=["200", "204", "text", "json", "empty gzip", "open stream"],
)
def test_any_2xx_answers_a_notification(script: Callable[[Peer], Any]) -> None:
    with MCPServer() as server:
        server.on["notifications/initialized"] = script
        run, user = _run(server)
        user.on_start()

    assert run.failures == {}
    assert run.names == LIFE


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        (lambda peer: peer.reply(status=503), "HTTPStatusError: HTTP 503"),
        (lambda peer: peer.close(), "TransportError: connection"),
        (lambda peer: peer.error(-32000), "RPCError: JSON-RPC error -32000"),
        (lambda peer: peer.reply(b"<p>", kind="text/html"), "ProtocolError: unexpected content"),
        (
            lambda peer: peer.reply(status=429, headers={"Retry-After": "0"}),
            "Throttled: HTTP 429",
        ),
    ],
)
def test_an_initialize_that_fails_is_tried_again_and_the_user_is_not_lost(
    script: Callable[[Peer], Any], failure: str
) -> None:
    with MCPServer() as server:
        server.on["initialize"] = in_turn(script, script, server.initialize)
        run, user = _run(server)
        user.on_start()
        assert user._call("echo", {}) == OK

    assert run.names == ["initialize", "initialize", *LIFE, "tools/call:echo"]
    assert [row.failure.startswith(failure) for row in run.rows[:3]] == [True, True, False]
    assert server.methods[:3] == ["initialize"] * 3, "nothing else is sent without a session"


def test_the_pause_between_two_attempts_is_a_long_one_and_doubles_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses = _pauses(monkeypatch)
    monkeypatch.setenv("MCP_TURN_MIN", "3")
    monkeypatch.setenv("MCP_TURN_MAX", "3")
    _workload.think_time.cache_clear()
    with MCPServer() as server:
        refuse = [lambda peer: peer.reply(status=503)] * 7
        server.on["initialize"] = in_turn(*refuse, server.initialize)
        _, user = _run(server)
        user.on_start()

    assert pauses == [3.0, 6.0, 12.0, 24.0, 48.0, 48.0, 48.0]


def test_a_throttled_initialize_waits_as_long_as_it_was_told_where_that_is_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses = _pauses(monkeypatch)
    throttle = lambda peer: peer.reply(status=503, headers={"Retry-After": "9"})  # noqa: E731
    with MCPServer() as server:
        server.on["initialize"] = in_turn(throttle, server.initialize)
        _, user = _run(server)
        user.on_start()

    assert pauses == [9.0]


def test_a_failed_list_of_tools_leaves_the_user_able_to_call() -> None:
    with MCPServer() as server:
        server.on["tools/list"] = lambda peer: peer.reply(status=500)
        run, user = _run(server)
        user.on_start()
        assert user._call("echo", {}) == OK

    assert run.failures == {"tools/list": "HTTPStatusError: HTTP 500"}


# ---- lists


def test_all_pages_of_a_list_are_read() -> None:
    pages = {None: "p2", "p2": "p3", "p3": None}

    def page(peer: Peer) -> None:
        cursor = peer.request.params.get("cursor")
        result: dict[str, Any] = {"tools": [{"name": f"tool-{cursor}"}]}
        if pages[cursor]:
            result["nextCursor"] = pages[cursor]
        peer.result(result)

    with MCPServer() as server:
        server.on["tools/list"] = page
        run, user = _run(server)
        user.on_start()

    assert [tool["name"] for tool in user.tools] == ["tool-None", "tool-p2", "tool-p3"]
    assert run.names.count("tools/list") == 3


def test_a_cursor_that_comes_again_ends_the_list() -> None:
    with MCPServer() as server:
        server.on["tools/list"] = lambda peer: peer.result({"tools": [], "nextCursor": "same"})
        run, user = _run(server)
        user.on_start()

    assert run.names.count("tools/list") == 2


def test_a_list_without_end_is_bounded() -> None:
    def endless(peer: Peer) -> None:
        peer.result({"tools": [], "nextCursor": f"p{len(peer.server.requests)}"})

    with MCPServer() as server:
        server.on["tools/list"] = endless
        run, user = _run(server)
        user.on_start()

    assert run.names.count("tools/list") == 100


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"tools": None},
        {"tools": 7},
        {"tools": "abc"},
        {"tools": {"name": "x"}},
        {"tools": [None, 7, "x", {}]},
        {"tools": [{"name": ["a", "list"]}, {"name": {}}]},
        {"tools": [], "nextCursor": 7},
        {"tools": [], "ttlMs": "soon"},
    ],
)
@pytest.mark.parametrize("version", ["2025-06-18", MODERN])
def test_a_list_that_is_no_list_loses_no_user(result: dict[str, Any], version: str) -> None:
    with MCPServer() as server:
        server.on["tools/list"] = lambda peer: peer.result({**result, "resultType": "complete"})
        run, user = _run(server, protocol_version=version)
        user.on_start()
        assert user._call("echo", {}) is not None

    assert run.failures == {}


def test_a_tool_that_is_not_listed_is_one_warning_and_is_called_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()
        for _ in range(3):
            user._call("gone", {})

    warnings = [r.message for r in caplog.records if "does not list" in r.message]
    assert warnings == ["t: the server does not list the tool 'gone'; it is called all the same"]
    assert run.names.count("tools/call:gone") == 3


# ---- calls and their failures


def test_every_exchange_is_recorded_once_with_its_instants() -> None:
    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()
        user._call("echo", {"text": "x"})

    row = run.rows[-1]
    trace, request = row.trace, server.requests[-1]
    assert trace.request_id == request.message["id"]
    assert trace.planned <= trace.started <= trace.sent <= trace.replied
    assert trace.started <= request.arrived <= trace.replied
    assert row.ms == pytest.approx((trace.replied - trace.started) * 1000)
    assert (trace.status, trace.kind, trace.revision) == (200, "json", "2025-06-18")
    assert (trace.user_class, trace.session > 0) == ("TestedUser", True)
    assert row.size == len(json.dumps(answer(request, OK)))


def test_a_user_s_own_context_goes_with_each_event() -> None:
    with MCPServer() as server:
        run, user = _run(server, context=lambda self: {"tenant": "a"})
        user.on_start()

    assert all(row.context["tenant"] == "a" for row in run.rows)
    assert all("mcp" in row.context for row in run.rows)


def _slow_check(result: dict[str, Any]) -> bool:
    raise KeyError("secret text of the reply")


def has_results(result: dict[str, Any]) -> bool:
    return False


class _Quota:
    __name__ = "is_fine"

    def reason(self, result: dict[str, Any]) -> str | None:
        return "within_quota"


@pytest.mark.parametrize(
    ("result", "expect", "failure"),
    [
        (OK, None, ""),
        (OK, lambda result: True, ""),
        (OK, has_results, "CheckFailed: check failed: has_results"),
        (OK, _Quota(), "CheckFailed: check failed: within_quota"),
        (OK, _slow_check, "CheckFailed: check raised KeyError: _slow_check"),
        ({"isError": True, "content": []}, None, "ToolError: tool error"),
        ({"isError": True, "content": []}, has_results, "ToolError: tool error"),
        ({"isError": True, "content": {"a": 1}}, None, "ToolError: tool error"),
    ],
)
def test_a_result_is_judged_and_none_is_returned_where_it_fails(
    result: dict[str, Any], expect: Any, failure: str
) -> None:
    with MCPServer() as server:
        server.on["tools/call"] = lambda peer: peer.result(result)
        run, user = _run(server)
        user.on_start()
        found = user._call("echo", {}, expect=expect)

    assert run.rows[-1].failure == failure
    assert (found is None) == bool(failure)


def test_a_name_stands_for_the_tool_in_the_statistics() -> None:
    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()
        user._call("echo", {}, name="search")

    assert run.names[-1] == "tools/call:search"
    assert server.requests[-1].params["name"] == "echo"


@pytest.mark.parametrize("version", ["2025-06-18", MODERN])
@pytest.mark.parametrize("arguments", [{"a": object()}, {"a": "\ud83d"}])
def test_arguments_that_are_no_json_are_a_recorded_failure(
    arguments: dict[str, Any], version: str
) -> None:
    with MCPServer() as server:
        run, user = _run(server, protocol_version=version)
        user.on_start()
        before = len(server.requests)
        assert user._call("echo", arguments) is None

    assert run.rows[-1].failure == "MCPError: arguments are no JSON"
    assert len(server.requests) == before


@pytest.mark.parametrize(
    ("headers", "failure"),
    [
        ({"Authorization": "Bearer s3cret\r\nEvil: 1"}, "header Authorization holds a line break"),
        ({"Authorization": "Bearer s3cret\n"}, "header Authorization holds a line break"),
        ({"Authorization": "Bearer s3cret\0"}, "header Authorization holds a line break"),
        ({"Authorization": "Bearer s3cret→"}, "header Authorization is not latin-1"),
        ({"X-A: s3cret\r\nEvil": "1"}, "holds a line break"),
    ],
)
def test_a_header_that_would_forge_another_is_never_sent_nor_shown(
    headers: dict[str, str], failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()
        before = len(server.requests)
        user._extra_headers = lambda: headers
        assert user._call("echo", {}) is None

    assert failure in run.rows[-1].failure
    assert len(server.requests) == before
    assert "s3cret" not in caplog.text
    if "s3cret" in next(iter(headers.values())):
        assert "s3cret" not in run.rows[-1].failure


def test_a_fault_of_a_hook_is_a_recorded_failure_and_its_words_are_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> dict[str, str]:
        raise ValueError(WITH_A_SECRET)

    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()
        user._extra_headers = broken
        assert user._call("echo", {}) is None

    assert run.rows[-1].failure == "MCPError: harness error, ValueError"
    assert "in broken" in caplog.text
    assert "s3cret" not in caplog.text


def test_a_user_s_own_headers_go_with_every_request_and_win() -> None:
    with MCPServer() as server:
        _, user = _run(server, auth_headers={"X-MCP-Readonly": "true", "accept": "text/x"})
        user.on_start()
        user._call("echo", {})
        user.on_stop()

    assert {request.headers["x-mcp-readonly"] for request in server.requests} == {"true"}
    assert {request.headers["accept"] for request in server.requests} == {"text/x"}


def test_a_hook_that_changes_and_returns_one_dict_sends_what_it_holds_now() -> None:
    headers = {"Authorization": "Bearer one"}
    with MCPServer() as server:
        _, user = _run(server)
        user._extra_headers = lambda: headers
        user.on_start()
        headers["Authorization"] = "Bearer two"
        user._call("echo", {})

    assert server.requests[-1].headers["authorization"] == "Bearer two"


def test_a_request_that_is_answered_late_is_a_timeout_and_the_server_is_told() -> None:
    with MCPServer() as server:
        server.on["tools/call"] = lambda peer: peer.gone()
        run, user = _run(server, network_timeout=0.1)
        user.on_start()
        assert user._call("echo", {}) is None

    told = server.requests[-1]
    assert run.rows[-2].failure == "Timeout: timeout"
    assert run.rows[-2].ms >= 99
    assert run.names[-1] == "notifications/cancelled"
    assert run.rows[-1].failure == ""
    assert told.params == {
        "requestId": server.of("tools/call")[0].message["id"],
        "reason": "timeout",
    }


def test_a_late_initialize_is_not_cancelled() -> None:
    """specification/2025-06-18/basic/utilities/cancellation: it MUST NOT be cancelled."""
    with MCPServer() as server:
        server.on["initialize"] = in_turn(lambda peer: peer.gone(), server.initialize)
        run, user = _run(server, network_timeout=0.1)
        user.on_start()

    assert run.rows[0].failure == "Timeout: timeout"
    assert "notifications/cancelled" not in server.methods


def test_a_request_that_was_never_sent_is_not_cancelled() -> None:
    with MCPServer() as server, socket.socket() as full, socket.socket() as one:
        full.bind(("127.0.0.1", 0))
        full.listen(0)  # takes one connection, and nobody accepts it
        one.connect(full.getsockname())
        run, user = _run(server, connection_timeout=0.1)
        user.on_start()
        user._wire.close()
        user._wire._origin._addresses = [(socket.AF_INET, full.getsockname())]
        user._call("echo", {})

    assert run.rows[-1].name == "t:tools/call:echo"
    assert run.rows[-1].failure == "Timeout: connect timeout"
    assert "notifications/cancelled" not in server.methods


def test_a_throttled_user_waits_as_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = _pauses(monkeypatch)
    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()
        server.on["tools/call"] = lambda p: p.reply(status=429, headers={"Retry-After": "7"})
        assert user._call("echo", {}) is None

    assert run.rows[-1].failure == "Throttled: HTTP 429"
    assert pauses == [7.0]
    assert run.rows[-1].ms < 7000


def test_a_throttled_user_goes_on_where_the_switch_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses = _pauses(monkeypatch)
    monkeypatch.setenv("MCP_HONOUR_RETRY_AFTER", "0")
    with MCPServer() as server:
        _, user = _run(server)
        user.on_start()
        server.on["tools/call"] = lambda p: p.reply(status=429, headers={"Retry-After": "7"})
        user._call("echo", {})

    assert pauses == []


def test_a_401_asks_the_hook_once_and_the_next_call_has_the_new_token() -> None:
    tokens = ["one", "two"]

    def checked(peer: Peer) -> None:
        if peer.request.headers["authorization"] == "Bearer one":
            peer.reply(status=401, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
        else:
            peer.result(OK)

    with MCPServer() as server:
        run, user = _run(
            server,
            _extra_headers=lambda self: {"Authorization": f"Bearer {tokens[0]}"},
            _token_rejected=lambda self: tokens.pop(0),
        )
        user.on_start()
        server.on["tools/call"] = checked
        assert user._call("echo", {}) is None
        assert user._call("echo", {}) == OK

    assert [row.failure for row in run.rows[-2:]] == ["AuthError: HTTP 401", ""]
    assert tokens == ["two"]


@pytest.mark.parametrize("where", ["initialize", "tools/call"])
def test_a_hook_for_a_new_token_that_fails_loses_no_user(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: Any) -> None:
        raise RuntimeError(WITH_A_SECRET)

    with MCPServer() as server:
        usual = server.initialize if where == "initialize" else (lambda peer: peer.result(OK))
        server.on[where] = in_turn(lambda peer: peer.reply(status=401), usual)
        _, user = _run(server, _token_rejected=broken)
        user.on_start()
        user._call("echo", {})
        assert user._call("echo", {}) == OK

    assert "s3cret" not in caplog.text


def test_a_403_asks_for_no_token() -> None:
    asked: list[int] = []
    with MCPServer() as server:
        server.on["tools/call"] = lambda peer: peer.reply(status=403)
        run, user = _run(server, _token_rejected=lambda self: asked.append(1))
        user.on_start()
        user._call("echo", {})

    assert run.rows[-1].failure == "AuthError: HTTP 403"
    assert asked == []


def test_a_user_s_own_http_client_still_works_and_is_made_when_first_used() -> None:
    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()
        assert "client" not in user.__dict__
        state = user._state
        with FakeServer(lambda peer: peer.reply(b"hello", kind="text/plain")) as other:
            seen: list[str] = []
            run.environment.events.request._handlers.clear()
            run.environment.events.request.add_listener(lambda name, **_: seen.append(name))
            assert user.client.get(f"{other.url}/x", name="own").text == "hello"

    assert seen == ["own"]
    assert user._state == state
    assert user.session_id == "session-1"


# ---- lost sessions


def _lost_once(server: MCPServer, refuse: Callable[[Peer], Any]) -> Callable[[Peer], Any]:
    def call(peer: Peer) -> None:
        if peer.request.headers.get("mcp-session-id") == "session-1":
            refuse(peer)
        else:
            peer.result(OK)

    return call


@pytest.mark.parametrize(
    "refuse",
    [
        lambda peer: peer.error(-32001, 404, "Session not found"),
        lambda peer: peer.reply(b"", 404, kind="text/plain"),
        lambda peer: peer.error(-32000, 400, "Bad Request: No valid session ID provided"),
        lambda peer: peer.reply(b"session unknown on this instance", 503, kind="text/plain"),
        lambda peer: peer.error(-32600, 200, "Session not found"),
    ],
    ids=["404", "bare 404", "400", "503", "200"],
)
def test_a_lost_session_is_one_failure_one_initialize_and_the_user_goes_on(
    refuse: Callable[[Peer], Any],
) -> None:
    with MCPServer() as server:
        server.on["tools/call"] = _lost_once(server, refuse)
        run, user = _run(server)
        user.on_start()
        assert user._call("echo", {}) is None
        assert user._call("echo", {}) == OK

    assert run.names == [
        *LIFE,
        "tools/call:echo",
        "initialize",
        "notifications/initialized",
        "tools/call:echo",
    ]
    assert run.failures == {"tools/call:echo": "SessionLost: session lost"}
    again = server.of("initialize")[1]
    assert "mcp-session-id" not in again.headers
    assert "mcp-protocol-version" not in again.headers
    assert user.session_id == "session-2"
    assert tallies["t", "session lost"] == 1


def test_a_session_that_is_lost_for_ever_costs_one_initialize_a_call() -> None:
    with MCPServer() as server:
        server.on["tools/call"] = lambda peer: peer.reply(status=404)
        run, user = _run(server)
        user.on_start()
        for _ in range(4):
            assert user._call("echo", {}) is None

    assert len(server.of("initialize")) == 5
    assert run.names.count("tools/call:echo") == 4


def test_of_parallel_calls_that_lose_a_session_one_opens_another() -> None:
    with MCPServer() as server:
        server.on["tools/call"] = _lost_once(server, lambda peer: peer.reply(status=404))
        run, user = _run(server)
        user.on_start()
        results = user._call_all([{"tool": "echo", "arguments": {"n": n}} for n in range(4)])
        assert results == [None] * 4
        assert user._call("echo", {}) == OK

    assert len(server.of("initialize")) == 2
    assert run.names.count("tools/call:echo") == 5


def test_the_initialize_after_a_loss_is_tried_again_too() -> None:
    with MCPServer() as server:
        server.on["tools/call"] = _lost_once(server, lambda peer: peer.reply(status=404))
        refused = lambda peer: peer.reply(status=503)  # noqa: E731
        server.on["initialize"] = in_turn(server.initialize, refused, server.initialize)
        run, user = _run(server)
        user.on_start()
        user._call("echo", {})
        assert user._call("echo", {}) == OK

    assert [r.failure for r in run.rows if r.name == "t:initialize"] == [
        "",
        "HTTPStatusError: HTTP 503",
        "",
    ]


# ---- what the server asks


def _asks(request: dict[str, Any], heard: list[Request], event: Event) -> Callable[[Peer], Any]:
    """Answer a call only once the client has answered `request`, sent in its stream."""

    def call(peer: Peer) -> None:
        peer.stream()
        peer.event(request)
        assert event.wait(PATIENCE_S)
        peer.event(answer(peer.request, OK))
        peer.end()

    return call


@pytest.mark.parametrize(
    ("method", "expected", "counted"),
    [
        ("ping", {"result": {}}, "server ping answered"),
        (
            "sampling/createMessage",
            {"error": {"code": -32601, "message": "Method not found"}},
            "server request refused",
        ),
        (
            "elicitation/create",
            {"error": {"code": -32601, "message": "Method not found"}},
            "server request refused",
        ),
        (
            "roots/list",
            {"error": {"code": -32601, "message": "Method not found"}},
            "server request refused",
        ),
        (
            "no/such",
            {"error": {"code": -32601, "message": "Method not found"}},
            "server request refused",
        ),
    ],
)
def test_a_request_of_the_server_s_is_answered_on_a_second_connection_while_we_read(
    method: str, expected: dict[str, Any], counted: str
) -> None:
    heard: list[Request] = []
    event = Event()

    def answered(peer: Peer) -> None:
        heard.append(peer.request)
        peer.reply(status=202)
        event.set()

    with MCPServer() as server:
        ask = {"jsonrpc": "2.0", "id": "srv-1", "method": method, "params": {}}
        server.on["tools/call"] = _asks(ask, heard, event)
        server.on[""] = answered
        run, user = _run(server)
        user.on_start()
        assert user._call("echo", {}) == OK

    (posted,) = heard
    assert posted.message == {"jsonrpc": "2.0", "id": "srv-1", **expected}
    assert posted.headers["mcp-session-id"] == "session-1"
    assert posted.connection != server.of("tools/call")[0].connection
    _until(lambda: tallies["t", counted] == 1)
    assert run.names == [*LIFE, "tools/call:echo"], "an answer is no sample"
    assert server.connections == 2


@pytest.mark.parametrize(
    ("hook", "method", "capability", "result"),
    [
        ("_on_sampling", "sampling/createMessage", "sampling", {"role": "assistant"}),
        ("_on_elicitation", "elicitation/create", "elicitation", {"action": "accept"}),
        ("_on_roots", "roots/list", "roots", {"roots": []}),
    ],
)
def test_a_hook_that_a_class_overrides_is_declared_and_answers(
    hook: str, method: str, capability: str, result: dict[str, Any]
) -> None:
    heard: list[Request] = []
    event = Event()

    def answered(peer: Peer) -> None:
        heard.append(peer.request)
        peer.reply(status=202)
        event.set()

    with MCPServer() as server:
        ask = {"jsonrpc": "2.0", "id": 5, "method": method, "params": {"x": 1}}
        server.on["tools/call"] = _asks(ask, heard, event)
        server.on[""] = answered
        asked: list[Any] = []

        def answering(_self: Any, params: Any) -> dict[str, Any]:
            asked.append(params)
            return result

        _, user = _run(server, **{hook: answering})
        user.on_start()
        assert user._call("echo", {}) == OK

    assert server.requests[0].params["capabilities"] == {capability: {}}
    assert heard[0].message == {"jsonrpc": "2.0", "id": 5, "result": result}
    assert asked == [{"x": 1}]


def test_a_hook_that_fails_is_counted_and_the_call_goes_on() -> None:
    def broken(self: Any, params: Any) -> None:
        raise KeyError("x")

    def call(peer: Peer) -> None:
        peer.stream()
        peer.event({"jsonrpc": "2.0", "id": 5, "method": "roots/list"})
        peer.event(answer(peer.request, OK))
        peer.end()

    with MCPServer() as server:
        server.on["tools/call"] = call
        _, user = _run(server, _on_roots=broken)
        user.on_start()
        assert user._call("echo", {}) == OK

    _until(lambda: tallies["t", "answer to the server failed"] == 1)


def test_many_pings_in_one_stream_are_all_answered() -> None:
    answers: list[Any] = []
    all_here = Event()

    def call(peer: Peer) -> None:
        peer.stream()
        for n in range(10):
            peer.event({"jsonrpc": "2.0", "id": f"p{n}", "method": "ping"})
        assert all_here.wait(PATIENCE_S)
        peer.event(answer(peer.request, OK))
        peer.end()

    def answered(peer: Peer) -> None:
        answers.append(peer.request.message["id"])
        peer.reply(status=202)
        if len(answers) == 10:
            all_here.set()

    with MCPServer() as server:
        server.on.update({"tools/call": call, "": answered})
        _, user = _run(server)
        user.on_start()
        assert user._call("echo", {}) == OK

    assert sorted(answers) == [f"p{n}" for n in range(10)]


def test_notifications_before_the_reply_are_counted() -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
    with MCPServer() as server:
        server.on["tools/call"] = lambda p: p.events(note, note, answer(p.request, OK))
        run, user = _run(server)
        user.on_start()
        assert user._call("echo", {}) == OK

    assert tallies["t", "notification received"] == 2
    assert run.rows[-1].trace.kind == "sse"
    assert run.rows[-1].trace.first_event <= run.rows[-1].trace.replied


# ---- bursts


def test_a_burst_sends_its_calls_at_once_in_one_session_each_its_own_sample() -> None:
    here: list[Request] = []
    all_here = Event()

    def together(peer: Peer) -> None:
        here.append(peer.request)
        if len(here) == 3:
            all_here.set()
        assert all_here.wait(PATIENCE_S), "the calls came one after the other"
        n = peer.request.params["arguments"]["n"]
        peer.result({"n": n} if n != 1 else {"isError": True})

    with MCPServer() as server:
        server.on["tools/call"] = together
        run, user = _run(server)
        user.on_start()
        calls = [{"tool": "echo", "arguments": {"n": n}, "name": f"n{n}"} for n in range(3)]
        results = user._call_all(calls)

    assert results == [{"n": 0}, None, {"n": 2}]
    assert sorted(run.names[3:]) == ["tools/call:n0", "tools/call:n1", "tools/call:n2"]
    assert {request.headers["mcp-session-id"] for request in here} == {"session-1"}
    assert len({request.connection for request in here}) == 3


def test_a_burst_whose_user_is_killed_gives_its_calls_time_to_end() -> None:
    asked, go = Event(), Event()

    def slow(peer: Peer) -> None:
        if len(peer.server.of("tools/call")) == 2:
            asked.set()
        assert go.wait(PATIENCE_S)
        peer.result(OK)

    with MCPServer() as server:
        server.on["tools/call"] = slow
        run, user = _run(server)
        user.on_start()
        calls = [{"tool": "echo", "arguments": {}}] * 2
        burst = gevent.spawn(user._call_all, calls)
        assert asked.wait(PATIENCE_S)
        burst.kill(block=False)
        gevent.idle()
        go.set()
        burst.join(PATIENCE_S)

    assert burst.dead
    assert run.names.count("tools/call:echo") == 2
    assert run.failures == {}


def test_a_burst_ends_its_user_where_a_listener_of_locust_s_wants_so() -> None:
    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()

        def stop(**_: Any) -> None:
            raise StopUser

        run.environment.events.request.add_listener(stop)
        with pytest.raises(StopUser):
            user._call_all([{"tool": "echo", "arguments": {}}])


def test_a_pause_of_one_parallel_call_does_not_undo_a_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class User:
        _state = "running"

    user = User()

    def stopped_meanwhile(seconds: float) -> None:
        user._state = "stopping"  # as Locust does where it finds a user in its task

    monkeypatch.setattr(_roster, "gevent", SimpleNamespace(sleep=stopped_meanwhile))
    _roster.rest(user, 1.0)

    assert user._state == "stopping"


def test_bursts_come_as_often_as_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    with MCPServer() as server:
        _, user = _run(server)
        for value, expected in (("0", {False}), ("1", {True})):
            monkeypatch.setenv("MCP_BURST_PROB", value)
            _roster.burst_probability.cache_clear()

            assert {user._bursts() for _ in range(50)} == expected


# ---- habits


@pytest.mark.parametrize(("sessions", "expected"), [("conversation", 1), ("task", 2), ("call", 4)])
def test_a_session_serves_a_conversation_a_task_or_a_call(sessions: str, expected: int) -> None:
    with MCPServer() as server:
        run, user = _run(server, sessions=sessions)
        user.on_start()
        for _ in range(2):  # two tasks of two calls
            user._call("echo", {})
            user._call("echo", {})
            user.wait_time()
        user.on_stop()

    assert len(server.of("initialize")) == len(server.of("DELETE")) == expected
    assert len(server.of("tools/list")) == expected
    assert run.failures == {}
    assert [r.headers["mcp-session-id"] for r in server.of("tools/call")] == {
        "conversation": ["session-1"] * 4,
        "task": ["session-1"] * 2 + ["session-2"] * 2,
        "call": ["session-1", "session-2", "session-3", "session-4"],
    }[sessions]


def test_tools_are_listed_before_each_task() -> None:
    with MCPServer() as server:
        _, user = _run(server, lists_tools="task")
        user.on_start()
        for _ in range(3):
            user._call("echo", {})
            user._call("echo", {})
            user.wait_time()

    assert server.methods[2:] == ["tools/list", "tools/call", "tools/call"] * 3


@pytest.mark.parametrize(("ttl_ms", "expected"), [(60_000, 1), (0, 3), (-5, 3), (None, 3)])
def test_tools_are_listed_again_when_their_time_is_over(ttl_ms: int | None, expected: int) -> None:
    with MCPServer() as server:
        more = {} if ttl_ms is None else {"ttlMs": ttl_ms, "cacheScope": "public"}
        server.on["tools/list"] = lambda peer: peer.result(
            {"tools": server.tools, "resultType": "complete", **more}
        )
        _, user = _run(server, lists_tools="ttl", protocol_version=MODERN)
        user.on_start()
        user._call("echo", {})
        user._call("echo", {})

    assert len(server.of("tools/list")) == expected


@pytest.mark.parametrize("attribute", ["sessions", "lists_tools"])
def test_a_habit_that_nobody_has_stops_the_run(
    attribute: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with MCPServer() as server, pytest.raises(SystemExit) as caught:
        _run(server, **{attribute: "often"})

    assert caught.value.code == 2
    assert re.fullmatch(
        rf"TestedUser\.{attribute} = 'often': use one of .*\n", capsys.readouterr().err
    )


def test_an_idle_stream_is_open_beside_the_calls_and_ends_with_the_user() -> None:
    opened, closed = Event(), Event()

    def listen(peer: Peer) -> None:
        peer.stream()
        peer.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        opened.set()
        assert peer.gone()
        closed.set()

    with MCPServer() as server:
        server.on["GET"] = listen
        run, user = _run(server, idle_stream=True)
        user.on_start()
        assert opened.wait(PATIENCE_S)
        assert user._call("echo", {}) == OK
        user.on_stop()
        assert closed.wait(PATIENCE_S)

    (get,) = server.of("GET")
    assert get.headers["accept"] == "text/event-stream"
    assert get.headers["mcp-session-id"] == "session-1"
    assert get.connection != server.of("tools/call")[0].connection
    assert run.names == [*LIFE, "tools/call:echo", "DELETE"], "a stream is no sample"
    assert tallies["t", "notification heard: notifications/tools/list_changed"] == 1


def test_a_request_on_the_idle_stream_is_answered() -> None:
    answered = Event()

    def listen(peer: Peer) -> None:
        peer.stream()
        peer.event({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        peer.gone()

    def heard(peer: Peer) -> None:
        peer.reply(status=202)
        answered.set()

    with MCPServer() as server:
        server.on.update({"GET": listen, "": heard})
        _, user = _run(server, idle_stream=True)
        user.on_start()
        assert answered.wait(PATIENCE_S)
        user.on_stop()


@pytest.mark.parametrize("status", [405, 404, 401])
def test_a_server_without_an_idle_stream_is_asked_once(status: int) -> None:
    refused = Event()

    def refuse(peer: Peer) -> None:
        peer.reply(status=status)
        refused.set()

    with MCPServer() as server:
        server.on["GET"] = refuse
        run, user = _run(server, idle_stream=True)
        user.on_start()
        assert refused.wait(PATIENCE_S)
        user._call("echo", {})
        user.on_stop()

    assert len(server.of("GET")) == 1
    assert run.failures == {}
    assert tallies["t", f"listening refused, HTTP {status}"] == 1


def test_an_idle_stream_that_ends_without_a_word_is_opened_again_a_few_times_only() -> None:
    def end(peer: Peer) -> None:
        peer.stream()
        peer.chunk(b"retry: 1\n\n")
        peer.end()

    with MCPServer() as server:
        server.on["GET"] = end
        run, user = _run(server, idle_stream=True)
        user.on_start()
        _until(lambda: user._listener._greenlet.dead)
        user.on_stop()

    assert len(server.of("GET")) == 2
    assert run.failures == {}


def test_an_idle_stream_is_resumed_from_its_last_event() -> None:
    resumed = Event()

    def polling(peer: Peer) -> None:
        peer.stream()
        if "last-event-id" not in peer.request.headers:
            peer.event({"jsonrpc": "2.0", "method": "notifications/x"}, "id: e1\nretry: 1\n")
            peer.end()
        else:
            resumed.set()
            peer.gone()

    with MCPServer() as server:
        server.on["GET"] = polling
        _, user = _run(server, idle_stream=True)
        user.on_start()
        assert resumed.wait(PATIENCE_S)
        user.on_stop()
        _until(lambda: not user._wire._idle)

    assert server.of("GET")[1].headers["last-event-id"] == "e1"


def test_no_idle_stream_is_opened_without_a_session() -> None:
    with MCPServer(session=False) as server:
        _, user = _run(server, idle_stream=True, requires_session=False)
        user.on_start()
        gevent.idle()
        user.on_stop()

    assert server.of("GET") == []


def test_a_user_without_the_habit_never_sends_a_get() -> None:
    with MCPServer() as server:
        _, user = _run(server)
        user.on_start()
        gevent.idle()
        user.on_stop()

    assert server.of("GET") == []


def test_progress_tokens_and_traceparents_are_sent_where_a_class_wants_them() -> None:
    with MCPServer() as server:
        run, user = _run(server, progress_tokens=True, traceparents=True)
        user.on_start()
        user._call("echo", {})
        user._call("echo", {})

    first, second = (request.params["_meta"] for request in server.of("tools/call"))
    request_id = server.of("tools/call")[0].message["id"]
    assert first["progressToken"] == request_id
    found = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01", first["traceparent"])
    assert found
    assert int(found[1][16:], 16) == run.rows[-2].trace.request_id
    assert first["traceparent"] != second["traceparent"]


def test_nothing_is_added_to_a_request_where_nobody_asks_for_it() -> None:
    with MCPServer() as server:
        _, user = _run(server)
        user.on_start()
        user._call("echo", {"a": 1})

    assert server.requests[-1].params == {"name": "echo", "arguments": {"a": 1}}
    assert "params" not in server.of("tools/list")[0].message


def test_the_client_s_name_is_the_class_s_to_choose() -> None:
    with MCPServer() as server:
        _, user = _run(server, client_info={"name": "mine", "version": "9"})
        user.on_start()

    assert server.requests[0].params["clientInfo"] == {"name": "mine", "version": "9"}


# ---- resources, prompts, completions


def test_resources_prompts_and_completions_are_called_like_tools() -> None:
    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()
        server.on["resources/list"] = lambda p: p.result({"resources": [{"uri": "x:1"}]})
        server.on["resources/templates/list"] = lambda p: p.result({"resourceTemplates": [{}]})
        server.on["prompts/list"] = lambda p: p.result({"prompts": [{"name": "p"}]})
        assert user._resources_list() == [{"uri": "x:1"}]
        assert user._resource_templates_list() == [{}]
        assert user._prompts_list() == [{"name": "p"}]
        assert user._read_resource("x:1") is not None
        assert user._read_resource("x:2", name="two", expect=has_results) is None
        assert user._get_prompt("p", {"a": "b"}) is not None
        assert user._complete({"type": "ref/prompt", "name": "p"}, "a", "b") is not None

    assert run.names[3:] == [
        "resources/list",
        "resources/templates/list",
        "prompts/list",
        "resources/read",
        "resources/read:two",
        "prompts/get:p",
        "completion/complete",
    ]
    assert run.failures == {"resources/read:two": "CheckFailed: check failed: has_results"}
    assert server.of("prompts/get")[0].params == {"name": "p", "arguments": {"a": "b"}}
    assert server.of("completion/complete")[0].params == {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "a", "value": "b"},
    }


def test_pages_of_resources_are_all_read_and_a_failed_one_is_none() -> None:
    with MCPServer() as server:
        run, user = _run(server)
        user.on_start()
        server.on["resources/list"] = in_turn(
            lambda p: p.result({"resources": [{"uri": "a"}], "nextCursor": "2"}),
            lambda p: p.result({"resources": [{"uri": "b"}]}),
            lambda p: p.error(-32601),
        )
        assert user._resources_list() == [{"uri": "a"}, {"uri": "b"}]
        assert user._resources_list() is None

    assert run.rows[-1].failure == "RPCError: JSON-RPC error -32601"


# ---- the stateless era


def test_a_stateless_life_is_discover_list_and_calls() -> None:
    with MCPServer() as server:
        run, user = _run(server, protocol_version=MODERN)
        user.on_start()
        assert user._call("echo", {"a": 1}) is not None
        user.on_stop()

    assert server.methods == ["server/discover", "tools/list", "tools/call"]
    assert run.names == ["server/discover", "tools/list", "tools/call:echo"]
    assert run.failures == {}
    call = server.requests[-1]
    assert call.params["_meta"] == {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": server.requests[0].params["_meta"][
            "io.modelcontextprotocol/clientInfo"
        ],
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    for request in server.requests:
        assert request.headers["mcp-protocol-version"] == MODERN
        assert request.headers["mcp-method"] == request.method
        assert "mcp-session-id" not in request.headers
        assert "_meta" in request.params
    assert call.headers["mcp-name"] == "echo"
    assert run.rows[-1].trace.revision == MODERN


def test_a_session_id_in_the_stateless_era_is_not_taken() -> None:
    with MCPServer() as server:
        server.on["tools/call"] = lambda peer: peer.result(OK, {"Mcp-Session-Id": "s"})
        _, user = _run(server, protocol_version=MODERN)
        user.on_start()
        user._call("echo", {})
        user.on_stop()

    assert "DELETE" not in server.methods


def test_a_result_without_a_type_is_complete_and_an_unknown_type_is_invalid() -> None:
    with MCPServer() as server:
        run, user = _run(server, protocol_version=MODERN)
        user.on_start()
        server.on["tools/call"] = in_turn(
            lambda peer: peer.result(OK), lambda peer: peer.result({"resultType": "task"})
        )
        assert user._call("echo", {}) == OK
        assert user._call("echo", {}) is None

    assert run.rows[-1].failure == "ProtocolError: unknown result type"


TOOL = {
    "name": "sql",
    "inputSchema": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
}
BAD_TOOL = {
    "name": "bad",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number", "x-mcp-header": "A"}},
    },
}


def test_marked_arguments_are_mirrored_in_headers_and_others_are_not() -> None:
    with MCPServer(tools=[TOOL]) as server:
        _, user = _run(server, protocol_version=MODERN)
        user.on_start()
        for region in ("eu-1", "日本", None):
            user._call("sql", {"region": region, "other": "x"})

    sent = [request.headers.get("mcp-param-region") for request in server.of("tools/call")]
    assert sent == ["eu-1", "=?base64?5pel5pys?=", None]


def test_a_tool_name_that_no_header_can_carry_is_encoded() -> None:
    with MCPServer() as server:
        _, user = _run(server, protocol_version=MODERN)
        user.on_start()
        user._call("é\r\nEvil: 1", {})

    assert server.requests[-1].headers["mcp-name"].startswith("=?base64?")
    assert "evil" not in server.requests[-1].headers


def test_a_tool_with_an_annotation_that_nobody_may_obey_is_dropped_with_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pauses(monkeypatch)
    with MCPServer(tools=[TOOL, BAD_TOOL]) as server:
        run = Run(_class(server, protocol_version=MODERN))
        users = [run.user(), run.user()]
        for user in users:
            user.on_start()

    assert [[tool["name"] for tool in user.tools] for user in users] == [["sql"], ["sql"]]
    assert len([r for r in caplog.records if "'bad' is dropped" in r.message]) == 1


def test_the_handshake_era_keeps_every_tool_and_mirrors_nothing() -> None:
    with MCPServer(tools=[TOOL, BAD_TOOL]) as server:
        _, user = _run(server)
        user.on_start()
        user._call("sql", {"region": "eu-1"})

    assert [tool["name"] for tool in user.tools] == ["sql", "bad"]
    assert not [h for h in server.requests[-1].headers if h.startswith("mcp-param")]


def _state_only(peer: Peer) -> None:
    state = peer.request.params.get("requestState")
    if state == "byte-exact=\u00e9":
        peer.result({**OK, "resultType": "complete"})
    else:
        peer.result({"resultType": "input_required", "requestState": "byte-exact=\u00e9"})


def test_a_round_that_only_has_a_state_is_answered_with_a_new_id_and_the_same_params() -> None:
    with MCPServer() as server:
        server.on["tools/call"] = _state_only
        run, user = _run(server, protocol_version=MODERN)
        user.on_start()
        assert user._call("echo", {"a": 1}, expect=lambda result: "content" in result)

    first, second = server.of("tools/call")
    assert first.message["id"] != second.message["id"]
    assert second.params["arguments"] == first.params["arguments"]
    assert second.params["requestState"] == "byte-exact=\u00e9"
    assert "inputResponses" not in second.params
    assert second.headers["mcp-name"] == "echo"
    assert run.names.count("tools/call:echo") == 2
    assert run.failures == {}


def test_input_that_a_server_asks_for_comes_from_the_hooks() -> None:
    def call(peer: Peer) -> None:
        if "inputResponses" in peer.request.params:
            peer.result({**OK, "resultType": "complete"})
        else:
            asked = {"name": {"method": "elicitation/create", "params": {"message": "who?"}}}
            peer.result({"resultType": "input_required", "inputRequests": asked})

    with MCPServer() as server:
        server.on["tools/call"] = call
        _, user = _run(
            server,
            protocol_version=MODERN,
            _on_elicitation=lambda self, params: {"action": "accept", "content": params},
        )
        user.on_start()
        assert user._call("echo", {}) is not None

    second = server.of("tools/call")[1]
    assert second.params["inputResponses"] == {
        "name": {"action": "accept", "content": {"message": "who?"}}
    }
    assert "requestState" not in second.params
    meta = second.params["_meta"]
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {"elicitation": {}}


def test_a_server_that_never_has_enough_input_is_a_recorded_failure() -> None:
    with MCPServer() as server:
        server.on["tools/call"] = lambda p: p.result(
            {"resultType": "input_required", "requestState": "more"}
        )
        run, user = _run(server, protocol_version=MODERN)
        user.on_start()
        assert user._call("echo", {}) is None

    assert len(server.of("tools/call")) == 10
    assert [row.failure for row in run.rows if row.failure] == [
        "ProtocolError: too many rounds of input"
    ]


@pytest.mark.parametrize("requests", [[], "x", {"a": None}, {"a": {}}, {"a": {"method": 7}}])
def test_odd_requests_for_input_raise_nothing(requests: Any) -> None:
    with MCPServer() as server:
        asked = {"resultType": "input_required", "inputRequests": requests}
        server.on["tools/call"] = in_turn(
            lambda p: p.result(asked), lambda p: p.result({**OK, "resultType": "complete"})
        )
        _, user = _run(server, protocol_version=MODERN)
        user.on_start()
        assert user._call("echo", {}) is not None


def test_headers_that_do_not_match_relist_the_tools_and_the_call_is_tried_once_more() -> None:
    with MCPServer(tools=[{"name": "sql"}]) as server:
        _, user = _run(server, protocol_version=MODERN)
        user.on_start()
        server.tools = [TOOL]

        def strict(peer: Peer) -> None:
            if "mcp-param-region" in peer.request.headers:
                peer.result({**OK, "resultType": "complete"})
            else:
                peer.error(-32020, 400)

        server.on["tools/call"] = strict
        assert user._call("sql", {"region": "eu-1"}) is not None

    assert server.methods[2:] == ["tools/call", "tools/list", "tools/call"]


def test_headers_that_never_match_are_tried_twice_a_call() -> None:
    with MCPServer() as server:
        server.on["tools/call"] = lambda peer: peer.error(-32020, 400)
        run, user = _run(server, protocol_version=MODERN)
        user.on_start()
        assert user._call("echo", {}) is None

    assert server.methods[2:] == ["tools/call", "tools/list", "tools/call"]
    assert run.failures == {"tools/call:echo": "HTTPStatusError: HTTP 400, JSON-RPC error -32020"}


def test_a_server_that_refuses_the_headers_of_everything_is_not_flooded() -> None:
    refusals: list[str] = []

    def refuse(peer: Peer) -> None:
        refusals.append(peer.request.method)
        peer.error(-32020, 400)

    with MCPServer() as server:
        server.on["tools/list"] = refuse
        server.on["server/discover"] = in_turn(refuse, server._usual)
        _, user = _run(server, protocol_version=MODERN)
        user.on_start()

    assert refusals == ["server/discover", "tools/list"]


@pytest.mark.parametrize("code", [-32021, -32022])
def test_other_refusals_of_the_stateless_era_are_failures_with_their_code(code: int) -> None:
    with MCPServer() as server:
        server.on["tools/call"] = lambda peer: peer.error(code, 400)
        run, user = _run(server, protocol_version=MODERN)
        user.on_start()
        user._call("echo", {})

    assert run.rows[-1].failure == f"HTTPStatusError: HTTP 400, JSON-RPC error {code}"
    assert len(server.of("tools/call")) == 1


def test_a_stateless_timeout_closes_its_stream_and_says_nothing_more() -> None:
    closed = Event()

    def hang(peer: Peer) -> None:
        peer.stream()
        assert peer.gone()
        closed.set()

    with MCPServer() as server:
        server.on["tools/call"] = hang
        run, user = _run(server, protocol_version=MODERN, network_timeout=0.1)
        user.on_start()
        assert user._call("echo", {}) is None
        assert closed.wait(PATIENCE_S)

    assert run.rows[-1].failure == "Timeout: timeout"
    assert server.methods[-1] == "tools/call"


def test_a_request_of_a_stateless_server_s_is_not_answered() -> None:
    """specification/2026-07-28/basic/transports: a client MUST NOT send responses."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with MCPServer() as server:
        server.on["tools/call"] = lambda p: p.events(ping, answer(p.request, OK))
        _, user = _run(server, protocol_version=MODERN)
        user.on_start()
        assert user._call("echo", {}) == OK
        gevent.idle()

    assert "" not in server.methods


def test_a_stateless_404_is_no_lost_session() -> None:
    with MCPServer() as server:
        server.on["tools/call"] = lambda peer: peer.error(-32601, 404)
        run, user = _run(server, protocol_version=MODERN)
        user.on_start()
        user._call("echo", {})

    assert run.rows[-1].failure == "HTTPStatusError: HTTP 404, JSON-RPC error -32601"


def test_a_subscription_is_acknowledged_and_its_notifications_are_timed() -> None:
    go = Event()

    def listen(peer: Peer) -> None:
        peer.stream()
        peer.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"})
        assert go.wait(PATIENCE_S)
        peer.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        assert peer.gone()

    with MCPServer() as server:
        server.on["subscriptions/listen"] = listen
        run, user = _run(server, protocol_version=MODERN)
        user.on_start()
        listener = user._listen(toolsListChanged=True)
        waiting = gevent.spawn(listener.wait_for, "notifications/tools/list_changed", PATIENCE_S)
        server.heard(lambda: bool(server.of("subscriptions/listen")))
        go.set()
        waited = waiting.get(timeout=PATIENCE_S)
        user.on_stop()

    (request,) = server.of("subscriptions/listen")
    assert waited is not None
    assert listener.acknowledged_after is not None
    assert request.params["notifications"] == {"toolsListChanged": True}
    assert "_meta" in request.params
    assert request.headers["mcp-method"] == "subscriptions/listen"
    assert run.names == ["server/discover", "tools/list"]


# ---- which era


def _era(script: Callable[[Peer], Any]) -> tuple[list[str], Run]:
    with MCPServer() as server:
        server.on["server/discover"] = in_turn(script, server._usual)
        run, user = _run(server, protocol_version="auto", discovers=False)
        user.on_start()
    return server.methods, run


@pytest.mark.parametrize(
    ("script", "modern"),
    [
        (lambda p: p.result({"supportedVersions": [MODERN]}), True),
        (lambda p: p.events(answer(p.request, {"supportedVersions": [MODERN]})), True),
        (lambda p: p.result({"supportedVersions": ["2025-11-25"]}), False),
        (lambda p: p.error(-32022, 400, data={"supported": [MODERN]}), True),
        (lambda p: p.error(-32022, 400, data={"supported": ["2025-06-18"]}), False),
        (lambda p: p.error(-32020, 400), True),
        (lambda p: p.error(-32021, 400), True),
        (lambda p: p.error(-32600, 400, "Missing session ID"), False),
        (lambda p: p.error(-32601), False),
        (lambda p: p.reply(b"<p>no", 404, kind="text/html"), False),
        (lambda p: p.reply(status=405), False),
        (lambda p: p.reply(status=406), False),
        (lambda p: p.reply(status=202), False),
        (lambda p: p.reply(b"ok", kind="text/plain"), False),
    ],
)
def test_auto_speaks_the_era_that_the_probe_found(
    script: Callable[[Peer], Any], modern: bool
) -> None:
    methods, run = _era(script)

    assert methods == ["server/discover", *(["tools/list"] if modern else LIFE)]
    assert "server/discover" not in run.names, "a probe is no sample"
    assert run.failures == {}
    assert tallies["t", "era probed"] == 1


def test_a_fallback_offers_the_newest_handshake_or_the_one_that_was_listed() -> None:
    with MCPServer() as server:
        server.on["server/discover"] = lambda p: p.error(-32601)
        _, user = _run(server, protocol_version="auto")
        user.on_start()
    assert server.of("initialize")[0].params["protocolVersion"] == "2025-11-25"
    _forget()
    with MCPServer() as server:
        data = {"supported": ["2025-03-26", "2025-06-18"]}
        server.on["server/discover"] = lambda p: p.error(-32022, 400, data=data)
        _, user = _run(server, protocol_version="auto")
        user.on_start()
    assert server.of("initialize")[0].params["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize(
    "script",
    [
        lambda p: p.reply(status=401),
        lambda p: p.reply(status=403),
        lambda p: p.reply(status=500),
        lambda p: p.reply(status=503, headers={"Retry-After": "0"}),
        lambda p: p.reply(status=302, headers={"Location": "/login"}),
        lambda p: p.close(),
        lambda p: p.error(-32022, 400, data={"supported": ["2099-01-01"]}),
    ],
)
def test_an_outage_or_a_refused_token_is_no_verdict_and_the_probe_is_made_again(
    script: Callable[[Peer], Any],
) -> None:
    methods, run = _era(script)

    assert methods == ["server/discover", "server/discover", "tools/list"]
    assert run.names == ["tools/list"]
    assert tallies["t", "era probed"] == 2


def test_a_401_to_the_probe_asks_the_hook_for_a_token() -> None:
    tokens = ["one", "two"]
    with MCPServer() as server:
        server.on["server/discover"] = in_turn(lambda p: p.reply(status=401), server._usual)
        _, user = _run(
            server,
            protocol_version="auto",
            _extra_headers=lambda self: {"Authorization": f"Bearer {tokens[0]}"},
            _token_rejected=lambda self: tokens.pop(0),
        )
        user.on_start()

    assert [r.headers["authorization"] for r in server.requests[:2]] == ["Bearer one", "Bearer two"]


def test_a_fault_of_a_hook_in_the_probe_loses_no_user(caplog: pytest.LogCaptureFixture) -> None:
    faults = [1]

    def headers(self: Any) -> dict[str, str]:
        if faults:
            faults.pop()
            raise RuntimeError(WITH_A_SECRET)
        return {}

    with MCPServer() as server:
        run, user = _run(server, protocol_version="auto", _extra_headers=headers)
        user.on_start()

    assert run.failures == {}
    assert "s3cret" not in caplog.text


def test_all_users_share_one_probe_and_its_verdict() -> None:
    with MCPServer() as server:
        run = Run(_class(server, protocol_version="auto", discovers=False))
        users = [run.user() for _ in range(5)]
        gevent.joinall([gevent.spawn(user._establish) for user in users], raise_error=True)

    assert server.methods == ["server/discover"]
    assert {user._session.revision.name for user in users} == {MODERN}


def test_users_who_waited_for_a_probe_that_failed_do_not_each_make_their_own_at_once() -> None:
    with MCPServer() as server:
        server.on["server/discover"] = lambda peer: peer.reply(status=500)
        run = Run(_class(server, protocol_version="auto"))
        users = [run.user() for _ in range(5)]
        gevent.joinall([gevent.spawn(user._open_session) for user in users], raise_error=True)

    assert server.methods == ["server/discover"]


def test_a_probe_of_one_server_does_not_hold_up_another_s() -> None:
    release = Event()

    def hang(peer: Peer) -> None:
        assert release.wait(PATIENCE_S)
        peer.result({"supportedVersions": [MODERN]})

    with MCPServer() as slow, MCPServer() as quick:
        slow.on["server/discover"] = hang
        first = Run(_class(slow, protocol_version="auto", server_label="slow")).user()
        second = Run(_class(quick, protocol_version="auto", server_label="quick")).user()
        waiting = gevent.spawn(first._open_session)
        slow.heard(lambda: len(slow.requests) == 1)
        second._open_session()
        assert not waiting.dead
        release.set()
        waiting.join(PATIENCE_S)

    assert second._session.stateless


def test_a_user_killed_in_the_probe_obeys() -> None:
    asked, go = Event(), Event()

    def slow(peer: Peer) -> None:
        asked.set()
        assert go.wait(PATIENCE_S)
        peer.result({"supportedVersions": [MODERN]})

    with MCPServer() as server:
        server.on["server/discover"] = slow
        _, user = _run(server, protocol_version="auto")
        starting = gevent.spawn(user.on_start)
        assert asked.wait(PATIENCE_S)
        starting.kill(block=False)
        gevent.idle()
        go.set()
        starting.join(PATIENCE_S)

    assert isinstance(starting.value, gevent.GreenletExit)
    assert server.methods == ["server/discover"]


def test_a_server_that_has_changed_its_era_is_probed_again() -> None:
    with MCPServer() as server:
        server.on["server/discover"] = in_turn(lambda p: p.error(-32601), server._usual)
        server.on["initialize"] = lambda p: p.error(-32022, 400, data={"supported": [MODERN]})
        run, user = _run(server, protocol_version="auto", discovers=False)
        user.on_start()

    assert server.methods == ["server/discover", "initialize", "server/discover", "tools/list"]
    assert run.failures == {"initialize": "HTTPStatusError: HTTP 400, JSON-RPC error -32022"}


@pytest.mark.parametrize("pinned", ["2025-03-26", "2025-06-18", "2025-11-25", MODERN])
def test_a_pinned_revision_is_used_without_a_probe(
    pinned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_PROTOCOL_VERSION", pinned)
    with MCPServer() as server:
        _, user = _run(
            server, protocol_version="auto", discovers=False, protocol_versions={"2025-06-18": 1}
        )
        user.on_start()

    if pinned == MODERN:
        assert server.methods == ["tools/list"]
    else:
        assert server.methods == LIFE
        assert server.requests[0].params["protocolVersion"] == pinned


def test_the_variable_can_ask_for_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_PROTOCOL_VERSION", "auto")
    with MCPServer() as server:
        _, user = _run(server)
        user.on_start()

    assert server.methods[0] == "server/discover"


def test_one_class_may_be_weighted_between_both_eras(monkeypatch: pytest.MonkeyPatch) -> None:
    _pauses(monkeypatch)
    weights: Mapping[str, float] = {"2025-06-18": 1, MODERN: 1}
    with MCPServer() as server:
        run = Run(_class(server, protocol_versions=weights, discovers=False))
        users = [run.user() for _ in range(40)]
        for user in users:
            user.on_start()
            user._call("echo", {})
            user.on_stop()

    revisions = {row.trace.revision for row in run.rows if row.name == "t:tools/call:echo"}
    modern = sum(user._wanted == MODERN for user in users)
    assert revisions == set(weights)
    assert modern == 20
    assert len(server.of("initialize")) == 40 - modern
    assert run.failures == {}


# ---- users in Locust's own hands


def _echo(user: Any) -> None:
    user._call("echo", {})


def _spawned(
    server: FakeServer, stop_timeout: float | None = None, does: Any = _echo, **attributes: Any
) -> Run:
    return Run(_class(server, tasks=[does], **attributes), stop_timeout)


def _in_a_long_pause(server: MCPServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("MCP_INTRA_MIN", "600")
    monkeypatch.setenv("MCP_INTRA_MAX", "600")
    monkeypatch.setenv("MCP_TURN_PROB", "0")
    _workload.think_time.cache_clear()
    return _spawned(server, fixed_count=0)


def test_a_user_stopped_in_a_long_pause_deletes_its_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with MCPServer() as server:
        run = _in_a_long_pause(server, monkeypatch)
        run.runner.start(2, spawn_rate=100)
        run.until(lambda: run.names.count("tools/call:echo") == 2)
        run.runner.quit()

    assert len(server.of("DELETE")) == 2
    assert {r.headers["mcp-session-id"] for r in server.of("DELETE")} == set(server.sessions)
    assert run.failures == {}
    assert not run.runner.exceptions


@pytest.mark.parametrize("stop_timeout", [None, 10.0])
def test_a_call_that_is_under_way_at_the_end_is_recorded(stop_timeout: float | None) -> None:
    asked, go = Event(), Event()

    def slow(peer: Peer) -> None:
        asked.set()
        assert go.wait(PATIENCE_S)
        peer.result(OK)

    with MCPServer() as server:
        server.on["tools/call"] = slow
        run = _spawned(server, stop_timeout)
        run.runner.start(1, spawn_rate=1)
        assert asked.wait(PATIENCE_S)
        quitting = gevent.spawn(run.runner.quit)
        gevent.spawn_later(0.2, go.set)
        quitting.join(PATIENCE_S)

    assert run.names == [*LIFE, "tools/call:echo", "DELETE"]
    assert run.failures == {}
    assert tallies["t", "cut at the end"] == 0


def test_a_call_that_gets_no_answer_at_the_end_is_counted_as_cut_and_is_no_sample() -> None:
    asked = Event()

    def never(peer: Peer) -> None:
        asked.set()
        peer.gone()

    with MCPServer() as server:
        server.on["tools/call"] = never
        run = _spawned(server, network_timeout=60.0)
        run.runner.start(1, spawn_rate=1)
        assert asked.wait(PATIENCE_S)
        run.runner.quit()

    assert run.names == [*LIFE, "DELETE"]
    assert tallies["t", "cut at the end"] == 1


def test_a_user_stopped_while_it_waits_for_its_server_to_start_is_gone_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCP_TURN_MIN", "600")
    monkeypatch.setenv("MCP_TURN_MAX", "600")
    _workload.think_time.cache_clear()
    with MCPServer() as server:
        server.on["initialize"] = lambda peer: peer.reply(status=503)
        run = _spawned(server, stop_timeout=60.0)
        run.runner.start(1, spawn_rate=1)
        run.until(lambda: run.names == ["initialize"])
        run.runner.quit()

    assert server.methods == ["initialize"]
    assert run.runner.user_count == 0


def test_a_user_stopped_while_it_was_told_to_wait_is_gone_at_once() -> None:
    with MCPServer() as server:
        server.on["tools/call"] = lambda p: p.reply(status=429, headers={"Retry-After": "600"})
        run = _spawned(server, stop_timeout=60.0)
        run.runner.start(1, spawn_rate=1)
        run.until(lambda: "tools/call:echo" in run.names)
        run.runner.quit()

    assert server.methods[-1] == "DELETE"


def test_a_burst_that_was_told_to_wait_ends_with_its_user() -> None:
    def burst(user: Any) -> None:
        user._call_all([{"tool": "echo", "arguments": {}}] * 3)

    with MCPServer() as server:
        server.on["tools/call"] = lambda p: p.reply(status=429, headers={"Retry-After": "600"})
        run = _spawned(server, 60.0, burst)
        run.runner.start(1, spawn_rate=1)
        run.until(lambda: run.names.count("tools/call:echo") == 3)
        run.runner.quit()

    assert server.methods[-1] == "DELETE"
    assert run.names.count("tools/call:echo") == 3


def test_a_stop_user_of_a_task_deletes_the_session() -> None:
    def stop(user: Any) -> None:
        user._call("echo", {})
        raise StopUser

    with MCPServer() as server:
        run = _spawned(server, does=stop)
        run.runner.start(1, spawn_rate=1)
        run.until(lambda: "DELETE" in run.names)
        run.runner.quit()

    assert server.methods == [*LIFE, "tools/call", "DELETE"]


def test_an_error_of_a_task_ends_neither_its_user_nor_its_session() -> None:
    def fail(user: Any) -> None:
        user._call("echo", {})
        raise KeyError("a bug in a task")

    with MCPServer() as server:
        run = _spawned(server, does=fail)
        run.runner.start(1, spawn_rate=1)
        run.until(lambda: run.names.count("tools/call:echo") >= 3)
        run.runner.quit()

    assert len(server.of("initialize")) == 1
    assert server.methods[-1] == "DELETE"


def test_an_idle_stream_does_not_hold_up_the_end() -> None:
    opened = Event()

    def listen(peer: Peer) -> None:
        peer.stream()
        opened.set()
        peer.gone()

    with MCPServer() as server:
        server.on["GET"] = listen
        run = _spawned(server, stop_timeout=30.0, idle_stream=True)
        run.runner.start(1, spawn_rate=1)
        assert opened.wait(PATIENCE_S)
        run.until(lambda: "tools/call:echo" in run.names)
        run.runner.quit()
        gevent.idle()

    assert server.methods[-1] == "DELETE"
    assert run.failures == {}


def test_what_a_server_says_of_itself_is_kept_for_the_report() -> None:
    with MCPServer() as server:
        _, user = _run(server)
        user.on_start()

    assert servers["t"] == {
        "name": "fake",
        "version": "1",
        "protocolVersion": "2025-06-18",
        "session": "yes",
        "url": f"{server.url}/mcp",
    }


def test_a_query_in_the_path_is_sent_and_is_in_no_record(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    urls: list[str] = []
    with MCPServer() as server:
        run, user = _run(server, mcp_path="/api/mcp?key=s3cret")
        run.environment.events.request.add_listener(lambda url, **_: urls.append(url))
        user.on_start()

    assert {request.target for request in server.requests} == {"/api/mcp?key=s3cret"}
    assert set(urls) == {f"{server.url}/api/mcp"}
    assert "s3cret" not in caplog.text
    assert "s3cret" not in str(dict(servers))
