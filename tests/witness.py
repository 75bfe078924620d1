"""An extra locustfile that writes down what Locust was told: ``-f some_file.py,tests/witness.py``.

Into the folder of the variable WITNESS_DIR, for each process of the run:

    rows-<pid>.jsonl   one line per request event, as soon as it was fired
    end-<pid>.json     Locust's own statistics, failures and exceptions, and who was alive
"""

from __future__ import annotations

from locust import events
from locust.env import Environment

import json
import os
import time
from pathlib import Path
from typing import Any, TextIO

import _base

_FOLDER = Path(os.environ["WITNESS_DIR"])
_TIMES = ("planned", "started", "connected", "secured", "sent", "headers", "first_event")
_KEPT = (*_TIMES, "replied", "ended", "status", "kind", "request_id", "received_bytes", "session")
_files: dict[int, TextIO] = {}
_end: dict[str, Any] = {}
_environments: list[Environment] = []


def _write_a_row(
    request_type: str,
    name: str,
    response_time: float,
    response_length: int,
    exception: BaseException | None = None,
    context: dict[str, Any] | None = None,
    start_time: float = 0.0,
    url: str = "",
    **_: Any,
) -> None:
    pid = os.getpid()  # asked each time, as --processes forks
    if pid not in _files:
        _files[pid] = (_FOLDER / f"rows-{pid}.jsonl").open("w", encoding="utf-8", buffering=1)
    trace = (context or {}).get("mcp")
    row = {
        "method": request_type,
        "name": name,
        "ms": response_time,
        "bytes": response_length,
        "failure": None if exception is None else str(exception),
        "kind": None if exception is None else type(exception).__name__,
        "start": start_time,
        "url": url,
        "trace": None if trace is None else {key: getattr(trace, key) for key in _KEPT},
    }
    _files[pid].write(json.dumps(row) + "\n")


def _remember(environment: Environment, **_: Any) -> None:
    _environments.append(environment)


def _count_the_living(environment: Environment, **_: Any) -> None:
    _end["stopped"] = time.time()
    if environment.runner is not None:
        _end["alive"] = dict(environment.runner.user_classes_count)


def _write_the_end(exit_code: int, **_: Any) -> None:
    # At `quit`: when a signal ends a run, its users still work at `quitting`.
    environment = _environments[-1]
    stats = environment.stats
    runner = environment.runner
    _end["stats"] = {
        f"{entry.method} {entry.name}": [entry.num_requests, entry.num_failures]
        for entry in stats.entries.values()
    }
    _end["failures"] = [
        [error.method, error.name, str(error.error), error.occurrences]
        for error in stats.errors.values()
    ]
    _end["exceptions"] = [
        str(each["msg"]) for each in (runner.exceptions.values() if runner is not None else ())
    ]
    _end["tallies"] = [[label, what, times] for (label, what), times in _base.tallies.items()]
    _end["servers"] = _base.servers
    path = _FOLDER / f"end-{os.getpid()}.json"
    path.write_text(json.dumps(_end, default=str), encoding="utf-8")


events.init.add_listener(_remember)
events.request.add_listener(_write_a_row)
events.test_stopping.add_listener(_count_the_living)
events.quit.add_listener(_write_the_end)
