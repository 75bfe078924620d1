"""The user classes of a test plan as facts: label, count, tools, needs; read and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from lab.lint.sent import names_sent
from lab.lint.sources import Project, Source, assignments, called, text_of

BASE = "MCPUserBase"

# What the base class sends for every user, beside the tools that a task names; and what it
# sends only at times: after a timeout, in another revision, by a habit.
LIFECYCLE = ("initialize", "notifications/initialized", "tools/list", "DELETE")
AT_TIMES = ("notifications/cancelled", "server/discover")


@dataclass(frozen=True, slots=True)
class Count:
    """How many users: the variable ("" for a bare number), its default, and where it is said."""

    variable: str
    default: int
    line: int


@dataclass(frozen=True, slots=True)
class UserClass:
    """One class that takes part when the plan is run.

    hosted    it is an MCP user, so its statistics names begin with label
    names     what follows the label in them: "initialize", "tools/call:search_code", ...
    at_times  what the support modules also send, in some runs
    open      it calls what only a running server names, so names is not all
    """

    name: str
    file: str
    line: int
    hosted: bool
    label: str
    count: Count | None
    needs: tuple[str, ...]
    names: frozenset[str]
    at_times: frozenset[str]
    open: bool

    @property
    def labels(self) -> set[str]:
        """The statistics names that it produces in every run that goes well."""
        return {f"{self.label}:{name}" for name in self.names}

    @property
    def rare_labels(self) -> set[str]:
        """The statistics names that it produces in some runs."""
        return {f"{self.label}:{name}" for name in self.at_times}


@dataclass(frozen=True, slots=True)
class _Definition:
    node: ast.ClassDef
    source: Source


def participants(project: Project) -> list[UserClass]:
    """Return the user classes that the plan defines or imports, as Locust would find them."""
    plan = project.plan
    if plan is None:
        return []
    found: list[UserClass] = []
    for bound in _bound_names(project, plan):
        definition = _find(project, plan, bound)
        if definition is None or any(c.name == definition.node.name for c in found):
            continue
        chain, roots = _chain(project, definition)
        own = definition.node.name
        names = {each.node.name for each in chain} | roots
        is_user = any(name == BASE or name.endswith("User") for name in names - {own})
        if is_user and not _is_abstract(definition.node):
            found.append(_facts(definition, chain, hosted=BASE in names))
    return found


def has_shape(project: Project) -> bool:
    """Return whether the plan binds a LoadTestShape, which then rules how many users there are."""
    plan = project.plan
    if plan is None:
        return False
    for bound in _bound_names(project, plan):
        definition = _find(project, plan, bound)
        if definition is not None and not _is_abstract(definition.node):
            chain, roots = _chain(project, definition)
            if "LoadTestShape" in roots | {each.node.name for each in chain[1:]}:
                return True
    return False


def _bound_names(project: Project, plan: Source) -> Iterator[str]:
    yield from (node.name for node in plan.tree.body if isinstance(node, ast.ClassDef))
    for each in plan.imports:
        other = project.sources.get(each.module)
        if each.name == "*" and other is not None:
            yield from (node.name for node in other.tree.body if isinstance(node, ast.ClassDef))
        elif each.name:
            yield each.bound


def _find(project: Project, source: Source, name: str, depth: int = 0) -> _Definition | None:
    """Return the class that a name in a module stands for, however often it was passed on."""
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _Definition(node, source)
    for each in source.imports:
        other = project.sources.get(each.module)
        if other is not None and depth < 20 and (each.bound == name or each.name == "*"):
            wanted = name if each.name == "*" else each.name
            definition = _find(project, other, wanted, depth + 1)
            if definition is not None:
                return definition
    return None


def _chain(
    project: Project, definition: _Definition, depth: int = 0
) -> tuple[list[_Definition], set[str]]:
    """Return the class and its bases, nearest first, and the names of bases found nowhere."""
    chain, roots = [definition], set[str]()
    for base in definition.node.bases:
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        parent = _find(project, definition.source, name) if depth < 20 else None
        if parent is None or parent.node is definition.node:
            roots.add(name)
            continue
        above, beyond = _chain(project, parent, depth + 1)
        chain += [each for each in above if each not in chain]
        roots |= beyond
    return chain, roots


def _facts(definition: _Definition, chain: list[_Definition], *, hosted: bool) -> UserClass:
    names: set[str | None] = set(LIFECYCLE) if hosted else {None}
    at_times: set[str | None] = set(AT_TIMES)
    inherited = _texts(chain)
    for each in chain:
        found = at_times if each.source.module.startswith("_") else names
        found |= names_sent(each.node, {**each.source.constants, **inherited})
    label = next((v for v in (_text(each, "server_label") for each in chain) if v), "")
    return UserClass(
        name=definition.node.name,
        file=definition.source.path,
        line=definition.node.lineno,
        hosted=hosted,
        label=label or ("mcp" if hosted else ""),
        count=next((c for c in (_count(each) for each in chain) if c is not None), None),
        needs=next((n for n in (_needs(each) for each in chain) if n is not None), ()),
        names=frozenset(name for name in names if name),
        at_times=frozenset(name for name in at_times - names if name),
        open=None in names,
    )


def _texts(chain: list[_Definition]) -> dict[str, str]:
    """Return the class attributes that are plain text, the nearest class winning."""
    found: dict[str, str] = {}
    for each in reversed(chain):
        for name, value in _attributes(each):
            text = text_of(value, each.source.constants)
            if text is not None:
                found[name] = text
    return found


def _attributes(definition: _Definition) -> Iterator[tuple[str, ast.expr]]:
    for node in definition.node.body:
        yield from assignments(node)


def _text(definition: _Definition, attribute: str) -> str:
    for name, value in _attributes(definition):
        if name == attribute:
            return text_of(value, definition.source.constants) or ""
    return ""


def _is_abstract(node: ast.ClassDef) -> bool:
    return any(
        name == "abstract" and isinstance(value, ast.Constant) and value.value is True
        for each in node.body
        for name, value in assignments(each)
    )


def _count(definition: _Definition) -> Count | None:
    for name, value in _attributes(definition):
        if name != "fixed_count":
            continue
        if isinstance(value, ast.Constant) and isinstance(value.value, int):
            return Count("", value.value, value.lineno)
        if isinstance(value, ast.Call) and called(value) == "count" and len(value.args) == 2:
            variable = text_of(value.args[0], definition.source.constants)
            default = value.args[1]
            if variable and isinstance(default, ast.Constant) and isinstance(default.value, int):
                return Count(variable, default.value, value.lineno)
    return None


def _needs(definition: _Definition) -> tuple[str, ...] | None:
    for name, value in _attributes(definition):
        if name == "needs" and isinstance(value, (ast.Tuple, ast.List)):
            texts = (text_of(each, definition.source.constants) for each in value.elts)
            return tuple(text for text in texts if text)
    return None
