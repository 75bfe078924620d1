"""What is counted for the report and is no sample of Locust's. One per process."""

from __future__ import annotations

from collections import Counter
from collections import Counter as CounterOf

tallies: CounterOf[tuple[str, str]] = Counter()
"""(label, what happened): how often."""

servers: dict[str, dict[str, str]] = {}
"""label: what the server said of itself in `initialize`, and the address it was reached at."""
