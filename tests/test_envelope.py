"""The stateless era's metadata and headers (specification/2026-07-28/basic, server/tools)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from _envelope import (
    HeaderAnnotationError,
    client_meta,
    header_value,
    mirrors_of,
    routing_headers,
)


def _tool(**properties: Any) -> dict[str, Any]:
    return {"name": "sql", "inputSchema": {"type": "object", "properties": properties}}


REGION = {"type": "string", "x-mcp-header": "Region"}


def test_a_request_says_who_asks_and_in_which_revision() -> None:
    assert client_meta("2026-07-28", {"name": "x", "version": "1"}, {"roots": {}}) == {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
    }


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("tools/list", {}, [("Mcp-Method", "tools/list")]),
        ("tools/list", None, [("Mcp-Method", "tools/list")]),
        ("tools/call", {"name": "a"}, [("Mcp-Method", "tools/call"), ("Mcp-Name", "a")]),
        ("prompts/get", {"name": "p"}, [("Mcp-Method", "prompts/get"), ("Mcp-Name", "p")]),
        ("resources/read", {"uri": "x:y"}, [("Mcp-Method", "resources/read"), ("Mcp-Name", "x:y")]),
        ("completion/complete", {"name": "a"}, [("Mcp-Method", "completion/complete")]),
    ],
)
def test_headers_name_the_method_and_what_it_is_about(
    method: str, params: Any, expected: list[tuple[str, str]]
) -> None:
    assert list(routing_headers(method, params)) == expected


@pytest.mark.parametrize("text", ["", "plain", "a b", "~!@#$%^&*()", "=?base64?", "a=?base64?x?="])
def test_a_value_that_a_header_can_carry_goes_as_it_is(text: str) -> None:
    assert header_value(text) == text


@pytest.mark.parametrize(
    "text",
    [
        " edge",
        "edge ",
        "é",
        "日本語",
        "a\r\nEvil: 1",
        "tab\there",
        "\x7f",
        "\0",
        "=?base64?eA==?=",
        "\ud83d",
    ],
)
def test_any_other_value_is_encoded_and_comes_back_whole(text: str) -> None:
    found = header_value(text)

    assert found.startswith("=?base64?")
    assert found.endswith("?=")
    assert all(" " <= character <= "~" for character in found)
    packed = base64.b64decode(found[len("=?base64?") : -2])
    assert packed.decode("utf-8", "surrogatepass") == text


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("eu-1", "eu-1"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (42, "42"),
        (-1, "-1"),
        (5.0, "5"),
        ("é", "=?base64?w6k=?="),
        (None, None),
        (1.5, None),
        ([1], None),
        ({}, None),
    ],
)
def test_an_argument_is_mirrored_as_text_or_left_out(argument: Any, expected: str | None) -> None:
    mirrors = mirrors_of(_tool(region=REGION))
    params = {"name": "sql", "arguments": {"region": argument}}
    headers = dict(routing_headers("tools/call", params, mirrors))

    assert headers.get("Mcp-Param-Region") == expected


@pytest.mark.parametrize("arguments", [None, [], "x", {}, {"a": 1}, {"a": None}])
def test_a_missing_argument_is_not_mirrored(arguments: Any) -> None:
    mirrors = mirrors_of(_tool(a={"type": "object", "properties": {"b": REGION}}))
    params = {"name": "sql", "arguments": arguments}

    assert "Mcp-Param-Region" not in dict(routing_headers("tools/call", params, mirrors))


def test_an_argument_deep_inside_is_mirrored_by_its_path() -> None:
    mirrors = mirrors_of(_tool(a={"type": "object", "properties": {"b": REGION}}))
    params = {"name": "sql", "arguments": {"a": {"b": "x"}}}

    assert dict(routing_headers("tools/call", params, mirrors))["Mcp-Param-Region"] == "x"


@pytest.mark.parametrize("kind", ["string", "integer", "boolean"])
def test_the_types_that_can_be_mirrored(kind: str) -> None:
    assert mirrors_of(_tool(a={"type": kind, "x-mcp-header": "A"})) == (("A", ("a",)),)


BAD: dict[str, dict[str, Any]] = {
    "a blank": _tool(a={"type": "string", "x-mcp-header": "a b"}),
    "nothing": _tool(a={"type": "string", "x-mcp-header": ""}),
    "a colon": _tool(a={"type": "string", "x-mcp-header": "a:"}),
    "a line break": _tool(a={"type": "string", "x-mcp-header": "a\r\nb"}),
    "a line break at the end": _tool(a={"type": "string", "x-mcp-header": "a\n"}),
    "no ascii": _tool(a={"type": "string", "x-mcp-header": "é"}),
    "a number": _tool(a={"type": "string", "x-mcp-header": 7}),
    "on a number": _tool(a={"type": "number", "x-mcp-header": "A"}),
    "on an object": _tool(a={"type": "object", "x-mcp-header": "A"}),
    "on a list of types": _tool(a={"type": ["string", "null"], "x-mcp-header": "A"}),
    "on no type": _tool(a={"x-mcp-header": "A"}),
    "twice, but for case": _tool(a=REGION, b={**REGION, "x-mcp-header": "REGION"}),
    "in items": _tool(a={"type": "array", "items": REGION}),
    "in anyOf": _tool(a={"anyOf": [REGION]}),
    "in additionalProperties": _tool(a={"type": "object", "additionalProperties": REGION}),
    "in patternProperties": _tool(a={"type": "object", "patternProperties": {"x": REGION}}),
    "in $defs": {"name": "x", "inputSchema": {"type": "object", "$defs": {"r": REGION}}},
    "at the root": {"name": "x", "inputSchema": {"type": "string", "x-mcp-header": "A"}},
}


@pytest.mark.parametrize("where", BAD)
def test_an_annotation_that_no_client_may_obey_drops_the_tool(where: str) -> None:
    with pytest.raises(HeaderAnnotationError):
        mirrors_of(BAD[where])


@pytest.mark.parametrize(
    "tool",
    [
        {},
        {"inputSchema": None},
        {"inputSchema": True},
        {"inputSchema": {"properties": []}},
        _tool(**{"x-mcp-header": {"type": "string"}}),
        _tool(a={"type": "object", "default": {"x-mcp-header": "a b"}}),
        _tool(a={"enum": [{"x-mcp-header": "a b"}]}),
    ],
)
def test_a_tool_without_annotations_has_no_mirrors(tool: dict[str, Any]) -> None:
    assert mirrors_of(tool) == ()
