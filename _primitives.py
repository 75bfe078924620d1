"""Resources, prompts and completions: the rest of what a server may offer, called like a tool.

Labels are `label:resources/read`, `label:prompts/get:<prompt>` and so on. A resource's URI is no
part of one: it would be a row of its own for each. Each check is a predicate on the result object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from _exchange import Judge, Result
from _habits import Habits
from mcp_client import judge_result


class Primitives(Habits):
    """A user that reads resources, gets prompts and asks for completions."""

    abstract = True

    def _resources_list(self) -> list[dict[str, Any]] | None:
        """Return all resources, page by page; None where a page failed."""
        return self._pages("resources/list", "resources")

    def _resource_templates_list(self) -> list[dict[str, Any]] | None:
        """Return all resource templates, page by page; None where a page failed."""
        return self._pages("resources/templates/list", "resourceTemplates")

    def _prompts_list(self) -> list[dict[str, Any]] | None:
        """Return all prompts, page by page; None where a page failed."""
        return self._pages("prompts/list", "prompts")

    def _read_resource(
        self, uri: str, *, name: str | None = None, expect: Any = None
    ) -> Result | None:
        """Read a resource; `name` stands for it in the statistics, where it is to have a row."""
        return self._jsonrpc("resources/read", {"uri": uri}, name=name, judge=_expecting(expect))

    def _get_prompt(
        self,
        prompt: str,
        arguments: Mapping[str, str] | None = None,
        *,
        name: str | None = None,
        expect: Any = None,
    ) -> Result | None:
        """Get a prompt, filled with arguments (strings, by the specification)."""
        params: dict[str, Any] = {"name": prompt}
        if arguments is not None:
            params["arguments"] = arguments
        return self._jsonrpc("prompts/get", params, name=name or prompt, judge=_expecting(expect))

    def _complete(
        self,
        ref: Mapping[str, str],
        argument: str,
        value: str,
        *,
        name: str | None = None,
        expect: Any = None,
    ) -> Result | None:
        """Ask how an argument may go on.

        `ref` is {"type": "ref/prompt", "name": ...} or {"type": "ref/resource", "uri": ...}.
        """
        params = {"ref": ref, "argument": {"name": argument, "value": value}}
        return self._jsonrpc("completion/complete", params, name=name, judge=_expecting(expect))


def _expecting(expect: Any) -> Judge | None:
    if expect is None:
        return None
    return lambda result: judge_result(result, expect)
