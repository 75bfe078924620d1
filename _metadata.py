"""What a protected server publishes about its tokens: RFC 9728's metadata, believed or not."""

from __future__ import annotations

import ipaddress
import json
import logging
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from _tally import Sent, sent, tallies

logger = logging.getLogger(__name__)

TIMEOUT_S = 5.0
RESOURCE = "protected resource metadata"


def documents(label: str, host: str, path: str) -> Iterator[Any]:
    """Yield what is published for a server's path, then for its whole host, as far as it is JSON.

    `label` is whose requests these are, in the log and in the tallies.
    """
    for url in _urls(host, path):
        tallies[label, "metadata requests"] += 1
        at, began, status, failure = time.time(), time.perf_counter(), 0, ""
        try:
            with urlopen(  # noqa: S310 - _urls gives http(s) only
                Request(url, headers={"Accept": "application/json"}),  # noqa: S310
                timeout=TIMEOUT_S,
            ) as reply:
                status = reply.status
                document = json.loads(reply.read(1 << 20))
        except Exception as error:
            status = getattr(error, "code", status)
            failure = "" if isinstance(error, HTTPError) else type(error).__name__
            logger.debug("%s: %s: %s", label, url, type(error).__name__)
            continue
        finally:
            took = (time.perf_counter() - began) * 1000.0
            sent.append(Sent(at, label, RESOURCE, took, status, failure))
        yield document


def _urls(host: str, path: str) -> Iterator[str]:
    """Yield where a server's metadata may be.

    Nowhere for a server in clear text that is not this machine: anybody on the way could name a
    scope of his own.
    """
    if is_private(host):
        yield from well_known(host, path.partition("?")[0])


def well_known(origin: str, path: str) -> Iterator[str]:
    """Yield the places of RFC 9728, 3.1: for the path, then for the whole origin."""
    place, bare = f"{origin}/.well-known/oauth-protected-resource", path.rstrip("/")
    if bare:
        yield f"{place}{bare}"
    yield place


def is_private(url: str) -> bool:
    """Can nobody on the way read what is sent to this URL? https, or http to this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:  # what a server names need not be a URL
        return False
    hostname = parts.hostname or ""
    if parts.scheme != "http":
        return parts.scheme == "https" and bool(hostname)
    try:
        return ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return hostname == "localhost"


def scope_of(document: Any, host: str, path: str) -> str:
    """Return the scope that protected-resource metadata names, "" where it is not about us.

    RFC 9728, 3.3: if `resource` is not the server asked, "the data contained in the response
    MUST NOT be used". It may be the whole host, as the metadata at the root is.
    """
    if not isinstance(document, dict) or not isinstance(document.get("resource"), str):
        return ""
    ours, theirs = urlsplit(host + path), urlsplit(document["resource"])
    same_host = (ours.scheme, ours.netloc.lower()) == (theirs.scheme, theirs.netloc.lower())
    inside = f"{ours.path.rstrip('/')}/".startswith(f"{theirs.path.rstrip('/')}/")
    named = document.get("scopes_supported")
    scopes = [s for s in named if isinstance(s, str) and s] if isinstance(named, list) else []
    if not (same_host and inside and scopes):
        return ""
    return next((scope for scope in scopes if scope.endswith("/.default")), scopes[0])
