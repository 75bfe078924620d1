"""The recorder on and off in one and the same process, so that both have the same weather.

Loaded beside a locustfile and ``lab/record.py``. After SLICES_WARM_S seconds it takes SLICES_ROUNDS
rounds of four slices of SLICES_S seconds each: on, off, off, on. Writes the CPU of a call in
microseconds to the file SLICES_OUT, as a JSON list of such rounds, and ends the run.
"""

from __future__ import annotations

from locust import events

import json
import os
import time
from pathlib import Path
from typing import Any

import gevent

ROUND = (True, False, False, True)


def _recorder(environment: Any) -> Any:
    handlers = environment.events.request._handlers
    owners = [getattr(each, "__self__", None) for each in handlers]
    return next(each for each in owners if type(each).__name__ == "Recorder")


def _slice(environment: Any, recorder: Any, seconds: float, *, on: bool) -> float:
    """Return the CPU of a call, what the recorder has to write included, in microseconds."""
    if on:
        environment.events.request.add_listener(recorder.on_request)
    calls, cpu = environment.stats.num_requests, time.process_time()
    gevent.sleep(seconds)
    if on:
        recorder.part.write()
        environment.events.request.remove_listener(recorder.on_request)
    made: int = environment.stats.num_requests - calls
    return (time.process_time() - cpu) / made * 1e6


def _run(environment: Any) -> None:
    recorder = _recorder(environment)
    gevent.sleep(float(os.environ["SLICES_WARM_S"]))
    environment.events.request.remove_listener(recorder.on_request)
    seconds = float(os.environ["SLICES_S"])
    rounds = [
        [_slice(environment, recorder, seconds, on=on) for on in ROUND]
        for _ in range(int(os.environ["SLICES_ROUNDS"]))
    ]
    Path(os.environ["SLICES_OUT"]).write_text(json.dumps(rounds), encoding="utf-8")
    environment.runner.quit()


def _follow(environment: Any, **_: Any) -> None:
    environment.events.spawning_complete.add_listener(lambda **_: gevent.spawn(_run, environment))


events.init.add_listener(_follow)
