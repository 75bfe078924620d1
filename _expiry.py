"""When tokens end, and which of them before a run does."""

from __future__ import annotations

import time
from collections.abc import Mapping

RENEWAL = "set one that lasts (`python -m lab token ado` writes Azure DevOps' to the vault)"


def jwt_end(value: str) -> float | None:
    """Return when a JSON Web Token ends, by its own word, in seconds since the epoch.

    None for what is none, or has no end. Nobody's signature is looked at.
    """
    if not value.startswith("eyJ"):
        return None
    import jwt  # comes with azure-identity

    try:
        return float(jwt.decode(value, options={"verify_signature": False})["exp"])
    except (jwt.InvalidTokenError, KeyError, TypeError, ValueError):
        return None


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
