"""What each revision of the protocol demands of a client over Streamable HTTP.

Revisions are an enumerated set, not an ordered string: they are grouped by behaviour.
Sources: modelcontextprotocol.io/specification/<revision>/basic/{lifecycle,transports}.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Era(Enum):
    """How a client and a server agree on anything."""

    HANDSHAKE = "initialize, then a negotiated revision and perhaps a session"
    ENVELOPE = "every request stands alone and carries its own metadata"


@dataclass(frozen=True)
class Revision:
    """One revision. `offered` says whether a client of ours may ask for it."""

    name: str
    era: Era
    batches: bool = False
    """A reply may be a JSON array (2025-03-26 only)."""
    offered: bool = True


REVISIONS = {
    revision.name: revision
    for revision in (
        # 2024-11-05 over this transport: servers answer it to those who ask for it [transports].
        Revision("2024-11-05", Era.HANDSHAKE, offered=False),
        Revision("2025-03-26", Era.HANDSHAKE, batches=True),
        Revision("2025-06-18", Era.HANDSHAKE),
        Revision("2025-11-25", Era.HANDSHAKE),
        Revision("2026-07-28", Era.ENVELOPE),
    )
}
NEWEST_HANDSHAKE = REVISIONS["2025-11-25"]
NEWEST_ENVELOPE = REVISIONS["2026-07-28"]
AUTO = "auto"
"""What a class says to have the era probed, once per target."""


def revision_to_offer(name: str) -> Revision:
    """The revision called `name`; ValueError, with the cure, where we cannot offer it."""
    found = REVISIONS.get(name)
    if found is None or not found.offered:
        offered = ", ".join([*(r.name for r in REVISIONS.values() if r.offered), AUTO])
        raise ValueError(f"protocol_version {name!r} is not one we speak: use one of {offered}")
    return found


def check_weights(weights: Mapping[str, float]) -> None:
    """Raise ValueError, with the cure, where users cannot be dealt by these weights."""
    for name, weight in weights.items():
        if not 0 <= weight < math.inf:
            raise ValueError(f"the weight {weight!r} of {name}: use 0 or more")
    if weights and not any(weights.values()):
        raise ValueError(f"all weights of {', '.join(weights)} are 0: raise one of them")


class Dealer:
    """Deals revisions in turn, never more than one user away from their weights.

    Drawing would: of ten users it may give one revision eight. Each worker begins one further.
    """

    def __init__(self, weights: Mapping[str, float], worker: int = 0) -> None:
        self._weights = weights
        self._due = dict.fromkeys(weights, 0.0)
        for _ in range(min(worker, 100)):
            self.deal()

    def deal(self) -> str:
        """Return the next user's revision."""
        for name, weight in self._weights.items():
            self._due[name] += weight
        chosen = max(self._due, key=self._due.__getitem__)
        self._due[chosen] -= sum(self._weights.values())
        return chosen
