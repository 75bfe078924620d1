"""The transport before Streamable HTTP, which we do not speak: recognised, and named in one line.

HTTP+SSE (2024-11-05) takes no POST where its stream is: there a GET gives a stream whose first
event, `endpoint`, says where to POST (2025-11-25/basic/transports, "Backwards Compatibility").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import _roster
from _failures import HTTPStatusError, MCPError
from _jsonrpc import next_id
from _reply import Reply
from _tally import tallies
from _trace import Trace

if TYPE_CHECKING:
    from _exchange import Exchanges

TIMEOUT_S = 5.0
_REFUSALS = ("HTTP 400", "HTTP 404", "HTTP 405")  # of `initialize`, by whom it means nothing
_looked_at: set[str] = set()


class _FirstEvent(Reply):
    """Reads a stream up to its first event."""

    is_endpoint = False

    def _take(self, kind: str, data: bytes) -> None:
        self.is_endpoint = kind == "endpoint"
        self.done = True


def look(user: Exchanges, failure: MCPError) -> None:
    """After a failed `initialize`, ask once per server whether it is one of HTTP+SSE. No sample."""
    if str(failure) not in _REFUSALS or not isinstance(failure, HTTPStatusError):
        return
    if user._url in _looked_at:
        return
    _looked_at.add(user._url)
    tallies[user.server_label, "GETs that looked for HTTP+SSE of 2024-11-05"] += 1
    reply = _FirstEvent(next_id())
    headers, routing = user._extra_headers(), (("Accept", "text/event-stream"),)
    try:
        user._wire.carry("GET", b"", headers, reply, Trace(), TIMEOUT_S, routing)
    except MCPError:
        return
    if reply.is_endpoint:
        tallies[user.server_label, "servers of HTTP+SSE of 2024-11-05, which is not spoken"] += 1
        _roster.warn_once(
            user.server_label,
            f"{user._url} speaks HTTP+SSE of 2024-11-05, which is not supported: set the URL of"
            " its Streamable HTTP endpoint, or ask its operator for one",
        )
