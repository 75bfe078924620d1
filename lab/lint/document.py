"""A YAML text as plain data, with the line of every part, and nothing left to interpretation.

Two tools read the same file: the GitHub action with js-yaml (YAML 1.2, duplicate keys refused),
the CLI with PyYAML (YAML 1.1, the last duplicate wins). What the two read differently is refused
here: duplicate keys, keys that are not text, and unquoted scalars such as yes, 017, 1:30 or 1e3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import yaml

from lab.lint.finding import Finding, error

Path = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"

# What a plain scalar is in YAML 1.2's core schema, the written forms that all readers share.
_CORE = (
    ("null", re.compile(r"|~|null|Null|NULL")),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE")),
    ("int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)")),
    ("float", re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?")),
)
_ONLY_CORE = re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+|0o[0-7]+")


@dataclass(frozen=True, slots=True)
class Document:
    """One mapping.

    data   nested dicts, lists, str, int, float, bool and None
    lines  the line, from 1, of each part, by its path: ("env", 0, "value")
    """

    data: dict[str, object]
    lines: dict[Path, int]

    def line(self, *path: str | int) -> int:
        """Return the line of the part, or of the nearest part around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1


@dataclass(slots=True)
class _Reader:
    file: str
    findings: list[Finding] = field(default_factory=list)
    lines: dict[Path, int] = field(default_factory=dict)

    def refuse(self, node: yaml.Node, what: str, value: str, cure: str) -> None:
        self.findings.append(error(self.file, _line(node), what, value, cure))

    def value(self, node: yaml.Node, path: Path, above: tuple[yaml.Node, ...]) -> object:
        if any(node is each for each in above):
            self.refuse(node, "an alias inside what it names", "", "Write the value out")
            return None
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path, (*above, node))
        if isinstance(node, yaml.SequenceNode):
            items = []
            for index, each in enumerate(node.value):
                self.lines[*path, index] = _line(each)
                items.append(self.value(each, (*path, index), (*above, node)))
            return items
        return self.scalar(node) if isinstance(node, yaml.ScalarNode) else None

    def mapping(
        self, node: yaml.MappingNode, path: Path, above: tuple[yaml.Node, ...]
    ) -> dict[str, object]:
        own: dict[str, object] = {}
        merged: dict[str, object] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                sources = (
                    value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                )
                for source in reversed(sources):
                    value = self.value(source, path, above)
                    merged |= value if isinstance(value, dict) else {}
                continue
            key = self.key(key_node)
            if key is None:
                continue
            if key in own:
                self.refuse(
                    key_node,
                    f"a duplicate key, first on line {self.lines[*path, key]}: the action "
                    "refuses the file, the CLI takes the last",
                    key,
                    "Keep one of the two",
                )
                continue
            self.lines[*path, key] = _line(key_node)
            own[key] = self.value(value_node, (*path, key), above)
        return merged | own

    def key(self, node: yaml.Node) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}str":
            return str(node.value)
        if not isinstance(node, yaml.ScalarNode):
            self.refuse(node, "a list or mapping as a key", "", "Write the key as text")
            return None
        what = "a key that is not text to every tool"
        self.refuse(node, what, str(node.value), f'Quote it: "{node.value}"')
        return str(node.value)

    def scalar(self, node: yaml.ScalarNode) -> object:
        text, tag = str(node.value), node.tag.removeprefix(_TAG)
        if node.style is not None or tag == "str":
            if tag != "str":
                self.refuse(node, "a YAML tag", node.tag, "Remove it")
            elif node.style is None and _ONLY_CORE.fullmatch(text):
                self.refuse_ambiguous(node, text)
            return text
        kind = next((name for name, form in _CORE if form.fullmatch(text)), "str")
        if kind != tag:
            self.refuse_ambiguous(node, text)
            return text
        match kind:
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                return int(text)
        return float(text)

    def refuse_ambiguous(self, node: yaml.Node, text: str) -> None:
        what = "an unquoted value that YAML readers do not all read alike"
        self.refuse(node, what, text, f'Quote it, "{text}", or write it plainly')


def parse(text: str, file: str) -> tuple[Document | None, list[Finding]]:
    """Return the document and what is wrong with it as YAML; None where nothing can be read."""
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line = mark.line + 1 if mark else 0
        what = f"no valid YAML, {problem.problem or problem.context}"
        cure = "Quote what holds a colon and a blank, a # or a bracket; indent with blanks"
        return None, [error(file, line, what, "", cure)]
    except (yaml.YAMLError, RecursionError):
        what = "no valid YAML: it holds characters or a nesting that no reader takes"
        return None, [error(file, 0, what, "", "Save it as plain UTF-8 text")]
    if len(nodes) != 1 or not isinstance(nodes[0], yaml.MappingNode):
        found = (
            "empty"
            if not nodes or nodes[0] is None
            else f"{len(nodes)} documents"
            if len(nodes) > 1
            else "a list or a single value"
        )
        what = "not one mapping of keys to values, which the action calls Invalid YAML syntax"
        return None, [error(file, 1, what, found, "Write one document that begins version: v0.1")]
    reader = _Reader(file)
    data = reader.mapping(nodes[0], (), (nodes[0],))
    return Document(data, reader.lines), reader.findings


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
