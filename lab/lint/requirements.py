"""requirements.txt on the engine: what exists for its Python, and what its Locust must stay.

Nothing is looked up on the network: what is known of releases is in data/azure/engine-packages.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from lab.lint.finding import Finding, error, warning
from lab.lint.sources import Project, can_fail, locate

NAME = "requirements.txt"
_FACTS = Path(__file__).parent.parent / "data" / "azure" / "engine-packages.json"
_LINUX = {
    "python_version": "3.9",
    "python_full_version": "3.9.19",
    "implementation_name": "cpython",
    "implementation_version": "3.9.19",
    "platform_python_implementation": "CPython",
    "os_name": "posix",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
}


@dataclass(frozen=True, slots=True)
class _Line:
    requirement: Requirement
    text: str
    line: int

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)


@functools.cache
def _facts() -> Any:
    return json.loads(_FACTS.read_text(encoding="utf-8"))


@functools.cache
def _providers() -> Mapping[str, list[str]]:
    """Return module -> the distributions installed here that have it."""
    return importlib.metadata.packages_distributions()


def check(project: Project) -> list[Finding]:
    """Return what is wrong with the listed requirements.txt, and with imports it leaves out."""
    manifest = project.manifest
    listed = next((f for f in manifest.configuration_files if f.basename == NAME), None)
    if listed is None or not (manifest.folder / listed.path).is_file():
        return list(_imports(project, []))
    text = (manifest.folder / listed.path).read_text(encoding="utf-8", errors="replace")
    findings: list[Finding] = []
    lines: list[_Line] = []
    for number, raw in enumerate(text.splitlines(), 1):
        content = raw.partition(" #")[0].strip()
        if not content or content.startswith("#"):
            continue
        try:
            if content.startswith("-"):
                raise InvalidRequirement(content)
            lines.append(_Line(Requirement(content), content, number))
        except InvalidRequirement:
            what = "a line that is no plain requirement: no option, path or wheel is sure to work"
            cure = "Write NAME>=VERSION, with names of PyPI alone"
            findings.append(error(listed.path, number, what, content, cure))
    for each in lines:
        findings += _line(each, listed.path)
    return [*findings, *_imports(project, lines)]


def _line(each: _Line, file: str) -> Iterator[Finding]:
    requirement, newest = each.requirement, _facts()["newest"].get(each.name)
    if requirement.url:
        what, cure = "a requirement by its address", "Name a release on PyPI"
        yield error(file, each.line, what, each.text, cure)
        return
    if requirement.marker and not requirement.marker.evaluate(dict(_LINUX)):
        what = "a requirement that the engine skips, as its marker is false on Python 3.9"
        yield warning(file, each.line, what, each.text, "Remove the marker, or the line")
        return
    floor = _floor(requirement)
    if each.name == "locust":
        engine = _facts()["locust"]
        if not requirement.specifier.contains(engine, prereleases=True):
            above = floor is not None and floor > Version(engine)
            level = error if above else warning
            exists = f"; the newest for Python 3.9 is {newest}" if above else ""
            what = f"a pin that excludes the engine's Locust, {engine}{exists}"
            yield level(file, each.line, what, each.text, f"Write locust>={engine} or leave it out")
        return
    if newest is None:
        what = "a package of which nothing is known here: whether it exists for Python 3.9"
        cure = (
            "Try pip download --no-deps --only-binary=:all: --python-version 3.9 "
            f"{each.requirement.name}"
        )
        yield warning(file, each.line, what, each.text, cure)
    elif floor is not None and floor > Version(newest):
        what = f"a release that does not exist for Python 3.9, where the newest is {newest}"
        cure = f"Write {requirement.name}<={newest}, or a lower floor"
        yield error(file, each.line, what, each.text, cure)


def _floor(requirement: Requirement) -> Version | None:
    """Return the oldest release that the requirement admits, as far as it says so."""
    floors = []
    for each in requirement.specifier:
        if each.operator in {">=", "==", "===", "~=", ">"}:
            try:
                version = Version(each.version.removesuffix(".*"))
            except InvalidVersion:
                continue
            # ">" begins just above: any later patch release will do for the comparison.
            floors.append(Version(f"{version.public}.0.1") if each.operator == ">" else version)
    return max(floors, default=None)


def _imports(project: Project, lines: list[_Line]) -> Iterator[Finding]:
    """Return imports of packages that neither Locust nor the requirements bring."""
    given = {each.name for each in lines} | {"locust"}
    brought = {name for each in given for name in _facts()["brings"].get(each, [])}
    providers = _providers()
    said: set[str] = set()
    for source in project.sources.values():
        optional = can_fail(source.tree)
        for each in source.imports:
            module = each.module
            if (
                module in said
                or each.line in optional
                or module in sys.stdlib_module_names | {"__future__"}
            ):
                continue
            if locate(project.manifest, module) is not None:
                continue
            said.add(module)
            names = {canonicalize_name(name) for name in providers.get(module, [module])}
            known = names | {canonicalize_name(module)}
            if known & (given | brought) or any(n.startswith(f"{module}-") for n in given):
                continue
            what = f"an import that neither this folder nor {NAME} brings to the engine"
            cure = f"Add the package to {NAME} and list that, or the module to this folder"
            yield error(source.path, each.line, what, module, cure)
