"""The stateless era (2026-07-28): what each request says of itself, in its body and its headers.

There is no handshake: `_meta` in the params carries revision, client and capabilities, and headers
repeat method, name and those arguments that a tool's schema marks, so that gateways can route
without reading bodies. Sources: specification/2026-07-28/basic/{index,transports}, server/tools.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any

PREFIX = "io.modelcontextprotocol/"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, 5.6.2
_PLAIN = re.compile(r"[\x20-\x7e]*")
_MIRRORED_TYPES = ("string", "integer", "boolean")
_NO_SCHEMAS = ("default", "examples", "enum", "const")  # keywords whose values are data


class HeaderAnnotationError(ValueError):
    """A tool's `x-mcp-header` that no client may obey; the tool is to be dropped."""


def client_meta(
    revision: str, client_info: Mapping[str, Any], capabilities: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the `_meta` that every request of a client carries."""
    return {
        f"{PREFIX}protocolVersion": revision,
        f"{PREFIX}clientInfo": dict(client_info),
        f"{PREFIX}clientCapabilities": dict(capabilities),
    }


def routing_headers(
    method: str, params: Mapping[str, Any] | None, mirrors: Iterable[Any] = ()
) -> tuple[tuple[str, str], ...]:
    """Return Mcp-Method, Mcp-Name and Mcp-Param-* of a request, in that order."""
    headers = [("Mcp-Method", method)]
    named_by = NAMED_BY.get(method)
    if named_by is not None and params is not None:
        headers.append(("Mcp-Name", header_value(str(params.get(named_by, "")))))
    if mirrors and params is not None:
        for token, path in mirrors:
            value = _value_at(params.get("arguments"), path)
            if value is not None:
                headers.append((f"Mcp-Param-{token}", header_value(value)))
    return tuple(headers)


def header_value(text: str) -> str:
    """Return a value as a header can carry it: as it is, or as `=?base64?…?=`."""
    looks_encoded = text.startswith("=?base64?") and text.endswith("?=")
    if _PLAIN.fullmatch(text) and text == text.strip(" ") and not looks_encoded:
        return text
    encoded = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")
    return f"=?base64?{encoded}?="


def _value_at(arguments: Any, path: tuple[str, ...]) -> str | None:
    for name in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)
    if isinstance(arguments, bool):
        return "true" if arguments else "false"
    if isinstance(arguments, (int, str)):
        return str(arguments)
    if isinstance(arguments, float) and arguments.is_integer():
        return str(int(arguments))
    return None


def mirrors_of(tool: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return (header token, path of the argument) of each argument that a tool wants mirrored.

    Raises HeaderAnnotationError for an annotation that is no token, is used twice, stands on a
    type other than string, integer and boolean, or is reached by anything but `properties`.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    _collect(tool.get("inputSchema"), (), True, found)
    seen = [token.lower() for token, _ in found]
    if len(set(seen)) != len(seen):
        raise HeaderAnnotationError("used twice")
    return tuple(found)


def _collect(
    schema: Any, path: tuple[str, ...], pure: bool, found: list[tuple[str, tuple[str, ...]]]
) -> None:
    if isinstance(schema, list):
        for each in schema:
            _collect(each, path, False, found)
    if not isinstance(schema, dict):
        return
    if "x-mcp-header" in schema:
        token = schema["x-mcp-header"]
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise HeaderAnnotationError("no token")
        if not pure or not path:
            raise HeaderAnnotationError("not reached by properties alone")
        if schema.get("type") not in _MIRRORED_TYPES:
            raise HeaderAnnotationError("on a type that is not mirrored")
        found.append((token, path))
    for keyword, value in schema.items():
        if keyword in ("properties", "patternProperties", "$defs", "definitions"):
            if isinstance(value, dict):
                for name, each in value.items():
                    _collect(each, (*path, name), pure and keyword == "properties", found)
        elif keyword not in _NO_SCHEMAS and keyword != "x-mcp-header":
            _collect(value, path, False, found)
