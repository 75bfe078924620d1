"""A server of the transport before Streamable HTTP is recognised, once, and named with the cure."""

from __future__ import annotations

from locust.env import Environment

from collections.abc import Iterator
from typing import Any

import pytest

import _legacy
from _base import MCPUserBase
from _tally import tallies
from tests.fake_server import MCPServer, Peer

SEEN = ("old", "servers of HTTP+SSE of 2024-11-05, which is not spoken")
LOOKED = ("old", "GETs that looked for HTTP+SSE of 2024-11-05")


@pytest.fixture(autouse=True)
def _nothing_seen_before() -> Iterator[None]:
    tallies.clear()
    _legacy._looked_at.clear()
    yield
    tallies.clear()


def _refused(peer: Peer) -> None:
    peer.reply(b"Method Not Allowed", status=405, kind="text/plain")


def _endpoint(peer: Peer) -> None:
    peer.stream()
    peer.event("/messages?session_id=0123456789abcdef", fields="event: endpoint\n")
    peer.gone()  # such a stream stays open for as long as its client


def _opened(server: MCPServer, times: int = 1, **attributes: Any) -> list[str]:
    """Let users of one class try to open a session; return the names of their samples."""
    body = {"abstract": True, "host": server.url, "server_label": "old", **attributes}
    user_class: Any = type("OldUser", (MCPUserBase,), body)
    environment = Environment(user_classes=[user_class])
    environment.create_local_runner()
    samples: list[str] = []
    environment.events.request.add_listener(lambda name, **_: samples.append(name))
    for _ in range(times):
        user_class(environment)._open_session()
    return samples


@pytest.mark.parametrize("version", ["2025-06-18", "auto"])
def test_such_a_server_is_named_with_the_cure_and_asked_once(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    with MCPServer() as server:
        server.on = {"server/discover": _refused, "initialize": _refused, "GET": _endpoint}
        path = "/mcp?key=planted"
        samples = _opened(server, times=3, protocol_version=version, mcp_path=path)
        said = [each.message for each in caplog.records if "HTTP+SSE" in each.message]

    (line,) = said
    assert line.startswith(f"old: {server.url}/mcp speaks HTTP+SSE of 2024-11-05, which is not")
    assert line.endswith("set the URL of its Streamable HTTP endpoint, or ask its operator for one")
    assert len(server.of("GET")) == 1
    assert samples == ["old:initialize"] * 3
    assert (tallies[SEEN], tallies[LOOKED]) == (1, 1)


def _nothing_here(peer: Peer) -> None:
    peer.reply(status=405)


def _another_event(peer: Peer) -> None:
    peer.events({"jsonrpc": "2.0", "method": "notifications/message"})


@pytest.mark.parametrize("answer", [_nothing_here, _another_event])
def test_a_server_that_only_refuses_is_not_taken_for_one(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with MCPServer() as server:
        server.on = {"initialize": _refused, "GET": answer}
        _opened(server)

    assert len(server.of("GET")) == 1
    assert (tallies[SEEN], tallies[LOOKED]) == (0, 1)
    assert "HTTP+SSE" not in caplog.text


def test_a_server_that_answers_in_json_rpc_or_is_down_is_not_asked() -> None:
    with MCPServer() as server:
        server.on["initialize"] = lambda peer: peer.error(-32600, status=400)
        _opened(server)
        server.on["initialize"] = lambda peer: peer.reply(status=503)
        _opened(server)

    assert server.of("GET") == []
