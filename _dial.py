"""Opening a connection: an address, perhaps a proxy, perhaps TLS, all within one limit.

A connection is opened once for many calls, so this file is written plainly; the sockets are the
standard library's own, non-blocking, because `_http` watches them itself.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gevent import Timeout as Alarm
from gevent import get_hub
from gevent.monkey import get_original

from _failures import MCPError, Timeout, TransportError
from _tls import TLSPipe

if TYPE_CHECKING:
    from _origin import Origin

READ_SIZE = 65536
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_Socket = get_original("socket", "socket")  # Locust has put gevent's own in its place


@dataclass
class Dialed:
    """An open connection, with the `perf_counter` seconds at which it was ready."""

    sock: Any
    pipe: TLSPipe | None
    connected_at: float
    secured_at: float


def dial(origin: Origin, limit: float) -> Dialed:
    """Open a connection to an origin within `limit` seconds.

    Raises Timeout("connect timeout") and TransportError.
    """
    alarm = Alarm(limit)
    alarm.start()
    attempt = _Attempt(origin)
    try:
        attempt.connect()
        connected_at = perf_counter()
        pipe = attempt.secure() if origin.secure else None
        dialed = Dialed(attempt.sock, pipe, connected_at, perf_counter() if pipe else 0.0)
        attempt.sock = None
    except Alarm as expired:
        if expired is not alarm:
            raise
        raise Timeout("connect timeout", sent=False) from None
    finally:
        alarm.close()
        attempt.close()
    return dialed


class _Attempt:
    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._hub = get_hub()
        self.sock: Any = None

    def close(self) -> None:
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def connect(self) -> None:
        failure: MCPError | None = None
        for family, address in self._origin.addresses():
            try:
                self.sock = _Socket(family, socket.SOCK_STREAM)
                self.sock.setblocking(False)
                number = self.sock.connect_ex(address)
            except OSError as error:
                number = error.errno or 0
            if number == errno.EINPROGRESS:
                self._wait(2)
                number = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number == 0:
                self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return
            failure = transport_error(number)
            self.close()
        raise failure or TransportError("host name not found")

    def secure(self) -> TLSPipe:
        if self._origin.proxy is not None:
            self._ask_proxy(self._origin.proxy.authorization)
        pipe = TLSPipe(self._origin.tls, self._origin.host)
        while not pipe.handshake():
            self._send(pipe.outgoing())
            pipe.receive(self._receive())
        self._send(pipe.outgoing())
        return pipe

    def _ask_proxy(self, authorization: str) -> None:
        host = f"[{self._origin.host}]" if ":" in self._origin.host else self._origin.host
        target = f"{host}:{self._origin.port}"
        head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
        if authorization:
            head += f"Proxy-Authorization: {authorization}\r\n"
        self._send((head + "\r\n").encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._receive()
            if len(answer) > READ_SIZE:
                raise TransportError("malformed reply of the proxy")
        if answer.split(b" ", 2)[1:2] != [b"200"]:
            raise TransportError("proxy refused the connection")

    def _send(self, data: bytes) -> None:
        while data:
            try:
                data = data[self.sock.send(data) :]
            except BlockingIOError:
                self._wait(2)
            except OSError as error:
                raise transport_error(error.errno) from None

    def _receive(self) -> bytes:
        self._wait(1)
        try:
            data: bytes = self.sock.recv(READ_SIZE)
        except OSError as error:
            raise transport_error(error.errno) from None
        if not data:
            raise TransportError("connection closed")
        return data

    def _wait(self, events: int) -> None:
        watcher = self._hub.loop.io(self.sock.fileno(), events)
        try:
            self._hub.wait(watcher)
        finally:
            watcher.close()


def hang_up(sock: Any, abort: bool) -> None:
    """Close a socket, by a reset with `abort`: a stream that the server holds open would else leave
    a port in TIME_WAIT for each call.
    """
    if abort:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    sock.close()


_NAMES = {
    errno.ECONNRESET: "connection reset",
    errno.EPIPE: "connection reset",
    errno.ECONNABORTED: "connection reset",
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ENETUNREACH: "host unreachable",
    errno.ETIMEDOUT: "connection timed out",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files",
    errno.EADDRNOTAVAIL: "no free local port",
}


def transport_error(number: int | None) -> TransportError:
    """The failure for an `errno`, in words that are the same on every system."""
    name = _NAMES.get(number or 0)
    return TransportError(name or f"connection failed, {errno.errorcode.get(number or 0, '?')}")
