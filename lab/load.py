"""One Locust run as a child process: recorded into a run folder, logged, and always stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

from lab.cli import CannotRun

RECORDER = Path(__file__).with_name("record.py")
_LOOK_EVERY = 0.1  # seconds
_ASK_LOCUST = (
    "import sys; from locust.argument_parser import get_empty_argument_parser as parser; "
    "known, _ = parser(add_help=False).parse_known_args(sys.argv[1:]); print(known.locustfile)"
)


def unsteered(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return an environment without what steers a Locust run: for one that is not the caller's."""
    return {n: v for n, v in env.items() if not n.upper().startswith(("LOCUST_", "MCP_"))}


def plan(words: Sequence[str], env: Mapping[str, str], cwd: Path | None = None) -> str:
    """Return the locustfiles that Locust would take with these options, by its own rules."""
    asked = subprocess.run(
        [sys.executable, "-c", _ASK_LOCUST, *words],
        env=dict(env),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode:
        last = (asked.stderr.strip() or asked.stdout.strip()).splitlines()[-1:]
        raise CannotRun(f"locust refuses these options: {''.join(last) or 'without a word'}")
    return asked.stdout.strip().splitlines()[-1]


def command(words: Sequence[str], files: str) -> list[str]:
    """Return the command line: the caller's options, then what recording and judging need.

    Locust's own exit code 1 for any failed request is switched off: the criteria decide.
    """
    ours = ["-f", f"{files},{RECORDER}", "--exit-code-on-error", "0"]
    return [sys.executable, "-m", "locust", *words, *ours]


def run(
    line: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    *,
    echo: bool,
    cwd: Path | None = None,
    look: Callable[[float], None] = lambda _: None,
    most_seconds: float | None = None,
) -> int:
    """Run Locust to its end, its output into locust.log, and return its exit code.

    echo  its output to our stdout as well
    look  is called every tenth of a second with the seconds gone by
    most_seconds  after which it is told to end
    SIGINT and SIGTERM to us are passed on once, so that the users still end their sessions.
    """
    process = subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**env, "MCP_RUN_DIR": str(folder.resolve()), "PYTHONUNBUFFERED": "1"},
        cwd=cwd,
        start_new_session=True,
    )
    assert process.stdout is not None
    copier = threading.Thread(target=_copy, args=(process.stdout, folder / "locust.log", echo))
    copier.start()
    began = time.monotonic()
    try:
        with _passing_on(process):
            while process.poll() is None:
                gone = time.monotonic() - began
                look(gone)
                if most_seconds is not None and gone > most_seconds:
                    process.terminate()
                    most_seconds += 15.0
                time.sleep(_LOOK_EVERY)
    finally:
        if process.poll() is None:
            _end(process)
        copier.join()
    return process.returncode


def _copy(source: IO[bytes], log: Path, echo: bool) -> None:
    with log.open("wb", buffering=0) as file:
        for line in iter(source.readline, b""):
            file.write(line)
            if echo:
                sys.stdout.write(line.decode("utf-8", "replace"))
                sys.stdout.flush()


@contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    def pass_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only a main thread is told of signals
        return
    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the process and its children: a group of their own."""
    for number, grace in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(grace)
            return
