"""GitHub's hosted MCP server, used the way a developer gets to know a repository.

endpoint   https://api.githubcopilot.com/mcp/
auth       a personal access token or OAuth token, GITHUB_MCP_TOKEN
session    very probably none; one that is given is kept
writes     none: X-MCP-Readonly makes the server hide every tool that could
limits     code search 9 to 10 a minute and user, other searches 30, all calls 5,000 an hour
"""

from __future__ import annotations

from locust import task

from typing import Any

from _auth import StaticToken
from _base import StatelessMCPUser
from _checks import expect_any_contains, expect_contains
from _workload import count, endpoint, load_lines

CODE = load_lines("github_code.txt")
TOPICS = load_lines("github_repositories.txt")
REPOSITORIES = load_lines("github_repos.txt")
TOKEN = StaticToken("GITHUB_MCP_TOKEN")

has_matches = expect_contains('"items"', name="has_matches")
has_file = expect_any_contains("successfully downloaded", name="has_file")
has_login = expect_contains('"login"', name="has_login")
has_issues = expect_contains('"issues"', name="has_issues")


class GitHubUser(StatelessMCPUser):
    """A developer who searches, reads a file and looks at open issues."""

    host, mcp_path = endpoint("GITHUB_MCP_URL", "https://api.githubcopilot.com/mcp/")
    server_label = "github"
    fixed_count = count("GITHUB_USERS", 2)
    needs = ("GITHUB_MCP_TOKEN",)
    auth_headers = {"X-MCP-Readonly": "true"}

    def _extra_headers(self) -> dict[str, str]:
        return {**self.auth_headers, "Authorization": f"Bearer {TOKEN.get()}"}

    @task(3)
    def search_for_code(self) -> None:
        query = {"query": self.pick(CODE), "perPage": 10}
        self._call("search_code", query, expect=has_matches)

    @task(2)
    def search_for_a_repository(self) -> None:
        query = {"query": self.pick(TOPICS), "perPage": 10}
        self._call("search_repositories", query, expect=has_matches)

    @task(2)
    def read_a_readme(self) -> None:
        if self._bursts():
            file = {"tool": "get_file_contents", "expect": has_file}
            issues = {"tool": "list_issues", "expect": has_issues}
            self._call_all(
                [
                    {**file, "arguments": self._readme()},
                    {**issues, "arguments": self._open_issues()},
                ]
            )
        else:
            self._call("get_file_contents", self._readme(), expect=has_file)

    @task(1)
    def ask_who_i_am(self) -> None:
        self._call("get_me", {}, expect=has_login)

    @task(1)
    def look_at_open_issues(self) -> None:
        self._call("list_issues", self._open_issues(), expect=has_issues)

    def _readme(self) -> dict[str, str]:
        owner, _, repo = self.pick(REPOSITORIES).partition("/")
        return {"owner": owner, "repo": repo, "path": "README.md"}

    def _open_issues(self) -> dict[str, Any]:
        owner, _, repo = self.pick(REPOSITORIES).partition("/")
        return {"owner": owner, "repo": repo, "state": "OPEN", "perPage": 10}
