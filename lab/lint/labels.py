"""The statistics names that the classes can produce, and the criteria that speak of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from lab.criteria import class_label
from lab.lint.classes import UserClass
from lab.lint.finding import Finding, error, note, warning
from lab.manifest import Manifest

MOST_WITH_GRAPHS = 30


def check(manifest: Manifest, classes: list[UserClass]) -> list[Finding]:
    """Return what is wrong with the names: in the criteria, between classes, in their number."""
    if not classes:
        return []
    return [*_impossible(manifest, classes), *_shared(classes), *_too_many(manifest, classes)]


def _impossible(manifest: Manifest, classes: list[UserClass]) -> Iterator[Finding]:
    hosted = [each for each in classes if each.hosted]
    possible = {label for each in hosted for label in each.labels}
    rare = {label for each in hosted for label in each.rare_labels}
    free = [each for each in classes if not each.hosted]
    for criterion in manifest.criteria:
        name = criterion.request
        if name is None or name in possible:
            continue
        owners = [each for each in hosted if each.label == class_label(name) and ":" in name]
        if name in rare:
            what = (
                "a criterion on what is sent only in some runs: where it is not, it fails the gate"
            )
            cure = "Use the name of what is always sent, such as a tools/call"
            yield warning(manifest.path.name, criterion.line, what, name, cure)
        elif any(each.open for each in owners) or (free and not owners):
            what = "a criterion on a request that only a run can tell to exist"
            cure = "Compare it with the first run's table"
            yield note(manifest.path.name, criterion.line, what, name, cure)
        else:
            near = difflib.get_close_matches(name, sorted(possible), n=1, cutoff=0.5)
            what = "a criterion on a request that no class of the test plan sends"
            cure = f'Write "{near[0]}"' if near else "Use a name of the run's table"
            yield error(manifest.path.name, criterion.line, what, name, cure)


def _shared(classes: list[UserClass]) -> Iterator[Finding]:
    first: dict[str, UserClass] = {}
    for each in classes:
        other = first.setdefault(each.label, each) if each.hosted else each
        if other is not each:
            what = f"the server_label of {other.name} too: their requests mix in one row"
            yield error(each.file, each.line, what, each.label, "Give each class its own label")


def _too_many(manifest: Manifest, classes: list[UserClass]) -> Iterator[Finding]:
    usual = {label for each in classes for label in each.labels if each.hosted}
    if len(usual) > MOST_WITH_GRAPHS:
        what = f"more labels than the {MOST_WITH_GRAPHS} that the service's report has graphs for"
        plan = manifest.test_plan
        file, line = (plan.path, 0) if plan else (manifest.path.name, 0)
        yield warning(
            file, line, what, str(len(usual)), "Leave a class out, or join calls by name="
        )
