"""One user's way to its server: connections, cookies, redirects.

A call takes a connection from the free list or makes one; almost every user needs one only. A
second is opened when a server asks something while its first reply is still being read, or when
calls run in parallel.
"""

from __future__ import annotations

import time
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import gevent
from gevent import GreenletExit

from _cookies import Cookies
from _failures import Timeout, TransportError
from _http import Connection

if TYPE_CHECKING:
    from _origin import Origin
    from _reply import Reply
    from _trace import Trace
    from mcp_client import Session

SETTLE_S = 0.05  # how long the last chunk of an ended stream may take, off the clock
REDIRECTS_LIMIT = 5
RETRY_MS = 1000  # before a stream is resumed, where it asked for no other pause; as both SDKs
SHORTEST_RETRY_S = 0.05  # "retry: 0" would ask as fast as the server answers
HURRIED_CALLS = 10


class Wire:
    """Carries requests to one URL and brings their replies back."""

    __slots__ = (
        "_cookies",
        "_hurried",
        "_idle",
        "_origin",
        "_proxy_authorization",
        "_session",
        "url",
    )

    def __init__(self, origin: Origin, url: str, session: Session) -> None:
        self.url = url
        self._origin = origin
        self._session = session
        self._idle: list[Connection] = []
        self._cookies: Cookies | None = None
        self._hurried = 0  # how many more calls wait for no end of their stream
        proxy = None if origin.secure else origin.proxy
        self._proxy_authorization = proxy.authorization if proxy else ""

    def carry(
        self,
        verb: str,
        body: bytes,
        headers: dict[str, str],
        reply: Reply,
        trace: Trace,
        timeout: float,
        routing: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Send one request and read its reply; what is wrong with that, `reply.result()` says.

        Starts the clock of `trace`; `timeout` is for all of it. Redirects are followed for 307
        and 308 only, within the origin, so that no secret reaches another one. A stream that
        ended early but can be resumed is. Raises Timeout and TransportError.
        """
        if self._proxy_authorization:
            headers = {**headers, "Proxy-Authorization": self._proxy_authorization}
        cookie = self._cookies.header() if self._cookies is not None else ""
        data = self._session.request(verb, headers, cookie, body, routing)
        connection = self._idle.pop() if self._idle else Connection(self._origin)
        try:
            trace.at = time.time()
            trace.started = perf_counter()
            deadline = trace.started + timeout
            was_killed = trace.killed
            connection.exchange(data, reply, trace, timeout)
            while reply.status in (307, 308):
                target = self._target_of(reply)
                if not target:
                    break
                if reply.hops == REDIRECTS_LIMIT:
                    raise TransportError("too many redirects")
                reply.hops += 1
                cookie = self._between(connection, trace, was_killed)
                reply.reset()
                data = self._session.request(verb, headers, cookie, body, routing, target)
                connection.exchange(data, reply, trace, max(deadline - perf_counter(), 0.001))
            if reply.awaits_resumption and not self._session.stateless:
                self._resume(connection, headers, reply, trace, deadline, was_killed)
            if connection.cookies:
                self._store(connection.cookies)
            self._settle(connection)
        finally:
            self._idle.append(connection)

    def _resume(
        self,
        connection: Connection,
        headers: dict[str, str],
        reply: Reply,
        trace: Trace,
        deadline: float,
        was_killed: bool,
    ) -> None:
        """GET the rest of a stream from its last event on, after the pause that it asked for.

        specification/2025-11-25/basic/transports, "Resumability and Redelivery". A server that
        cannot go on leaves the failure as it was.
        """
        while reply.awaits_resumption:
            cookie = self._between(connection, trace, was_killed)
            pause = (RETRY_MS if reply.retry_ms is None else reply.retry_ms) / 1000.0
            pause = max(pause, SHORTEST_RETRY_S)
            if perf_counter() + pause >= deadline:
                gevent.sleep(max(0.0, deadline - perf_counter()))
                raise Timeout("timeout")
            gevent.sleep(pause)
            routing = (("Accept", "text/event-stream"), ("Last-Event-ID", reply.last_event_id))
            data = self._session.request("GET", headers, cookie, b"", routing)
            failure = reply.failure
            reply.resumptions += 1
            reply.resume()
            connection.exchange(data, reply, trace, max(deadline - perf_counter(), 0.001))
            if reply.status != 200 or reply.kind != "sse":
                reply.give_up(failure)

    def _between(self, connection: Connection, trace: Trace, was_killed: bool) -> str:
        """Make ready for another exchange of the same call; return the cookies to send in it."""
        if connection.cookies:
            self._store(connection.cookies)
        self._settle(connection)
        trace.replied = 0.0  # the clock runs on
        if trace.killed and not was_killed:
            raise GreenletExit
        return self._cookies.header() if self._cookies is not None else ""

    def _settle(self, connection: Connection) -> None:
        # A server that holds its streams open would cost each call the whole patience: then the
        # next calls are given none, unless a stream ends by itself. It is tried again, as else one
        # late packet would make a user connect anew for each call until the end of its run.
        if connection.settle(0.0 if self._hurried else SETTLE_S):
            self._hurried = 0
        else:
            self._hurried = self._hurried - 1 if self._hurried else HURRIED_CALLS

    def _target_of(self, reply: Reply) -> str:
        """The redirect's target on this origin, or "" for none and for another origin's."""
        location = reply.headers.get(b"location", b"").decode("latin-1")
        there = urlsplit(urljoin(self.url, location))
        here = urlsplit(self.url)
        if not location or (there.scheme, there.netloc) != (here.scheme, here.netloc):
            return ""
        path = there.path or "/"
        target = f"{path}?{there.query}" if there.query else path
        return self._origin.target(target)

    def _store(self, cookies: list[bytes]) -> None:
        if self._cookies is None:
            self._cookies = Cookies(self.url)
        self._cookies.store(cookies)

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
