"""Everything that can be wrong with an exchange, as a closed set.

    MCPError
     ├─ Timeout          nothing complete before the deadline
     ├─ TransportError   the connection, TLS or HTTP itself
     ├─ HTTPStatusError  a status that is no answer
     ├─ Throttled        429, 503 with Retry-After, GitHub's 403, a tool that says so
     ├─ AuthError        401, 403, a tool that says so
     ├─ SessionLost      the server no longer knows the session
     ├─ ProtocolError    bytes that are no JSON-RPC answer to our request
     ├─ RPCError         a JSON-RPC error object
     ├─ ToolError        a result with isError
     └─ CheckFailed      a result that its check refuses

A failure's text is a key of Locust's statistics and of reports: short, stable, without ids,
lengths, bodies or secrets. `MCPError` itself is only raised for a fault of our own.
"""

from __future__ import annotations

import math
import re
from email.utils import parsedate_to_datetime
from typing import Any


class MCPError(Exception):
    """A failed exchange; `str()` and `repr()` are its short text, as Locust prints the repr."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


class Timeout(MCPError):
    """`sent` is false where there was not even a connection, so that nothing can be cancelled."""

    def __init__(self, text: str, sent: bool = True) -> None:
        super().__init__(text)
        self.sent = sent


class TransportError(MCPError):
    pass


class HTTPStatusError(MCPError):
    """`code` is that of a JSON-RPC error in the body, or None."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


class Throttled(MCPError):
    """`retry_after` is how long the server asked us to wait, in seconds."""

    def __init__(self, text: str, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class AuthError(MCPError):
    """`rejected` is true where a new token may help (401), false for a missing right (403)."""

    def __init__(self, text: str, rejected: bool = True) -> None:
        super().__init__(text)
        self.rejected = rejected


class SessionLost(MCPError):
    pass


class ProtocolError(MCPError):
    pass


class RPCError(MCPError):
    """`code` is the error's, or None where it has none."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


class ToolError(MCPError):
    pass


class CheckFailed(MCPError):
    pass


# Servers say "session not found" by 404 (the specification), 400 (TypeScript's examples, Python
# 1.12) and 503 (a replica that does not know it); all of them name the session in their words.
_SESSION_IS_GONE = re.compile(
    rb"session[^\"]{0,40}(?:not found|unknown|expired|invalid|terminated|not exist|not initialized)"
    rb"|(?:no valid|unknown|invalid|expired|bad) session",
    re.IGNORECASE,
)
_SAYS_RATE_LIMIT = re.compile(
    r"rate limit|quota (?:exceeded|reached)|too many requests", re.IGNORECASE
)
_SAYS_NO_RIGHTS = re.compile(
    r"not authori[sz]ed|unauthori[sz]ed|authentication (?:failed|required)"
    r"|(?:token|credential)s? (?:has |have |is |are )?(?:expired|invalid)|bad credentials",
    re.IGNORECASE,
)


def says_session_is_gone(body: bytes) -> bool:
    return _SESSION_IS_GONE.search(body) is not None


def retry_after_seconds(value: bytes, now: float) -> float:
    """Retry-After as seconds from `now` (epoch): a number or an HTTP date (RFC 9110, 10.2.3)."""
    text = value.decode("latin-1").strip()
    try:
        seconds = float(text)
        return max(0.0, seconds) if math.isfinite(seconds) else 0.0
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError):
        return 0.0


def status_failure(
    status: int, headers: dict[bytes, bytes], body: bytes, in_session: bool, now: float
) -> MCPError:
    """What an HTTP status says about a request; `body` may be cut short or empty."""
    if status == 401:
        return AuthError("HTTP 401")
    limited = headers.get(b"retry-after")
    if status == 429 or (status == 503 and limited is not None):
        return Throttled(f"HTTP {status}", retry_after_seconds(limited or b"", now))
    if status == 403:
        if limited is not None or headers.get(b"x-ratelimit-remaining") == b"0":
            return Throttled("HTTP 403, rate limit", retry_after_seconds(limited or b"", now))
        return AuthError("HTTP 403", rejected=False)
    if in_session and (status == 404 or (status in (400, 410, 503) and says_session_is_gone(body))):
        return SessionLost("session lost")
    return HTTPStatusError(f"HTTP {status}")


def tool_failure(result: dict[str, Any]) -> MCPError:
    """What a tool result with isError says: the tool's own failure, unless its text is plain."""
    content = result.get("content")
    text = " ".join(
        str(block["text"])[:500]
        for block in (content[:3] if isinstance(content, list) else ())
        if isinstance(block, dict) and "text" in block
    )
    if _SAYS_RATE_LIMIT.search(text):
        return Throttled("tool error, rate limit")
    if _SAYS_NO_RIGHTS.search(text):
        return AuthError("tool error, not authorized")
    return ToolError("tool error")
