"""Servers under test as child processes: started, awaited, known by pid, and always stopped.

    with Target(["node", "server.js"], ready=4001) as target:
        sample(target.pid)

A target gets a process group of its own.  Stopping sends SIGTERM to its pid, and after a
grace SIGKILL to whatever is left of the group, so that a bridge's children go with it; that
also happens when the block is left by an exception, and when our process exits.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, NoReturn, Self

_ROOT: Final = Path(__file__).parents[1]
_KEPT_LINES: Final = 200
_SHOWN_LINES: Final = 8
_POLL_SECONDS: Final = 0.02


class TargetFailed(Exception):
    """A target that did not get ready, with its command, what was awaited and its last lines."""

    def __init__(self, command: Sequence[str], what: str, last_lines: Sequence[str]) -> None:
        said = "\n".join(f"  | {line}" for line in last_lines) or "  | (it printed nothing)"
        super().__init__(f"{shlex.join(command)}: {what}; its last lines:\n{said}")


class Target:
    """A server process.

    command: the words of the command; no shell reads them.
    ready: what says that it serves: a pattern that a line of its stdout must hold (str), or
        a port (int, on 127.0.0.1) or `(host, port)` that accepts a connection.
    env: variables over ours.  cwd: where it runs.
    ready_seconds: how long to wait for `ready`; stop_seconds: from SIGTERM to SIGKILL.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        ready: str | int | tuple[str, int],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
        ready_seconds: float = 60.0,
        stop_seconds: float = 10.0,
    ) -> None:
        self.command = [str(word) for word in command]
        self.ready_line = ""
        self._ready = ready
        self._env = {**os.environ, **(env or {})}
        self._cwd = cwd
        self._ready_seconds = ready_seconds
        self._stop_seconds = stop_seconds
        self._process: subprocess.Popen[str] | None = None
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._readers: list[threading.Thread] = []
        self._matched = threading.Event()
        self._stopped = False

    @property
    def pid(self) -> int:
        """The process id; raise RuntimeError before the start."""
        if self._process is None:
            raise RuntimeError(f"{shlex.join(self.command)} was not started")
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, None while it runs."""
        return None if self._process is None else self._process.poll()

    @property
    def output(self) -> list[str]:
        """The last lines of stdout and stderr, 200 at most."""
        return list(self._lines)

    def start(self) -> Self:
        """Start the process and wait until it is ready; raise TargetFailed when it is not."""
        if not isinstance(self._ready, str) and _accepts(self._ready):
            host, port = _address(self._ready)
            self._fail(f"something else already answers on {host}:{port}")
        try:
            # stdin stays open: some servers end with it.
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._env,
                cwd=self._cwd,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            self._fail(f"cannot be started ({error})")
        atexit.register(self.stop)
        for stream, is_stdout in ((self._process.stdout, True), (self._process.stderr, False)):
            assert stream is not None
            reader = threading.Thread(target=self._read, args=(stream, is_stdout), daemon=True)
            reader.start()
            self._readers.append(reader)
        try:
            self._await_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the process and what it started; does nothing the second time."""
        process = self._process
        if process is None or self._stopped:
            return
        self._stopped = True
        atexit.unregister(self.stop)
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self._stop_seconds)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for reader in self._readers:
            reader.join(1.0)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _await_ready(self) -> None:
        awaited = f"a line with {self._ready!r}"
        if not isinstance(self._ready, str):
            awaited = "a connection to {}:{}".format(*_address(self._ready))
        deadline = time.monotonic() + self._ready_seconds
        while time.monotonic() < deadline:
            if self._is_ready():
                return
            if (code := self.returncode) is not None:
                for reader in self._readers:
                    reader.join(1.0)
                if self._matched.is_set():
                    return
                self._fail(f"exited with {code} before {awaited}")
            time.sleep(_POLL_SECONDS)
        self._fail(f"no sign of {awaited} within {self._ready_seconds:g} s")

    def _is_ready(self) -> bool:
        if isinstance(self._ready, str):
            return self._matched.is_set()
        return _accepts(self._ready)

    def _fail(self, what: str) -> NoReturn:
        raise TargetFailed(self.command, what, list(self._lines)[-_SHOWN_LINES:])

    def _read(self, stream: IO[str], is_stdout: bool) -> None:
        pattern = re.compile(self._ready) if isinstance(self._ready, str) else None
        with contextlib.suppress(ValueError):  # closed under us at the stop
            for line in stream:
                text = line.rstrip("\n")
                self._lines.append(text)
                if is_stdout and pattern and not self._matched.is_set() and pattern.search(text):
                    self.ready_line = text
                    self._matched.set()


class Standins(Target):
    """The four stand-ins as a target; `announced` is the JSON line that they print."""

    @property
    def announced(self) -> dict[str, Any]:
        """The parsed line: pid, urls, tokens, env."""
        announced: dict[str, Any] = json.loads(self.ready_line)
        return announced

    @property
    def variables(self) -> dict[str, str]:
        """What a harness's environment needs to load them: urls, tokens and env in one."""
        announced = self.announced
        return {**announced["urls"], **announced["tokens"], **announced["env"]}


def standins(
    run_dir: Path | str,
    *,
    seed: int | None = None,
    faults: str | None = None,
    slow: Sequence[str] = (),
    broken: Sequence[str] = (),
    sessions: str | None = None,
    latency: str | None = None,
) -> Standins:
    """Give `python -m lab.standins` with these flags, to be entered as any target.

    run_dir gets the folder `standins` with their logs.
    """
    command = [sys.executable, "-m", "lab.standins", "--run-dir", str(Path(run_dir).resolve())]
    single = {"seed": seed, "faults": faults, "sessions": sessions, "latency": latency}
    for flag, value in single.items():
        if value is not None:
            command += [f"--{flag}", str(value)]
    for flag, values in (("slow", slow), ("broken", broken)):
        for text in values:
            command += [f"--{flag}", text]
    return Standins(command, r'^\{"pid"', cwd=_ROOT)


def _address(ready: int | tuple[str, int]) -> tuple[str, int]:
    return ("127.0.0.1", ready) if isinstance(ready, int) else ready


def _accepts(ready: int | tuple[str, int]) -> bool:
    try:
        with socket.create_connection(_address(ready), timeout=0.5):
            return True
    except OSError:
        return False
