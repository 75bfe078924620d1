"""How load changes over time: ramp, soak, spike, steps. Pure functions of the second.

    def plan(second):
        return ramp(second, users=200, over=300.0)

    class Ramp(PlannedShape):
        plan = staticmethod(plan)

A concrete shape that a locustfile imports takes over the run: `--users` and `--run-time` are then
not obeyed, and of several the first wins. So bind one, in `multi.py` or a file of your own.
Azure does not divide a shape's users among its engines: with several, divide them yourself.
"""

from __future__ import annotations

from locust import LoadTestShape

from typing import Callable, ClassVar, Optional

Plan = Callable[[float], Optional[int]]
"""(seconds since the start) -> users, or None: the run is over."""


def ramp(second: float, *, users: int, over: float, hold: float = 0.0) -> int | None:
    """Rise evenly from one user to `users` in `over` seconds, hold them, end."""
    if second >= over + hold:
        return None
    return users if second >= over else max(1, int(users * second / over))


def soak(second: float, *, users: int, warm_up: float, hold: float) -> int | None:
    """Rise evenly in `warm_up` seconds, then keep `users` for `hold` seconds."""
    return ramp(second, users=users, over=warm_up, hold=hold)


def spike(
    second: float, *, base: int, peak: int, at: float, lasting: float, total: float
) -> int | None:
    """Keep `base` users, and `peak` of them for `lasting` seconds from second `at` on."""
    if second >= total:
        return None
    return peak if at <= second < at + lasting else base


def steps(second: float, *, users: int, every: float, count: int) -> int | None:
    """Add `users` at once every `every` seconds, `count` times: where does it break?"""
    step = int(second // every)
    return None if step >= count else users * (step + 1)


class PlannedShape(LoadTestShape):
    """A shape that plays a plan. Derive from it, set `plan`, and import that class."""

    abstract = True

    plan: ClassVar[Plan]
    spawn_rate = 100.0
    """Users a second at most, towards what the plan asks for."""

    def tick(self) -> tuple[int, float] | None:
        """Return (users, spawn rate) for now, or None at the end."""
        users = type(self).plan(self.get_run_time())  # type: ignore[no-untyped-call]
        return None if users is None else (users, self.spawn_rate)
