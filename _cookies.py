"""The cookies of one user: load balancers pin a session to a replica by them.

The rules (domain, path, expiry, Secure) are the standard library's; here is only the shape that
it wants a request and a response to have. Nothing is made before a server sets a cookie.
"""

from __future__ import annotations

import time
from email.message import Message
from http.cookiejar import CookieJar
from urllib.request import Request


class _Headers:
    def __init__(self, set_cookie: list[str]) -> None:
        self._message = Message()
        for value in set_cookie:
            self._message.add_header("Set-Cookie", value)

    def info(self) -> Message:
        return self._message


class Cookies:
    """A jar for one URL; `header` is the value of Cookie to send, "" for none."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._jar = CookieJar()
        self._header = ""
        self._fresh_until = 0.0

    def store(self, set_cookie: list[bytes]) -> None:
        """Take the values of a reply's Set-Cookie headers."""
        values = [value.decode("latin-1") for value in set_cookie]
        self._jar.extract_cookies(_Headers(values), self._request())  # type: ignore[arg-type]
        self._fresh_until = 0.0

    def header(self) -> str:
        """The value of Cookie now; made again after a change or when a cookie expires."""
        now = time.time()
        if now >= self._fresh_until:
            request = self._request()
            self._jar.add_cookie_header(request)
            self._header = request.get_header("Cookie") or ""
            ends = [cookie.expires for cookie in self._jar if cookie.expires]
            self._fresh_until = min([now + 3600.0, *ends])
        return self._header

    def _request(self) -> Request:
        return Request(self._url)  # noqa: S310 - never opened: it tells the jar where we are
