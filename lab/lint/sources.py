"""The Python of a project, read and never run: its modules, their imports, the files they read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lab.lint.finding import Finding, error
from lab.manifest import Manifest

_READERS = {"load_lines", "open"}


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: module is the top-level one, name what is taken from it ("" for all)."""

    module: str
    name: str
    bound: str
    line: int


@dataclass(frozen=True, slots=True)
class Read:
    """A data file that the code opens; always is False where it may be one that it writes."""

    name: str
    always: bool
    line: int


@dataclass(frozen=True, slots=True)
class Source:
    """One module. path is relative to the manifest's folder."""

    module: str
    path: str
    text: str
    tree: ast.Module
    imports: tuple[Import, ...]
    reads: tuple[Read, ...]
    constants: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Project:
    """The manifest and the modules that its test plan reaches, by name.

    listed  modules that are uploaded and that the plan does not reach
    """

    manifest: Manifest
    sources: dict[str, Source]
    listed: dict[str, Source]

    @property
    def plan(self) -> Source | None:
        """The locustfile, or None where it is not there or no Python."""
        plan = self.manifest.test_plan
        return self.sources.get(plan.basename.removesuffix(".py")) if plan else None

    @property
    def options(self) -> frozenset[str]:
        """Options that the code adds to Locust's parser, without their dashes."""
        return frozenset(
            text.removeprefix("--")
            for source in self.sources.values()
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Call) and called(node) == "add_argument"
            for text in (text_of(argument, source.constants) for argument in node.args)
            if text and text.startswith("--")
        )

    @property
    def all_sources(self) -> list[Source]:
        """Every module that an engine gets or wants, in the order in which they were found."""
        return [*self.sources.values(), *self.listed.values()]


def read_project(manifest: Manifest) -> tuple[Project, list[Finding]]:
    """Follow the imports from the test plan, and read every listed module beside."""
    findings: list[Finding] = []
    sources: dict[str, Source] = {}
    listed: dict[str, Source] = {}
    plan = manifest.test_plan
    waiting = [plan.basename.removesuffix(".py")] if plan else []
    while waiting:
        module = waiting.pop(0)
        path = locate(manifest, module)
        if module in sources or path is None:
            continue
        source = _read(manifest, module, path, findings)
        if source is not None:
            sources[module] = source
            waiting += [each.module for each in source.imports]
    for file in manifest.configuration_files:
        module = file.basename.removesuffix(".py")
        path = manifest.folder / file.path
        if file.basename.endswith(".py") and module not in sources and path.is_file():
            source = _read(manifest, module, path, findings)
            if source is not None:
                listed[module] = source
    return Project(manifest, sources, listed), findings


def locate(manifest: Manifest, module: str) -> Path | None:
    """Return the module's file: the listed one, else the one beside the plan, or None."""
    name = f"{module}.py"
    for file in manifest.files:
        if file.basename == name and (manifest.folder / file.path).is_file():
            return manifest.folder / file.path
    plan = manifest.test_plan
    beside = [manifest.folder, (manifest.folder / plan.path).parent if plan else manifest.folder]
    for folder in beside:
        if (folder / name).is_file():
            return folder / name
        if (folder / module / "__init__.py").is_file():
            return folder / module / "__init__.py"
    return None


def relative(manifest: Manifest, path: Path) -> str:
    """Return the path as the report shows it: relative to the manifest's folder."""
    try:
        return path.relative_to(manifest.folder).as_posix()
    except ValueError:
        return path.as_posix()


def _read(manifest: Manifest, module: str, path: Path, findings: list[Finding]) -> Source | None:
    shown = relative(manifest, path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        tree = ast.parse(text)
    except SyntaxError as problem:
        what = f"no valid Python: {problem.msg}"
        findings.append(error(shown, problem.lineno or 0, what, "", "Correct the syntax"))
        return None
    except (OSError, ValueError) as problem:
        what = f"a module that cannot be read ({type(problem).__name__})"
        findings.append(error(shown, 0, what, "", "Save it as UTF-8 text"))
        return None
    constants = _constants(tree)
    return Source(
        module,
        shown,
        text,
        tree,
        tuple(_imports(tree)),
        tuple(_reads(tree, constants)),
        constants,
    )


def for_types_only(tree: ast.AST) -> set[int]:
    """Return the ids of the nodes below ``if TYPE_CHECKING``, which never run."""
    return {
        id(below)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for each in node.body
        for below in ast.walk(each)
    }


def can_fail(tree: ast.AST) -> set[int]:
    """Return the lines in a ``try`` that catches ImportError: what they import may be missing."""
    return {
        below.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and any(_takes_import_error(each) for each in node.handlers)
        for each in node.body
        for below in ast.walk(each)
        if isinstance(below, ast.stmt)
    }


def _takes_import_error(handler: ast.ExceptHandler) -> bool:
    caught = ast.dump(handler.type) if handler.type else ""
    return "'ImportError'" in caught or "'ModuleNotFoundError'" in caught


def _imports(tree: ast.Module) -> Iterator[Import]:
    skipped = for_types_only(tree)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield Import(top, "", alias.asname or top, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module = (node.module or alias.name).partition(".")[0]
                name = alias.name if node.module else ""
                yield Import(module, name, alias.asname or alias.name, node.lineno)
        elif isinstance(node, ast.Call) and called(node) in {"import_module", "__import__"}:
            given = text_of(node.args[0] if node.args else None, {})
            if given:
                yield Import(given.partition(".")[0], "", "", node.lineno)


def _reads(tree: ast.Module, constants: dict[str, str]) -> Iterator[Read]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in {*_READERS, "Path"} and node.args:
            name = text_of(node.args[0], constants)
            if name:
                yield Read(name, called(node) == "load_lines", node.lineno)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            name = text_of(node.right, constants)
            if name:
                yield Read(name, always=False, line=node.lineno)


def called(node: ast.Call) -> str:
    """Return the last part of what is called: "open" of io.open(…)."""
    function = node.func
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def text_of(node: ast.expr | None, constants: dict[str, str]) -> str | None:
    """Return the text that an expression is, where it can be told without running it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return constants.get(node.attr) if node.value.id in {"self", "cls"} else None
    return None


def _constants(tree: ast.Module) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in tree.body:
        for name, value in assignments(node):
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[name] = value.value
    return found


def assignments(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Return (name, value) of each plain name that the statement assigns."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        yield node.target.id, node.value
