"""Azure DevOps' hosted MCP server, used the way a developer triages bugs.

endpoint   https://mcp.dev.azure.com/{ADO_ORG}
auth       Entra ID; ADO_MCP_TOKEN instead, where nobody can ``az login``
session    none, every call stands alone; one that is given is kept
writes     none: X-MCP-Readonly makes the server hide every tool that could
limits     a request is delayed by up to 30 s first, then refused by 429
"""

from __future__ import annotations

from locust import task

from typing import Any

from _auth import EntraToken
from _base import StatelessMCPUser
from _checks import expect_any_contains, expect_contains
from _workload import count, endpoint, load_lines

WORK_ITEMS = load_lines("ado_work_items.txt")
PHRASES = load_lines("ado_phrases.txt")
HOST, PATH = endpoint("ADO_MCP_URL", "https://mcp.dev.azure.com/{ADO_ORG}")
TOKEN = EntraToken(
    "https://mcp.dev.azure.com/.default", instead="ADO_MCP_TOKEN", label="ado", server=(HOST, PATH)
)

is_a_work_item = expect_contains('"fields"', name="is_a_work_item")
has_items = expect_any_contains('"value"', '"id"', name="has_items")
has_matches = expect_contains('"results"', name="has_matches")
has_repositories = expect_any_contains('"isDisabled"', '"remoteUrl"', name="has_repositories")
has_builds = expect_contains('"buildNumber"', name="has_builds")


class ADOUser(StatelessMCPUser):
    """A developer who reads bugs, searches for like ones, and looks at builds."""

    host, mcp_path = HOST, PATH
    server_label = "ado"
    fixed_count = count("ADO_USERS", 5)
    needs = ("ADO_ORG", "ADO_PROJECT")
    auth_headers = {"X-MCP-Readonly": "true"}

    def _extra_headers(self) -> dict[str, str]:
        self._token = TOKEN.get()
        return {**self.auth_headers, "Authorization": f"Bearer {self._token}"}

    def _token_rejected(self) -> None:
        TOKEN.rejected(self._token)

    @task(3)
    def read_a_bug(self) -> None:
        if self._bursts():
            bug = {"tool": "wit_work_item", "expect": is_a_work_item}
            self._call_all([{**bug, "arguments": self._bug()} for _ in range(2)])
        else:
            self._call("wit_work_item", self._bug(), expect=is_a_work_item)

    @task(2)
    def look_at_my_work(self) -> None:
        mine = {"action": "my", "project": self.env["ADO_PROJECT"], "type": "assignedtome"}
        self._call("wit_work_item", {**mine, "top": 25}, expect=has_items)

    @task(2)
    def search_for_a_phrase(self) -> None:
        project = [self.env["ADO_PROJECT"]]
        query = {"searchText": self.pick(PHRASES), "project": project, "top": 10}
        self._call("search_workitem", query, expect=has_matches)

    @task(2)
    def list_repositories(self) -> None:
        query = {"action": "list", "project": self.env["ADO_PROJECT"], "top": 50}
        self._call("repo_repository", query, expect=has_repositories)

    @task(1)
    def look_at_builds(self) -> None:
        query = {"action": "list", "project": self.env["ADO_PROJECT"], "top": 25}
        self._call("pipelines_build", query, expect=has_builds)

    def _bug(self) -> dict[str, Any]:
        number = int(self.pick(WORK_ITEMS))
        return {"action": "get", "id": number, "project": self.env["ADO_PROJECT"]}
