"""Real Locust runs whose tokens come from Entra ID and Key Vault, as both speak."""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.azure_standin import CLIENT_SECRET, AzureStandin, Secret, token
from tests.fake_server import MCPServer, Peer
from tests.locust_process import ROOT, LocustProcess, Seen, run_locust

SCOPE = "https://mcp.dev.azure.com/.default"
GOOD = '"fields" "value" "id" "results" "isDisabled" "buildNumber" "items" "login" "issues"'
GOOD += " successfully downloaded"
FAST = {
    "MCP_INTRA_MIN": "0.05",
    "MCP_INTRA_MAX": "0.1",
    "MCP_TURN_MIN": "0.05",
    "MCP_TURN_MAX": "0.1",
    "ADO_ORG": "an-org",
    "ADO_PROJECT": "a-project",
}
WITHIN_S = 60.0


@pytest.fixture
def azure() -> Iterator[AzureStandin]:
    with AzureStandin() as standin:
        yield standin


class Protected(MCPServer):
    """A server that takes only what `admits`, and publishes its scope; `bearers` came."""

    def __init__(self, admits: Any) -> None:
        super().__init__()
        self.admits = admits
        self.bearers: list[str] = []
        self.on["tools/call"] = lambda peer: peer.result(
            {"content": [{"type": "text", "text": GOOD}]}
        )

    def __enter__(self) -> Protected:
        super().__enter__()
        return self

    def _answer(self, peer: Peer) -> None:
        if peer.request.target.startswith("/.well-known/"):
            peer.json({"resource": f"{self.url}/an-org", "scopes_supported": [SCOPE]})
            return
        bearer = peer.request.headers.get("authorization", "").partition("Bearer ")[2]
        self.bearers.append(bearer)
        if self.admits(bearer):
            super()._answer(peer)
        else:
            peer.reply(status=401)


def run(folder: Path, azure: AzureStandin, words: str, **variables: str) -> Seen:
    arguments = ["--headless", "-r", "50", *words.split()]
    given = {**FAST, **azure.variables, **variables}
    return run_locust("plan.py", arguments, folder, WITHIN_S, **given)


def project(folder: Path, azure: AzureStandin, plan: str) -> Path:
    """Make a folder of our files, its YAML filled in, as somebody's checkout is."""
    place = folder / "project"
    shutil.copytree(ROOT / "queries", place / "queries")
    for path in ROOT.glob("*.py"):
        shutil.copy(path, place)
    text = (ROOT / "azure-loadtest.yaml").read_text(encoding="utf-8")
    filled = text.replace("YOUR-VAULT.vault.azure.net", azure.vault)
    (place / "azure-loadtest.yaml").write_text(filled, encoding="utf-8")
    (place / "plan.py").write_text(f"from {plan}\n", encoding="utf-8")
    return place


def lines(seen: Seen, word: str) -> list[str]:
    return [line for line in seen.said.splitlines() if word in line]


def test_fifty_users_of_one_run_have_one_token_minted_for_the_scope_that_the_server_names(
    azure: AzureStandin, tmp_path: Path
) -> None:
    place = project(tmp_path, azure, "ado import ADOUser")
    with Protected(azure.lives) as server:
        seen = run(place, azure, "-u 50 -t 3s", ADO_MCP_URL=f"{server.url}/an-org")

    assert seen.code == 0, seen.said
    assert len(seen.count()) >= 3
    assert seen.count()["ado:initialize"] == 50
    assert [one.sent["scope"] for one in azure.mints] == [SCOPE]
    assert set(server.bearers) == set(azure.tokens)
    assert not any(value in seen.said for value in (*azure.tokens, CLIENT_SECRET))


def test_a_token_that_ends_in_the_run_is_renewed_and_no_call_fails(
    azure: AzureStandin, tmp_path: Path
) -> None:
    azure.lifetime = 3
    place = project(tmp_path, azure, "ado import ADOUser")
    with Protected(azure.lives) as server:
        seen = run(place, azure, "-u 20 -t 6s", ADO_MCP_URL=f"{server.url}/an-org")

    assert seen.code == 0, seen.said
    assert [row["failure"] for row in seen.rows if row["failure"]] == []
    used = set(server.bearers)  # the last one may have come when nobody called any more
    assert len(used) >= 2
    assert used <= set(azure.tokens)


def test_a_plain_locust_takes_the_secret_of_the_class_that_runs_out_of_the_vault(
    azure: AzureStandin, tmp_path: Path
) -> None:
    value = "planted-out-of-the-vault-0123456789"
    azure.secrets["github-mcp-token"] = Secret(f"{value}\n")
    place = project(tmp_path, azure, "multi import *")
    with Protected(value.__eq__) as server:
        seen = run(
            place,
            azure,
            "GitHubUser -u 5 -t 2s -L DEBUG",
            GITHUB_MCP_URL=f"{server.url}/mcp",
            MCP_VAULT="1",
        )

    assert seen.code == 0, seen.said
    assert set(server.bearers) == {value}
    assert azure.asked() == ["github-mcp-token"]
    assert value not in seen.said
    assert CLIENT_SECRET not in seen.said


def test_each_process_of_a_run_has_the_secret_before_its_first_user(
    azure: AzureStandin, tmp_path: Path
) -> None:
    value = "planted-out-of-the-vault-0123456789"
    azure.secrets["github-mcp-token"] = Secret(value)
    place = project(tmp_path, azure, "github import GitHubUser")
    with Protected(value.__eq__) as server:
        seen = run(
            place,
            azure,
            "-u 4 -t 3s --processes 2",
            GITHUB_MCP_URL=f"{server.url}/mcp",
            MCP_VAULT="1",
        )

    assert seen.code == 0, seen.said
    assert set(server.bearers) == {value}
    assert azure.asked() == ["github-mcp-token"] * 3  # the master and two workers


def test_a_vault_that_forbids_ends_the_run_before_its_first_request(
    azure: AzureStandin, tmp_path: Path
) -> None:
    value = "planted-out-of-the-vault-0123456789"
    azure.secrets["github-mcp-token"] = Secret(value, refused=(403, "ForbiddenByRbac"))
    place = project(tmp_path, azure, "multi import *")

    seen = run(place, azure, "GitHubUser -u 5 -t 2s -L DEBUG", MCP_VAULT="1")

    assert seen.code == 2
    assert seen.rows == []
    (line,) = lines(seen, "GITHUB_MCP_TOKEN")
    assert line.startswith("no value from Key Vault for GITHUB_MCP_TOKEN (HTTP 403, Forbidden")
    assert seen.said.rstrip().endswith(line)
    assert "Traceback" not in seen.said
    assert value not in seen.said
    assert CLIENT_SECRET not in seen.said


def test_a_placeholder_is_as_if_the_variable_were_unset_and_no_vault_is_asked(
    azure: AzureStandin, tmp_path: Path
) -> None:
    place = project(tmp_path, azure, "github import GitHubUser")
    shutil.copy(ROOT / "azure-loadtest.yaml", place)

    seen = run(place, azure, "-u 5 -t 2s", MCP_VAULT="1")

    assert seen.code == 2
    (line,) = lines(seen, "GITHUB_MCP_TOKEN")
    assert line.startswith("GITHUB_MCP_TOKEN is not set, and GitHubUser needs it")
    assert azure.heard == []


def test_a_token_that_ends_before_the_run_does_is_told_before_the_run_starts(
    azure: AzureStandin, tmp_path: Path
) -> None:
    value = token(time.time() + 3600)
    place = project(tmp_path, azure, "ado import ADOUser")
    with Protected(value.__eq__) as server:
        given = {"ADO_MCP_URL": f"{server.url}/an-org", "ADO_MCP_TOKEN": value}
        words = ["--headless", "-u", "1", "-t", "2h"]
        with LocustProcess("plan.py", words, place, {**FAST, **given}) as process:
            server.heard(lambda: "tools/call" in server.methods)
            process.signal(signal.SIGTERM)
            seen = process.end(WITHIN_S)

    (line,) = lines(seen, "ADO_MCP_TOKEN")
    assert "WARNING" in line
    assert "before a run of 120 min does" in line
    assert seen.said.index(line) < seen.said.index("Ramping to 1 users")
    assert value not in seen.said


def test_a_token_that_has_expired_ends_the_run_before_its_first_request(
    azure: AzureStandin, tmp_path: Path
) -> None:
    place = project(tmp_path, azure, "ado import ADOUser")

    seen = run(place, azure, "-u 1 -t 1s", ADO_MCP_TOKEN=token(time.time() - 60))

    assert seen.code == 2
    assert seen.rows == []
    assert seen.said.splitlines()[-1].startswith("ADO_MCP_TOKEN expired at ")
