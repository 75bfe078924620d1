"""Secrets: by reference, never in clear text, in the manifest and in every file it uploads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from lab.lint.finding import HIDDEN, Finding, Level, is_secretive, looks_like_a_token
from lab.lint.placeholders import is_placeholder
from lab.lint.sources import Project, Source, assignments
from lab.manifest import Manifest

_BY_REFERENCE = "Move it to Key Vault, and its address to secrets; make a new one if it was shared"
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_]+[A-Za-z0-9_-]*|[A-Z0-9_]+")
_SHORTEST = 12  # of a text in code that a variable named TOKEN or KEY may not be set to


def check(project: Project) -> list[Finding]:
    """Return every credential that stands in clear text; none is ever printed."""
    return [*_manifest(project.manifest), *_sources(project), *_other_files(project)]


def _finding(file: str, line: int, what: str) -> Finding:
    return Finding(Level.ERROR, file, line, what, HIDDEN, _BY_REFERENCE)


def _manifest(manifest: Manifest) -> Iterator[Finding]:
    file, said = manifest.path.name, set()
    for entry in manifest.env:
        if not entry.value or is_placeholder(entry.value):
            continue
        if is_secretive(entry.name) and not _ADDRESS.match(entry.value):
            said.add(manifest.document.line("env"))
            said |= set(range(entry.line, entry.line + 2))
            yield _finding(file, entry.line, f"a secret in clear text in env, {entry.name}")
    for number, line in enumerate(manifest.path.read_text("utf-8-sig").splitlines(), 1):
        if looks_like_a_token(line) and number not in said:
            yield _finding(file, number, "what looks like a credential, in clear text")


def _sources(project: Project) -> Iterator[Finding]:
    for source in project.all_sources:
        said: set[int] = set()
        for number, line in enumerate(source.text.splitlines(), 1):
            if looks_like_a_token(line):
                said.add(number)
                yield _finding(source.path, number, "what looks like a credential, in clear text")
        for name, line_number in _literals(source):
            if line_number not in said:
                said.add(line_number)
                what = f"a secret in clear text in the code, {name}"
                yield _finding(source.path, line_number, what)


def _literals(source: Source) -> Iterator[tuple[str, int]]:
    """Return (name, line) of each text that is given to something named as a secret is."""
    for node in ast.walk(source.tree):
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            pairs = list(assignments(node))
        elif isinstance(node, ast.Call):
            pairs = [(k.arg, k.value) for k in node.keywords if k.arg]
        elif isinstance(node, ast.Dict):
            pairs = [
                (str(k.value).replace("-", "_"), v)
                for k, v in zip(node.keys, node.values, strict=True)
                if isinstance(k, ast.Constant)
            ]
        for name, value in pairs:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                text = value.value
                if is_secretive(name) and len(text) >= _SHORTEST and not _is_harmless(text):
                    yield name, value.lineno


def _is_harmless(text: str) -> bool:
    """Return whether the text is a name, an address, a sentence or a stand-in: no credential."""
    plain = _NAME.fullmatch(text) and not (re.search(r"[0-9]", text) and re.search(r"[a-z]", text))
    return bool(plain or " " in text or _ADDRESS.match(text) or is_placeholder(text))


def _other_files(project: Project) -> Iterator[Finding]:
    manifest = project.manifest
    for file in manifest.files:
        path = manifest.folder / file.path
        if file.basename.endswith((".py", ".zip")) or not path.is_file():
            continue
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
            if looks_like_a_token(line):
                yield _finding(file.path, number, "what looks like a credential, in clear text")
