"""JSON-RPC 2.0 messages: made, and taken apart. No I/O."""

from __future__ import annotations

import itertools
import json
import os
import random
from typing import Any

from orjson import JSONDecodeError, dumps, loads

from _failures import MCPError, ProtocolError, RPCError, SessionLost, says_session_is_gone

Message = Any  # a decoded document: a dict for all that is well formed

_NOTICES = (
    b'{"jsonrpc":"2.0","method":"notifications/',
    b'{"method":"notifications/',
    b'{"jsonrpc": "2.0", "method": "notifications/',
    b'{"method": "notifications/',
)


def _first_id() -> int:
    # Servers with one shared transport route replies by id alone (GHSA-345p-7cg4-v4c7): ids are
    # unique in the process, and start where no other process of the run is likely to be. They
    # stay below 2**53, which is all that a JavaScript server can tell apart.
    return (random.SystemRandom().getrandbits(20) << 32) + 1


_ids = itertools.count(_first_id())


def next_id() -> int:
    """A JSON-RPC id that no other request of this process has."""
    return next(_ids)


def _start_ids_anew() -> None:
    global _ids
    _ids = itertools.count(_first_id())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_ids_anew)


def request_body(request_id: int, method: str, params: Any) -> bytes:
    """Encode a request. Raises MCPError for arguments that are no JSON."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return _encode(message)


def notification_body(method: str, params: Any = None) -> bytes:
    """Encode a notification. Raises MCPError for arguments that are no JSON."""
    message = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return _encode(message)


def response_body(request_id: Any, member: str, value: Any) -> bytes:
    """Encode our answer to a server's request; `member` is "result" or "error"."""
    return _encode({"jsonrpc": "2.0", "id": request_id, member: value})


def is_notice(data: bytes) -> bool:
    """Does a message begin as all SDKs begin a notification? A stream of them is not decoded."""
    return data.startswith(_NOTICES)


def _encode(message: dict[str, Any]) -> bytes:
    try:
        return dumps(message)
    except TypeError:
        raise MCPError("arguments are no JSON") from None


def decode(data: bytes) -> Message:
    """Decode JSON as servers send it, perhaps after a byte order mark; ValueError if it is none."""
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    try:
        return loads(data)
    except JSONDecodeError:
        # orjson refuses a lone surrogate ("\\ud83d"), as JavaScript sends for text cut inside one.
        try:
            return json.loads(data, parse_constant=_no_constant)
        except RecursionError:
            raise ValueError("nested too deep") from None


def decode_or_none(data: bytes) -> Message:
    """Decode JSON; None for what is none."""
    try:
        return decode(data)
    except ValueError:
        return None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def result_of(message: dict[str, Any], in_session: bool) -> dict[str, Any]:
    """Return the result of the answer to our request.

    Raises RPCError, SessionLost (a session we hold that the error's text calls gone) and
    ProtocolError.
    """
    if "error" in message:
        raise _failure_of(message, in_session)
    if "result" not in message:
        raise ProtocolError("neither result nor error")
    result = message["result"]
    if not isinstance(result, dict):
        raise ProtocolError("result is not an object")
    return result


def _failure_of(message: dict[str, Any], in_session: bool) -> MCPError:
    error = message["error"]
    text = error.get("message") if isinstance(error, dict) else None
    if in_session and isinstance(text, str):
        if says_session_is_gone(text[:500].encode("utf-8", "replace")):
            return SessionLost("session lost")
    code = error_code(message)
    text = "JSON-RPC error without a code" if code is None else f"JSON-RPC error {code}"
    return RPCError(text, code)


def error_code(message: Message) -> int | None:
    """Return the code of an error answer, or None where there is none."""
    error = message.get("error") if isinstance(message, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None
