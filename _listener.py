"""A stream on which a server may speak first: the idle GET, or `subscriptions/listen`.

Both official SDKs keep a GET stream open beside their calls, one more idle connection per user.
Since 2026-07-28 a client asks by a long POST instead. Neither is a sample: what came and when is
counted here, so that no hour-long stream stands among latencies.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event

from _jsonrpc import next_id, request_body
from _reply import Reply
from _tally import tallies
from _trace import Trace
from mcp_client import MCPError

if TYPE_CHECKING:
    from _lifecycle import Lifecycle

FOREVER_S = 86400.0
RECONNECTIONS = 2  # in a row without a word of the server's, as both SDKs
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
KEPT = 10_000
OPENED_WITHIN_S = 1.0  # some servers send not even headers before they have something to say


class _StreamReply(Reply):
    """Tells when its head has come."""

    opened: Event

    def begin(self, status: int, headers: dict[bytes, bytes]) -> None:
        super().begin(status, headers)
        self.opened.set()


class Listener:
    """One user's stream. `received` holds (seconds since it was opened, method) of what came.

    Started by `_listen`; ends with its user, or when the server will not have it.
    """

    def __init__(self, user: Lifecycle, params: dict[str, Any] | None = None) -> None:
        self.received: list[tuple[float, str]] = []
        self.opened_at = perf_counter()
        self.acknowledged_after: float | None = None
        self._user = user
        self._params = params
        self._came = Event()
        self._opened = Event()
        self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        """Close the stream, which cancels a subscription."""
        self._greenlet.kill(block=False)

    def wait_until_open(self) -> None:
        """Wait for the server's head, or until it is clear that none is coming."""
        self._opened.wait(OPENED_WITHIN_S)

    def wait_for(self, method: str, timeout: float) -> float | None:
        """Wait for the next notification of a method; return the seconds, None if it never came."""
        began = perf_counter()
        seen = len(self.received)
        while perf_counter() - began < timeout:
            for _, came in self.received[seen:]:
                if came == method:
                    return perf_counter() - began
            seen = len(self.received)
            self._came.clear()
            self._came.wait(timeout - (perf_counter() - began))
        return None

    def _run(self) -> None:
        label = self._user.server_label
        failures = 0
        while failures < RECONNECTIONS:
            before = len(self.received)
            status, retry_ms = self._open()
            if status >= 400:
                tallies[label, f"listening refused, HTTP {status}"] += 1
                return
            failures = 0 if len(self.received) > before else failures + 1
            gevent.sleep((1000 if retry_ms is None else retry_ms) / 1000.0)

    def _open(self) -> tuple[int, int | None]:
        user = self._user
        trace = Trace()
        trace.killed = True  # no reply is waited for once the user is to stop
        reply = _StreamReply(next_id(), on_request=user._answer_later, on_notification=self._take)
        reply.opened = self._opened
        tallies[user.server_label, "listening opened"] += 1
        try:
            if self._params is None:
                routing: tuple[tuple[str, str], ...] = (("Accept", "text/event-stream"),)
                verb, body = "GET", b""
            else:
                verb = "POST"
                asked, routing = user._envelope("subscriptions/listen", self._params, reply)
                body = request_body(reply.request_id or 0, *asked)
            headers = user._extra_headers()
            self.opened_at = perf_counter()
            user._wire.carry(verb, body, headers, reply, trace, FOREVER_S, routing)
        except MCPError:
            tallies[user.server_label, "listening broken"] += 1
            self._opened.set()
        return reply.status, reply.retry_ms

    def _take(self, message: dict[str, Any]) -> None:
        after = perf_counter() - self.opened_at
        method = str(message.get("method"))[:80]
        if method == ACKNOWLEDGED:
            self.acknowledged_after = after
        if len(self.received) < KEPT:
            self.received.append((after, method))
        tallies[self._user.server_label, f"notification heard: {method}"] += 1
        self._came.set()
