"""What a status, a Retry-After and a tool's text say, in short stable words."""

from __future__ import annotations

import math
from typing import Any

import pytest

from _failures import (
    AuthError,
    MCPError,
    Throttled,
    retry_after_seconds,
    says_session_is_gone,
    status_failure,
    tool_failure,
)

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


def _named(failure: MCPError) -> str:
    return f"{type(failure).__name__}: {failure}"


def test_a_failure_is_its_text_where_locust_prints_the_repr() -> None:
    failure = Throttled("HTTP 429", 2.0)

    assert (str(failure), repr(failure)) == ("HTTP 429", "HTTP 429")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"2", 2.0),
        (b" 30 ", 30.0),
        (b"0", 0.0),
        (b"-5", 0.0),
        (b"1.5", 1.5),
        (b"", 0.0),
        (b"soon", 0.0),
        (b"Fri, 15 Jan 2027 08:00:10 GMT", 10.0),
        (b"Fri, 15 Jan 2027 07:59:50 GMT", 0.0),
        (b"Fri, 99 Jan 2027 07:59:50 GMT", 0.0),
        (b"\xff", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: bytes, expected: float) -> None:
    """RFC 9110, 10.2.3."""
    assert retry_after_seconds(value, NOW) == expected


@pytest.mark.parametrize("value", [b"inf", b"nan", b"1e999", b"Infinity"])
def test_a_retry_after_that_is_no_number_puts_nobody_to_sleep_for_ever(value: bytes) -> None:
    assert math.isfinite(retry_after_seconds(value, NOW))


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (401, {}, "AuthError: HTTP 401"),
        (403, {}, "AuthError: HTTP 403"),
        (403, {b"retry-after": b"60"}, "Throttled: HTTP 403, rate limit"),
        (403, {b"x-ratelimit-remaining": b"0"}, "Throttled: HTTP 403, rate limit"),
        (403, {b"x-ratelimit-remaining": b"7"}, "AuthError: HTTP 403"),
        (429, {}, "Throttled: HTTP 429"),
        (429, {b"retry-after": b"2"}, "Throttled: HTTP 429"),
        (503, {}, "HTTPStatusError: HTTP 503"),
        (503, {b"retry-after": b"1"}, "Throttled: HTTP 503"),
        (404, {}, "HTTPStatusError: HTTP 404"),
        (502, {}, "HTTPStatusError: HTTP 502"),
    ],
)
def test_a_status_has_one_meaning(status: int, headers: dict[bytes, bytes], expected: str) -> None:
    assert _named(status_failure(status, headers, b"", False, NOW)) == expected


def test_only_a_401_asks_for_another_token() -> None:
    refused = status_failure(401, {}, b"", False, NOW)
    forbidden = status_failure(403, {}, b"", False, NOW)

    assert isinstance(refused, AuthError)
    assert refused.rejected
    assert isinstance(forbidden, AuthError)
    assert not forbidden.rejected


@pytest.mark.parametrize(
    "body",
    [
        b"Session not found",
        b'{"error":{"message":"No valid session ID provided"}}',
        b"session unknown on this instance",
        b"Session has been terminated",
        b"Invalid session ID",
        b"Bad Request: Server not initialized, session expired",
    ],
)
def test_words_that_say_a_session_is_gone(body: bytes) -> None:
    assert says_session_is_gone(body)


@pytest.mark.parametrize("body", [b"", b"session created", b"invalid arguments", b"not found"])
def test_words_that_do_not_say_so(body: bytes) -> None:
    assert not says_session_is_gone(body)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([{"type": "text", "text": "upstream 500"}], "ToolError: tool error"),
        ([{"type": "text", "text": "API rate limit reached"}], "Throttled: tool error, rate limit"),
        (
            [{"type": "text", "text": "VS30063: You are not authorized to access it."}],
            "AuthError: tool error, not authorized",
        ),
        ([{"type": "text", "text": "x" * 10_000 + "rate limit"}], "ToolError: tool error"),
        ([None, "x", {"type": "image"}, {"text": "rate limit"}], "ToolError: tool error"),
        ([{"type": "text", "text": None}], "ToolError: tool error"),
        ([], "ToolError: tool error"),
        (None, "ToolError: tool error"),
        ("rate limit", "ToolError: tool error"),
        ({"text": "boom"}, "ToolError: tool error"),
        (7, "ToolError: tool error"),
    ],
)
def test_what_a_tool_says_of_its_failure_whatever_its_content_is(
    content: Any, expected: str
) -> None:
    assert _named(tool_failure({"isError": True, "content": content})) == expected
