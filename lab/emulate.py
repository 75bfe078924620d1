"""``python -m lab emulate``: the run as Azure would make it, by the manifest alone.

An empty folder with exactly the files that azure-loadtest.yaml lists, a virtual environment of
the engine's Python with Locust 2.33.2 and requirements.txt, no variable but the YAML's, one
process per engine. Against stand-ins of the four servers with dummy tokens, or with --real
against what the YAML and the code name. autoStop stops it, the failureCriteria decide.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from _expiry import early
from lab import engine, runs, variables
from lab.autostop import Watch
from lab.cli import CannotRun
from lab.demo import PACES
from lab.gate import Gate
from lab.lint.classes import has_shape, participants
from lab.lint.environment import takes_part
from lab.lint.sources import read_project
from lab.load import RECORDER
from lab.manifest import Manifest, ManifestError, load
from lab.progress import Progress
from lab.run import begin, finish
from lab.standins.catalogue import LABELS
from lab.standins.faults import FlagError, parse_slow, parse_tool
from lab.targets import TargetFailed, standins

HELP = "the run as an Azure engine would make it: its Python, its files, its variables"

_ENDING_SECONDS = 90.0  # beyond the run time: for the start, stop-timeout and Locust's reports
_ASSUMED = (
    "assumed, as Azure documents it nowhere: Locust's command line, how users and spawn rate are"
    " shared out and rounded, how autoStop steps its window"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add = parser.add_argument
    add("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="default: this one")
    add("--minutes", type=float, metavar="N", help="how long (default: as the YAML says)")
    add("--engines", type=int, metavar="N", help="how many (default: the YAML's engineInstances)")
    add("--python", default="", help=f"of the engine (default: a {engine.PYTHON} found here)")
    add("--fresh", action="store_true", help="install the engine's packages anew")
    add("--wheels", type=Path, metavar="DIR", help="install from this folder, without an index")
    add("--real", action="store_true", help="against the servers that the YAML and the code name")
    add(
        "--pace",
        choices=["yaml", *sorted(PACES)],
        help="the pauses on stand-ins (default: quick with --minutes, else as the YAML says)",
    )
    add("--seed", type=int, metavar="N", help="of the stand-ins' latencies")
    add("--slow", action="extend", nargs="+", default=[], metavar="LABEL:TOOL=MS")
    add("--broken", action="extend", nargs="+", default=[], metavar="LABEL:TOOL")
    add("--latency", choices=("published", "none"), help="of the stand-ins")
    add("--strict", action="store_true", help="figures that this machine may have made: exit 2")


def run(args: argparse.Namespace) -> int:
    """Emulate; return the verdict's exit code."""
    try:
        manifest, gate = load(args.folder), Gate.of_manifest(args.folder)
        _check(args)
    except (ManifestError, FlagError) as wrong:
        raise CannotRun(str(wrong)) from wrong
    engines = args.engines or manifest.engine_instances
    python = engine.find_python(args.python)
    for line in _unlike(manifest, python, engines):
        print(f"unlike Azure: {line}", flush=True)
    with tempfile.TemporaryDirectory(prefix="engines-") as scratch:
        ready = _prepare(args, manifest, python, Path(scratch).resolve(), engines)
        folder = runs.new_folder("emulate")
        watch = Watch(folder, manifest)
        with _servers(args, manifest, folder) as (what, given):
            print(f"{_count(engines)}: {ready}; {what}; run folder {folder}", flush=True)
            pace = args.pace or ("yaml" if args.real or args.minutes is None else "quick")
            given |= variables.changes(given, minutes=args.minutes, pace=pace, engines=args.engines)
            facts = begin(
                folder,
                f"emulation of {_count(engines)} of Azure, {what}",
                ["python", "-m", "lab", *sys.argv[1:]],
                *(gate, given),
                strict=args.strict,
                engine=str(ready),
            )
            code = _run(ready, manifest, given, folder, watch)
        _keep_written(ready, folder)
    facts["auto_stop"], problem = watch.stopped, ""
    if watch.stopped and not code and gate.judge(runs.read(folder)).passed:
        problem = f"autoStop ended the run: {watch.stopped}; Azure calls it CANCELLED, not passed"
    try:
        result = finish(folder, facts, code, problem)
    except CannotRun as reason:
        raise CannotRun(f"{reason}; all it said is in {folder}/") from reason
    print(watch.said)
    print(_ASSUMED)
    return result


def _check(args: argparse.Namespace) -> None:
    for text in args.slow:
        parse_slow(text)
    for text in args.broken:
        parse_tool("--broken", text)
    if args.minutes is not None and not 0.0 < args.minutes <= 24 * 60:
        raise CannotRun(f"--minutes {args.minutes:g}: between 0 and {24 * 60}")
    if args.engines is not None and not 1 <= args.engines <= 400:
        raise CannotRun(f"--engines {args.engines}: between 1 and 400, as in Azure")
    if args.wheels is not None and not args.wheels.is_dir():
        raise CannotRun(f"--wheels {args.wheels}: no such folder; `pip download` fills one")
    for flag in ("pace", "seed", "slow", "broken", "latency"):
        if args.real and getattr(args, flag):
            raise CannotRun(f"--{flag} with --real: it is for stand-ins; leave one of the two out")


def _unlike(manifest: Manifest, python: engine.Interpreter, engines: int) -> Iterator[str]:
    """Yield what this emulation does not do as Azure does."""
    if not python.is_the_engines:
        yield (
            f"Python {python.version}, as no {engine.PYTHON} was named or starts here;"
            f" `python -m lab check` knows what {engine.PYTHON} lacks"
        )
    if engines != manifest.engine_instances:
        yield f"--engines {engines}, and the YAML's engineInstances is {manifest.engine_instances}"
    if manifest.server_metrics:
        yield f"{manifest.server_metrics} criteria on server metrics: the service alone judges them"
    data = manifest.document.data
    if data.get("certificates"):
        yield "certificates are not given to the engine"
    if data.get("splitAllCSVs") is True and engines > 1:
        yield "splitAllCSVs is not obeyed: every engine gets whole files"


@dataclass(frozen=True, slots=True)
class _Ready:
    """What the engines need, but for their variables. names: the files on an engine."""

    home: Path
    folders: list[Path]
    names: list[str]
    python: engine.Interpreter
    packages: engine.Packages
    words: list[str]

    def __str__(self) -> str:
        return (
            f"Python {self.python.version}, Locust {self.packages.locust}, {len(self.names)} files"
        )


def _prepare(
    args: argparse.Namespace,
    manifest: Manifest,
    python: engine.Interpreter,
    place: Path,
    engines: int,
) -> _Ready:
    folders = [place / f"engine{number}" for number in range(1, engines + 1)]
    for folder in folders:
        names = engine.lay_out(manifest, folder)
    home, recorder = place / "home", place / "recorder"
    home.mkdir()  # empty, as an engine's: no ~/.locust.conf, nobody signed in
    recorder.mkdir()  # a copy, so that the engine can import nothing else of the lab
    for name in (RECORDER.name, "rows.py"):
        shutil.copy(RECORDER.with_name(name), recorder)
    options = engine.options(manifest, recorder / RECORDER.name)
    packages = _packages(args, python, folders[0] / engine.REQUIREMENTS)
    words = [str(packages.python), "-m", "locust", *options]
    return _Ready(home, folders, names, python, packages, words)


def _packages(
    args: argparse.Namespace, python: engine.Interpreter, requirements: Path
) -> engine.Packages:
    began = time.monotonic()
    listed = requirements if requirements.is_file() else None
    made = engine.install(python, listed, wheels=args.wheels, fresh=args.fresh)
    if made.kept is None:
        print(f"packages: installed in {time.monotonic() - began:.0f} s", flush=True)
    else:
        when = time.strftime("%Y-%m-%d", time.gmtime(made.kept))
        print(f"packages: as installed on {when} (--fresh installs them anew)", flush=True)
    return made


@contextmanager
def _servers(
    args: argparse.Namespace, manifest: Manifest, folder: Path
) -> Iterator[tuple[str, dict[str, str]]]:
    """Give what is loaded, in words, and the variables for it."""
    if args.real:
        given, ends = variables.for_real_servers(manifest)
        changed = variables.changes(given, minutes=args.minutes, pace="yaml", engines=None)
        seconds = variables.run_seconds({**given, **changed}, manifest)
        for line in early(ends, seconds or 0.0, time.time()):
            print(f"warning: {line}", flush=True)
        yield "real servers", given
        return
    for each in participants(read_project(manifest)[0]):
        if takes_part(manifest, each) and not _has_standin(each.label, manifest):
            raise CannotRun(
                f"{each.name} has no stand-in: leave it out with a count of 0, set"
                f" {each.label.upper() or 'LABEL'}_MCP_URL in the YAML to a server on this machine,"
                " or load the real servers with --real"
            )
    options = {"seed": args.seed, "slow": args.slow, "broken": args.broken}
    try:
        with standins(folder, **options, latency=args.latency) as target:
            yield "stand-ins", variables.for_standins(manifest, target.announced)
    except TargetFailed as reason:
        raise CannotRun(str(reason)) from reason


def _has_standin(label: str, manifest: Manifest) -> bool:
    own = manifest.environment.get(f"{label.upper()}_MCP_URL", "")
    return label in LABELS or urlsplit(own).hostname in {"127.0.0.1", "localhost", "::1"}


def _run(
    ready: _Ready, manifest: Manifest, given: dict[str, str], folder: Path, watch: Watch
) -> int:
    """Run the engines to their end; return Locust's exit code."""
    shared = variables.shared_out(given, manifest, len(ready.folders))
    machine = variables.of_the_machine(ready.packages.python, ready.home)
    stations = [
        engine.Station(
            place,
            {**machine, **own, "MCP_RUN_DIR": str(folder.resolve())},
            folder / ("locust.log" if number == 1 else f"locust-{number}.log"),
        )
        for number, (place, own) in enumerate(zip(ready.folders, shared, strict=True), 1)
    ]
    seconds = variables.run_seconds(given, manifest)
    if has_shape(read_project(manifest)[0]):
        seconds = None
    progress = None if seconds is None else Progress(folder, seconds, 15.0)

    def look(gone: float) -> bool:
        if progress is not None:
            progress.look(gone)
        return watch.look(gone)

    limit = None if seconds is None else seconds + _ENDING_SECONDS
    with engine.Engines(ready.words, stations) as engines:
        return engines.wait(look, limit)


def _keep_written(ready: _Ready, folder: Path) -> None:
    """Keep what Locust itself has written in an engine's folder, such as its csv and html."""
    for place in ready.folders:
        for path in place.iterdir():
            if path.name not in {*ready.names, "__pycache__"}:
                (folder / place.name).mkdir(exist_ok=True)
                shutil.move(path, folder / place.name)


def _count(engines: int) -> str:
    return f"{engines} engine{'s' if engines > 1 else ''}"
