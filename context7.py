"""Context7's hosted MCP server, used the way a coding agent reads documentation.

endpoint   https://mcp.context7.com/mcp
auth       CONTEXT7_API_KEY, optional: without it the limits of the address apply
session    none since 4.0.0; one that is given is kept
limits     per address or key, and a monthly quota: said in an ordinary reply with HTTP 200
"""

from __future__ import annotations

from locust import task

from _auth import StaticToken
from _base import StatelessMCPUser
from _checks import expect_any_contains, expect_contains
from _workload import count, endpoint, load_lines

QUESTIONS = load_lines("context7_questions.txt")
LIBRARIES = load_lines("context7_libraries.txt")
KEY = StaticToken("CONTEXT7_API_KEY")

has_sources = expect_any_contains("Source:", "Source: ", name="has_sources")
has_library = expect_contains("Context7-compatible library ID:", name="has_library")


class Context7User(StatelessMCPUser):
    """A coding agent that resolves a library and reads about it."""

    host, mcp_path = endpoint("CONTEXT7_MCP_URL", "https://mcp.context7.com/mcp")
    server_label = "context7"
    fixed_count = count("CONTEXT7_USERS", 5)

    def _extra_headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {KEY.get()}"} if KEY else {}

    @task(3)
    def read_documentation(self) -> None:
        if self._bursts():
            docs = {"tool": "query-docs", "expect": has_sources}
            self._call_all([{**docs, "arguments": self._question()} for _ in range(2)])
        else:
            self._call("query-docs", self._question(), expect=has_sources)

    @task(1)
    def find_a_library(self) -> None:
        name, _, question = self.pick(LIBRARIES).partition(" | ")
        query = {"libraryName": name, "query": question}
        self._call("resolve-library-id", query, expect=has_library)

    def _question(self) -> dict[str, str]:
        library, _, question = self.pick(QUESTIONS).partition(" | ")
        return {"libraryId": library, "query": question}
