"""An Azure engine on this machine: its Python, its packages, its folder, its processes.

Certain of the engine are Python 3.9 and Locust 2.33.2, one flat folder with exactly the files
that the manifest lists, ``pip install -r requirements.txt``, and one process per engine with no
master. Its command line is documented nowhere; here it is the plainest one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Self

from lab.cli import CannotRun
from lab.manifest import Manifest

PYTHON, LOCUST = "3.9", "2.33.2"
REQUIREMENTS = "requirements.txt"
CACHE = Path(__file__).parents[1] / ".emulate"

_NEWER = ("3.15", "3.14", "3.13", "3.12", "3.11", "3.10")
_LOOK_EVERY = 0.1  # seconds
_PATIENCE = 120.0  # seconds from SIGTERM to SIGKILL: more than a stop-timeout should be
_WHO = "import sys; print(sys.executable, *sys.version_info[:3], sep='\\n')"
_UNREACHABLE = re.compile(
    r"Failed to establish a new connection|NewConnectionError|Connection refused|name resolution"
    r"|ConnectTimeout|ReadTimeout|ProxyError|SSLError|Network is unreachable"
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that starts; version as in 3.9.18."""

    path: str
    version: str

    @property
    def is_the_engines(self) -> bool:
        """Whether it is of the engine's version."""
        return self.version.startswith(f"{PYTHON}.")


def find_python(named: str = "") -> Interpreter:
    """Return the named Python; else one of the engine's version; else the newest that starts."""
    if named:
        found = _start(named)
        if found is None:
            raise CannotRun(f"--python {named}: it does not start; name a Python {PYTHON}")
        return found
    for version in (PYTHON, *_NEWER):
        for program in _programs(version):
            found = _start(program)
            if found is not None and found.version.startswith(f"{version}."):
                return found
    return Interpreter(sys.executable, ".".join(map(str, sys.version_info[:3])))


def _programs(version: str) -> Iterator[str]:
    """Yield what may be a Python of the version: on the PATH, then installed by pyenv."""
    yield f"python{version}"
    with suppress(OSError):
        asked = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=False)
        versions = Path(asked.stdout.strip() or os.devnull, "versions")
        yield from map(str, sorted(versions.glob(f"{version}.*/bin/python")))


def _start(program: str) -> Interpreter | None:
    try:
        said = subprocess.run(
            [program, "-c", _WHO], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = said.stdout.splitlines()
    if said.returncode or len(lines) != 4:
        return None
    return Interpreter(lines[0], ".".join(lines[1:]))


@dataclass(frozen=True, slots=True)
class Packages:
    """A virtual environment with what an engine installs. locust: the version that it has.

    kept  since when it is kept, in epoch seconds; None where it was just made
    """

    python: Path
    locust: str
    kept: float | None


def install(
    python: Interpreter, requirements: Path | None, *, wheels: Path | None, fresh: bool
) -> Packages:
    """Return the environment: Locust 2.33.2, then requirements.txt, as an engine installs them.

    It is kept below .emulate/ for the same requirements and Python; fresh makes it anew. wheels
    is a folder to install from instead of the index. Raises CannotRun with pip's reason.
    """
    text = requirements.read_text(encoding="utf-8") if requirements else ""
    key = hashlib.sha256(f"{python.version}\n{LOCUST}\n{text}".encode()).hexdigest()[:12]
    folder = CACHE / f"python{python.version}-{key}"
    CACHE.mkdir(exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n", encoding="utf-8")
    inside, ready = folder / "bin" / "python", folder / ".ready"
    with (CACHE / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another emulation may be making the same
        if ready.exists() and not fresh and _start(str(inside)) is not None:
            return Packages(inside, ready.read_text(encoding="utf-8"), ready.stat().st_mtime)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            _run([python.path, "-m", "venv", str(folder)], "no virtual environment can be made")
            _pip(inside, wheels, f"locust=={LOCUST}")
            if requirements:
                _pip(inside, wheels, "-r", str(requirements))
            asked = "from importlib.metadata import version; print(version('locust'))"
            locust = _run([str(inside), "-c", asked], "Locust is not there").strip()
            ready.write_text(locust, encoding="utf-8")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return Packages(inside, locust, None)


def _pip(python: Path, wheels: Path | None, *what: str) -> None:
    # gevent has to come as a wheel: its newest release has none for 3.9, and needs a compiler
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "2"]
    options += ["--only-binary", "gevent"]
    options += ["--no-index", "--find-links", str(wheels)] if wheels else []
    _run(
        [str(python), "-m", "pip", "install", *options, *what],
        f"pip install {what[-1] if len(what) == 1 else REQUIREMENTS} fails on an engine's Python",
    )


def _run(command: Sequence[str], what: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    if _UNREACHABLE.search(done.stderr):
        raise CannotRun(
            "pip cannot reach its package index: connect this machine, set PIP_INDEX_URL, or give"
            " a folder of wheels with --wheels"
        )
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    reasons = [line for line in lines if line.startswith("ERROR:")] or lines
    raise CannotRun(f"{what}: {reasons[-1].strip() if reasons else 'without a word'}")


def lay_out(manifest: Manifest, folder: Path) -> list[str]:
    """Copy exactly the listed files into the folder, flat; return their names on the engine.

    Of two files of one name the later stays, as in Azure. Raises CannotRun for one that is not
    there, as its upload would fail.
    """
    folder.mkdir(parents=True)
    for file in manifest.files:
        source = manifest.folder / file.path
        if not source.is_file():
            raise CannotRun(
                f"{manifest.path.name}:{file.line}: {file.role} lists {file.path}, which does not"
                " exist, so the upload would fail: correct the path, or remove the line"
            )
        shutil.copy(source, folder / file.basename)
        if file.role == "zipArtifacts":
            with zipfile.ZipFile(source) as archive:
                archive.extractall(folder)
    return sorted({file.basename for file in manifest.files})


def options(manifest: Manifest, recorder: Path) -> list[str]:
    """Return Locust's options on an engine. Raises CannotRun where there is no test plan."""
    if manifest.test_plan is None:
        raise CannotRun(f"{manifest.path.name} has no testPlan: name the Locust file in it")
    conf = manifest.user_property_file
    return [
        *("-f", f"{manifest.test_plan.basename},{recorder}"),
        *(("--config", conf.basename) if conf else ()),
        *("--headless", "--exit-code-on-error", "0"),  # the criteria say what failed
    ]


@dataclass(frozen=True, slots=True)
class Station:
    """One engine's place: the folder it runs in, all of its variables, and where it logs."""

    folder: Path
    variables: Mapping[str, str]
    log: Path


class Engines:
    """The processes of a run's engines, all with one command line; on leaving, none is left."""

    def __init__(self, words: Sequence[str], stations: Sequence[Station]) -> None:
        self._words = words
        self._stations = stations
        self._processes: list[subprocess.Popen[bytes]] = []
        self._logs: list[IO[bytes]] = []
        self._told = 0.0  # when, on the monotonic clock

    def __enter__(self) -> Self:
        try:
            for station in self._stations:
                self._start(station)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def wait(self, look: Callable[[float], bool], most_seconds: float | None) -> int:
        """Wait for all of them; return the exit code of the first that failed, or 0.

        look  is called with the seconds gone by, and says whether to stop them
        most_seconds  after which they are stopped, too; and so they are once one has failed, or
        we get SIGINT or SIGTERM. A stopped engine still ends its users' sessions.
        """
        began, failed = time.monotonic(), 0
        with self._signals():
            while any(process.poll() is None for process in self._processes):
                gone = time.monotonic() - began
                late = most_seconds is not None and gone > most_seconds
                failed = failed or self._failed()
                if look(gone) or late or failed:
                    self.stop()
                if self._told and time.monotonic() - self._told > _PATIENCE:
                    raise CannotRun(f"an engine still ran {_PATIENCE:.0f} s after it was stopped")
                time.sleep(_LOOK_EVERY)
        return failed or self._failed()

    def stop(self) -> None:
        """Tell those that run to end, once."""
        if not self._told:
            self._told = time.monotonic()
            for process in self._processes:
                process.terminate()

    def _start(self, station: Station) -> None:
        self._logs.append(station.log.open("wb"))
        process = subprocess.Popen(
            self._words,
            cwd=station.folder,
            env=station.variables,
            stdin=subprocess.DEVNULL,
            stdout=self._logs[-1],
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._processes.append(process)

    def _failed(self) -> int:
        return next((code for each in self._processes if (code := each.poll())), 0)

    def _end(self) -> None:
        self.stop()
        deadline = time.monotonic() + 10.0
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for log in self._logs:
            log.close()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(_number: int, _frame: FrameType | None) -> None:
            self.stop()

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
