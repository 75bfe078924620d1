"""What Microsoft Learn answers: a JSON object with `results`, as its own CLI reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types

from lab.standins.prose import Prose

_LANGUAGES = ("csharp", "python", "javascript", "azurecli")


def answer(tool: str, arguments: Mapping[str, Any]) -> list[mcp_types.ContentBlock]:
    """Answer a call whose arguments are valid."""
    prose = Prose.about(tool, arguments)
    if tool == "microsoft_docs_fetch":
        text = _page(prose, str(arguments["url"]))
    elif tool == "microsoft_code_sample_search":
        text = _results([_sample(prose, arguments, n) for n in range(6)])
    else:
        text = _results([_excerpt(prose, str(arguments["query"]), n) for n in range(8)])
    return [mcp_types.TextContent(text=text)]


def bad_arguments(tool: str, problem: str) -> str:
    """Say that arguments do not fit; the C# SDK that runs there tells no detail."""
    return f"An error occurred invoking '{tool}'."


def _results(results: list[dict[str, str]]) -> str:
    return json.dumps({"results": results}, ensure_ascii=False, separators=(",", ":"))


def _slug(text: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())[:60]


def _excerpt(prose: Prose, query: str, number: int) -> dict[str, str]:
    area = prose.choice(("azure", "dotnet", "windows-server", "fabric"))
    return {
        "title": f"{query[:60]}: {prose.choice(('overview', 'quickstart', 'how-to', 'limits'))}",
        "content": f"# {query}\n\n{prose.paragraph(4)}\n\n## Details\n\n{prose.paragraph(3)}",
        "contentUrl": f"https://learn.microsoft.com/en-us/{area}/{_slug(query)}-{number}",
    }


def _sample(prose: Prose, arguments: Mapping[str, Any], number: int) -> dict[str, str]:
    query = str(arguments["query"])
    language = str(arguments.get("language") or prose.choice(_LANGUAGES))
    return {
        "description": f"{query}: {prose.sentence()}",
        "codeSnippet": prose.code(language, query, 7),
        "link": f"https://learn.microsoft.com/en-us/samples/{_slug(query)}-{number}",
        "language": language,
    }


def _page(prose: Prose, url: str) -> str:
    sections = [f"## Section {n}\n\n{prose.paragraph(9)}" for n in range(1, 12)]
    return f"# {url.rstrip('/').rpartition('/')[2]}\n\n" + "\n\n".join(sections)
