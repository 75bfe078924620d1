"""What was published of the four servers: their tools and schemas, and the run of 2026-05-09."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import mcp_types
from jsonschema import Draft202012Validator

LABELS: Final = ("learn", "github", "context7", "ado")
DATA: Final = Path(__file__).parent / "data"
RUN: Final = Path(__file__).parents[1] / "data" / "run-2026-05-09.json"


@dataclass(frozen=True, slots=True)
class PublishedTool:
    """One tool as its server publishes it, and what the server does before it runs."""

    wire: mcp_types.Tool
    read_only: bool
    validator: Draft202012Validator
    aliases: Mapping[str, tuple[str, ...]]  # argument -> names that the server also takes
    required_by_action: Mapping[str, tuple[str, ...]]

    def with_names(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Give the arguments under the schema's names."""
        named = dict(arguments)
        for name, others in self.aliases.items():
            for other in others:
                if name not in named and other in named and other not in self.aliases:
                    named[name] = named.pop(other)
        return named


@cache
def tools(label: str) -> Mapping[str, PublishedTool]:
    """Give a server's listed tools by name, in the published order.

    GitHub lists its default toolsets; Azure DevOps what its remote documents list (its
    local server has more, and the private preview's are hidden by default).
    """
    document = json.loads((DATA / f"{label}.json").read_text(encoding="utf-8"))
    listed = [tool for tool in document["tools"] if _is_listed(label, tool)]
    return {tool["name"]: _published(tool) for tool in listed}


def _is_listed(label: str, tool: Mapping[str, Any]) -> bool:
    if label == "github":
        return bool(tool["default"])
    if label == "ado":
        return tool["actions_remote_docs"] is not None and tool["toolset"] != "elm"
    return True


def _published(tool: Mapping[str, Any]) -> PublishedTool:
    annotations = tool.get("annotations") or {"readOnlyHint": tool["read_only"]}
    schema = tool.get("inputSchema") or {"type": "object"}
    wire = mcp_types.Tool.model_validate(
        {
            "name": tool["name"],
            "description": tool.get("description"),
            "inputSchema": schema,
            "annotations": annotations,
        }
    )
    return PublishedTool(
        wire=wire,
        read_only=bool(annotations["readOnlyHint"]),
        validator=Draft202012Validator(schema),
        aliases={k: tuple(v) for k, v in tool.get("server_side_aliases", {}).items()},
        required_by_action={k: tuple(v) for k, v in tool.get("required_per_action", {}).items()},
    )


@cache
def published_run() -> Mapping[str, Mapping[str, float]]:
    """Give the published run's rows by statistics name, `learn:tools/call:…` and so on."""
    rows: dict[str, dict[str, float]] = json.loads(RUN.read_text(encoding="utf-8"))["requests"]
    return rows
