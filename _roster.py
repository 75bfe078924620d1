"""Who takes part in a run: judged once before the first request, watched until the last.

Locust fires `init` in every process when all user classes are known. What cannot run then ends
here, with one line that names what is wrong and the cure, and exit code 2.
"""

from __future__ import annotations

from locust import events
from locust.runners import WorkerRunner
from locust.user.task import LOCUST_STATE_RUNNING, LOCUST_STATE_STOPPING, LOCUST_STATE_WAITING

import logging
import os
import random
import sys
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import gevent
from gevent import GreenletExit
from gevent.lock import BoundedSemaphore

import _origin
import _process
import _secrets
from _revisions import AUTO, check_weights, revision_to_offer
from _tally import tallies
from _workload import number, text, think_time, whole

if TYPE_CHECKING:
    from locust.env import Environment

logger = logging.getLogger(__name__)

MANNERS = (
    "Load a third party's server only with its operator's permission and within its published"
    " limits."
)


def stop_the_run(line: str) -> NoReturn:
    """End the process with one line on stderr and exit code 2."""
    sys.stderr.write(f"{line}\n")
    raise SystemExit(2)


def watch(base: type[Any]) -> None:
    """Judge every run that has classes derived from `base`, and look after its processes."""

    def hosted(environment: Environment) -> list[Any]:
        return [c for c in environment.user_classes if issubclass(c, base)]

    judging = BoundedSemaphore(1)

    def on_init(environment: Environment, **_: Any) -> None:
        with judging:
            judge(environment, hosted(environment))

    def on_test_start(environment: Environment, **_: Any) -> None:
        with judging:  # a master may start its workers while they still wait for Key Vault
            pass
        forget_host_of_the_form(environment, hosted(environment))
        if not isinstance(environment.runner, WorkerRunner):
            run_time = getattr(environment.parsed_options, "run_time", None) or 0
            for line in _secrets.early_ends(run_time):
                logger.warning(line)
        tallies.clear()
        _process.tame_collector()
        _process.start_sampling()

    def on_spawning_complete(**_: Any) -> None:
        _process.spare_the_users()

    def on_test_stop(**_: Any) -> None:
        _process.stop_sampling()
        for (label, what), times in sorted(tallies.items()):
            logger.info("%s: %s, %d times", label, what, times)

    events.init.add_listener(on_init)
    events.test_start.add_listener(on_test_start)
    events.spawning_complete.add_listener(on_spawning_complete)
    events.test_stop.add_listener(on_test_stop)


def judge(environment: Environment, hosted: list[Any]) -> None:
    """Leave out classes without users, and stop a run that could only mislead.

    `hosted` are the classes of `environment` that are MCP users; others are left alone.
    """
    logger.info(MANNERS)
    think_time()
    honours_retry_after()
    burst_probability()
    pinned_revision()
    absent = [c for c in hosted if "fixed_count" in _declared(c) and c.fixed_count == 0]
    present = [c for c in hosted if c not in absent]
    if absent:
        environment.user_classes[:] = [c for c in environment.user_classes if c not in absent]
        if not environment.user_classes:
            names = ", ".join(c.__name__ for c in absent)
            stop_the_run(f"no users are left: every count is 0 ({names}); set one above 0")
    _secrets.provide(present)
    _need_variables(present)
    _need_addresses(environment, present)
    _refuse_one_host_for_all(environment, present)
    _balance(environment, present)


def _declared(user_class: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(user_class.__mro__):
        if base.__module__.split(".")[0] != "locust":
            found.update(vars(base))
    return found


def _need_variables(present: list[Any]) -> None:
    for user_class in present:
        for variable in user_class.needs:
            if not os.environ.get(variable, "").strip():
                stop_the_run(
                    f"{variable} is not set, and {user_class.__name__} needs it: set it (or put"
                    f" it into .env), or leave the class out with"
                    f" {user_class.server_label.upper()}_USERS=0"
                )


def _need_addresses(environment: Environment, present: list[Any]) -> None:
    for user_class in present:
        try:
            for name in user_class.protocol_versions or (user_class.protocol_version,):
                if name != AUTO:
                    revision_to_offer(name)
            check_weights(user_class.protocol_versions)
            _origin.check(environment.host or user_class.host or "")
        except ValueError as error:
            stop_the_run(f"{user_class.__name__}: {error}")


def _refuse_one_host_for_all(environment: Environment, present: list[Any]) -> None:
    hosts = {c.host for c in present}
    if environment.host and len(hosts) > 1:
        stop_the_run(
            f"-H/LOCUST_HOST={environment.host!r} would send every class, with its token, to one"
            f" host, and {len(hosts)} servers take part: unset it, and set <LABEL>_MCP_URL instead"
        )


def forget_host_of_the_form(environment: Environment, hosted: list[Any]) -> None:
    """The web UI's form may name a host; with several servers it is not obeyed, and said so."""
    hosts = {c.host for c in hosted}
    if environment.host and len(hosts) > 1:
        logger.error(
            "The host of the form is ignored: it would send every class, with its token, to one"
            " host. Set <LABEL>_MCP_URL instead."
        )
        environment.host = None


def _balance(environment: Environment, present: list[Any]) -> None:
    options = environment.parsed_options
    asked = getattr(options, "num_users", None)
    if len(present) == 1 and len(environment.user_classes) == 1:
        present[0].fixed_count = 0  # a run of one class obeys -u
    elif present and asked and not environment.shape_class:
        total = sum(c.fixed_count for c in present)
        fixed = all(c.fixed_count for c in present) and len(present) == len(
            environment.user_classes
        )
        if fixed and total != asked:
            counts = ", ".join(f"{c.server_label.upper()}_USERS={c.fixed_count}" for c in present)
            logger.warning(
                "%d users are asked for and the classes count %d (%s): set -u/LOCUST_USERS to %d"
                " or change the counts",
                asked,
                total,
                counts,
                total,
            )
    missing = _process.files_missing(int(asked or 0))
    if missing:
        stop_the_run(missing)


# ---- what is said once

_said: set[tuple[str, str]] = set()


def warn_once(label: str, line: str) -> None:
    """Log a warning about a server the first time that it is due in this process."""
    if (label, line) not in _said:
        _said.add((label, line))
        logger.warning("%s: %s", label, line)


# ---- the pace of users


LEAVING_S = 0.15
_last_start = [0]


def spread_out() -> None:
    """Locust starts a second's users in one burst: all but the first wait up to a second.

    At 500 users a second the median of initialize is 86 ms without it, and 2 ms with it.
    """
    second = int(time.monotonic())
    if second == _last_start[0]:
        gevent.sleep(random.random())
    else:
        _last_start[0] = second


@cache
def honours_retry_after() -> bool:
    """Does a throttled user wait as long as it was told? MCP_HONOUR_RETRY_AFTER=0: it does not."""
    return whole("MCP_HONOUR_RETRY_AFTER", 1) != 0


@cache
def burst_probability() -> float:
    """Return the share of turns in which an agent calls several tools at once (MCP_BURST_PROB)."""
    return number("MCP_BURST_PROB", 0.2, maximum=1.0)


@cache
def pinned_revision() -> str:
    """Return the revision of MCP_PROTOCOL_VERSION, which goes before a class's own, or ""."""
    name = text("MCP_PROTOCOL_VERSION")
    if name and name != AUTO:
        try:
            revision_to_offer(name)
        except ValueError as error:
            stop_the_run(f"MCP_PROTOCOL_VERSION: {error}")
    return name


def rest(user: Any, seconds: float) -> None:
    """Pause a user outside its think time, so that it can be stopped in the pause."""
    if user._state == LOCUST_STATE_STOPPING:
        raise GreenletExit
    user._state = LOCUST_STATE_WAITING
    gevent.sleep(seconds)
    if user._state == LOCUST_STATE_WAITING:  # of parallel calls, another may have come back first
        user._state = LOCUST_STATE_RUNNING


def is_resting(user: Any) -> bool:
    """Is the user in a pause, in which it may be stopped at once?"""
    return bool(user._state == LOCUST_STATE_WAITING)


def leave_in_turn() -> None:
    """Locust ends all users in one instant, and is busy in it: each says goodbye a moment later.

    Without it a DELETE was late by the 10 ms that Locust's own stop takes.
    """
    with suppress(GreenletExit):  # in a hurry: then at once
        gevent.sleep(LEAVING_S * (0.2 + 0.8 * random.random()))
