"""What the stand-ins do on the wire beside MCP: doors, sessions, clocks and their own log."""

from __future__ import annotations

import asyncio
import json
import ssl
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from lab.standins.catalogue import LABELS
from lab.standins.journal import Journal, Row
from lab.targets import Standins, standins

BOTH: Final = {"Accept": "application/json, text/event-stream"}
HELLO: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
TRUST: Final = ssl.create_default_context()  # made once: it costs more than a request
HTTP: Final = httpx2.Client(timeout=20, verify=TRUST)
SEARCH: Final = ("microsoft_docs_search", {"query": "queues"})


@pytest.fixture(scope="module", autouse=True)
def _closed_in_the_end() -> Iterator[None]:
    with HTTP:
        yield


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standins]:
    with standins(tmp_path_factory.mktemp("wire"), latency="none") as target:
        yield target


class Peer:
    """A bare HTTP client of one stand-in, with its token where it needs one."""

    def __init__(self, served: Standins, label: str) -> None:
        known = served.variables
        token = {"github": "GITHUB_MCP_TOKEN", "ado": "ADO_MCP_TOKEN"}.get(label)
        self.label = label
        self.url = known[f"{label.upper()}_MCP_URL"]
        self.origin = "/".join(self.url.split("/")[:3])
        self.headers = {**BOTH, **({"Authorization": f"Bearer {known[token]}"} if token else {})}
        self.asked = 0

    def post(self, method: str, params: Any = None, **more: str) -> httpx2.Response:
        """Send one JSON-RPC request and read its whole answer."""
        self.asked += 1
        body = {"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params or {}}
        return self.send(body, **more)

    def send(self, body: Any, **more: str) -> httpx2.Response:
        return HTTP.post(self.url, json=body, headers={**self.headers, **more}, timeout=20)

    def hello(self) -> httpx2.Response:
        """Initialize; later requests carry the session that was given."""
        reply = self.post("initialize", HELLO)
        if session := reply.headers.get("mcp-session-id"):
            self.headers["Mcp-Session-Id"] = session
        return reply

    def call(self, tool: str, arguments: Any) -> httpx2.Response:
        return self.post("tools/call", {"name": tool, "arguments": arguments})


def answer_of(reply: httpx2.Response) -> dict[str, Any]:
    """Give the JSON-RPC message of a JSON or streamed reply."""
    text = reply.text
    if reply.headers["content-type"].startswith("text/event-stream"):
        text = next(ln[5:] for ln in text.splitlines() if ln.startswith("data:"))
    message: dict[str, Any] = json.loads(text)
    return message


def rows(run_dir: Path, label: str) -> list[dict[str, Any]]:
    lines = (run_dir / "standins" / f"{label}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("label", ["github", "ado"])
@pytest.mark.parametrize("token", [None, "Bearer wrong"])
def test_a_missing_or_wrong_token_gets_the_challenge_and_its_document(
    served: Standins, label: str, token: str | None
) -> None:
    peer = Peer(served, label)
    del peer.headers["Authorization"]
    if token:
        peer.headers["Authorization"] = token

    refused = peer.hello()
    challenge = refused.headers["www-authenticate"]
    document = HTTP.get(challenge.split('resource_metadata="')[1].rstrip('"'), timeout=10)

    assert refused.status_code == 401
    assert challenge.startswith("Bearer ")
    path = httpx2.URL(peer.url).path
    assert f'{peer.origin}/.well-known/oauth-protected-resource{path}"' in challenge
    assert document.json()["resource"] == peer.url
    assert document.json()["scopes_supported"]
    assert peer.origin in document.json()["authorization_servers"]


def test_azure_devops_names_its_scope(served: Standins) -> None:
    peer = Peer(served, "ado")
    at = f"{peer.origin}/.well-known/oauth-protected-resource"

    for url in (at, f"{at}/", f"{at}/contoso-standin"):
        document = HTTP.get(url, timeout=10).json()
        assert document["scopes_supported"] == ["https://mcp.dev.azure.com/.default"]
    assert HTTP.get(f"{at}/elsewhere", timeout=10).status_code == 404


def test_a_malformed_header_is_a_bad_request_to_github_only(served: Standins) -> None:
    for label, status in (("github", 400), ("ado", 401)):
        peer = Peer(served, label)
        peer.headers["Authorization"] = "Basic abc"

        assert peer.hello().status_code == status


@pytest.mark.parametrize("label", ["learn", "context7"])
def test_open_servers_ask_for_no_token(served: Standins, label: str) -> None:
    peer = Peer(served, label)

    assert peer.hello().status_code == 200
    document = f"{peer.origin}/.well-known/oauth-protected-resource"
    assert HTTP.get(document, timeout=10).status_code == 404


def test_context7_tells_a_wrong_key_in_an_ordinary_result(served: Standins) -> None:
    docs = ("query-docs", {"libraryId": "/a/b", "query": "x"})
    right, wrong = Peer(served, "context7"), Peer(served, "context7")
    right.headers["X-Context7-API-Key"] = served.variables["CONTEXT7_API_KEY"]
    wrong.headers["Authorization"] = "Bearer ctx7sk-wrong"

    accepted = answer_of(right.call(*docs))["result"]
    told = answer_of(wrong.call(*docs))["result"]

    assert "Source: " in accepted["content"][0]["text"]
    assert told["content"][0]["text"].startswith("Invalid API key.")
    assert not told.get("isError")


@pytest.mark.parametrize("label", LABELS)
def test_learn_streams_and_the_others_answer_json(served: Standins, label: str) -> None:
    peer = Peer(served, label)

    kinds = {peer.hello().headers["content-type"].split(";")[0]}
    kinds.add(peer.post("tools/list").headers["content-type"].split(";")[0])

    assert kinds == {"text/event-stream" if label == "learn" else "application/json"}


@pytest.mark.parametrize("label", ["learn", "github"])
def test_a_deleted_session_is_not_found(served: Standins, label: str) -> None:
    peer = Peer(served, label)
    assert "mcp-session-id" in peer.hello().headers

    ended = HTTP.delete(peer.url, headers=peer.headers, timeout=10)

    assert ended.status_code == 200
    assert peer.post("tools/list").status_code == 404
    assert HTTP.get(f"{peer.origin}/__stats", timeout=10).json().keys() == {label}


@pytest.mark.parametrize("label", ["context7", "ado"])
def test_sessionless_servers_allow_neither_get_nor_delete(served: Standins, label: str) -> None:
    peer = Peer(served, label)

    assert "mcp-session-id" not in peer.hello().headers
    assert HTTP.delete(peer.url, headers=peer.headers, timeout=10).status_code == 405
    assert HTTP.get(peer.url, headers=peer.headers, timeout=10).status_code == 405


def test_an_unknown_path_is_not_found(served: Standins) -> None:
    assert HTTP.get(f"{Peer(served, 'learn').origin}/else", timeout=10).status_code == 404


def converse(peer: Peer) -> list[tuple[str, int, float]]:
    """Hold a short conversation; give (name, status, our milliseconds) in its order."""
    seen = []

    def timed(name: str, what: Any) -> httpx2.Response:
        started = time.perf_counter()
        reply: httpx2.Response = what()
        elapsed_ms = (time.perf_counter() - started) * 1000
        seen.append((f"{peer.label}:{name}", reply.status_code, elapsed_ms))
        return reply

    timed("initialize", peer.hello)
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    timed("notifications/initialized", lambda: peer.send(told))
    timed("tools/list", lambda: peer.post("tools/list"))
    tool, arguments = {
        "learn": SEARCH,
        "github": ("get_me", {}),
        "context7": ("resolve-library-id", {"libraryName": "x", "query": "y"}),
        "ado": ("repo_repository", {"action": "list"}),
    }[peer.label]
    timed(f"tools/call:{tool}", lambda: peer.call(tool, arguments))
    timed("client-response", lambda: peer.send({"jsonrpc": "2.0", "id": "s-1", "result": {}}))
    timed("DELETE", lambda: HTTP.delete(peer.url, headers=peer.headers, timeout=10))
    return seen


def test_the_log_holds_exactly_the_requests_and_agrees_with_our_clock(tmp_path: Path) -> None:
    with standins(tmp_path) as target:
        peers = [Peer(target, label) for label in LABELS]
        with ThreadPoolExecutor() as threads:
            seen = dict(zip(LABELS, threads.map(converse, peers), strict=True))

    for label in LABELS:
        logged = rows(tmp_path, label)
        assert [(r["name"], r["status"]) for r in logged] == [s[:2] for s in seen[label]]
        assert [row["id"] for row in logged] == [1, None, 2, 3, "s-1", None]
        assert [row["http"] for row in logged] == ["POST"] * 5 + ["DELETE"]
        has_session = label in ("learn", "github")
        assert {row["session"] is not None for row in logged} == {has_session}
        for row, (_, _, ours_ms) in zip(logged, seen[label], strict=True):
            assert row["drawn_ms"] <= row["elapsed_ms"] <= ours_ms
            assert ours_ms - row["drawn_ms"] < 500
        published = [r["drawn_ms"] for r in logged if not r["name"].endswith("client-response")]
        assert all(published if has_session else published[:-1])


def test_the_network_adds_no_wait_for_an_acknowledgement(tmp_path: Path) -> None:
    """A socket without TCP_NODELAY holds each body back for the 40 ms of a delayed ACK."""
    with standins(tmp_path, latency="none") as target:
        peer = Peer(target, "github")
        peer.hello()
        ours_ms = []
        for _ in range(15):
            started = time.perf_counter()
            peer.call("get_me", {})
            ours_ms.append((time.perf_counter() - started) * 1000)

    theirs_ms = [row["elapsed_ms"] for row in rows(tmp_path, "github")[1:]]
    added_ms = [ours - theirs for ours, theirs in zip(ours_ms, theirs_ms, strict=True)]
    assert statistics.median(added_ms) < 30


def test_the_head_of_a_stream_comes_at_once_and_its_event_when_it_is_due(tmp_path: Path) -> None:
    slow = [f"learn:{SEARCH[0]}=600"]
    with standins(tmp_path, latency="none", slow=slow) as target:
        peer = Peer(target, "learn")
        peer.hello()
        params = {"name": SEARCH[0], "arguments": SEARCH[1]}
        body = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}
        started = time.perf_counter()
        with HTTP.stream("POST", peer.url, json=body, headers=peer.headers, timeout=10) as reply:
            head_ms = (time.perf_counter() - started) * 1000
            reply.read()
            reply_ms = (time.perf_counter() - started) * 1000

    call = rows(tmp_path, "learn")[-1]
    assert call["injected"] == "slow"
    assert call["drawn_ms"] == 600
    assert head_ms < 600 <= reply_ms


def test_a_request_that_its_client_gives_up_is_logged_all_the_same(tmp_path: Path) -> None:
    slow = [f"learn:{SEARCH[0]}=60000", "github:get_me=400"]
    with standins(tmp_path, latency="none", slow=slow) as target:
        for label, tool, arguments in (("learn", *SEARCH), ("github", "get_me", {})):
            peer = Peer(target, label)
            peer.hello()
            params = {"name": tool, "arguments": arguments}
            body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
            with suppress(httpx2.ReadTimeout):
                HTTP.post(peer.url, json=body, headers=peer.headers, timeout=0.2)

    assert rows(tmp_path, "learn")[-1]["name"] == f"learn:tools/call:{SEARCH[0]}"
    assert rows(tmp_path, "github")[-1]["name"] == "github:tools/call:get_me"


def test_a_stop_with_calls_under_way_and_streams_open_is_clean(tmp_path: Path) -> None:
    slow = [f"learn:{SEARCH[0]}=60000", "ado:repo_repository=60000"]

    async def leave_it_hanging(target: Standins) -> None:
        learn, ado = Peer(target, "learn"), Peer(target, "ado")
        learn.hello()
        params = {"name": "repo_repository", "arguments": {"action": "list"}}
        search = {"name": SEARCH[0], "arguments": SEARCH[1]}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}
        async with httpx2.AsyncClient(timeout=20, verify=TRUST) as http:
            hanging = [
                asyncio.create_task(
                    http.post(peer.url, json={**body, "params": p}, headers=peer.headers)
                )
                for peer, p in ((learn, search), (ado, params))
            ]
            async with http.stream("GET", learn.url, headers=learn.headers) as stream:
                assert stream.status_code == 200
                target.stop()
            await asyncio.gather(*hanging, return_exceptions=True)

    with standins(tmp_path, latency="none", slow=slow) as target:
        asyncio.run(leave_it_hanging(target))

    assert target.returncode == 0
    counted = json.loads((tmp_path / "standins" / "sessions.json").read_text(encoding="utf-8"))
    assert counted["learn"] == {"opened": 1, "deleted": 0, "open": 1}
    names = {row["name"] for row in rows(tmp_path, "learn")}
    assert names == {"learn:initialize", f"learn:tools/call:{SEARCH[0]}", "learn:GET"}


def test_the_journal_writes_in_the_background_and_loses_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "x.jsonl")

    async def busy() -> None:
        flushing = asyncio.create_task(journal.flush_for_ever(every_seconds=0))
        for number in range(2000):
            journal.add(Row(1.5, "learn", "learn:ping", "POST", id=number))
            await asyncio.sleep(0)
        flushing.cancel()

    asyncio.run(busy())
    early = (tmp_path / "x.jsonl").read_text(encoding="utf-8").count("\n")
    journal.flush()

    found = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text("utf-8").splitlines()]
    assert early > 0
    assert [row["id"] for row in found] == list(range(2000))
    assert list(found[0]) == [
        *("t", "label", "name", "http", "id", "session"),
        *("status", "elapsed_ms", "drawn_ms", "injected"),
    ]
