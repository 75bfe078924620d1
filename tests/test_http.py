"""The wire against a real server on loopback that is scripted byte by byte."""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import contextlib
import gc
import gzip
import json
import socket
import ssl
import time
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import gevent
import pytest
from gevent import GreenletExit
from gevent.event import Event

from _failures import MCPError, Timeout, TransportError
from _http import Connection
from _jsonrpc import next_id, request_body
from _origin import Origin
from _reply import Reply
from _trace import Trace
from _wire import HURRIED_CALLS, Wire
from mcp_client import Session
from tests.certificates import authority
from tests.fake_server import OK, FakeServer, Peer, Request, answer, in_turn

SOON_S = 5.0


_opened: list[Client] = []


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy and no bundle of this machine's, and no connection left open."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    yield
    while _opened:
        _opened.pop().wire.close()


class Client:
    """One user's way to a server; `call` sends a tools/call and returns what came of it."""

    def __init__(self, url: str, **options: Any) -> None:
        origin = Origin(url, **options)
        self.session = Session(origin.target("/mcp"), origin.authority)
        self.wire = Wire(origin, f"{origin.url}/mcp", self.session)
        _opened.append(self)

    def call(
        self, timeout: float = SOON_S, argument: str = "x", headers: dict[str, str] | None = None
    ) -> tuple[Reply, Trace]:
        request_id = next_id()
        reply, trace = self.session.reply_to(request_id), Trace()
        params = {"name": "echo", "arguments": {"text": argument}}
        body = request_body(request_id, "tools/call", params)
        self.last = reply, trace
        self.wire.carry("POST", body, headers or {}, reply, trace, timeout)
        return reply, trace

    def result(self) -> Any:
        return self.call()[0].result()

    def failure(self, timeout: float = SOON_S) -> str:
        try:
            reply, _ = self.call(timeout)
            return f"it was answered: {reply.result()}"
        except MCPError as error:
            return f"{type(error).__name__}: {error}"


def _ok(peer: Peer) -> None:
    peer.result(OK)


def _whole(request: Request, result: Any = OK) -> bytes:
    body = json.dumps(answer(request, result)).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


# ---- replies, however they are framed


def test_a_connection_is_kept_for_the_next_call() -> None:
    with FakeServer(_ok) as server:
        client = Client(server.url)
        for _ in range(5):
            assert client.result() == OK

    assert server.connections == 1


def test_ended_streams_are_read_to_their_end_and_the_connection_is_kept() -> None:
    with FakeServer(lambda peer: peer.events(answer(peer.request, OK))) as server:
        client = Client(server.url)
        for _ in range(5):
            assert client.result() == OK

    assert server.connections == 1


def test_a_reply_in_single_bytes_is_read() -> None:
    def drip(peer: Peer) -> None:
        for byte in _whole(peer.request):
            peer.send(bytes([byte]))

    with FakeServer(drip) as server:
        client = Client(server.url)
        assert client.result() == OK
        assert client.result() == OK

    assert server.connections == 1


def _interim(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nContent-Encoding: br\r\n\r\n")
    peer.result(OK)


def _chunk_extensions_and_trailers(peer: Peer) -> None:
    body = json.dumps(answer(peer.request, OK)).encode()
    peer.head(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
    peer.send(b'%x;name="value"\r\n%b\r\n' % (len(body), body))
    peer.send(b"0\r\nContent-Type: text/html\r\nSet-Cookie: late=1\r\n\r\n")


def _until_the_end(peer: Peer) -> None:
    peer.send(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n")
    peer.send(json.dumps(answer(peer.request, OK)).encode())
    peer.close()


def _no_reason(peer: Peer) -> None:
    peer.send(_whole(peer.request).replace(b"200 OK", b"200"))


def _connection_close(peer: Peer) -> None:
    peer.send(_whole(peer.request).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))


def _many_headers(peer: Peer) -> None:
    headers = {f"X-Filler-{n}": "y" * 900 for n in range(70)}
    peer.result(OK, headers)


def _one_huge_header(peer: Peer) -> None:
    peer.result(OK, {"X-Huge": "y" * 200_000})


def _upgrade_offered(peer: Peer) -> None:
    peer.result(OK, {"Upgrade": "h2c"})


def _gzip(peer: Peer) -> None:
    peer.reply(
        gzip.compress(json.dumps(answer(peer.request, OK)).encode()),
        headers={"Content-Encoding": "gzip"},
    )


def _gzip_events(peer: Peer) -> None:
    packed = gzip.compress(f"data: {json.dumps(answer(peer.request, OK))}\n\n".encode())
    peer.stream({"Content-Encoding": "gzip"})
    for place in range(0, len(packed), 7):
        peer.chunk(packed[place : place + 7])
    peer.end()


def _json_in_chunks_without_end(peer: Peer) -> None:
    peer.head(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
    peer.chunk(json.dumps(answer(peer.request, OK)).encode())
    assert peer.gone()


def _reset_after_the_answer(peer: Peer) -> None:
    peer.stream()
    peer.event(answer(peer.request, OK))
    peer.close(reset=True)


@pytest.mark.parametrize(
    "script",
    [
        _interim,
        _chunk_extensions_and_trailers,
        _until_the_end,
        _no_reason,
        _connection_close,
        _many_headers,
        _one_huge_header,
        _upgrade_offered,
        _gzip,
        _gzip_events,
        _json_in_chunks_without_end,
        _reset_after_the_answer,
    ],
)
def test_a_reply_is_read_though_it_is_framed_by(script: Any) -> None:
    with FakeServer(script) as server:
        client = Client(server.url)

        assert client.result() == OK
        assert client.result() == OK


def test_trailers_are_no_headers_of_the_reply() -> None:
    with FakeServer(_chunk_extensions_and_trailers) as server:
        client = Client(server.url)
        reply, _ = client.call()
        client.call()

    assert reply.kind == "json"
    assert server.connections == 1


@pytest.mark.parametrize("form", ["json", "sse"])
def test_a_reply_of_five_megabytes_is_read_and_its_download_is_on_the_clock(form: str) -> None:
    text = "x" * 5_000_000
    last: list[float] = []

    def big(peer: Peer) -> None:
        message = answer(peer.request, {"content": [{"type": "text", "text": text}]})
        if form == "json":
            peer.json(message)
        else:
            peer.events(message)
        last.append(perf_counter())

    with FakeServer(big) as server:
        client = Client(server.url)
        reply, trace = client.call()
        assert reply.result()["content"][0]["text"] == text
        client.call()

    assert server.connections == 1
    assert reply.size > 5_000_000
    assert trace.received_bytes > 5_000_000
    assert trace.headers < trace.replied


def test_a_request_larger_than_the_socket_takes_at_once_is_sent_whole() -> None:
    with FakeServer(_ok) as server:
        client = Client(server.url)
        reply, trace = client.call(argument="y" * 8_000_000)

    assert reply.result() == OK
    assert len(server.requests[0].params["arguments"]["text"]) == 8_000_000
    assert trace.sent_bytes > 8_000_000


def test_the_instants_of_a_call_are_in_the_order_in_which_they_come() -> None:
    with FakeServer(lambda peer: peer.events(answer(peer.request, OK))) as server:
        client = Client(server.url)
        _, first = client.call()
        _, second = client.call()

    instants = [first.started, first.connected, first.sent, first.headers, first.first_event]
    instants += [first.replied, first.ended]
    assert instants == sorted(instants)
    assert first.started > 0
    assert first.secured == second.connected == 0.0
    assert first.started <= server.requests[0].arrived <= first.replied
    assert abs(first.at - time.time()) < 60


def test_time_a_server_holds_the_stream_open_after_the_reply_is_not_counted() -> None:
    closed_at: list[float] = []

    def hold(peer: Peer) -> None:
        peer.stream()
        peer.event(answer(peer.request, OK))
        assert peer.gone()
        closed_at.append(perf_counter())

    with FakeServer(hold) as server:
        client = Client(server.url)
        reply, trace = client.call()
        assert reply.result() == OK
        server.heard(lambda: len(server.requests) == 1)
        assert client.result() == OK

    assert trace.replied <= closed_at[0]
    assert server.connections == 2


def test_a_user_does_not_wait_for_the_ends_of_streams_that_never_end() -> None:
    """Of eleven calls that a server holds open, one waits for the end; then it is tried again."""

    def hold(peer: Peer) -> None:
        peer.stream()
        peer.event(answer(peer.request, OK))
        peer.gone()

    with FakeServer(hold) as server:
        client = Client(server.url)
        waits = [client.call()[1] for _ in range(2 * HURRIED_CALLS + 2)]

    ended = [trace.ended - trace.replied for trace in waits]
    assert len(server.requests) == 2 * HURRIED_CALLS + 2
    assert all(wait == 0.0 for wait in ended)


def test_a_stream_whose_end_came_late_once_does_not_cost_every_later_call_a_connection() -> None:
    late = Event()
    calls: list[int] = []

    def slow_once(peer: Peer) -> None:
        calls.append(peer.request.connection)
        peer.stream()
        peer.event(answer(peer.request, OK))
        if len(calls) == 1:
            peer.gone()
            return
        gevent.idle()  # the end comes in a packet of its own, as ASGI servers send it
        peer.end()

    with FakeServer(slow_once) as server:
        client = Client(server.url)
        for _ in range(HURRIED_CALLS + 10):
            assert client.result() == OK

    assert len(set(calls[-8:])) == 1
    assert not late.is_set()


# ---- replies that are wrong


def _close_at_once(peer: Peer) -> None:
    peer.close()


def _reset_at_once(peer: Peer) -> None:
    peer.close(reset=True)


def _headers_cut(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
    peer.close()


def _length_not_reached(peer: Peer) -> None:
    peer.send(_whole(peer.request).replace(b"Content-Length: ", b"Content-Length: 9"))
    peer.close()


def _chunk_cut(peer: Peer) -> None:
    peer.head(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
    peer.send(b"ff\r\n{")
    peer.close()


def _reset_in_the_body(peer: Peer) -> None:
    peer.head(200, {"Content-Type": "application/json", "Content-Length": "999"})
    peer.send(b"{")
    peer.close(reset=True)


def _stream_cut(peer: Peer) -> None:
    peer.stream()
    peer.event({"jsonrpc": "2.0", "method": "notifications/progress"})
    peer.close()


def _no_http(peer: Peer) -> None:
    peer.send(b"SSH-2.0-OpenSSH_9.6\r\n")
    peer.close()


def _length_and_chunks(peer: Peer) -> None:
    both = {"Content-Type": "application/json", "Content-Length": "5"}
    peer.head(200, {**both, "Transfer-Encoding": "chunked"})
    peer.close()


def _switch_protocols(peer: Peer) -> None:
    peer.head(101, {"Upgrade": "websocket", "Connection": "Upgrade"})
    peer.close()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (_close_at_once, {"TransportError: connection closed", "TransportError: connection reset"}),
        (_reset_at_once, {"TransportError: connection reset"}),
        (_headers_cut, {"TransportError: connection closed", "TransportError: connection reset"}),
        (_length_not_reached, {"ProtocolError: incomplete body"}),
        (_chunk_cut, {"ProtocolError: incomplete body"}),
        (_reset_in_the_body, {"TransportError: connection reset"}),
        (_stream_cut, {"ProtocolError: stream ended before the reply"}),
        (_no_http, {"TransportError: malformed HTTP reply"}),
        (_length_and_chunks, {"TransportError: malformed HTTP reply"}),
        (_switch_protocols, {"TransportError: unexpected protocol upgrade"}),
    ],
)
def test_a_broken_reply_is_one_failure_and_the_next_call_has_a_clean_connection(
    script: Any, expected: set[str]
) -> None:
    with FakeServer(in_turn(script, _ok)) as server:
        client = Client(server.url)

        assert client.failure() in expected
        assert client.result() == OK

    assert server.connections == 2
    assert len({request.message["id"] for request in server.requests}) == 2


@pytest.mark.parametrize("length", [-10, 10])
def test_a_wrong_length_does_not_poison_the_next_call(length: int) -> None:
    def wrong(peer: Peer) -> None:
        body = json.dumps(answer(peer.request, OK)).encode()
        kind = {"Content-Type": "application/json", "Content-Length": str(len(body) + length)}
        peer.head(200, kind)
        peer.send(body)
        if length > 0:
            peer.close()

    with FakeServer(in_turn(wrong, _ok)) as server:
        client = Client(server.url)

        assert client.failure().startswith("ProtocolError: in")
        assert client.result() == OK

    assert server.connections == 2


def test_no_request_is_ever_sent_twice_by_itself() -> None:
    with FakeServer(_close_at_once) as server:
        client = Client(server.url)
        for _ in range(5):
            assert client.failure().startswith("TransportError")

    ids = [request.message["id"] for request in server.requests]
    assert len(ids) == len(set(ids)) == 5


@pytest.mark.parametrize(
    "script",
    [
        lambda peer: peer.gone(),
        lambda peer: (peer.head(200, {"Content-Type": "application/json"}), peer.gone()),
        lambda peer: (peer.stream(), peer.chunk(b": open\n\n"), peer.gone()),
    ],
    ids=["nothing", "only headers", "only a comment"],
)
def test_a_server_that_does_not_answer_is_a_timeout_at_the_deadline(script: Any) -> None:
    with FakeServer(in_turn(script, _ok)) as server:
        client = Client(server.url)
        began = perf_counter()

        assert client.failure(timeout=0.2) == "Timeout: timeout"
        took = perf_counter() - began
        assert client.result() == OK

    assert took >= 0.19
    assert server.connections == 2


def test_a_stream_that_drips_does_not_outlive_the_deadline() -> None:
    def drip(peer: Peer) -> None:
        peer.stream()
        while True:
            peer.chunk(b": still here\n\n")
            gevent.sleep(0.01)

    with FakeServer(drip) as server:
        assert Client(server.url).failure(timeout=0.2) == "Timeout: timeout"


def test_each_call_has_the_whole_of_its_deadline_though_the_timer_is_shared() -> None:
    """A timer left from an earlier call must not end a later one (gevent resumes timers)."""

    def wait_for_the_word(peer: Peer) -> None:
        if len(peer.server.requests) == 2:
            gevent.sleep(0.25)
        peer.result(OK)

    with FakeServer(wait_for_the_word) as server:
        client = Client(server.url)
        assert client.call(timeout=0.2)[0].result() == OK

        assert client.call(timeout=5.0)[0].result() == OK


def test_a_timer_left_from_a_short_wait_does_not_end_a_later_call() -> None:
    def late_end(peer: Peer) -> None:
        peer.stream()
        peer.event(answer(peer.request, OK))
        gevent.idle()
        peer.end()

    def late(peer: Peer) -> None:
        gevent.sleep(0.1)  # longer than a settled stream's patience
        peer.result(OK)

    with FakeServer(in_turn(late_end, late)) as server:
        client = Client(server.url)
        assert client.result() == OK
        assert client.result() == OK


def test_an_error_status_whose_body_never_ends_is_that_status_soon() -> None:
    def open_500(peer: Peer) -> None:
        peer.head(500, {"Content-Type": "text/html", "Transfer-Encoding": "chunked"})
        peer.chunk(b"<p>boom")
        peer.gone()

    with FakeServer(in_turn(open_500, _ok)) as server:
        client = Client(server.url)
        assert client.failure(timeout=30.0) == "HTTPStatusError: HTTP 500"
        assert client.result() == OK


# ---- idle connections


def test_a_connection_that_the_server_closed_while_idle_costs_no_failure() -> None:
    closed = Event()

    def close_after(peer: Peer) -> None:
        peer.result(OK)
        peer.close()
        closed.set()

    with FakeServer(close_after) as server:
        client = Client(server.url)
        for _ in range(3):
            assert client.result() == OK
            assert closed.wait(SOON_S)
            closed.clear()
            gevent.idle()

    assert server.connections == 3


def test_a_connection_that_died_while_our_hub_was_busy_is_noticed_before_the_write() -> None:
    with FakeServer(_ok) as server:
        client = Client(server.url)
        assert client.result() == OK
        (connection,) = client.wire._idle
        connection._idle_since -= 1.0  # as if it had been idle for a second
        connection._watcher.stop()  # and the hub had not come round since

        def close(peer: Peer) -> None:
            peer.close()

        ours = connection._sock.getsockname()
        _end_from_the_other_side(server, ours)
        assert client.result() == OK

    assert server.connections == 2


def _end_from_the_other_side(server: FakeServer, ours: Any) -> None:
    for each in gc.get_objects():
        if isinstance(each, gevent.socket.socket) and each.fileno() >= 0:
            try:
                if each.getpeername() == ours:
                    each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def test_bytes_that_nobody_asked_for_make_a_connection_stale() -> None:
    """As a load balancer's 408 on an idle connection."""
    sent = Event()

    def too_much(peer: Peer) -> None:
        peer.result(OK)
        gevent.idle()
        peer.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        sent.set()

    with FakeServer(too_much) as server:
        client = Client(server.url)
        assert client.result() == OK
        assert sent.wait(SOON_S)
        gevent.idle()
        assert client.result() == OK

    assert server.connections == 2


def test_a_race_of_our_request_with_the_server_s_close_is_one_honest_failure() -> None:
    def close_unread(peer: Peer) -> None:
        peer.close(reset=True)

    with FakeServer(in_turn(_ok, close_unread, _ok)) as server:
        client = Client(server.url)
        assert client.result() == OK
        assert client.failure() == "TransportError: connection reset"
        assert client.result() == OK

    assert [request.connection for request in server.requests] == [1, 1, 2]


# ---- connecting


def test_a_refused_connection_is_one_failure() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        port = taken.getsockname()[1]

        assert Client(f"http://127.0.0.1:{port}").failure() == "TransportError: connection refused"


@pytest.mark.parametrize("name", ["no-such-host.invalid", "a" * 70 + ".invalid"])
def test_a_name_that_is_not_found_is_one_failure(name: str) -> None:
    assert Client(f"http://{name}").failure() == "TransportError: host name not found"


def test_an_address_literal_of_ipv6_is_reached_and_named_in_brackets() -> None:
    try:
        server = FakeServer(_ok, address="::1")
        server.__enter__()
    except OSError:
        pytest.skip("no IPv6 on this machine's loopback")
    with server:
        client = Client(server.url)
        assert client.result() == OK

    assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


def test_a_connection_that_is_never_accepted_ends_at_the_connect_timeout() -> None:
    with socket.socket() as full, socket.socket() as one, socket.socket() as two:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for filler in (one, two):
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        client = Client(f"http://127.0.0.1:{full.getsockname()[1]}", connect_timeout=0.2)

        assert client.failure() == "Timeout: connect timeout"


def test_addresses_of_one_name_are_taken_in_turn() -> None:
    origin = Origin("http://127.0.0.1:1")
    origin._addresses = [(2, ("10.0.0.1", 1)), (2, ("10.0.0.2", 1))]
    origin._fresh_until = time.monotonic() + 60

    first, second = origin.addresses(), origin.addresses()
    assert first == second[::-1]


def test_an_address_that_refuses_gives_way_to_the_next() -> None:
    with FakeServer(_ok) as server, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        origin = Origin(server.url)
        good, bad = origin.addresses()[0], (socket.AF_INET, taken.getsockname())
        origin._addresses = [bad, good]
        session = Session("/mcp", origin.authority)
        wire = Wire(origin, f"{origin.url}/mcp", session)
        for _ in range(2):  # each comes first once
            request_id = next_id()
            reply = session.reply_to(request_id)
            body = request_body(request_id, "ping", None)
            wire.carry("POST", body, {}, reply, Trace(), SOON_S)
            assert reply.result() == OK
            wire.close()


# ---- TLS


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority().bundle))


@pytest.mark.usefixtures("trusted")
def test_a_verified_tls_connection_is_kept_and_its_instants_are_known() -> None:
    with FakeServer(_ok, tls=authority().server("127.0.0.1")) as server:
        client = Client(server.url)
        reply, first = client.call()
        assert reply.result() == OK
        for _ in range(4):
            gevent.idle()
            assert client.result() == OK
        _, last = client.last

    assert server.connections == 1
    assert first.started <= first.connected <= first.secured <= first.sent
    assert last.secured == 0.0


def test_session_tickets_on_an_idle_tls_connection_are_read_and_are_no_end(
    trusted: None,
) -> None:
    context = authority().server("127.0.0.1")
    context.num_tickets = 4
    with FakeServer(_ok, tls=context) as server:
        client = Client(server.url)
        for _ in range(3):
            assert client.result() == OK
            for connection in client.wire._idle:
                connection._idle_since -= 1.0
            gevent.idle()

    assert server.connections == 1


@pytest.mark.parametrize("how", ["wrong name", "unknown authority"])
def test_a_certificate_that_is_not_to_be_trusted_is_a_failure_without_a_request(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "wrong name":
        monkeypatch.setenv("SSL_CERT_FILE", str(authority().bundle))
    name = "wrong.example.invalid" if how == "wrong name" else "127.0.0.1"
    with FakeServer(_ok, tls=authority().server(name)) as server:
        client = Client(server.url)
        assert client.failure() == "TransportError: TLS certificate not trusted"
        server.failures.clear()  # the server's own alert

    assert server.requests == []


def test_an_insecure_class_takes_any_certificate() -> None:
    with FakeServer(_ok, tls=authority().server("wrong.example.invalid")) as server:
        assert Client(server.url, insecure=True).result() == OK


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_a_bundle_of_the_requests_library_is_trusted_too(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(authority().bundle))
    with FakeServer(_ok, tls=authority().server("127.0.0.1")) as server:
        assert Client(server.url).result() == OK


def test_a_bundle_that_cannot_be_read_is_one_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/secret-name.pem")
    with FakeServer(_ok, tls=authority().server("127.0.0.1")) as server:
        failure = Client(server.url).failure()

    assert failure == "TransportError: TLS certificates of ours cannot be read"


@pytest.mark.usefixtures("trusted")
def test_five_megabytes_each_way_over_tls() -> None:
    text = "z" * 5_000_000

    def echo(peer: Peer) -> None:
        peer.result({"text": peer.request.params["arguments"]["text"]})

    with FakeServer(echo, tls=authority().server("127.0.0.1")) as server:
        client = Client(server.url)
        reply, _ = client.call(argument=text)

        assert reply.result()["text"] == text


@pytest.mark.usefixtures("trusted")
def test_plain_http_where_tls_was_meant_is_one_failure() -> None:
    with FakeServer(_ok) as server:
        client = Client(server.url.replace("http:", "https:"))
        failure = client.failure(timeout=0.5)
        server.failures.clear()

    assert failure in {"TransportError: TLS", "Timeout: connect timeout", "Timeout: timeout"}


@pytest.mark.usefixtures("trusted")
def test_a_tls_close_while_idle_costs_no_failure() -> None:
    closed = Event()

    def close_after(peer: Peer) -> None:
        peer.result(OK)
        peer.close()
        closed.set()

    with FakeServer(close_after, tls=authority().server("127.0.0.1")) as server:
        client = Client(server.url)
        for _ in range(3):
            assert client.result() == OK
            assert closed.wait(SOON_S)
            closed.clear()
            gevent.idle()

    assert server.connections == 3


@pytest.mark.usefixtures("trusted")
def test_a_tls_end_ends_a_body_though_the_socket_stays_open() -> None:
    """TLS has an end of its own (close_notify), and a server may wait for ours before it closes."""

    def end_of_tls(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        peer.send(f"data: {json.dumps(answer(peer.request, OK))}".encode())
        with contextlib.suppress(OSError):
            peer._sock.unwrap()  # returns once we have ended our side, too
        peer.close()

    with FakeServer(end_of_tls, tls=authority().server("127.0.0.1")) as server:
        assert Client(server.url).result() == OK


@pytest.mark.usefixtures("trusted")
def test_a_connection_whose_tls_has_ended_is_not_used_again() -> None:
    def answer_and_end_tls(peer: Peer) -> None:
        peer.send(_whole(peer.request))
        with contextlib.suppress(OSError):
            peer._sock.unwrap()  # the socket stays open until we close it
        peer.close()

    with FakeServer(answer_and_end_tls, tls=authority().server("127.0.0.1")) as server:
        client = Client(server.url)
        for _ in range(3):
            assert client.result() == OK

    assert server.connections == 3


# ---- redirects and cookies


def _redirect(status: int, location: str, **headers: str) -> Any:
    def answers(peer: Peer) -> None:
        if peer.request.target == "/mcp":
            peer.reply(status=status, headers={"Location": location, **headers})
        else:
            peer.result(OK)

    return answers


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("location", ["/mcp/", "mcp/", "{url}/mcp/?a=b"])
def test_a_redirect_within_the_origin_carries_method_body_and_headers(
    status: int, location: str
) -> None:
    with FakeServer(lambda peer: None) as server:
        server._answers = _redirect(status, location.format(url=server.url))
        client = Client(server.url)
        client.session.session_id = "s-1"
        reply, trace = client.call(headers={"Authorization": "Bearer t-1"})

    first, second = server.requests
    assert reply.result() == OK
    assert reply.hops == 1
    assert (second.verb, second.body) == (first.verb, first.body)
    assert second.headers == first.headers
    assert server.connections == 1
    assert trace.status == 200


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_would_become_a_get_is_a_failure(status: int) -> None:
    with FakeServer(_redirect(status, "/mcp/")) as server:
        client = Client(server.url)
        assert client.failure() == f"HTTPStatusError: HTTP {status}"
        assert client.failure() == f"HTTPStatusError: HTTP {status}"

    assert server.methods == ["tools/call"] * 2
    assert server.connections == 1


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize(
    "there", ["http://localhost:{port}", "https://127.0.0.1:{port}", "//{url}"]
)
def test_a_redirect_to_another_origin_is_a_failure_and_no_secret_goes_there(
    status: int, there: str
) -> None:
    with FakeServer(_ok) as other:
        location = there.format(port=other.port, url=other.url.partition("//")[2]) + "/mcp"
        with FakeServer(_redirect(status, location)) as server:
            client = Client(server.url)
            reply, _ = client.call(headers={"Authorization": "Bearer t-1"})
            with pytest.raises(MCPError, match=f"^HTTP {status}$"):
                reply.result()

    assert other.requests == []
    assert len(server.requests) == 1


def test_a_redirect_without_a_location_is_a_failure() -> None:
    with FakeServer(lambda peer: peer.reply(status=307)) as server:
        assert Client(server.url).failure() == "HTTPStatusError: HTTP 307"


def test_a_redirect_to_itself_is_followed_to_a_limit_only() -> None:
    with FakeServer(_redirect(307, "/mcp")) as server:
        assert Client(server.url).failure() == "TransportError: too many redirects"

    assert len(server.requests) == 6


def test_a_redirect_that_sets_a_cookie_gets_it_back_at_once() -> None:
    """As load balancers pin a client: 307 to the same place, until the cookie is there."""

    def pin(peer: Peer) -> None:
        if "cookie" in peer.request.headers:
            peer.result(OK)
        else:
            headers = {"Location": "/mcp", "Set-Cookie": "pin=r1; Path=/"}
            peer.reply(status=307, headers=headers)

    with FakeServer(pin) as server:
        assert Client(server.url).result() == OK

    assert server.requests[-1].headers["cookie"] == "pin=r1"


def test_a_timeout_behind_a_redirect_is_not_recorded_as_the_redirect_s_time() -> None:
    def hang(peer: Peer) -> None:
        if peer.request.target == "/mcp":
            peer.reply(status=307, headers={"Location": "/mcp/"})
        else:
            peer.gone()

    with FakeServer(hang) as server:
        client = Client(server.url)
        assert client.failure(timeout=0.2) == "Timeout: timeout"
        _, trace = client.last

    assert trace.replied == 0.0


def test_cookies_come_back_with_the_next_request_and_change_with_the_server() -> None:
    def set_cookies(peer: Peer) -> None:
        count = len(peer.server.requests)
        body = json.dumps(answer(peer.request, OK)).encode()
        peer.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
            b"Set-Cookie: a=%d; Path=/\r\nSet-Cookie: b=2; HttpOnly\r\n"
            b"Set-Cookie: far=1; Path=/elsewhere\r\nSet-Cookie: tls=1; Secure\r\n\r\n%b"
            % (len(body), count, body)
        )

    with FakeServer(set_cookies) as server:
        client, other = Client(server.url), Client(server.url)
        for _ in range(3):
            client.call()
        other.call()

    sent = [request.headers.get("cookie") for request in server.requests]
    assert sent[0] is None
    assert {*str(sent[1]).split("; ")} == {"a=1", "b=2"}
    assert {*str(sent[2]).split("; ")} == {"a=2", "b=2"}
    assert sent[3] is None, "users share no cookies"


# ---- resumed streams (specification/2025-11-25/basic/transports)


def _polling(answers: Any, retry: str = "retry: 60\n") -> Any:
    def polling(peer: Peer) -> None:
        if peer.request.verb == "POST":
            peer.stream()
            peer.event("", f"id: e1\n{retry}")
            peer.end()
        else:
            answers(peer)

    return polling


def test_a_stream_that_ended_early_is_resumed_from_its_last_event_after_its_pause() -> None:
    def rest(peer: Peer) -> None:
        first = peer.server.requests[0]
        peer.events({"jsonrpc": "2.0", "method": "notifications/progress"}, answer(first, OK))

    with FakeServer(_polling(rest)) as server:
        client = Client(server.url)
        client.session.session_id = "s-1"
        reply, trace = client.call(headers={"Authorization": "Bearer t-1"})

    post, get = server.requests
    assert reply.result() == OK
    assert reply.resumptions == 1
    assert (get.verb, get.body) == ("GET", b"")
    assert get.headers["last-event-id"] == "e1"
    assert get.headers["accept"] == "text/event-stream"
    assert get.headers["mcp-session-id"] == "s-1"
    assert get.headers["authorization"] == "Bearer t-1"
    assert get.arrived - post.arrived >= 0.055
    assert trace.replied >= get.arrived
    assert server.connections == 1


def test_a_stream_may_be_resumed_again_and_again_each_time_from_the_newest_event() -> None:
    def rest(peer: Peer) -> None:
        gets = len(peer.server.requests) - 1
        peer.stream()
        if gets < 3:
            peer.event("", f"id: e{gets + 1}\nretry: 1\n")
        else:
            peer.event(answer(peer.server.requests[0], OK))
        peer.end()

    with FakeServer(_polling(rest)) as server:
        assert Client(server.url).result() == OK

    assert [r.headers.get("last-event-id") for r in server.requests] == [None, "e1", "e2", "e3"]


def test_a_connection_that_broke_inside_a_stream_is_resumed_on_another() -> None:
    def broken(peer: Peer) -> None:
        if peer.request.verb == "POST":
            peer.stream()
            peer.event("", "id: e1\nretry: 1\n")
            peer.chunk(b'id: e2\ndata: {"half')
            peer.close(reset=True)
        else:
            peer.events(answer(peer.server.requests[0], OK))

    with FakeServer(broken) as server:
        assert Client(server.url).result() == OK

    assert server.requests[1].headers["last-event-id"] == "e1"
    assert server.connections == 2


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_server_that_will_not_resume_is_asked_once(status: int) -> None:
    with FakeServer(_polling(lambda peer: peer.reply(status=status))) as server:
        failure = Client(server.url).failure()

    assert failure == "ProtocolError: stream ended before the reply"
    assert len(server.requests) == 2


def test_a_resumption_that_never_answers_ends_at_the_deadline_and_is_timed_to_it() -> None:
    def silent(peer: Peer) -> None:
        peer.stream()
        peer.gone()

    with FakeServer(_polling(silent)) as server:
        client = Client(server.url)
        assert client.failure(timeout=0.3) == "Timeout: timeout"
        _, trace = client.last

    assert trace.replied == 0.0


def test_a_pause_beyond_the_deadline_is_a_timeout_and_no_request() -> None:
    with FakeServer(_polling(_ok, "retry: 60000\n")) as server:
        client = Client(server.url)
        assert client.failure(timeout=0.2) == "Timeout: timeout"
        _, trace = client.last

    assert len(server.requests) == 1
    assert trace.replied == 0.0


def test_a_server_that_asks_for_no_pause_is_not_flooded() -> None:
    def again(peer: Peer) -> None:
        peer.stream()
        peer.event("", "id: e1\nretry: 0\n")
        peer.end()

    with FakeServer(again) as server:
        assert Client(server.url).failure(timeout=0.4) == "Timeout: timeout"

    assert 2 <= len(server.requests) <= 10


def test_a_stream_of_the_stateless_era_is_never_resumed() -> None:
    from _revisions import NEWEST_ENVELOPE

    with FakeServer(_polling(_ok)) as server:
        client = Client(server.url)
        client.session.stand_alone(NEWEST_ENVELOPE, {"name": "x", "version": "1"}, {})
        assert client.failure() == "ProtocolError: stream ended before the reply"

    assert len(server.requests) == 1


# ---- users that are killed in mid-call


def _killed_in(client: Client, begun: Any, timeout: float = SOON_S) -> tuple[Any, Trace, Reply]:
    """Run a call in a greenlet, kill it once `begun`, and return how it ended."""
    greenlet = gevent.spawn(client.call, timeout)
    begun()
    greenlet.kill(block=False)
    greenlet.join(SOON_S)
    assert greenlet.dead, "the killed call still runs"
    reply, trace = client.last
    return greenlet.value, trace, reply


def test_a_killed_call_still_gets_its_reply_and_says_that_it_was_killed() -> None:
    asked, go = Event(), Event()

    def on_time(peer: Peer) -> None:
        asked.set()
        assert go.wait(SOON_S)
        peer.result(OK)

    with FakeServer(on_time) as server:
        client = Client(server.url)
        greenlet = gevent.spawn(client.call)
        assert asked.wait(SOON_S)
        greenlet.kill(block=False)
        gevent.idle()
        assert not greenlet.dead
        go.set()
        greenlet.join(SOON_S)
        reply, trace = greenlet.value

    assert reply.result() == OK
    assert trace.killed


def test_a_second_kill_ends_a_call_at_once() -> None:
    asked = Event()

    def never(peer: Peer) -> None:
        asked.set()
        assert peer.gone()

    with FakeServer(never) as server:
        client = Client(server.url)
        greenlet = gevent.spawn(client.call, 30.0)
        assert asked.wait(SOON_S)
        greenlet.kill(block=False)
        gevent.idle()
        greenlet.kill(timeout=1.0)

        assert isinstance(greenlet.value, GreenletExit)
        server.heard(lambda: len(server.requests) == 1)


def test_a_call_killed_while_it_connects_ends_at_once() -> None:
    with socket.socket() as full, socket.socket() as one, socket.socket() as two:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for filler in (one, two):
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        client = Client(f"http://127.0.0.1:{full.getsockname()[1]}")
        greenlet = gevent.spawn(client.call)
        gevent.idle()
        gevent.idle()
        greenlet.kill(timeout=1.0)

        assert isinstance(greenlet.value, GreenletExit)


def test_a_call_killed_behind_a_redirect_sends_no_further_request() -> None:
    asked, go = Event(), Event()

    def slow_redirect(peer: Peer) -> None:
        asked.set()
        assert go.wait(SOON_S)
        peer.reply(status=307, headers={"Location": "/elsewhere"})

    with FakeServer(slow_redirect) as server:
        client = Client(server.url)
        greenlet = gevent.spawn(client.call, 30.0)
        assert asked.wait(SOON_S)
        greenlet.kill(block=False)
        gevent.idle()
        go.set()
        greenlet.join(SOON_S)

        assert isinstance(greenlet.value, GreenletExit)
    assert len(server.requests) == 1


def test_a_call_killed_before_a_resumption_does_not_wait_for_it() -> None:
    asked, go = Event(), Event()

    def slow_polling(peer: Peer) -> None:
        asked.set()
        assert go.wait(SOON_S)
        peer.stream()
        peer.event("", "id: e1\nretry: 20000\n")
        peer.end()

    with FakeServer(slow_polling) as server:
        client = Client(server.url)
        greenlet = gevent.spawn(client.call, 30.0)
        assert asked.wait(SOON_S)
        greenlet.kill(block=False)
        gevent.idle()
        go.set()
        greenlet.join(SOON_S)

        assert isinstance(greenlet.value, GreenletExit)
    assert len(server.requests) == 1


def test_a_listener_killed_while_its_stream_settles_obeys() -> None:
    """Its trace says from the start that no reply is waited for (`_listener`)."""
    answered = Event()

    def answer_and_hold(peer: Peer) -> None:
        peer.stream()
        peer.event(answer(peer.request, OK))
        answered.set()
        peer.gone()

    with FakeServer(answer_and_hold) as server:
        origin = Origin(server.url)
        connection = Connection(origin)
        request_id = next_id()
        reply, trace = Reply(request_id), Trace()
        trace.killed = True
        data = Session("/mcp", origin.authority).request(
            "POST", {}, "", request_body(request_id, "subscriptions/listen", {})
        )
        connection.exchange(data, reply, trace, SOON_S)
        greenlet = gevent.spawn(connection.settle, 30.0)
        gevent.idle()
        greenlet.kill(timeout=1.0)

        assert isinstance(greenlet.value, GreenletExit)
        assert connection._sock is None


def test_a_timeout_of_the_caller_s_own_ends_a_call_and_closes_its_connection() -> None:
    with FakeServer(lambda peer: peer.gone()) as server:
        client = Client(server.url)
        with gevent.Timeout(0.1, False):
            client.call(timeout=30.0)
        server.heard(lambda: len(server.requests) == 1)
        (connection,) = client.wire._idle

        assert connection._sock is None


def test_no_descriptor_is_left_open_after_a_hundred_broken_calls() -> None:
    scripts = [_close_at_once, _reset_at_once, _no_http, _stream_cut, _length_not_reached]
    with FakeServer(in_turn(*(scripts * 20), _ok)) as server:
        client = Client(server.url)
        for _ in range(100):
            client.failure()
        assert client.result() == OK
        client.wire.close()

    assert server.connections == 101
    assert client.wire._idle == []


# ---- parallel calls


def test_parallel_calls_have_a_connection_each_and_keep_it_for_later() -> None:
    arrived: list[Request] = []
    all_here = Event()

    def together(peer: Peer) -> None:
        arrived.append(peer.request)
        if len(arrived) == 5:
            all_here.set()
        assert all_here.wait(SOON_S)
        peer.result({"text": peer.request.params["arguments"]["text"]})

    with FakeServer(together) as server:
        client = Client(server.url)

        def one(n: int) -> Any:
            return client.call(argument=str(n))[0].result()["text"]

        calls = [gevent.spawn(one, n) for n in range(5)]
        gevent.joinall(calls, raise_error=True)
        assert [call.value for call in calls] == ["0", "1", "2", "3", "4"]
        assert one(9) == "9"

    assert server.connections == 5


def test_the_context_of_an_origin_verifies_by_default() -> None:
    assert Origin("https://example.com").tls.verify_mode is ssl.CERT_REQUIRED
    assert Origin("https://example.com").tls.check_hostname
    assert Origin("https://example.com", insecure=True).tls.verify_mode is ssl.CERT_NONE


def test_failures_of_the_wire_are_mcp_errors() -> None:
    assert issubclass(Timeout, MCPError)
    assert issubclass(TransportError, MCPError)
