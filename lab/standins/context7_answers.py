"""What Context7 answers: plain text, also where something failed (no isError but for arguments)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types

from lab.standins.prose import Prose

INVALID_KEY = (
    "Invalid API key. Please check your API key. API keys should start with 'ctx7sk' prefix."
)
_RULE = "-" * 32


def answer(tool: str, arguments: Mapping[str, Any]) -> list[mcp_types.ContentBlock]:
    """Answer a call whose arguments are valid."""
    prose = Prose.about(tool, arguments)
    text = _libraries(prose, arguments) if tool == "resolve-library-id" else _docs(prose, arguments)
    return [mcp_types.TextContent(text=text)]


def bad_arguments(tool: str, problem: str) -> str:
    """Say that arguments do not fit, as the TypeScript SDK does."""
    return f"MCP error -32602: Input validation error: Invalid arguments for tool {tool}: {problem}"


def _libraries(prose: Prose, arguments: Mapping[str, Any]) -> str:
    wanted = str(arguments["libraryName"])
    slug = "-".join(wanted.lower().split()) or "library"
    entries = []
    for number in range(8):
        owner = slug if number == 0 else prose.name()
        entries.append(
            f"- Title: {wanted if number == 0 else prose.name().title()}\n"
            f"- Context7-compatible library ID: /{owner}/{slug}\n"
            f"- Description: {prose.sentence()}\n"
            f"- Code Snippets: {prose.randrange(40, 9000)}\n"
            f"- Source Reputation: {prose.choice(('High', 'Medium', 'Low'))}\n"
            f"- Benchmark Score: {prose.randrange(300, 1000) / 10}"
        )
    return "Available Libraries:\n\n" + "\n----------\n".join(entries)


def _docs(prose: Prose, arguments: Mapping[str, Any]) -> str:
    library, query = str(arguments["libraryId"]), str(arguments["query"])
    entries = []
    for number in range(9):
        language = prose.choice(("javascript", "python", "tsx"))
        source = f"https://github.com{library}/blob/main/docs/{prose.name()}-{number}.md"
        entries.append(
            f"### {query} ({prose.choice(('setup', 'usage', 'reference', 'migration'))})\n\n"
            f"Source: {source}\n\n"
            f"{prose.paragraph(2)}\n\n"
            f"```{language}\n{prose.code(language, query, 5)}\n```"
        )
    return f"\n\n{_RULE}\n\n".join(entries)
