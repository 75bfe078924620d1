"""Arguments that a JSON schema allows: the required ones, as plain as they can be.

For `any_server.py`, which knows nothing of a server but the schemas that it publishes.
"""

from __future__ import annotations

from typing import Any

DEPTH_LIMIT = 8
_FORMATS = {
    "date": "2026-01-15",
    "date-time": "2026-01-15T09:00:00Z",
    "time": "09:00:00Z",
    "duration": "PT1H",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uri-reference": "https://example.com/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}


class NoExample(ValueError):
    """No value could be made; the text says what of the schema is not understood."""


def example_of(schema: Any) -> dict[str, Any]:
    """Return an object that the schema allows. Raises NoExample."""
    made = _make(schema, schema, 0)
    if not isinstance(made, dict):
        raise NoExample("its input is no object")
    return made


def _make(schema: Any, root: Any, depth: int) -> Any:
    if depth > DEPTH_LIMIT:
        raise NoExample("its schema is nested too deep")
    if schema is True or schema == {}:
        return "example"
    if not isinstance(schema, dict):
        raise NoExample("its schema allows nothing")
    if "$ref" in schema:
        return _make(_resolved(schema["$ref"], root), root, depth + 1)
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("examples"):
        return schema["examples"][0]
    for keyword in ("anyOf", "oneOf"):
        if schema.get(keyword):
            return _first_that_can_be_made(schema, keyword, root, depth)
    if schema.get("allOf"):
        return _make(_merged(schema), root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: dict[str, Any], root: Any, depth: int) -> Any:
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind == "object":
        properties = schema.get("properties", {})
        return {
            name: _make(properties.get(name, True), root, depth + 1)
            for name in schema.get("required", ())
        }
    if kind == "array":
        items = schema.get("items", True)
        return [_make(items, root, depth + 1) for _ in range(schema.get("minItems", 0))]
    if kind == "string":
        return _string(schema)
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    if kind == "boolean":
        return False
    if kind == "null":
        return None
    raise NoExample(f"its schema has the type {kind!r}")


def _string(schema: dict[str, Any]) -> str:
    if "pattern" in schema:
        raise NoExample("a string must match a pattern: name an example in the schema")
    made = _FORMATS.get(schema.get("format", ""), "example")
    if schema.get("minLength", 0) > len(made):
        made = made.ljust(schema["minLength"], "x")
    return made[: schema["maxLength"]] if "maxLength" in schema else made


def _number(schema: dict[str, Any], whole: bool) -> float:
    low = schema.get("minimum")
    if isinstance(schema.get("exclusiveMinimum"), (int, float)):
        above = schema["exclusiveMinimum"] + (1 if whole else 0.5)
        low = above if low is None else max(low, above)
    high = schema.get("maximum")
    if isinstance(schema.get("exclusiveMaximum"), (int, float)):
        below = schema["exclusiveMaximum"] - (1 if whole else 0.5)
        high = below if high is None else min(high, below)
    step = schema.get("multipleOf")
    made = 1 if low is None else low
    if high is not None and made > high:
        made = high
    if step and made % step:
        made += step - made % step
    if (low is not None and made < low) or (high is not None and made > high):
        raise NoExample("no number fits its bounds")
    return int(made) if whole or float(made).is_integer() else made


def _first_that_can_be_made(schema: dict[str, Any], keyword: str, root: Any, depth: int) -> Any:
    rest = {key: value for key, value in schema.items() if key != keyword}
    why = NoExample("its schema allows nothing")
    for branch in schema[keyword]:
        if isinstance(branch, dict) and branch.get("type") == "null":
            continue
        both = {**rest, **branch} if isinstance(branch, dict) and rest.get("properties") else branch
        if isinstance(both, dict) and isinstance(branch, dict) and rest.get("properties"):
            both["properties"] = {**rest["properties"], **branch.get("properties", {})}
            both["required"] = [*rest.get("required", ()), *branch.get("required", ())]
        try:
            return _make(both, root, depth + 1)
        except NoExample as reason:
            why = reason
    raise why


def _merged(schema: dict[str, Any]) -> dict[str, Any]:
    merged = {key: value for key, value in schema.items() if key != "allOf"}
    for part in schema["allOf"]:
        if not isinstance(part, dict):
            continue
        properties = {**merged.get("properties", {}), **part.get("properties", {})}
        required = [*merged.get("required", ()), *part.get("required", ())]
        merged = {**merged, **part, "properties": properties, "required": required}
    if not merged["properties"]:
        del merged["properties"], merged["required"]
    return merged


def _resolved(reference: Any, root: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise NoExample("its schema refers to another document")
    found = root
    for part in reference.lstrip("#/").split("/") if reference != "#" else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or key not in found:
            raise NoExample(f"its schema refers to {reference}, which is not there")
        found = found[key]
    return found
