"""An extra locustfile that keeps every request: ``locust -f multi.py,lab/record.py``.

One row per request in Azure Load Testing's results format (its 17 columns first, then ours), in
``<run folder>/results/engineN_results.csv``. It runs wherever Locust does, an Azure engine
included, so it needs the standard library, gevent and Locust only, on Python 3.9 or newer.

The run folder is the variable MCP_RUN_DIR's, else ``runs/<UTC stamp>-locust``. Each process that
has users claims a number and writes files of that number only:

    results/engineN_results.csv   the rows; complete lines at every moment
    ticks-N.jsonl                 users by class, requests for tokens, own lag and CPU, over time
    tallies-N.json                what was counted and is no sample, who the servers said they are

A request's line is made when its event is fired, which is off the clock, and written with others
a moment later; what is still unwritten at the end is written at quit.
"""

from __future__ import annotations

from locust import __version__ as locust_version
from locust import events
from locust.runners import MasterRunner, WorkerRunner

import atexit
import itertools
import json
import logging
import os
import platform
import re
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

import gevent
from gevent.event import Event

try:
    from lab import rows as wording
except ImportError:  # loaded from outside its checkout: Locust has put our folder on the path
    import rows as wording  # type: ignore[import-not-found,no-redef]

WRITE_EVERY = 0.25  # seconds: the most that a killed process can lose
MANY_ROWS = 500  # are written at once: memory would grow by the largest heap that ever waited
TALLY_EVERY = 5.0  # seconds
STAMP = "%Y%m%dT%H%M%SZ"
COUNT_USERS_EVERY = 10.0  # seconds, and whenever their number has changed

_log = logging.getLogger(__name__)


class Part:
    """One process's part of the results.

    number   the process's number in the run folder, claimed by creating its file
    waiting  lines that are not written yet
    rows     lines taken to be written so far; lost counts events that could not be worded
    counted  tallies and servers of a test that has stopped
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.began = time.time()
        self.number, self.file = _claim(folder / "results")
        self.ticks = (folder / f"ticks-{self.number}.jsonl").open("ab", buffering=0)
        self.counted: dict[str, Any] = {}
        self.waiting: list[str] = []
        self.rows = self.lost = 0
        self._unwritten = b""
        self.secrets = wording.secret_values()
        self.lines = wording.Lines(self.secrets)
        self.file.write(wording.HEADER.encode())

    def write(self) -> None:
        """Write the lines that wait; what an OSError keeps back waits on."""
        lines, self.waiting[:] = self.waiting[:], []
        self.rows += len(lines)
        self._unwritten += "".join(lines).encode()
        while self._unwritten:
            self._unwritten = self._unwritten[self.file.write(self._unwritten) :]


def _claim(folder: Path) -> tuple[int, BinaryIO]:
    """Return the first number that no process has taken, and its new results file, unbuffered."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        try:
            return number, (folder / f"engine{number}_results.csv").open("xb", buffering=0)
        except FileExistsError:
            number += 1


def _counted() -> dict[str, Any]:
    base = sys.modules.get("_base")
    tallies = sorted(getattr(base, "tallies", {}).items())
    servers = dict(getattr(base, "servers", {}))
    return {"tallies": [[*key, count] for key, count in tallies], "servers": servers}


class Recorder:
    """Follows one process's Locust environment from test to test."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.part: Part | None = None
        self._tests = 0
        self._told: dict[str, Any] = {}  # what the master said about the next test
        self._greenlet: Any = None
        self._due = Event()
        self._complained = False
        for name in ("request", "test_start", "test_stop", "quit"):
            getattr(environment.events, name).add_listener(getattr(self, f"on_{name}"))
        if isinstance(environment.runner, WorkerRunner):
            environment.runner.register_message("lab_run", self.on_told)
        atexit.register(self.close)

    def on_request(
        self,
        request_type: str,
        name: str,
        response_time: float,
        response_length: int,
        exception: object = None,
        context: Any = None,
        start_time: float = 0.0,
        url: str | None = None,
        response: Any = None,
        **_: Any,
    ) -> None:
        """Take one request. Its line is made here and now: kept for later it would cost more."""
        part = self.part
        if part is None:  # no test is on
            return
        trace = context.get("mcp") if context else None
        try:
            if trace is None:  # a plain Locust user's
                response_time = response_time or 0.0
                start_time = start_time or time.time() - response_time / 1e3
                status = getattr(response, "status_code", 0) if response is not None else 0
                trace = wording.Facts(status=status or 0, received_bytes=response_length or 0)
            line = part.lines.line(
                start_time, response_time, request_type, name, exception, url, trace
            )
            part.waiting.append(line)
            if len(part.waiting) == MANY_ROWS:
                self._due.set()
        except Exception:
            part.lost += 1
            _log.exception("an event that cannot be recorded: %s %s", request_type, name)

    def on_told(self, environment: Any, msg: Any, **_: Any) -> None:
        """Take the master's word for the next test's name, so that all processes share a folder."""
        self._told = msg.data

    def on_test_start(self, **_: Any) -> None:
        """Begin a new set of files: in the web UI, each test is a run of its own."""
        self.close()
        self._tests += 1
        folder = run_folder(self._told.get("test", self._tests), self._told.get("stamp", ""))
        self.part, self._complained, self._all_users = Part(folder), False, 0
        self._lag_seen = self.part.began
        self._save_tallies(self.part)
        self._greenlet = gevent.spawn(self._write_on)

    def on_test_stop(self, **_: Any) -> None:
        """Take what was counted, before the next test of a web UI clears it."""
        if self.part is not None:
            self.part.counted = _counted()
            self._save(self.part, None)

    def on_quit(self, exit_code: int = 0, **_: Any) -> None:
        """Write all that is left; nobody runs any more."""
        self.close(exit_code)

    def close(self, exit_code: int | None = None) -> None:
        """End the current files; safe to call at any moment and more than once."""
        part, self.part = self.part, None
        if part is None:
            return
        if self._greenlet is not None:
            self._greenlet.kill(block=False)
        self._save(part, exit_code)
        part.file.close()
        part.ticks.close()

    def _save(self, part: Part, exit_code: int | None) -> None:
        try:
            self._tick(part, count_users=False)
            part.write()
            self._save_tallies(part, exit_code, finished=True)
        except OSError as reason:
            _log.error("the results are incomplete, the last rows are not written: %s", reason)

    def _write_on(self) -> None:
        users_due = tallies_due = 0.0
        while self.part is not None:
            try:
                now = time.monotonic()
                due = now >= users_due or self.environment.runner.user_count != self._all_users
                self._tick(self.part, count_users=due)
                users_due = now + COUNT_USERS_EVERY if due else users_due
                if now >= tallies_due:
                    tallies_due = now + TALLY_EVERY
                    self._save_tallies(self.part)
                self.part.write()
            except OSError as reason:
                if not self._complained:
                    self._complained = True
                    _log.error("results cannot be written, rows wait in memory: %s", reason)
            self._due.wait(WRITE_EVERY)
            self._due.clear()

    def _tick(self, part: Part, count_users: bool) -> None:
        lines = []
        if count_users:
            users = dict(self.environment.runner.user_classes_count)
            self._all_users = sum(users.values())
            if self._all_users:  # the last requests are of users who have just stopped
                part.lines.count(users)
            lines.append({"t": round(time.time(), 3), "users": users})
        samples = getattr(sys.modules.get("_process"), "samples", ())
        fresh = itertools.takewhile(lambda each: each[0] > self._lag_seen, reversed(samples))
        for at, lag, cpu in reversed(list(fresh)):
            lines.append({"t": at, "lag_p99_ms": lag, "cpu_percent": cpu})
            self._lag_seen = at
        sent = getattr(sys.modules.get("_tally"), "sent", ())
        while sent:
            lines.append(sent.popleft()._asdict())
        if lines:
            part.ticks.write("".join(json.dumps(line) + "\n" for line in lines).encode())

    def _save_tallies(self, part: Part, code: int | None = None, finished: bool = False) -> None:
        facts = {
            "process": part.number,
            "pid": os.getpid(),
            "began": part.began,
            "saved": time.time(),
            "finished": finished,
            "exit_code": code,
            "rows": part.rows,
            "lost": part.lost,
            "python": platform.python_version(),
            "locust": locust_version,
            **(part.counted or _counted()),
        }
        text = json.dumps(facts, indent=1, default=str)
        for secret in part.secrets:
            text = text.replace(secret, "[secret]")
        unready = part.folder / f".tallies-{part.number}.new"
        unready.write_text(text, encoding="utf-8")
        unready.replace(part.folder / f"tallies-{part.number}.json")


def run_folder(test: int, stamp: str = "") -> Path:
    """Return the folder of the process's n-th test (1, 2, ...; more than one in the web UI only).

    MCP_RUN_DIR itself, then ``test-2`` and so on inside it; without the variable, a folder named
    by the UTC stamp, the master's where there is one.
    """
    chosen = os.environ.get("MCP_RUN_DIR")
    if chosen:
        return Path(chosen) if test == 1 else Path(chosen, f"test-{test}")
    if not re.fullmatch(r"\d{8}T\d{6}Z", stamp):
        stamp = time.strftime(STAMP, time.gmtime())
    return Path("runs", f"{stamp}-locust")


def follow(environment: Any, **_: Any) -> None:
    """Record in every process that has users; a master only tells its workers the run's name."""
    if not isinstance(environment.runner, MasterRunner):
        place = Path(os.environ.get("MCP_RUN_DIR") or "runs")
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as reason:
            _log.error(
                "lab/record.py cannot write to %s (%s): name another folder in MCP_RUN_DIR,"
                " or leave lab/record.py out of -f",
                *(place, reason.strerror),
            )
            sys.exit(2)
        Recorder(environment)
        return
    tests = itertools.count(1)
    current: dict[str, Any] = {}

    def tell(**_: Any) -> None:
        current.update(test=next(tests), stamp=time.strftime(STAMP, time.gmtime()))
        environment.runner.send_message("lab_run", current)

    def tell_latecomer(client_id: str, **_: Any) -> None:
        if current:
            environment.runner.send_message("lab_run", current, client_id)

    environment.events.test_start.add_listener(tell)
    environment.events.worker_connect.add_listener(tell_latecomer)


events.init.add_listener(follow)
