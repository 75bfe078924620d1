"""Which era does a server speak? Asked once per target, answered for all users of the process.

The steps are those of specification/2026-07-28/basic/versioning, "Backward Compatibility": a
`server/discover` in the new form, whose outcome tells the eras apart. Probing per user would leave
a session behind each time on servers of the Python SDK 1.12, and is load that no agent makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from _revisions import NEWEST_ENVELOPE, NEWEST_HANDSHAKE, REVISIONS, Era, Revision

UNSUPPORTED_VERSION = -32022
_MODERN_ERRORS = (-32020, -32021)  # our request was wrong, in an era that we know


@dataclass(frozen=True)
class Verdict:
    """`revision` to go on with, or None: then `why` says what kept us from knowing."""

    revision: Revision | None
    why: str


def judge_discovery(status: int, message: Any) -> Verdict:
    """Return what the answer to `server/discover` says; `status` 0 is no answer at all.

    An outage or a refused token is never a verdict on the era.
    """
    if status == 0:
        return Verdict(None, "no answer")
    if status in (401, 403):
        return Verdict(None, f"HTTP {status}")
    if status == 429 or status >= 500 or 300 <= status < 400:
        return Verdict(None, f"HTTP {status}")
    error = message.get("error") if isinstance(message, Mapping) else None
    code = error.get("code") if isinstance(error, Mapping) else None
    if code == UNSUPPORTED_VERSION and isinstance(error, Mapping):
        data = error.get("data")
        return _of_versions(data.get("supported") if isinstance(data, Mapping) else None)
    if code in _MODERN_ERRORS:
        return Verdict(NEWEST_ENVELOPE, f"JSON-RPC error {code} of the stateless era")
    result = message.get("result") if isinstance(message, Mapping) else None
    if status == 200 and isinstance(result, Mapping):
        versions = result.get("supportedVersions")
        if isinstance(versions, list) and NEWEST_ENVELOPE.name in versions:
            return Verdict(NEWEST_ENVELOPE, "server/discover lists it")
    said = f"JSON-RPC error {code}" if isinstance(code, int) else f"HTTP {status}"
    return Verdict(NEWEST_HANDSHAKE, f"server/discover answered {said}")


def _of_versions(versions: Any) -> Verdict:
    listed = [v for v in versions if isinstance(v, str)] if isinstance(versions, list) else []
    known = [REVISIONS[v] for v in listed if v in REVISIONS and REVISIONS[v].offered]
    if any(r.era is Era.ENVELOPE for r in known):
        return Verdict(NEWEST_ENVELOPE, "an error lists it")
    if known:
        return Verdict(max(known, key=lambda r: r.name), "an error lists it")
    if listed:
        return Verdict(None, "only revisions that are unknown here")
    return Verdict(NEWEST_HANDSHAKE, "an error lists no revision")
