"""Where connections go: the addresses of a host, its TLS settings, the proxy before it.

One `Origin` serves all users of a class. Made once and not per user: a TLS context with the CA
bundle costs 830 KiB and 59 ms, a name look-up 0.2 ms in a pool of ten threads.
"""

from __future__ import annotations

import base64
import itertools
import os
import socket
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from gevent.lock import BoundedSemaphore

from _failures import TransportError

ADDRESSES_LIVE_S = 30.0  # between two look-ups of a name; hosted servers move by DNS


@dataclass(frozen=True)
class Proxy:
    host: str
    port: int
    authorization: str  # the value of Proxy-Authorization, "" for none


def check(url: str) -> None:
    """Raise ValueError, with the cure, where no user could ever be connected to `url`."""
    try:
        _ = Origin(url).proxy
    except TransportError as error:
        raise ValueError(f"{error}: set it to one, or unset it") from None


def proxy_for(scheme: str, host: str, port: int) -> Proxy | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY name for a host.

    Raises TransportError for one that is no http:// URL; its text never holds the URL, which may
    carry a password.
    """
    found = getproxies()
    url = found.get(scheme) or found.get("all")
    if not url or proxy_bypass(f"{host}:{port}"):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        usable = parts.scheme == "http" and parts.hostname and (parts.port or 80) > 0
    except ValueError:
        usable = False
    if not usable:
        raise TransportError(f"{scheme.upper()}_PROXY is not an http:// URL")
    authorization = ""
    if parts.username:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(secret.encode()).decode()
    return Proxy(parts.hostname or "", parts.port or 80, authorization)


def tls_context(insecure: bool) -> ssl.SSLContext:
    """A verifying context: SSL_CERT_FILE or the system's bundle, and REQUESTS_CA_BUNDLE too.

    Where the system has no bundle, certifi's, which comes with requests and so with Locust.
    """
    context = ssl.create_default_context()
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    if bundle:
        is_folder = Path(bundle).is_dir()
        context.load_verify_locations(
            cafile=None if is_folder else bundle, capath=bundle if is_folder else None
        )
    paths = ssl.get_default_verify_paths()
    if not bundle and paths.cafile is None and paths.capath is None:
        import certifi

        context.load_verify_locations(cafile=certifi.where())
    return context


_shared: dict[tuple[str, bool, float], Origin] = {}


def shared(url: str, insecure: bool, connect_timeout: float) -> Origin:
    """The one `Origin` of all users that reach `url` in the same way."""
    key = (url, insecure, connect_timeout)
    if key not in _shared:
        _shared[key] = Origin(url, insecure=insecure, connect_timeout=connect_timeout)
    return _shared[key]


class Origin:
    """A scheme, a host and a port. Raises TransportError from `addresses` and `tls`."""

    def __init__(self, url: str, *, insecure: bool = False, connect_timeout: float = 10.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"host {url!r} is not an http:// or https:// URL")
        if parts.path not in ("", "/") or parts.query or parts.username is not None:
            raise ValueError("host has a path, a query or a user in it: put a path into mcp_path")
        self.secure = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.secure else 80)
        self.connect_timeout = connect_timeout
        bracketed = f"[{self.host}]" if ":" in self.host else self.host
        default_port = self.port == (443 if self.secure else 80)
        self.authority = bracketed if default_port else f"{bracketed}:{self.port}"
        self.url = f"{parts.scheme}://{self.authority}"
        self._insecure = insecure
        self._tls: ssl.SSLContext | None = None
        self._proxy: Proxy | None = None
        self._proxy_known = False
        self._addresses: list[tuple[Any, ...]] = []
        self._fresh_until = 0.0
        self._lookup = BoundedSemaphore(1)
        self._turn = itertools.count()

    @property
    def proxy(self) -> Proxy | None:
        if not self._proxy_known:
            scheme = "https" if self.secure else "http"
            self._proxy = proxy_for(scheme, self.host, self.port)
            self._proxy_known = True
        return self._proxy

    @property
    def tls(self) -> ssl.SSLContext:
        if self._tls is None:
            try:
                self._tls = tls_context(self._insecure)
            except (OSError, ssl.SSLError):
                raise TransportError("TLS certificates of ours cannot be read") from None
        return self._tls

    def target(self, path: str) -> str:
        """The request target for a path: a proxy for plain HTTP wants the whole URL."""
        return path if self.secure or self.proxy is None else self.url + path

    def addresses(self) -> list[tuple[Any, ...]]:
        """(family, socket address) of where to connect, the next in turn first."""
        if time.monotonic() >= self._fresh_until:
            with self._lookup:
                if time.monotonic() >= self._fresh_until:
                    self._addresses = self._resolve()
                    self._fresh_until = time.monotonic() + ADDRESSES_LIVE_S
        start = next(self._turn) % len(self._addresses)
        return self._addresses[start:] + self._addresses[:start]

    def _resolve(self) -> list[tuple[Any, ...]]:
        proxy = self.proxy
        host, port = (proxy.host, proxy.port) if proxy else (self.host, self.port)
        try:
            found = socket.getaddrinfo(host.encode("idna"), port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):  # such as a label of more than 63 characters
            raise TransportError("host name not found") from None
        return [(family, address) for family, _, _, _, address in found]
