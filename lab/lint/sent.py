"""What a user class sends, by the names under which Locust counts it, without their label."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from lab.lint.sources import called, text_of

# The base class's methods: what they are counted as, and whether the first argument is a part
# of it where there is no name=.
_SENDERS: dict[str, tuple[str, bool]] = {
    "_call": ("tools/call", True),
    "_get_prompt": ("prompts/get", True),
    "_read_resource": ("resources/read", False),
    "_complete": ("completion/complete", False),
    "_resources_list": ("resources/list", False),
    "_resource_templates_list": ("resources/templates/list", False),
    "_prompts_list": ("prompts/list", False),
}
_BARE_SENDERS = {"_jsonrpc", "_notify", "_perform"}
_SEVERAL = "_call_all"


def names_sent(node: ast.ClassDef, constants: Mapping[str, str]) -> set[str | None]:
    """Return what the class's own methods send: "tools/call:search_code", "prompts/list".

    None is among them where a name can only be told in a run. constants are the module's and the
    class's texts by name.
    """
    texts = dict(constants)
    found: set[str | None] = set()
    described = [
        members for each in ast.walk(node) if "tool" in (members := _members(each))
    ]  # the arguments of _call by name, made on one line and sent on another
    for call in ast.walk(node):
        if not (isinstance(call, ast.Call) and _is_sender(call)):
            continue
        if not _is_made_elsewhere(call):
            found |= set(_statistics_names(call, texts))
        elif not described:
            found.add(None)
    found |= {
        _named("tools/call", members["tool"], members.get("name"), texts) for members in described
    }
    return found


def _is_sender(node: ast.Call) -> bool:
    function = node.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "self"
        and function.attr in {*_SENDERS, *_BARE_SENDERS, _SEVERAL}
    )


def _is_made_elsewhere(node: ast.Call) -> bool:
    """Return whether the call's arguments are dicts that some other line makes."""
    return called(node) == _SEVERAL or any(keyword.arg is None for keyword in node.keywords)


def _statistics_names(node: ast.Call, constants: dict[str, str]) -> Iterator[str | None]:
    sender = called(node)
    keywords = {keyword.arg or "": keyword.value for keyword in node.keywords}
    first = node.args[0] if node.args else None
    for option in [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]:
        if sender in _BARE_SENDERS:
            what = text_of(option or keywords.get("method"), constants)
            name = keywords.get("name")
            yield _named(what, None, name, constants) if what and name else what
            continue
        what, first_is_part = _SENDERS[sender]
        part = option or keywords.get("tool", keywords.get("prompt"))
        if first_is_part or "name" in keywords:
            yield _named(what, part, keywords.get("name"), constants)
        else:
            yield what


def _named(
    what: str, part: ast.expr | None, name: ast.expr | None, constants: dict[str, str]
) -> str | None:
    text = text_of(part if name is None else name, constants)
    return f"{what}:{text}" if text else None


def _members(node: ast.AST) -> dict[str, ast.expr]:
    """Return the members of {"tool": ...} or dict(tool=...) by name."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(k.value): v for k, v in pairs if isinstance(k, ast.Constant)}
    if isinstance(node, ast.Call) and called(node) == "dict":
        return {keyword.arg or "": keyword.value for keyword in node.keywords}
    return {}
