"""The cookies of one user."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from _cookies import Cookies

URL = "https://mcp.example.com/api/mcp"


def _sent(*set_cookie: str, url: str = URL) -> set[str]:
    cookies = Cookies(url)
    cookies.store([value.encode("latin-1") for value in set_cookie])
    return set(filter(None, cookies.header().split("; ")))


@pytest.mark.parametrize(
    "value",
    [
        "a=1",
        "a=1; Path=/",
        "a=1; Path=/api",
        "a=1; Domain=example.com",
        "a=1; Secure; HttpOnly; SameSite=None; Partitioned",
        "a=1; Max-Age=60",
        f"a=1; Expires={formatdate(time.time() + 600, usegmt=True)}",
    ],
)
def test_a_cookie_that_is_for_us_is_sent_back(value: str) -> None:
    assert _sent(value) == {"a=1"}


@pytest.mark.parametrize(
    "value",
    [
        "a=1; Path=/other",
        "a=1; Domain=other.com",
        "a=1; Domain=com",
        "a=1; Max-Age=0",
        f"a=1; Expires={formatdate(time.time() - 600, usegmt=True)}",
        "",
    ],
)
def test_a_cookie_that_is_not_for_us_or_is_over_is_not(value: str) -> None:
    assert _sent(value) == set()


def test_a_secure_cookie_is_not_sent_in_the_clear() -> None:
    assert _sent("a=1; Secure", url="http://mcp.example.com/mcp") == set()


def test_cookies_of_an_address_or_of_localhost_are_kept() -> None:
    assert _sent("a=1", url="http://127.0.0.1:8000/mcp") == {"a=1"}
    assert _sent("a=1; Path=/", url="http://localhost:8000/mcp") == {"a=1"}


def test_a_later_value_replaces_an_earlier_one_and_one_may_be_taken_back() -> None:
    cookies = Cookies(URL)
    cookies.store([b"a=1; Path=/", b"b=1; Path=/"])
    cookies.store([b"a=2; Path=/", b"b=1; Path=/; Max-Age=0"])

    assert cookies.header() == "a=2"


def test_bytes_that_are_no_ascii_come_back_as_they_were() -> None:
    cookies = Cookies(URL)
    cookies.store([b"a=\xe9"])

    assert cookies.header().encode("latin-1") == b"a=\xe9"


def test_a_cookie_ends_in_the_middle_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cookies = Cookies(URL)
    cookies.store([b"a=1; Max-Age=60", b"b=1"])
    assert set(cookies.header().split("; ")) == {"a=1", "b=1"}
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)

    assert cookies.header() == "b=1"
