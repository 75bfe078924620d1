"""``python -m lab report RUN``: a run folder, read again and judged again, as every rendering.

RUN is a folder under runs/, or what Azure lets one download: a folder with engineN_results.csv,
results.zip, or one such file. Beside a file the report goes into a folder of its own.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from lab import eras, junit, runs, table
from lab.cli import CannotRun
from lab.digest import digest
from lab.gate import Gate
from lab.manifest import FILE_NAME, ManifestError
from lab.outcome import Outcome
from lab.page import page
from lab.results import RunError

HELP = "judge a run folder, or results downloaded from Azure, and write its report again"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "place", nargs="?", type=Path, metavar="RUN", help="folder, zip or csv (default: the last)"
    )
    parser.add_argument(
        "--criteria",
        type=Path,
        metavar="YAML",
        help=f"judge by this {FILE_NAME} (default: what the run kept, else the one here)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="figures that this machine may have made: exit 2"
    )


def run(args: argparse.Namespace) -> int:
    """Print table and verdict, write the files, and return the verdict's exit code."""
    place = args.place or last()
    worst = 0
    tests = runs.tests(place) if place.is_dir() else [place]
    for test in tests:
        if test != place and not (test / "results").is_dir():
            continue
        outcome = make(test, args.criteria, strict=args.strict)
        show(outcome, destination(test))
        worst = max(worst, outcome.code)
    return worst


def last() -> Path:
    """Return the newest run folder here."""
    found = sorted(runs.RUNS.glob("*/results"), key=lambda each: each.stat().st_mtime)
    if not found:
        raise CannotRun(f"no run in {runs.RUNS}/: make one with `python -m lab demo`, or name one")
    return found[-1].parent


def destination(place: Path) -> Path:
    """Return the folder that a report on the place goes into."""
    return place if place.is_dir() else place.with_name(f"{place.stem}-report")


def make(
    place: Path, criteria: Path | None = None, *, strict: bool = False, problem: str = ""
) -> Outcome:
    """Read, judge and write verdict.json, summary.md, junit.xml and report.html.

    problem  why the run cannot be judged, for a caller who saw it run
    Raises CannotRun for a place without results or an unusable manifest.
    """
    try:
        run = runs.read(place)
        gate = _gate(run, criteria)
    except (RunError, ManifestError) as wrong:
        raise CannotRun(str(wrong)) from wrong
    if not run.requests:
        raise CannotRun(f"{place}: no request was recorded; {last_words(place)}")
    outcome = Outcome(
        digest(run),
        gate.judge(run),
        problem or _problem(run),
        strict or bool(run.facts.get("strict")),
    )
    folder = destination(place)
    folder.mkdir(exist_ok=True)
    renderings = {
        "verdict.json": json.dumps(outcome.as_json(), indent=1) + "\n",
        "summary.md": summary(outcome),
        "junit.xml": junit.document(outcome.digest, outcome.verdict, outcome.problem),
        "report.html": page(outcome),
    }
    for name, text in renderings.items():
        (folder / name).write_text(text, encoding="utf-8")
    return outcome


def _problem(run: runs.Run) -> str:
    known = str(run.facts.get("problem", ""))
    if known or run.facts.get("locust_exit_code") is None:
        return known
    return "; ".join(run.missing)


def _gate(run: runs.Run, criteria: Path | None) -> Gate:
    kept = Gate.of_facts(run.facts)
    if criteria is not None:
        return Gate.of_manifest(criteria)
    if kept is not None:
        return kept
    if Path(FILE_NAME).exists():
        return Gate.of_manifest(Path(FILE_NAME))
    run.notes.append(f"no {FILE_NAME} here and none named by --criteria: nothing is judged")
    return Gate()


def last_words(place: Path) -> str:
    """Return Locust's last line in the run folder, as a sentence."""
    log = place / "locust.log"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    said = [line for line in lines if line.strip()]
    return f"Locust's last line: {said[-1]}" if said else "Locust said nothing"


def summary(outcome: Outcome) -> str:
    """Return the outcome in Markdown, for a pull request or a job's page."""
    rows = [
        f"| {j.outcome.value} | {j.criterion.subject} | `{j.criterion.text}` | {j.why} |"
        for j in outcome.verdict.judgements
    ]
    parts = [
        f"## {outcome.word}: {outcome.digest.run.name}",
        outcome.first_line,
        table.markdown(outcome.digest),
        "\n".join(["| outcome | request | fails if | found |", "|:--|:--|:--|:--|", *rows]),
        *(_revisions(era) for era in outcome.digest.eras),
        "\n".join(f"- {each}" for each in [*table.beneath(outcome.digest), *_notes(outcome)]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _revisions(era: eras.Era) -> str:
    heads = [f"{era.server}: {eras.HEADINGS[0]}", *eras.HEADINGS[1:]]
    rule = [":--", *["--:"] * (len(heads) - 1)]
    return table.piped([heads, rule, *map(eras.cells, era.spoken)])


def _notes(outcome: Outcome) -> list[str]:
    return [f"note: {each}" for each in outcome.digest.notes]


def show(outcome: Outcome, folder: Path) -> None:
    """Print the table, what belongs under it, the verdict, and where the report is."""
    print()
    print(table.text(outcome.digest))
    for line in table.beneath(outcome.digest):
        print(line)
    print()
    for line in outcome.lines:
        print(line)
    print(f"report: {folder / 'report.html'}")


def publish(text: str) -> None:
    """Append Markdown to the job's page where GitHub Actions has one ($GITHUB_STEP_SUMMARY)."""
    job_page = os.environ.get("GITHUB_STEP_SUMMARY")
    if job_page:
        with Path(job_page).open("a", encoding="utf-8") as file:
            file.write(text + "\n")
