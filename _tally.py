"""What is counted for the report and is no sample of Locust's. One per process."""

from __future__ import annotations

from collections import Counter
from typing import Counter as CounterOf
from typing import Dict, Tuple

tallies: CounterOf[Tuple[str, str]] = Counter()
"""(label, what happened): how often."""

servers: Dict[str, Dict[str, str]] = {}
"""label: what the server said of itself in `initialize`, and the address it was reached at."""
