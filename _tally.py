"""What is counted for the report and is no sample of Locust's. One per process."""

from __future__ import annotations

from collections import Counter, deque
from collections import Counter as CounterOf
from typing import NamedTuple

tallies: CounterOf[tuple[str, str]] = Counter()
"""(label, what happened): how often."""

servers: dict[str, dict[str, str]] = {}
"""label: what the server said of itself in `initialize`, and the address it was reached at."""


class Sent(NamedTuple):
    """One request on the way to a token; a "renewal" is all of them together, as users wait.

    `at` is in epoch seconds; `status` 0 where no HTTP answer came, and `error` then says why.
    """

    at: float
    label: str
    what: str
    milliseconds: float
    status: int = 0
    error: str = ""


sent: deque[Sent] = deque(maxlen=10_000)
"""What is not written yet: the recorder takes them out."""
