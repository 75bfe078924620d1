"""What one process needs to carry thousands of users, and how well it carried them.

Three things stall or stop a load generator long before its CPU does: the limit of open files,
the garbage collector (30 to 110 ms a pause at 10,000 users, with the defaults) and its own hub
when it is late. The first two are tamed here, the third is measured: `samples` holds one row a
second, so that a report can say how much of a latency may be ours.
"""

from __future__ import annotations

import gc
import logging
import time
from typing import NamedTuple

import gevent

try:
    import resource
except ImportError:  # Windows has no such limit to raise
    resource = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

TICK_S = 0.02  # between two looks at the lag: 50 a second cost 0.1 % of a core
FILES_BESIDE_USERS = 200


class Load(NamedTuple):
    """One second of this process: its lateness in ms, and its CPU in percent of one core."""

    at: float  # epoch seconds
    lag_p99_ms: float
    cpu_percent: float


samples: list[Load] = []
_sampler: gevent.Greenlet | None = None


def raise_file_limit() -> int:
    """Raise the soft limit of open files to the hard one; return what is now allowed.

    Locust lifts it to 10,000 at most, which is too low for 10,000 users and their second sockets.
    """
    if resource is None:
        return 1 << 20
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


def files_missing(users: int) -> str:
    """One line with the cure where `users` do not fit the limit of open files, else ""."""
    allowed, wanted = raise_file_limit(), int(users * 1.1) + FILES_BESIDE_USERS
    if wanted <= allowed:
        return ""
    return (
        f"{users} users need about {wanted} open files and this process may have {allowed}:"
        f" run `ulimit -Hn {wanted}` as root first, or take more processes (--processes)"
    )


def tame_collector() -> None:
    """Before the users come: collect once, and let the collector run less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def spare_the_users() -> None:
    """Put all users out of the collector's sight: it would walk them again and again.

    Without a collection first, which takes 290 ms at 10,000 users while replies are in flight.
    """
    gc.freeze()


def start_sampling() -> None:
    global _sampler
    stop_sampling()
    samples.clear()
    _sampler = gevent.spawn(_sample)


def stop_sampling() -> None:
    if _sampler is not None:
        _sampler.kill(block=False)


def _sample() -> None:
    while True:
        late = []
        began, cpu = time.perf_counter(), time.process_time()
        while time.perf_counter() - began < 1.0:
            due = time.perf_counter() + TICK_S
            gevent.sleep(TICK_S)
            late.append(time.perf_counter() - due)
        late.sort()
        busy = (time.process_time() - cpu) / (time.perf_counter() - began)
        worst = late[min(len(late) - 1, int(len(late) * 0.99))]
        samples.append(Load(time.time(), max(0.0, worst) * 1000.0, busy * 100.0))
