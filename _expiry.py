"""When tokens end, and which of them before a run does."""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Mapping
from typing import Any

RENEWAL = "set one that lasts (`python -m lab token ado` writes Azure DevOps' to the vault)"


def jwt_end(token: str) -> float | None:
    """Return when a JSON Web Token ends, in seconds since the epoch; None where it does not say.

    Nothing is verified: that is its server's to do.
    """
    ends = claims_of(token).get("exp")
    if isinstance(ends, bool) or not isinstance(ends, (int, float)) or not math.isfinite(ends):
        return None
    return float(ends)


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a JSON Web Token, unverified; {} for a token that is none."""
    parts = token.strip().split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def early(ends: Mapping[str, float], run_time_s: float, now: float) -> list[str]:
    """Return a line for each variable, of {variable: end}, that ends before a run from `now` on."""
    return [
        f"{variable} {'ends' if end > now else 'expired'} at {clock(end)}, before a run of"
        f" {_span(run_time_s)} does: {RENEWAL}, or shorten the run"
        for variable, end in sorted(ends.items())
        if end < now + run_time_s
    ]


def clock(instant: float) -> str:
    """Return the instant as people write it, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(instant))


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
