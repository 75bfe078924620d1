"""The protocol state of one user, and the bytes that it makes."""

from __future__ import annotations

from typing import Any

import pytest

from _revisions import NEWEST_ENVELOPE, REVISIONS
from mcp_client import (
    HEADS_KEPT,
    CheckFailed,
    MCPError,
    ProtocolError,
    Session,
    judge_result,
    judge_tool_result,
)

REVISION = "2025-06-18"


def _session() -> Session:
    return Session("/mcp", "example.com:8443")


def _headers(data: bytes) -> dict[str, str]:
    head, _, _ = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")[1:]
    found = dict(line.split(": ", 1) for line in lines)
    assert len(found) == len(lines), "a header is there twice"
    return found


def test_a_request_before_the_handshake_says_nothing_of_session_or_revision() -> None:
    data = _session().request("POST", {}, "", b"{}")

    assert data.startswith(b"POST /mcp HTTP/1.1\r\nHost: example.com:8443\r\n")
    assert data.endswith(b"Content-Length: 2\r\n\r\n{}")
    assert set(_headers(data)) == {
        "Host",
        "Accept",
        "Accept-Encoding",
        "User-Agent",
        "Content-Type",
        "Content-Length",
    }


def test_a_request_after_it_carries_both_and_the_cookies() -> None:
    session = _session()
    session.adopt({"protocolVersion": REVISION}, {b"mcp-session-id": b"s-1"})
    headers = _headers(session.request("DELETE", {}, "a=1; b=2", b""))

    assert headers["Mcp-Session-Id"] == "s-1"
    assert headers["MCP-Protocol-Version"] == REVISION
    assert headers["Cookie"] == "a=1; b=2"
    assert headers["Content-Length"] == "0"
    assert "Content-Type" not in headers


def test_a_user_s_own_header_replaces_ours_in_any_case() -> None:
    headers = _headers(_session().request("POST", {"ACCEPT": "x", "host": "y"}, "", b""))

    assert headers["ACCEPT"] == "x"
    assert headers["host"] == "y"
    assert "Accept" not in headers
    assert "Host" not in headers


def test_a_head_is_made_once_and_again_when_anything_in_it_changes() -> None:
    session = _session()
    token = {"Authorization": "Bearer 1"}
    first = session.request("POST", token, "", b"")
    assert session.request("POST", dict(token), "", b"") == first

    assert b"Bearer 2" in session.request("POST", {"Authorization": "Bearer 2"}, "", b"")
    assert b"Cookie: a=1" in session.request("POST", token, "a=1", b"")
    assert b"Cookie" not in session.request("POST", token, "", b"")
    assert b"GET /mcp" in session.request("GET", token, "", b"")
    assert b"POST /other" in session.request("POST", token, "", b"", (), "/other")
    assert b"Mcp-Name: a" in session.request("POST", token, "", b"", (("Mcp-Name", "a"),))
    assert b"Mcp-Name" not in session.request("POST", token, "", b"")
    session.adopt({"protocolVersion": REVISION}, {b"mcp-session-id": b"s-1"})
    assert b"Mcp-Session-Id: s-1" in session.request("POST", token, "", b"")
    session.forget()
    assert session.request("POST", token, "", b"") == first


def test_a_dict_that_its_owner_changes_in_place_is_seen_to_have_changed() -> None:
    session, own = _session(), {"Authorization": "Bearer 1"}
    session.request("POST", own, "", b"")
    own["Authorization"] = "Bearer 2"

    assert b"Bearer 2" in session.request("POST", own, "", b"")


def test_a_user_keeps_a_bounded_number_of_heads() -> None:
    session = _session()
    for n in range(10 * HEADS_KEPT):
        data = session.request("POST", {}, "", b"", (("Mcp-Name", f"tool-{n}"),))
        assert f"Mcp-Name: tool-{n}".encode() in data

    assert len(session._heads) <= HEADS_KEPT


@pytest.mark.parametrize(
    "extra",
    [
        {"Authorization": "Bearer s3cret\nX: 1"},
        {"Authorization": "Bearer s3cret\r"},
        {"Authorization": "Bearer s3cret\0"},
        {"Authorization": "Bearer s3cret\u2026"},
        {"X: s3cret": "1"},
        {"X\r\nY": "s3cret"},
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_without_its_value(extra: dict[str, str]) -> None:
    with pytest.raises(MCPError) as caught:
        _session().request("POST", extra, "", b"")

    assert str(caught.value).startswith("header ")
    assert "s3cret" not in str(caught.value) or "s3cret" in next(iter(extra))


@pytest.mark.parametrize(
    ("result", "headers", "failure"),
    [
        ({}, {}, "unknown protocol version"),
        ({"protocolVersion": "2099-01-01"}, {}, "unknown protocol version"),
        ({"protocolVersion": "2026-07-28"}, {}, "unknown protocol version"),
        ({"protocolVersion": []}, {}, "unknown protocol version"),
        ({"protocolVersion": REVISION}, {b"mcp-session-id": b"a b"}, "invalid session id"),
        ({"protocolVersion": REVISION}, {b"mcp-session-id": b"\xe9"}, "invalid session id"),
        ({"protocolVersion": REVISION}, {b"mcp-session-id": b""}, "invalid session id"),
    ],
)
def test_a_handshake_that_nobody_can_go_on_with_changes_nothing(
    result: dict[str, Any], headers: dict[bytes, bytes], failure: str
) -> None:
    session = _session()
    with pytest.raises(ProtocolError, match=rf"^{failure}$"):
        session.adopt(result, headers)

    assert session.revision is None
    assert session.session_id is None


def test_batches_are_read_in_the_one_revision_that_has_them() -> None:
    session = _session()
    for name, revision in REVISIONS.items():
        if revision.offered and name != NEWEST_ENVELOPE.name:
            session.adopt({"protocolVersion": name}, {})
            assert session.reply_to(1)._batches is (name == "2025-03-26")


def test_standing_alone_drops_the_session() -> None:
    session = _session()
    session.adopt({"protocolVersion": REVISION}, {b"mcp-session-id": b"s-1"})
    session.stand_alone(NEWEST_ENVELOPE, {"name": "x", "version": "1"}, {})
    headers = _headers(session.request("POST", {}, "", b""))

    assert session.stateless
    assert session.session_id is None
    assert "Mcp-Session-Id" not in headers
    assert headers["MCP-Protocol-Version"] == NEWEST_ENVELOPE.name
    session.forget()
    assert not session.stateless
    assert session.meta == {}


@pytest.mark.parametrize("info", [None, [], "x", {}, {"name": None}, {"name": "n" * 9999}])
def test_what_a_server_says_of_itself_is_short_whatever_it_is(info: Any) -> None:
    described = _session().describe(info)

    assert set(described) == {"name", "version", "protocolVersion", "session"}
    assert all(len(value) <= 200 for value in described.values())


def test_a_check_without_a_name_is_named_by_its_type() -> None:
    class Check:
        def __call__(self, result: dict[str, Any]) -> bool:
            return False

    with pytest.raises(CheckFailed, match=r"^check failed: Check$"):
        judge_result({}, Check())


def test_an_error_of_the_tool_goes_before_a_check() -> None:
    with pytest.raises(MCPError, match=r"^tool error$"):
        judge_tool_result({"isError": True}, lambda result: False)
    judge_tool_result({"isError": False}, lambda result: True)
    judge_tool_result({}, None)
