"""``python -m lab check``: everything about an upload that can be known before it.

The rules are in lab/lint, one noun a module. Each finding has its file and line, the value that
is wrong and the cure; an error fails the check, a warning may spoil a run, a note is only said.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from lab.lint import (
    classes,
    conf,
    engine,
    environment,
    labels,
    placeholders,
    requirements,
    schema,
    secrets,
    uploads,
    users,
)
from lab.lint.finding import Finding, Level
from lab.lint.sources import read_project
from lab.manifest import read

HELP = "find what would fail in Azure: azure-loadtest.yaml, the folder, the engine's Python"

_ORDER = {Level.ERROR: 0, Level.WARNING: 1, Level.NOTE: 2}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="the folder with azure-loadtest.yaml, or the file itself (default: this folder)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the findings and return the exit code: 1 with an error, else 0."""
    findings = check(args.folder)
    for finding in findings:
        print(finding)
    print(summary(findings))
    return int(any(finding.level is Level.ERROR for finding in findings))


def check(path: Path) -> list[Finding]:
    """Return all that is wrong with the folder (or manifest) at the path: errors first."""
    manifest, findings = read(path)
    if manifest is None:
        return findings
    project, unreadable = read_project(manifest)
    users_of_plan = classes.participants(project)
    configuration, conf_findings = conf.read(manifest, project.options)
    findings += [
        *schema.check(manifest),
        *uploads.check(project),
        *unreadable,
        *engine.check(project),
        *requirements.check(project),
        *conf_findings,
        *users.check(manifest, users_of_plan, configuration, has_shape=classes.has_shape(project)),
        *environment.check(project, users_of_plan),
        *labels.check(manifest, users_of_plan),
        *secrets.check(project),
        *placeholders.check(manifest),
    ]
    return sorted(dict.fromkeys(findings), key=lambda each: _ORDER[each.level])


def summary(findings: Iterable[Finding]) -> str:
    """Return the report's last line."""
    levels = [finding.level for finding in findings]
    counts = [
        f"{levels.count(level)} {level.value}{'s' if levels.count(level) != 1 else ''}"
        for level in Level
    ]
    return f"check: {', '.join(counts)}"
