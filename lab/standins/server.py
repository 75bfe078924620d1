"""One hosted server's stand-in: the official SDK's low-level server, told what was published.

Posture, and the evidence for it (the data files name their sources):

=========  =================  ========  ==========================================================
label      session            replies   evidence
=========  =================  ========  ==========================================================
learn      yes, or by flag    streams   ids until mid-2026, optional (medium); streams (medium)
github     yes, or by flag    JSON      the published run saw ids; sessionless since August 2026
                                        (medium); reply form not published
context7   none               JSON      none since 4.0.0 (high); the package of today streams to
                                        2025 clients and sends JSON to 2026-07-28 ones (high)
ado        none               JSON      none seen in May 2026 (low); reply form not published
=========  =================  ========  ==========================================================

The SDK adds what it gives for nothing: every handshake revision it knows, and 2026-07-28.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import mcp_types
from jsonschema.exceptions import best_match
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from lab.standins import ado_answers, context7_answers, github_answers, learn_answers
from lab.standins.catalogue import PublishedTool, tools
from lab.standins.gate import exchange_of
from lab.standins.guard import Guard

VERSION: Final = "0.1-standin"

Answers = Callable[[str, Mapping[str, Any]], list[mcp_types.ContentBlock]]
Context = ServerRequestContext[Any]


@dataclass(frozen=True, slots=True)
class Posture:
    """How one hosted server behaves on the wire; `path` is its endpoint's."""

    label: str
    title: str
    path: str
    may_have_sessions: bool
    streams: bool
    answer: Answers
    bad_arguments: Callable[[str, str], str]
    unknown_tool_is_result: bool = False


POSTURES: Final = {
    posture.label: posture
    for posture in (
        Posture(
            "learn", "Microsoft Learn", "/api/mcp", True, True,
            learn_answers.answer, learn_answers.bad_arguments,
        ),
        Posture(
            "github", "GitHub", "/mcp/", True, False,
            github_answers.answer, github_answers.bad_arguments,
        ),
        Posture(
            "context7", "Context7", "/mcp", False, False,
            context7_answers.answer, context7_answers.bad_arguments,
        ),
        Posture(
            "ado", "Azure DevOps", f"/{ado_answers.ORGANIZATION}", False, False,
            ado_answers.answer, ado_answers.bad_arguments, unknown_tool_is_result=True,
        ),
    )
}  # fmt: skip


class Standin:
    """The MCP half of a stand-in; `manager.asgi_app` is what the gate goes around."""

    def __init__(self, posture: Posture, guard: Guard, *, sessions: bool) -> None:
        self._posture = posture
        self._guard = guard
        self._tools = tools(posture.label)
        server: Server[Any] = Server(
            f"stand-in for {posture.title} (loopback)",
            version=VERSION,
            instructions="A stand-in on loopback: published schemas, made-up answers.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            get_tool_input_schema=self._schema_of,
        )
        server.middleware.clear()  # tracing only; nothing here exports any
        self.has_sessions = posture.may_have_sessions and sessions
        self.manager = StreamableHTTPSessionManager(
            server,
            json_response=not posture.streams,
            stateless=not self.has_sessions,
            session_idle_timeout=None,  # a session that nobody deletes must be seen as open
        )

    def _visible(self, context: Context) -> Mapping[str, PublishedTool]:
        asked = context.request.headers.get("x-mcp-readonly", "") if context.request else ""
        # GitHub's reading of the header; Azure DevOps documents 'true' alone.
        if asked.strip().lower() in ("", "false", "f", "no", "n", "0", "off"):
            return self._tools
        return {name: tool for name, tool in self._tools.items() if tool.read_only}

    def _schema_of(self, name: str) -> Mapping[str, Any] | None:
        tool = self._tools.get(name)
        return None if tool is None else tool.wire.input_schema

    async def _list_tools(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(
            tools=[tool.wire for tool in self._visible(context).values()]
        )

    async def _call_tool(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        tool = self._visible(context).get(params.name)
        if tool is None:
            if self._posture.unknown_tool_is_result:
                return _failed(f"MCP error -32602: Tool {params.name} not found")
            raise MCPError(mcp_types.INVALID_PARAMS, f"unknown tool {params.name!r}")
        arguments = tool.with_names(params.arguments or {})
        exchange = exchange_of(context.request)  # type: ignore[arg-type]
        await exchange.nearly_due()
        if (problem := _problem(tool, arguments)) is not None:
            return _failed(self._posture.bad_arguments(params.name, problem))
        if exchange.row.injected == "fault":
            return _failed(github_answers.rate_limited(params.name, arguments))
        if exchange.row.injected == "broken":
            return _failed(f"stand-in: {params.name} was asked to fail")
        if self._guard.refuses_key(context.request.headers):  # type: ignore[union-attr]
            text = mcp_types.TextContent(text=context7_answers.INVALID_KEY)
            return mcp_types.CallToolResult(content=[text])
        canonical = json.dumps(arguments, sort_keys=True)
        return mcp_types.CallToolResult(
            content=_answer(self._posture.label, params.name, canonical)
        )


@lru_cache(maxsize=2048)
def _answer(label: str, tool: str, canonical: str) -> list[mcp_types.ContentBlock]:
    """Answer a call; made up once, as the text costs a sixth of what a request does."""
    return POSTURES[label].answer(tool, json.loads(canonical))


def _failed(text: str) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(text=text)], is_error=True)


def _problem(tool: PublishedTool, arguments: Mapping[str, Any]) -> str | None:
    """Say what keeps the arguments from fitting, or None."""
    error = best_match(tool.validator.iter_errors(arguments))
    if error is not None:
        if error.validator == "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            return f"missing required parameter: {missing[0]}"
        where = "".join(f"[{part!r}]" for part in error.absolute_path)
        return f"{where}: {error.message}" if where else str(error.message)
    action = arguments.get("action")
    for name in tool.required_by_action.get(str(action), ()):
        if name not in arguments:
            return f"{name} is required for {action}"
    return None
