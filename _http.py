"""One keep-alive HTTP/1.1 connection on a non-blocking socket, parsed by httptools.

Why not a library's: a load generator that is slower than the server measures itself. Per call a
raw socket with one permanently started read watcher costs 0.64 of gevent's own sockets, and no
library on gevent offers every instant of a streamed reply and stopping at ours while the stream
stays open.

Rules for whoever edits this file:

* The watcher is started once and never per request. Its callback may only switch to the greenlet
  that is recorded as waiting, or notice that an idle connection died; it must not raise.
* Any way out of `exchange` other than a whole reply on a connection that may live on closes it:
  kills and timeouts arrive as exceptions out of `hub.switch()`.
* A descriptor is closed after its watcher, or the watcher fires for the next socket's number.
* gevent's timers resume what was left of their period when started again: make a new one.
"""

from __future__ import annotations

import socket
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gevent import GreenletExit, get_hub, getcurrent

from _dial import READ_SIZE, dial, hang_up, transport_error
from _failures import MCPError, Timeout, TransportError
from _framing import Framing

if TYPE_CHECKING:
    from _origin import Origin
    from _reply import Reply
    from _tls import TLSPipe
    from _trace import Trace

_GRACE_FOR_THE_KILLED = 2.0  # seconds for the reply that a killed user still waits for


class Connection(Framing):
    """A connection to an origin, opened when first used and again after it was closed.

    Used by one greenlet at a time.
    """

    def __init__(self, origin: Origin) -> None:
        super().__init__()
        self._origin = origin
        self._hub = get_hub()
        self._sock: Any = None
        self._watcher: Any = None
        self._pipe: TLSPipe | None = None
        self._waiter: Any = None
        self._stale = False
        self._timer: Any = None
        self._timer_ends = 0.0
        self._deadline = 0.0
        self._idle_since = 0.0

    def exchange(self, data: bytes, reply: Reply, trace: Trace, timeout: float) -> None:
        """Send a request and read until `reply` is decided, within `timeout` seconds.

        Sets the instants of `trace`. Raises Timeout and TransportError; what is wrong with the
        reply itself, `reply.result()` says. The connection is then either ready for `settle` or
        closed. Locust kills users in mid-call, as it stops: the server has the request, so its
        reply is still waited for, briefly, with `trace.killed` set for the caller to obey.
        """
        now = perf_counter()
        deadline = now + timeout
        try:
            if self._sock is None or self._stale or self._died_idle(now):
                self._open(trace, deadline)
            self._deadline = deadline
            if self._timer is None or self._timer_ends > deadline:
                self._arm(timeout)
            self.expect(reply, trace)
            self._write(data)
            trace.sent = trace.sent or perf_counter()
            trace.sent_bytes += len(data)
            self._read_reply(reply, trace)
        except BaseException:
            self.close(abort=True)
            raise

    def settle(self, patience: float) -> bool:
        """Off the clock: read the short rest of an ended stream, so that the connection can be
        used again. Waits `patience` seconds at most, then closes; false where it had to.
        """
        trace = self._trace
        if self._sock is None:
            return True
        ended = self._complete or self.ends_with_connection()  # then there is nothing to save
        if not ended and patience > 0.0:
            self._deadline = perf_counter() + patience
            self._arm(patience)
            try:
                while not self._complete and self._read_some():
                    pass
                ended = True
            except Timeout:
                pass
            except MCPError:
                ended, self._keep_alive = True, False
            except BaseException as error:
                if trace.killed or not isinstance(error, GreenletExit):
                    self.close(abort=True)
                    raise
                trace.killed = True
        trace.ended = self._now
        if self._complete and self._keep_alive and not self._stale:
            self._idle_since = self._now
        else:
            self.close(abort=not self._complete)
        return ended

    def close(self, abort: bool = False) -> None:
        """Close, by a reset with `abort`."""
        sock, self._sock = self._sock, None
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
            self._timer = None
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher.close()
            self._watcher = None
        self._pipe = self._parser = None
        if sock is not None:
            hang_up(sock, abort)

    def _open(self, trace: Trace, deadline: float) -> None:
        self.close()
        self._stale = False
        limit = min(self._origin.connect_timeout, deadline - perf_counter())
        dialed = dial(self._origin, max(limit, 0.001))
        trace.connected, trace.secured = dialed.connected_at, dialed.secured_at
        self._sock, self._pipe = dialed.sock, dialed.pipe
        self.start_parsing()
        self._watcher = self._hub.loop.io(self._sock.fileno(), 1)
        self._watcher.start(self._on_readable)

    # ---- writing

    def _write(self, data: bytes) -> None:
        if self._pipe is not None:
            data = self._pipe.encrypt(data)
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise transport_error(error.errno) from None
        if sent != len(data):
            self._send_all(data[sent:])

    def _send_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._sock.send(view) :]
            except BlockingIOError:
                self._wait_writable()
            except OSError as error:
                raise transport_error(error.errno) from None

    def _wait_writable(self) -> None:
        # Bytes of an early reply would wake us again and again before the socket takes more.
        self._watcher.stop()
        watcher = self._hub.loop.io(self._sock.fileno(), 2)
        self._waiter = getcurrent()
        try:
            watcher.start(self._waiter.switch)
            self._hub.switch()
        finally:
            self._waiter = None
            watcher.stop()
            watcher.close()
        self._watcher.start(self._on_readable)

    # ---- reading

    def _read_reply(self, reply: Reply, trace: Trace) -> None:
        open_ended = True
        try:
            while open_ended and not self._complete and not reply.done:
                try:
                    open_ended = self._read_some()
                except GreenletExit:
                    self._hurry(trace)
        except Timeout:
            if reply.status < 400:
                raise
        except TransportError:
            if reply.status < 400 and not (reply.status and reply.kind == "sse"):
                raise
        if reply.status == 0:
            raise TransportError("connection closed")
        if not reply.done:
            reply.finish(self._complete or (not open_ended and self.ends_with_connection()))
        trace.replied = self._now
        trace.status = reply.status

    def _hurry(self, trace: Trace) -> None:
        if trace.killed:
            raise GreenletExit
        trace.killed = True
        self._shorten(_GRACE_FOR_THE_KILLED)

    def _read_some(self) -> bool:
        """Wait for bytes and parse them; false at the end of the connection."""
        self._waiter = getcurrent()
        try:
            self._hub.switch()
        finally:
            self._waiter = None
        try:
            data = self._sock.recv(READ_SIZE)
        except BlockingIOError:
            return True
        except OSError as error:
            raise transport_error(error.errno) from None
        self._now = perf_counter()
        self._trace.received_bytes += len(data)
        if self._pipe is not None and data:
            data = self._pipe.decrypt(data)
            if self._pipe.ended:
                self._stale = True  # though the socket may still be open
                if data:
                    self.parse(data)
                return False
            if not data:
                return True
        if not data:
            self._keep_alive = False
            return False
        self.parse(data)
        return True

    def _shorten(self, seconds: float) -> None:
        limit = perf_counter() + seconds
        if limit < self._deadline:
            self._deadline = limit
            self._arm(seconds)

    # ---- the hub's callbacks: they must not raise

    def _on_readable(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            waiter.switch()
        else:
            self._on_idle_readable()

    def _on_idle_readable(self) -> None:
        try:
            if self._pipe is not None:
                data = self._sock.recv(READ_SIZE)
                if data and not self._pipe.decrypt(data) and not self._pipe.ended:
                    return  # a session ticket, or another message of TLS's own
        except BlockingIOError:
            return
        except Exception:  # noqa: S110 - whatever it was, the connection is of no more use
            pass
        self._stale = True
        if self._watcher is not None:
            self._watcher.stop()

    def _died_idle(self, now: float) -> bool:
        """Has the server closed while nobody looked? The hub may not have told us yet."""
        if now - self._idle_since < 0.05:
            return False
        if self._pipe is not None:
            self._on_idle_readable()
            return self._stale
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def _arm(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
        self._timer = self._hub.loop.timer(seconds)
        self._timer_ends = perf_counter() + seconds
        self._timer.start(self._on_timer, update=True)

    def _on_timer(self) -> None:
        left = self._deadline - perf_counter()
        if left > 0.0005 and self._waiter is not None:
            self._arm(left)
            return
        self._timer.close()
        self._timer = None
        if self._waiter is not None:
            self._waiter.throw(Timeout("timeout"))
