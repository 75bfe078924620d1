"""What GitHub's server answers: compact JSON of its API's results, a file as a resource."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types

from lab.standins.prose import Prose

_LANGUAGES = ("Python", "TypeScript", "Go", "Rust", "C#")


def answer(tool: str, arguments: Mapping[str, Any]) -> list[mcp_types.ContentBlock]:
    """Answer a call whose arguments are valid; tools that nobody scripted get a note."""
    prose = Prose.about(tool, arguments)
    if tool == "get_file_contents":
        return _file_contents(prose, arguments)
    scripted = {
        "search_code": _search_code,
        "search_repositories": _search_repositories,
        "get_me": _me,
        "list_issues": _issues,
    }
    if tool in scripted:
        value = scripted[tool](prose, arguments)
    else:
        value = {"stand_in": "no answer is scripted for this tool", "tool": tool}
    return [mcp_types.TextContent(text=_json(value))]


def bad_arguments(tool: str, problem: str) -> str:
    """Say that arguments do not fit."""
    return problem.replace("'", "")


def rate_limited(tool: str, arguments: Mapping[str, Any]) -> str:
    """Give the text of a search that GitHub's API refused, in the server's words."""
    query = str(arguments.get("query", ""))
    return (
        f"failed to search code with query '{query}': GET https://api.github.com/search/code: "
        "403 API rate limit exceeded for user. [rate reset in 41s]"
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _page(arguments: Mapping[str, Any], default: int = 30) -> int:
    return min(int(arguments.get("perPage", default)), 100)


def _search_code(prose: Prose, arguments: Mapping[str, Any]) -> dict[str, Any]:
    found = prose.randrange(40, 90_000)
    items = []
    for _ in range(min(found, _page(arguments, 12))):
        owner, repo, path = prose.person(), prose.name(), f"src/{prose.name()}.py"
        full = f"{owner}/{repo}"
        items.append(
            {
                "name": path.rpartition("/")[2],
                "path": path,
                "sha": prose.sha(),
                "html_url": f"https://github.com/{full}/blob/{prose.sha()}/{path}",
                "repository": {
                    "id": prose.randrange(10**6, 10**9),
                    "full_name": full,
                    "html_url": f"https://github.com/{full}",
                    "description": prose.sentence(),
                },
            }
        )
    return {"total_count": found, "incomplete_results": False, "items": items}


def _search_repositories(prose: Prose, arguments: Mapping[str, Any]) -> dict[str, Any]:
    found = prose.randrange(40, 9_000)
    items = []
    for _ in range(min(found, _page(arguments, 12))):
        full = f"{prose.person()}/{prose.name()}"
        items.append(
            {
                "id": prose.randrange(10**6, 10**9),
                "name": full.partition("/")[2],
                "full_name": full,
                "description": prose.sentence(),
                "html_url": f"https://github.com/{full}",
                "language": prose.choice(_LANGUAGES),
                "stargazers_count": prose.randrange(100, 60_000),
                "forks_count": prose.randrange(3, 4_000),
                "open_issues_count": prose.randrange(0, 400),
                "updated_at": prose.day(),
                "created_at": prose.day(),
                "topics": sorted({prose.name() for _ in range(3)}),
                "private": False,
                "fork": False,
                "archived": False,
                "default_branch": "main",
            }
        )
    return {"total_count": found, "incomplete_results": False, "items": items}


def _me(prose: Prose, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "login": "stand-in-user",
        "id": 20260509,
        "profile_url": "https://github.com/stand-in-user",
        "avatar_url": "https://avatars.githubusercontent.com/u/20260509?v=4",
        "details": {
            "name": "Stand-in User",
            "company": "Contoso",
            "location": "loopback",
            "public_repos": 12,
            "public_gists": 3,
            "followers": 7,
            "following": 9,
            "created_at": "2019-05-09T08:00:00Z",
            "updated_at": "2026-05-09T08:00:00Z",
            "private_gists": 1,
            "total_private_repos": 4,
            "owned_private_repos": 4,
        },
    }


def _issues(prose: Prose, arguments: Mapping[str, Any]) -> dict[str, Any]:
    total = prose.randrange(12, 900)
    shown = min(total, _page(arguments, 10))
    issues = [
        {
            "number": total * 7 - n,
            "title": prose.sentence()[:70],
            "body": f"### What happened\n\n{prose.paragraph(3)}",
            "state": str(arguments.get("state", "OPEN")),
            "user": {"login": prose.person()},
            "labels": prose.sample(["bug", "documentation", "help wanted", "question"], 2),
            "comments": prose.randrange(0, 40),
            "created_at": prose.day(),
            "updated_at": prose.day(),
        }
        for n in range(shown)
    ]
    return {
        "issues": issues,
        "pageInfo": {
            "hasNextPage": total > shown,
            "hasPreviousPage": False,
            "startCursor": prose.sha()[:20],
            "endCursor": prose.sha()[:20],
        },
        "totalCount": total,
    }


def _file_contents(prose: Prose, arguments: Mapping[str, Any]) -> list[mcp_types.ContentBlock]:
    owner, repo = arguments["owner"], arguments["repo"]
    path = str(arguments.get("path", "/")).lstrip("/")
    if not path or path.endswith("/"):
        names = sorted({f"{prose.name()}.py" for _ in range(12)} | {"README.md"})
        listing = [
            {"type": "file", "name": n, "path": path + n, "size": 3000, "sha": prose.sha()}
            for n in names
        ]
        return [mcp_types.TextContent(text=_json(listing))]
    sha = prose.sha()
    ref = arguments.get("ref") or "refs/heads/main"
    sections = [f"## {prose.name()}\n\n{prose.paragraph(5)}" for _ in range(8)]
    resource = mcp_types.TextResourceContents(
        uri=f"repo://{owner}/{repo}/{ref}/contents/{path}",
        mime_type="text/plain; charset=utf-8",
        text=f"# {repo}\n\n" + "\n\n".join(sections) + "\n",
    )
    return [
        mcp_types.TextContent(text=f"successfully downloaded text file (SHA: {sha})"),
        mcp_types.EmbeddedResource(resource=resource),
    ]
