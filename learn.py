"""Microsoft Learn's hosted MCP server, used the way a developer looks things up.

endpoint   https://learn.microsoft.com/api/mcp
auth       none
session    issued until mid-2026, perhaps no more: one that is given is kept
limits     exist, are not published
"""

from __future__ import annotations

from locust import task

from _base import StatelessMCPUser
from _checks import expect_any_contains
from _workload import count, endpoint, load_lines

QUESTIONS = load_lines("learn_questions.txt")
CODE_SAMPLES = load_lines("learn_code_samples.txt")

has_articles = expect_any_contains('"contentUrl"', '"content"', name="has_articles")
has_samples = expect_any_contains('"codeSnippet"', '"language"', name="has_samples")


class LearnUser(StatelessMCPUser):
    """A developer who reads documentation and looks for code."""

    host, mcp_path = endpoint("LEARN_MCP_URL", "https://learn.microsoft.com/api/mcp")
    server_label = "learn"
    fixed_count = count("LEARN_USERS", 5)

    @task
    def look_up_a_question(self) -> None:
        if self._bursts():
            docs = {"tool": "microsoft_docs_search", "expect": has_articles}
            code = {"tool": "microsoft_code_sample_search", "expect": has_samples}
            self._call_all(
                [
                    {**docs, "arguments": self._question()},
                    {**code, "arguments": self._code_sample()},
                ]
            )
        else:
            self._call("microsoft_docs_search", self._question(), expect=has_articles)

    @task
    def find_a_code_sample(self) -> None:
        self._call("microsoft_code_sample_search", self._code_sample(), expect=has_samples)

    def _question(self) -> dict[str, str]:
        return {"query": self.pick(QUESTIONS)}

    def _code_sample(self) -> dict[str, str]:
        language, _, what = self.pick(CODE_SAMPLES).partition(" | ")
        return {"query": what, "language": language}
