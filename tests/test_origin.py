"""Where connections go: URLs, proxies, bundles."""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import base64
import socket
from collections.abc import Iterator
from typing import Any

import gevent
import pytest

import _origin
from _failures import MCPError, TransportError
from _jsonrpc import next_id, request_body
from _origin import Origin, check, proxy_for
from _trace import Trace
from _wire import Wire
from mcp_client import Session
from tests.certificates import authority
from tests.fake_server import OK, FakeServer, Peer

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
SOON_S = 5.0


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    _origin._shared.clear()
    yield
    _origin._shared.clear()


@pytest.mark.parametrize(
    ("url", "authority_", "port", "secure"),
    [
        ("https://example.com", "example.com", 443, True),
        ("https://example.com/", "example.com", 443, True),
        ("https://EXAMPLE.com:443", "example.com", 443, True),
        ("https://example.com:8443", "example.com:8443", 8443, True),
        ("http://example.com", "example.com", 80, False),
        ("http://127.0.0.1:8000", "127.0.0.1:8000", 8000, False),
        ("http://[::1]:8000", "[::1]:8000", 8000, False),
        ("https://[::1]", "[::1]", 443, True),
    ],
)
def test_an_origin_is_a_scheme_a_host_and_a_port(
    url: str, authority_: str, port: int, secure: bool
) -> None:
    origin = Origin(url)

    assert (origin.authority, origin.port, origin.secure) == (authority_, port, secure)
    assert origin.url == f"{'https' if secure else 'http'}://{authority_}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "example.invalid/mcp",
        "ftp://example.com",
        "https://",
        "https://:443",
        "http://h:port",
        "http://h:99999",
        "http://[::1",
    ],
)
def test_what_is_no_origin_is_a_value_error(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the standard library's own, at times
        check(url)


@pytest.mark.parametrize("url", ["https://h/api", "https://h?a=b", "https://user:s3cret@h"])
def test_a_host_with_more_than_a_host_in_it_is_refused_and_no_secret_is_shown(url: str) -> None:
    """It would be dropped without a word, and every call would be a 404."""
    with pytest.raises(ValueError, match="mcp_path") as caught:
        check(url)

    assert "s3cret" not in str(caught.value)


def test_users_that_go_the_same_way_share_one_origin() -> None:
    one = _origin.shared("https://h", False, 10.0)

    assert _origin.shared("https://h", False, 10.0) is one
    assert _origin.shared("https://h", True, 10.0) is not one
    assert _origin.shared("https://g", False, 10.0) is not one


@pytest.mark.parametrize(
    ("settings", "scheme", "expected"),
    [
        ({"HTTPS_PROXY": "http://p:3128"}, "https", ("p", 3128, "")),
        ({"https_proxy": "http://p:3128"}, "https", ("p", 3128, "")),
        ({"HTTPS_PROXY": "p:3128"}, "https", ("p", 3128, "")),
        ({"HTTPS_PROXY": "http://p"}, "https", ("p", 80, "")),
        ({"HTTPS_PROXY": "http://[::1]:3128"}, "https", ("::1", 3128, "")),
        ({"ALL_PROXY": "http://p:1"}, "https", ("p", 1, "")),
        ({"HTTP_PROXY": "http://p:1"}, "http", ("p", 1, "")),
        ({"HTTP_PROXY": "http://p:1"}, "https", None),
        ({"HTTPS_PROXY": "http://p:1"}, "http", None),
        ({"HTTPS_PROXY": ""}, "https", None),
        (
            {"HTTPS_PROXY": "http://me:p%40ss@p:1"},
            "https",
            ("p", 1, "Basic " + base64.b64encode(b"me:p@ss").decode()),
        ),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "mcp.example.com"}, "https", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example.com"}, "https", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a, example.com"}, "https", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "https", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "mcp.example.com:443"}, "https", None),
        (
            {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "mcp.example.com:8443"},
            "https",
            ("p", 1, ""),
        ),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "ample.com"}, "https", ("p", 1, "")),
    ],
)
def test_a_proxy_is_the_one_that_the_environment_names(
    settings: dict[str, str],
    scheme: str,
    expected: tuple[str, int, str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    found = proxy_for(scheme, "mcp.example.com", 443)

    assert (found and (found.host, found.port, found.authorization)) == expected


def test_an_address_of_ipv6_can_be_kept_from_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://p:1")
    monkeypatch.setenv("NO_PROXY", "::1,127.0.0.1")

    assert proxy_for("http", "::1", 8000) is None
    assert proxy_for("http", "127.0.0.1", 8000) is None


@pytest.mark.parametrize(
    "url",
    [
        "socks5://me:s3cret@p:1080",
        "https://me:s3cret@p",
        "http://me:s3cret@",
        "http://me:s3cret@p:x",
    ],
)
def test_a_proxy_that_we_cannot_use_is_named_without_its_password(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", url)
    with pytest.raises(TransportError, match=r"^HTTPS_PROXY is not an http:// URL$"):
        proxy_for("https", "mcp.example.com", 443)
    with pytest.raises(ValueError, match=r"^HTTPS_PROXY is not an http:// URL: ") as caught:
        check("https://mcp.example.com")

    assert "s3cret" not in str(caught.value)


# ---- proxies on the wire


def _call(url: str, headers: dict[str, str] | None = None) -> Any:
    origin = Origin(url)
    session = Session(origin.target("/mcp"), origin.authority)
    wire = Wire(origin, f"{origin.url}/mcp", session)
    request_id = next_id()
    reply = session.reply_to(request_id)
    try:
        body = request_body(request_id, "ping", None)
        wire.carry("POST", body, headers or {}, reply, Trace(), SOON_S)
        return reply.result()
    finally:
        wire.close()


def _tunnel(peer: Peer) -> None:
    """Answer a CONNECT, then carry bytes both ways until one side has ended."""
    host, _, port = peer.request.target.rpartition(":")
    there = socket.create_connection((host.strip("[]"), int(port)))
    peer.send(b"HTTP/1.1 200 Connection established\r\nVia: a test\r\n\r\n")

    def carry(source: Any, sink: Any) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass

    both = [gevent.spawn(carry, peer._sock, there), gevent.spawn(carry, there, peer._sock)]
    gevent.joinall(both, count=1)
    gevent.killall(both)
    there.close()
    peer.close()


def test_tls_goes_through_a_tunnel_and_the_proxy_sees_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority().bundle))
    secure = authority().server("127.0.0.1")
    with FakeServer(_tunnel) as proxy, FakeServer(lambda p: p.result(OK), tls=secure) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:pass@127.0.0.1:{proxy.port}")
        assert _call(server.url, {"Authorization": "Bearer t-1"}) == OK

    (asked,), (request,) = proxy.requests, server.requests
    assert (asked.verb, asked.target) == ("CONNECT", f"127.0.0.1:{server.port}")
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"
    assert asked.headers["proxy-authorization"] == "Basic bWU6cGFzcw=="
    assert b"t-1" not in asked.head
    assert request.headers["authorization"] == "Bearer t-1"
    assert "proxy-authorization" not in request.headers
    assert request.target == "/mcp"


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        (lambda p: p.reply(status=407), "proxy refused the connection"),
        (lambda p: p.reply(status=502), "proxy refused the connection"),
        (lambda p: p.close(), "connection "),
        (lambda p: (p.send(b"x" * 200_000), p.gone()), "malformed reply of the proxy"),
    ],
)
def test_a_proxy_that_refuses_is_one_failure(
    script: Any, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeServer(script) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(TransportError, match=rf"^{failure}"):
            _call("https://mcp.example.invalid")


def test_plain_http_asks_the_proxy_for_the_whole_url(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(lambda p: p.result(OK)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:pass@127.0.0.1:{proxy.port}")
        assert _call("http://mcp.example.invalid:8000") == OK

    (request,) = proxy.requests
    assert request.target == "http://mcp.example.invalid:8000/mcp"
    assert request.headers["host"] == "mcp.example.invalid:8000"
    assert request.headers["proxy-authorization"] == "Basic bWU6cGFzcw=="


def test_a_redirect_through_a_proxy_asks_for_the_whole_url_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answers(peer: Peer) -> None:
        if peer.request.target.endswith("/mcp"):
            peer.reply(status=307, headers={"Location": "/mcp/"})
        else:
            peer.result(OK)

    with FakeServer(answers) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert _call("http://mcp.example.invalid") == OK

    assert [request.target for request in proxy.requests] == [
        "http://mcp.example.invalid/mcp",
        "http://mcp.example.invalid/mcp/",
    ]


def test_a_host_in_no_proxy_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(lambda p: p.close()) as proxy, FakeServer(lambda p: p.result(OK)) as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert _call(server.url) == OK

    assert proxy.requests == []
    assert "proxy-authorization" not in server.requests[0].headers


# ---- names


def test_a_name_is_looked_up_once_for_all_who_ask_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lookups: list[Any] = []
    really = socket.getaddrinfo

    def counted(*arguments: Any, **more: Any) -> Any:
        lookups.append(arguments)
        gevent.idle()
        return really(*arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", counted)
    origin = Origin("http://localhost:1")
    gevent.joinall([gevent.spawn(origin.addresses) for _ in range(50)], raise_error=True)

    assert len(lookups) == 1


def test_an_address_is_looked_up_again_when_it_is_old() -> None:
    origin = Origin("http://localhost:1")
    found = origin.addresses()
    origin._addresses = [(socket.AF_INET, ("10.0.0.1", 1))]
    origin._fresh_until = 0.0  # half a minute has gone by

    assert sorted(origin.addresses()) == sorted(found)


def test_a_name_that_is_not_found_leaves_the_origin_usable() -> None:
    origin = Origin("http://no-such-host.invalid")
    for _ in range(2):
        with pytest.raises(MCPError, match=r"^host name not found$"):
            origin.addresses()
