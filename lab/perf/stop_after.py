"""An extra locustfile that ends the process at the n-th request, wherever it is (STOP_AFTER=n).

For counting instructions: two runs that differ by exactly so many calls, and in nothing else.
"""

from __future__ import annotations

from locust import events

import os
from typing import Any

_left = int(os.environ["STOP_AFTER"])


def _count(exception: object = None, **_: Any) -> None:
    global _left
    _left -= 1
    if exception is not None:
        os._exit(3)
    if _left == 0:
        os._exit(0)


def _follow(environment: Any, **_: Any) -> None:
    environment.events.request.add_listener(_count)


events.init.add_listener(_follow)
