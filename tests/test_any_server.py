"""Arguments for tools that nobody has described to us but the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from _examples import NoExample, example_of

jsonschema = pytest.importorskip("jsonschema")  # the lab's, not the engine's

DATA = Path(__file__).resolve().parents[1] / "lab" / "standins" / "data"
PUBLISHED = [
    pytest.param(tool["inputSchema"], id=f"{path.stem}:{tool['name']}")
    for path in sorted(DATA.glob("*.json"))
    for tool in json.loads(path.read_text(encoding="utf-8"))["tools"]
]


@pytest.mark.parametrize("schema", PUBLISHED)
def test_every_published_tool_gets_arguments_that_its_schema_allows(
    schema: dict[str, Any],
) -> None:
    jsonschema.validate(example_of(schema), schema)


@pytest.mark.parametrize(
    "member",
    [
        {"type": "string", "minLength": 12},
        {"type": "string", "maxLength": 3},
        {"type": "string", "format": "date-time"},
        {"type": "integer", "minimum": 7, "multipleOf": 5},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5},
        {"enum": ["b", "a"]},
        {"const": 4},
        {"type": ["null", "integer"]},
        {
            "anyOf": [
                {"type": "null"},
                {"type": "array", "minItems": 2, "items": {"type": "string"}},
            ]
        },
        {"$ref": "#/$defs/point"},
        {"allOf": [{"$ref": "#/$defs/point"}]},
    ],
    ids=str,
)
def test_a_required_property_of_each_kind_is_made(member: dict[str, Any]) -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    schema = {
        "type": "object",
        "properties": {"member": member, "left_out": {"type": "string"}},
        "required": ["member"],
        "$defs": {"point": point},
    }

    made = example_of(schema)

    assert set(made) == {"member"}
    jsonschema.validate(made, schema)


@pytest.mark.parametrize(
    ("member", "why"),
    [
        ({"type": "string", "pattern": "^[A-Z]{3}$"}, "pattern"),
        ({"$ref": "https://example.com/schema"}, "another document"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no number fits"),
        (False, "allows nothing"),
    ],
)
def test_what_cannot_be_made_says_why(member: Any, why: str) -> None:
    schema = {"type": "object", "properties": {"member": member}, "required": ["member"]}

    with pytest.raises(NoExample, match=why):
        example_of(schema)


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {
        "type": "object",
        "properties": {"child": {"$ref": "#"}},
        "required": ["child"],
    }

    with pytest.raises(NoExample, match="nested too deep"):
        example_of(schema)
