"""Where a token for an MCP server is to be had: discovered from the server on, over a guarded wire.

1. the protected resource says which authorization server and which scopes: RFC 9728, at the URL
   of the 401's challenge, else at the well-known place for the path, else for the host;
2. that server says where tokens are to be had: RFC 8414, or OpenID discovery.

None of it is a sample of Locust's: `_tally` keeps what was sent, for the report. What comes here
names whoever is to get our secret next. So it comes over https or from this machine only, and a
redirect is followed within its origin only. Errors name the step, never a value.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import gevent
import requests

from _metadata import RESOURCE, is_private, well_known
from _tally import Sent, sent, tallies

TIMEOUT_S = 10.0  # for one request, however its answer trickles
LONGEST = 1 << 20  # bytes of an answer
SENDINGS_LIMIT = 4  # of one request, redirects included
SERVER = "authorization server metadata"

Answer = tuple[int, Mapping[str, str], dict[str, Any]]


class OAuthError(Exception):
    """Why no token came: at what step, and the server's own error code; never a value."""


class Place(NamedTuple):
    """Where a token is to be had, and for what."""

    issuer: str
    endpoint: str
    methods: tuple[str, ...]  # by which a client may prove who it is
    resource: str
    scope: str  # that the server wants: its challenge's, else all it supports, else ""


def discover(label: str, mcp_url: str, only_issuer: str | None = None) -> Place:
    """Find where tokens for this server come from; `only_issuer` allows no other issuer.

    Raises OAuthError.
    """
    url = mcp_url.partition("?")[0]
    challenge = _challenge(label, mcp_url)
    resource = _protected_resource(label, url, challenge.get("resource_metadata"))
    issuers = _texts(resource.get("authorization_servers"))
    if only_issuer is not None:
        issuers = [one for one in issuers if _bare(one) == _bare(only_issuer)]
    if not issuers:
        raise OAuthError(f"{RESOURCE}, names no issuer that our client belongs to")
    server = _find(label, _metadata_of_issuer(issuers[0]), SERVER, "token_endpoint")
    if server is None:
        raise OAuthError(f"{SERVER}, not found")
    # RFC 8414, 3.3: identical. Only a slash may differ, which libraries add to a bare origin.
    if _bare(str(server.get("issuer"))) != _bare(issuers[0]):
        raise OAuthError(f"{SERVER}, names another issuer")
    return Place(
        issuer=str(server["issuer"]),
        endpoint=str(server["token_endpoint"]),
        methods=tuple(_texts(server.get("token_endpoint_auth_methods_supported"))),
        resource=str(resource.get("resource", url)),
        scope=challenge.get("scope") or " ".join(_texts(resource.get("scopes_supported"))),
    )


def _challenge(label: str, mcp_url: str) -> dict[str, str]:
    """Return the parameters of the server's 401, {} where it gives none."""
    status, headers, _ = send(label, "POST", mcp_url, "challenge", json={})
    return challenge_of(headers.get("WWW-Authenticate", "")) if status == 401 else {}


def challenge_of(header: str) -> dict[str, str]:
    """Return the parameters of a WWW-Authenticate header's Bearer challenge, {} without one."""
    _, found, rest = re.sub(r"(?i)(^|[\s,])bearer(?=\s|$)", "\n", header, count=1).partition("\n")
    pairs = re.findall(r'([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))', rest if found else "")
    parameters: dict[str, str] = {}
    for name, quoted, plain in pairs:  # a challenge that follows may repeat a name
        parameters.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
    return parameters


def _protected_resource(label: str, url: str, named: str | None) -> dict[str, Any]:
    places = [named] if named else []
    places += [place for place in well_known(_origin_of(url), urlsplit(url).path) if place != named]
    document = _find(label, places, RESOURCE, "authorization_servers")
    if document is None:  # 2025-03-26 had no such metadata: the server's own origin issues
        return {"authorization_servers": [_origin_of(url)]}
    if not _covers(str(document.get("resource", "")), url):
        raise OAuthError(f"{RESOURCE}, is about another resource")
    return document


def _find(label: str, urls: Iterable[str], what: str, wanted: str) -> dict[str, Any] | None:
    for url in urls:
        status, _, document = send(label, "GET", url, what)
        if status >= 500:  # an outage is no absence: the next place might name another server
            raise OAuthError(f"{what}, HTTP {status}")
        if status == 200 and document.get(wanted):
            return document
    return None


def _metadata_of_issuer(issuer: str) -> Iterator[str]:
    """Yield where an issuer's metadata may be, in the order of basic/authorization."""
    origin, path = _origin_of(issuer), urlsplit(issuer).path.rstrip("/")
    yield f"{origin}/.well-known/oauth-authorization-server{path}"
    yield f"{origin}/.well-known/openid-configuration{path}"
    if path:
        yield f"{origin}{path}/.well-known/openid-configuration"


def _covers(resource: str, url: str) -> bool:
    """Is the resource the URL, or above it? Else it "MUST NOT be used" (RFC 9728, 3.3)."""
    ours, theirs = (f"{urlsplit(one).path.rstrip('/')}/" for one in (url, resource))
    return _same_origin(resource, url) and ours.startswith(theirs)


def _same_origin(one: str, other: str) -> bool:
    origins = []
    try:
        for parts in map(urlsplit, (one, other)):
            port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
            origins.append((parts.scheme, parts.hostname, port))
    except ValueError:  # what a server names need not be a URL
        return False
    return origins[0] == origins[1]


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _bare(issuer: str) -> str:
    return issuer.rstrip("/")


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


# ---- the wire


def send(label: str, verb: str, url: str, what: str, **more: Any) -> Answer:
    """Return (status, headers, JSON object or {}) of the answer; OAuthError where none comes.

    `more` as in `requests.request`. A redirect to elsewhere is the answer: it is not followed.
    """
    for _ in range(SENDINGS_LIMIT):
        if not is_private(url):
            raise OAuthError(f"{what}, its address is neither https nor this machine's")
        status, headers, document = _send_once(label, verb, url, what, **more)
        target = _target(url, headers)
        kept = status in (307, 308) or (verb == "GET" and status in (301, 302, 303))
        if not kept or not _same_origin(target, url):
            break
        url = target
    return status, headers, document


def _target(url: str, headers: Mapping[str, str]) -> str:
    try:
        return urljoin(url, headers.get("Location", ""))
    except ValueError:
        return ""


def _send_once(label: str, verb: str, url: str, what: str, **more: Any) -> Answer:
    status, body, failure = 0, b"", "time is up"
    began, at = time.perf_counter(), time.time()
    try:
        with gevent.Timeout(TIMEOUT_S, OAuthError(f"{what}, time is up")):
            reply = requests.request(
                verb, url, headers={"Accept": "application/json, text/event-stream"}, stream=True,
                timeout=TIMEOUT_S, allow_redirects=False, verify=_bundle(),
                **{**more, "auth": more.get("auth") or _no_netrc},
            )  # fmt: skip
            with reply:
                status = reply.status_code
                if what != "challenge":  # whose answer may be a stream, and is not needed
                    body = _read(reply)
        failure = ""
    except (requests.RequestException, OSError, ValueError) as error:
        failure = type(error).__name__
        raise OAuthError(f"{what}, no answer, {failure}") from None
    finally:
        elapsed = (time.perf_counter() - began) * 1000.0
        sent.append(Sent(at, label, what, elapsed, status, failure))
        if what != "token":  # those are counted where tokens are
            tallies[label, "metadata requests"] += 1
    return status, reply.headers, _object(body)


def _no_netrc(request: Any) -> Any:
    """Leave a request as it is: without an `auth`, requests puts in what a .netrc says."""
    return request


def _bundle() -> str | bool:
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    return next(filter(None, map(os.environ.get, names)), True)


def _read(reply: requests.Response) -> bytes:
    body = b""
    for chunk in reply.iter_content(1 << 16):
        body += chunk
        if len(body) > LONGEST:
            raise ValueError("too long")
    return body


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
