"""The engine's Python, 3.9: syntax, ``X | None`` at run time, names of the library that came later.

What is new is known by vermin (a linter's table of the language's history) and by the parser
itself, which refuses what is newer than the version asked for. Unions at run time are told apart
from annotations here, as only those that run can fail. Guarded code, below a test of
sys.version_info or a try that catches the import, is trusted.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

import vermin  # type: ignore[import-untyped]

from lab.lint.finding import Finding, error
from lab.lint.sources import Project, Source, called, for_types_only

ENGINE = (3, 9)

_TYPES = frozenset(
    {"int", "str", "float", "bool", "bytes", "complex", "object", "type", "list", "dict", "tuple"}
    | {"set", "frozenset", "Any", "Callable", "Iterable", "Iterator", "Mapping", "Sequence"}
    | {"Optional", "Union", "Path"}
)
_GUARDS = {"ImportError", "ModuleNotFoundError", "AttributeError"}


def check(project: Project) -> list[Finding]:
    """Return what of the uploaded modules the engine's Python would not run."""
    return [
        finding
        for source in project.all_sources
        for finding in sorted(_source(source), key=lambda each: each.line)
    ]


def _source(source: Source) -> Iterator[Finding]:
    said: set[int] = set()
    trusted = _guarded_lines(source.tree)
    for line in sorted(set(_unions(source.tree))):
        if line not in trusted:
            said.add(line)
            yield error(
                source.path,
                line,
                f"X | Y of types at run time, which needs Python 3.10; the engine has {_dot()}",
                _line(source, line),
                "Write Optional[X] or Union[X, Y], or (X, Y) in isinstance; in annotations begin "
                "the file with from __future__ import annotations",
            )
    newer = [each for each in _newer(source.text, source.path) if each[0] not in trusted]
    # The parser stops at its first complaint, often a line beside what vermin has named already.
    for line, what, needs in newer or _syntax(source):
        if line in said:
            continue
        said.add(line)
        yield error(
            source.path,
            line,
            f"{what}, which needs Python {needs}; the engine has {_dot()}",
            _line(source, line),
            "Write it in a way that 3.9 knows",
        )


def _dot() -> str:
    return ".".join(str(part) for part in ENGINE)


def _line(source: Source, line: int) -> str:
    lines = source.text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _syntax(source: Source) -> Iterator[tuple[int, str, str]]:
    try:
        ast.parse(source.text, feature_version=ENGINE)
    except SyntaxError as problem:
        yield problem.lineno or 0, f"syntax ({problem.msg})", "3.10 or later"


@functools.lru_cache(maxsize=500)
def _newer(text: str, path: str) -> tuple[tuple[int, str, str], ...]:
    """Return (line, what, since) of everything that vermin knows to be newer than the engine."""
    config = vermin.Config()
    config.set_verbose(3)
    config.set_format(vermin.formats.ParsableFormat())
    visitor = vermin.visit(text, config, path)
    if not isinstance(visitor, vermin.SourceVisitor):
        return ()
    found: list[tuple[int, str, str]] = []
    for row in str(visitor.output_text()).splitlines():
        parts = row.removeprefix(path).lstrip(":").split(":", 4)
        if len(parts) == 5 and parts[0].isdigit() and parts[4]:
            since = tuple(int(part) for part in parts[3].lstrip("!~").split(".") if part.isdigit())
            if since > ENGINE and "union types" not in parts[4]:
                found.append((int(parts[0]), parts[4].replace("`", ""), parts[3]))
    return tuple(found)


def _unions(tree: ast.Module) -> Iterator[int]:
    """Return the lines of unions of types that are evaluated when the module or a call runs."""
    skipped = for_types_only(tree)
    if _annotations_are_text(tree):
        skipped |= {id(below) for note in _annotations(tree) for below in ast.walk(note)}
    known = _TYPES | {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = (node.left, node.right)
            if any(_is_none(s) for s in sides) or all(_is_type(s, known) for s in sides):
                yield node.lineno
        elif isinstance(node, ast.Call) and called(node) in {"isinstance", "issubclass"}:
            for argument in node.args[1:]:
                if isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.BitOr):
                    yield argument.lineno


def _annotations_are_text(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in tree.body
    )


def _annotations(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            yield node.returns


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_type(node: ast.expr, known: frozenset[str] | set[str]) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_type(node.value, known)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_type(node.left, known) and _is_type(node.right, known)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return _is_none(node) or name in known


def _guarded_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        body: list[ast.stmt] = []
        if isinstance(node, ast.If) and (
            "version_info" in ast.dump(node.test) or "TYPE_CHECKING" in ast.dump(node.test)
        ):
            body = [*node.body, *node.orelse]
        elif isinstance(node, ast.Try) and any(
            handler.type is not None and any(g in ast.dump(handler.type) for g in _GUARDS)
            for handler in node.handlers
        ):
            body = node.body
        for each in body:
            lines |= set(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    return lines
