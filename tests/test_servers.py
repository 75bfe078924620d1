"""The four servers: every task, its tool, its arguments, its check, its share."""

from __future__ import annotations

from locust.env import Environment

import importlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")  # the lab's, not the engine's

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "lab" / "standins" / "data"
CLASSES = {
    "learn": "LearnUser",
    "github": "GitHubUser",
    "context7": "Context7User",
    "ado": "ADOUser",
}
WEIGHTS = {
    "learn": {"microsoft_docs_search": 1, "microsoft_code_sample_search": 1},
    "github": {
        "search_code": 3,
        "search_repositories": 2,
        "get_file_contents": 2,
        "get_me": 1,
        "list_issues": 1,
    },
    "context7": {"query-docs": 3, "resolve-library-id": 1},
    "ado": {"wit_work_item": 5, "search_workitem": 2, "repo_repository": 2, "pipelines_build": 1},
}
REFUSALS = {
    "quota": "Monthly quota exceeded. Create a free API key for more requests.",
    "authorization": "VS30063: You are not authorized to access https://dev.azure.com.",
    "nothing": "",
}


class Noted(Exception):
    """Ends a task at its first call: one call a task is enough to see."""


def user_of(label: str, picks: Sequence[int] = (0,), bursts: bool = False) -> Any:
    """A real user of the class, whose calls are noted instead of sent."""
    module = importlib.import_module(label)
    base = getattr(module, CLASSES[label])

    class Noting(base):  # type: ignore[misc, valid-type]
        env: Mapping[str, str] = {"ADO_PROJECT": "Project", "ADO_ORG": "org"}
        calls: list[dict[str, Any]]

        def _call(
            self, tool: str, arguments: Mapping[str, Any], *, name: Any = None, expect: Any = None
        ) -> None:
            self.calls.append({"tool": tool, "arguments": arguments, "expect": expect})

        def _call_all(self, calls: Sequence[Mapping[str, Any]]) -> list[None]:
            for call in calls:
                self._call(**call)
            return [None] * len(calls)

        def _bursts(self) -> bool:
            return bursts

        def pick(self, lines: Sequence[str]) -> str:
            return lines[picks[0] % len(lines)]

    Noting.abstract = True
    user = Noting(Environment())
    user.calls = []
    return user


def calls_of(label: str, line: int, bursts: bool = False) -> list[dict[str, Any]]:
    user = user_of(label, (line,), bursts)
    for task in dict.fromkeys(user.tasks):
        task(user)
    found: list[dict[str, Any]] = user.calls
    return found


def schemas(label: str) -> dict[str, Any]:
    listed = json.loads((DATA / f"{label}.json").read_text(encoding="utf-8"))["tools"]
    return {tool["name"]: tool["inputSchema"] for tool in listed}


def longest_file() -> int:
    return max(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / "queries").glob("*.txt")
    )


@pytest.mark.parametrize("bursts", [False, True], ids=["one at a time", "in bursts"])
@pytest.mark.parametrize("label", CLASSES)
def test_every_task_with_every_query_line_sends_arguments_that_the_schema_allows(
    label: str, bursts: bool
) -> None:
    allowed = schemas(label)
    for line in range(longest_file()):
        for call in calls_of(label, line, bursts):
            jsonschema.validate(call["arguments"], allowed[call["tool"]])


@pytest.mark.parametrize("label", CLASSES)
def test_tools_are_called_by_the_shares_of_the_published_run(label: str) -> None:
    user = user_of(label)
    shares: Counter[str] = Counter()
    for task in user.tasks:
        before = len(user.calls)
        task(user)
        shares[user.calls[before]["tool"]] += 1

    assert dict(shares) == WEIGHTS[label]


@pytest.mark.parametrize("text", REFUSALS.values(), ids=REFUSALS.keys())
@pytest.mark.parametrize("label", CLASSES)
def test_no_check_passes_a_quota_message_a_refusal_or_nothing(label: str, text: str) -> None:
    content = [{"type": "text", "text": text}] if text else []
    for call in calls_of(label, 0):
        assert call["expect"] is not None, call["tool"]
        assert call["expect"].reason({"content": content}) is not None, call["tool"]


@pytest.mark.parametrize("label", ["github", "ado"])
def test_servers_that_could_write_are_asked_read_only(label: str) -> None:
    module = importlib.import_module(label)

    assert getattr(module, CLASSES[label]).auth_headers["X-MCP-Readonly"] == "true"


@pytest.mark.parametrize("label", CLASSES)
def test_no_shipped_class_calls_a_missing_session_a_failure(label: str) -> None:
    module = importlib.import_module(label)

    assert getattr(module, CLASSES[label]).requires_session is False


@pytest.mark.parametrize("path", sorted((ROOT / "queries").glob("*.txt")), ids=lambda p: p.name)
def test_a_query_file_holds_at_least_forty_different_lines(path: Path) -> None:
    lines = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    ]

    assert len(set(lines)) == len(lines)
    assert len(lines) >= 40
