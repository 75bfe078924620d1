"""The run folder: its files and their meaning.

    runs/<UTC stamp>-<what>/
        run.json              what ran, when, how it ended
        results/engineN_results.csv   one file per process, Azure's 17 columns and then ours
        ticks-N.jsonl         its users by class, requests for tokens, own lag and CPU, over time
        tallies-N.json        what it counted and is no sample, who the servers said they are
        standins/*.jsonl      the stand-ins' own logs, where stand-ins were the servers
        verdict.json summary.md junit.xml report.html locust.log

``read`` also takes what someone downloaded from a real Azure run: a folder, a zip or a single
file of results with Azure's columns only. A file that a crash has cut short is read as far as it
goes, and that is said in ``notes``.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import results
from lab.results import Request, RunError
from lab.tokens import Sent

RUNS = Path("runs")


@dataclass(slots=True)
class Process:
    """What one process said of itself.

    users    (epoch s, users by class) whenever they changed
    load     (epoch s, lag p99 in ms, CPU in percent of a core), once a second
    sent     its requests for tokens
    facts    its tallies file
    """

    number: int
    users: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    load: list[tuple[float, float, float]] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Run:
    """A run as its folder has it.

    notes    lines for the reader about what is odd
    missing  those of them that say that requests are missing
    """

    folder: Path
    facts: dict[str, Any]
    requests: list[Request]
    processes: dict[int, Process]
    notes: list[str]
    missing: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.folder.resolve().name

    @property
    def tallies(self) -> Counter[tuple[str, str]]:
        """(server label, what) -> how often, over all processes."""
        total: Counter[tuple[str, str]] = Counter()
        for process in self.processes.values():
            for label, what, count in process.facts.get("tallies", ()):
                total[str(label), str(what)] += int(count)
        return total

    @property
    def servers(self) -> dict[str, dict[str, Any]]:
        """Server label -> what the server said of itself: name, version, protocolVersion, url."""
        merged: dict[str, dict[str, Any]] = {}
        for process in self.processes.values():
            merged.update(process.facts.get("servers", {}))
        return merged


def new_folder(what: str, parent: Path = RUNS) -> Path:
    """Make and return runs/<UTC stamp>-<what>; a second one in the same second gets a number."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = parent / (f"{stamp}-{what}" if number == 1 else f"{stamp}-{what}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write run.json, whole or not at all."""
    unready = folder / ".run.json.new"
    unready.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    unready.replace(folder / "run.json")


def tests(folder: Path) -> list[Path]:
    """Return the run's folder, and those of the further tests that a web UI started in it."""
    more = [each for each in folder.glob("test-*") if each.is_dir()]
    return [folder, *sorted(more, key=lambda each: (len(each.name), each.name))]


def read(place: Path) -> Run:
    """Return the run in a folder of ours, or in results from Azure (folder, zip, csv).

    Raises RunError where there is nothing to read.
    """
    if not place.exists():
        raise RunError(f"{place}: no such run; `ls {RUNS}` shows those that are kept here")
    notes: list[str] = []
    missing: list[str] = []
    requests: list[Request] = []
    files = list(results.find(place))
    if not files:
        raise RunError(
            f"{place}: no results in it: neither results/engineN_results.csv, as a run leaves"
            " them, nor engineN_results.csv or results.zip, as Azure gives them"
        )
    folder = place if place.is_dir() else place.parent
    facts = _facts(folder / "run.json", notes) if place.is_dir() else {}
    processes: dict[int, Process] = {}
    for number, (name, text) in enumerate(files, 1):
        digits = "".join(c for c in name.rpartition("/")[2].partition("_")[0] if c.isdigit())
        number = int(digits) if digits and int(digits) not in processes else number
        process = processes[number] = _process(folder if place.is_dir() else None, number, notes)
        with text:
            rows = list(results.requests(text, number, name, notes))
        missing += _missing(process, name, len(rows))
        requests += rows
    notes += missing + _strangers(requests)
    requests.sort(key=lambda each: each.start)
    return Run(folder, facts, requests, processes, notes, missing)


def _facts(path: Path, notes: list[str]) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as problem:
        notes.append(f"{path.name} cannot be read ({problem}) and was left out")
        return {}
    return facts if isinstance(facts, dict) else {}


def _process(folder: Path | None, number: int, notes: list[str]) -> Process:
    process = Process(number)
    if folder is None:
        return process
    process.facts = _facts(folder / f"tallies-{number}.json", notes)
    ticks = folder / f"ticks-{number}.jsonl"
    if ticks.exists():
        for line in ticks.read_text(encoding="utf-8").splitlines():
            try:
                tick = json.loads(line)
                if "users" in tick:
                    process.users.append((float(tick["t"]), dict(tick["users"])))
                elif "what" in tick:
                    process.sent.append(Sent.of_tick(tick))
                else:
                    load = (tick["t"], tick["lag_p99_ms"], tick["cpu_percent"])
                    process.load.append((float(load[0]), float(load[1]), float(load[2])))
            except (ValueError, KeyError, TypeError):
                notes.append(f"{ticks.name}: a line is cut short and was left out")
    return process


def _missing(process: Process, name: str, rows: int) -> list[str]:
    facts = process.facts
    found = []
    if facts and not facts.get("finished"):
        found.append(f"{name}: its process did not end by itself, its last rows may be missing")
    elif facts and facts.get("rows") != rows:
        found.append(f"{name}: {rows} rows, but its process wrote {facts.get('rows')}")
    if facts.get("lost"):
        found.append(f"{name}: {facts['lost']} events could not be recorded")
    return found


def _strangers(requests: Iterable[Request]) -> list[str]:
    """Say when the parts cannot be of one run: no moment at which two of them both worked."""
    spans: dict[int, tuple[float, float]] = {}
    for each in requests:
        first, last = spans.get(each.process, (each.start, each.end))
        spans[each.process] = (min(first, each.start), max(last, each.end))
    ordered = sorted(spans.items(), key=lambda item: item[1])
    return [
        f"engine{later} began after engine{earlier} had ended: are these two runs in one folder?"
        for (earlier, before), (later, after) in itertools.pairwise(ordered)
        if after[0] > before[1]
    ]
