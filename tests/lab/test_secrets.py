"""Secrets of the manifest out of Key Vault, in `lab run`, `lab emulate --real` and `lab token`."""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lab import runs, variables
from lab.cli import CannotRun
from lab.manifest import load
from lab.mint import CONTENT_TYPE, SCOPE
from lab.targets import standins
from tests.azure_standin import (
    CLIENT_SECRET,
    OTHER_TENANT,
    TENANT,
    AzureStandin,
    Secret,
    token,
)
from tests.fake_server import MCPServer
from tests.lab.folders import files_with
from tests.locust_process import ROOT, clean_environment

NAMES = {
    "GITHUB_MCP_TOKEN": "github-mcp-token",
    "ADO_MCP_TOKEN": "ado-mcp-token",
    "CONTEXT7_API_KEY": "context7-api-key",
}
PLANTED = "planted-secret-0123456789"


@pytest.fixture
def azure() -> Iterator[AzureStandin]:
    with AzureStandin() as standin:
        yield standin


def project(folder: Path, azure: AzureStandin, *edits: tuple[str, str]) -> Path:
    """Make a folder of our files, its YAML filled in, as somebody's checkout is."""
    place = folder / "project"
    shutil.copytree(ROOT / "queries", place / "queries")
    for path in (*ROOT.glob("*.py"), ROOT / "locust.conf", ROOT / "requirements.txt"):
        shutil.copy(path, place)
    text = (ROOT / "azure-loadtest.yaml").read_text(encoding="utf-8")
    fill = [("YOUR-VAULT.vault.azure.net", azure.vault), ("YOUR-ORG", "an-org")]
    for old, new in [*fill, ("YOUR-PROJECT", "a-project"), *edits]:
        assert old in text
        text = text.replace(old, new)
    (place / "azure-loadtest.yaml").write_text(text, encoding="utf-8")
    return place


class Done(NamedTuple):
    code: int
    out: str
    err: str


def lab(place: Path, *words: str, **given: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "lab", *words],
        cwd=place,
        env=clean_environment(**given),
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    return Done(done.returncode, done.stdout, done.stderr)


# ---- lab run


def test_a_run_signs_in_to_all_servers_with_what_the_vault_holds_and_shows_none_of_it(
    azure: AzureStandin, tmp_path: Path
) -> None:
    place = project(tmp_path, azure)
    with standins(tmp_path / "standins", latency="none") as served:
        given = dict(served.variables)
        for variable, name in NAMES.items():
            azure.secrets[name] = Secret(given.pop(variable))
        pace = dict.fromkeys(("MCP_INTRA_MIN", "MCP_INTRA_MAX"), "0.05")
        pace |= dict.fromkeys(("MCP_TURN_MIN", "MCP_TURN_MAX"), "0.1")
        signed_in = {**given, **pace, **azure.variables, "MCP_VAULT": "1"}
        done = lab(place, "run", "--", "-f", "multi.py", "-t", "4s", **signed_in)

    assert done.code == 0, done.out + done.err
    (run,) = (place / "runs").iterdir()
    labels = {each.label.partition(":")[0] for each in runs.read(run).requests}
    assert labels == {"ado", "context7", "github", "learn"}
    assert [each for each in runs.read(run).requests if not each.success] == []
    assert sorted(azure.asked()) == sorted(NAMES.values())
    assert len(azure.mints) == 1
    for value in (CLIENT_SECRET, *azure.tokens, *(s.value for s in azure.secrets.values())):
        assert files_with(value, run) == []
        assert value not in done.out + done.err


def test_a_run_whose_vault_forbids_could_not_run_and_says_why_in_one_line(
    azure: AzureStandin, tmp_path: Path
) -> None:
    azure.secrets["github-mcp-token"] = Secret(PLANTED, refused=(403, "ForbiddenByRbac"))
    place = project(tmp_path, azure)
    words = ("run", "--", "-f", "multi.py", "GitHubUser", "-t", "2s")

    done = lab(place, *words, MCP_VAULT="1", **azure.variables)

    assert done.code == 2
    (line,) = done.err.splitlines()
    assert "GITHUB_MCP_TOKEN (HTTP 403, ForbiddenByRbac)" in line
    assert PLANTED not in done.out + done.err


# ---- lab emulate --real


@pytest.fixture
def signed_in(azure: AzureStandin, monkeypatch: pytest.MonkeyPatch) -> AzureStandin:
    for name in ("MCP_VAULT", *NAMES):
        monkeypatch.delenv(name, raising=False)
    for name, value in azure.variables.items():
        monkeypatch.setenv(name, value)
    return azure


def test_an_emulation_of_real_servers_asks_the_vault_for_what_is_unset(
    signed_in: AzureStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = int(time.time()) + 600
    value = token(ends + 60)
    signed_in.secrets |= {
        "ado-mcp-token": Secret(value),
        "context7-api-key": Secret("ctx7", {"exp": ends}),
    }
    monkeypatch.setenv("GITHUB_MCP_TOKEN", "set")

    given, known = variables.for_real_servers(load(project(tmp_path, signed_in)))

    assert {name: given[name] for name in NAMES} == {
        "GITHUB_MCP_TOKEN": "set",
        "ADO_MCP_TOKEN": value,
        "CONTEXT7_API_KEY": "ctx7",
    }
    assert known == {"ADO_MCP_TOKEN": ends + 60, "CONTEXT7_API_KEY": ends}
    assert signed_in.asked() == ["ado-mcp-token", "context7-api-key"]
    assert not set(NAMES) - {"GITHUB_MCP_TOKEN"} & set(os.environ)


def test_an_emulation_asks_nothing_for_a_class_that_is_left_out(
    signed_in: AzureStandin, tmp_path: Path
) -> None:
    signed_in.secrets["context7-api-key"] = Secret("ctx7")
    out = [(f'{name}_USERS\n    value: "{count}"', f'{name}_USERS\n    value: "0"')
           for name, count in (("GITHUB", 2), ("ADO", 5))]  # fmt: skip

    given, _ = variables.for_real_servers(load(project(tmp_path, signed_in, *out)))

    assert set(NAMES) & set(given) == {"CONTEXT7_API_KEY"}
    assert signed_in.asked() == ["context7-api-key"]


def test_an_emulation_names_all_that_the_vault_does_not_give_in_one_line(
    signed_in: AzureStandin, tmp_path: Path
) -> None:
    signed_in.secrets |= {
        "github-mcp-token": Secret(PLANTED, refused=(403, "ForbiddenByRbac")),
        "context7-api-key": Secret("ctx7"),
    }

    with pytest.raises(CannotRun) as refused:
        variables.for_real_servers(load(project(tmp_path, signed_in)))

    said = str(refused.value)
    assert said.startswith("no value here for GITHUB_MCP_TOKEN, ADO_MCP_TOKEN, which ")
    assert "GITHUB_MCP_TOKEN (HTTP 403, ForbiddenByRbac)" in said
    assert "ADO_MCP_TOKEN (HTTP 404, SecretNotFound)" in said
    assert PLANTED not in said


def test_an_emulation_signs_in_to_all_servers_with_what_the_vault_holds_and_keeps_none_of_it(
    azure: AzureStandin, tmp_path: Path
) -> None:
    with standins(tmp_path / "standins", latency="none") as served:
        given = dict(served.variables)
        for variable, name in NAMES.items():
            azure.secrets[name] = Secret(given.pop(variable))
        urls = [f'  - name: {n}\n    value: "{v}"\n' for n, v in given.items() if "_URL" in n]
        place = project(tmp_path, azure, ("env:\n", "env:\n" + "".join(urls)))
        words = ("emulate", "--real", "--minutes", "0.05")
        done = lab(place, *words, MCP_VAULT="1", **azure.variables)

    assert done.err == ""
    assert "warning" not in done.out
    (run,) = (place / "runs").iterdir()
    labels = {each.label.partition(":")[0] for each in runs.read(run).requests}
    assert labels == {"ado", "context7", "github", "learn"}
    assert [each for each in runs.read(run).requests if not each.success] == []
    for value in (CLIENT_SECRET, *azure.tokens, *(s.value for s in azure.secrets.values())):
        assert files_with(value, place) == []
        assert value not in done.out


def test_an_emulation_tells_before_it_starts_which_secret_ends_in_it(
    azure: AzureStandin, tmp_path: Path
) -> None:
    ends = int(time.time()) + 600
    azure.secrets |= {name: Secret("a-secret", {"exp": ends}) for name in NAMES.values()}
    azure.secrets["ado-mcp-token"] = Secret(token(ends - 60))
    azure.secrets["context7-api-key"] = Secret("lasts", {"exp": ends + 600})
    nobody = "".join(
        f'  - name: {label}_MCP_URL\n    value: "http://127.0.0.1:9/mcp"\n'
        for label in ("ADO", "CONTEXT7", "GITHUB", "LEARN")
    )
    place = project(tmp_path, azure, ("env:\n", f"env:\n{nobody}"))  # for 15 minutes
    process = subprocess.Popen(
        [sys.executable, "-m", "lab", "emulate", "--real"],
        cwd=place,
        env=clean_environment(MCP_VAULT="1", **azure.variables),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "run folder" in line:
            process.send_signal(signal.SIGINT)
    process.wait()

    ado, github = (line for line in said if line.startswith("warning: "))
    assert ado.startswith("warning: ADO_MCP_TOKEN ends at ")
    assert github.startswith("warning: GITHUB_MCP_TOKEN ends at ")
    assert "before a run of 15 min does" in ado


# ---- lab submit


def test_a_submission_tells_before_its_upload_which_secret_ends_in_the_run(
    azure: AzureStandin, tmp_path: Path
) -> None:
    ends = int(time.time()) + 600
    azure.secrets["github-mcp-token"] = Secret("a-secret", {"exp": ends})
    azure.secrets["ado-mcp-token"] = Secret("forbidden", refused=(403, "ForbiddenByRbac"))
    azure.secrets["context7-api-key"] = Secret("lasts", {"exp": ends + 600})
    place = project(tmp_path, azure)  # for 15 minutes
    az = tmp_path / "bin" / "az"
    az.parent.mkdir()
    az.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/lab/az_standin.py "$@"\n')
    az.chmod(0o755)

    done = lab(
        place,
        *("submit", "--resource", "r", "--resource-group", "g", "--every", "0"),
        MCP_VAULT="1",
        PATH=f"{az.parent}{os.pathsep}{os.environ['PATH']}",
        AZ_STANDIN_STATE=str(tmp_path / "state.json"),
        **azure.variables,
    )

    assert done.code == 0, done.out + done.err
    warning, note, created = done.out.splitlines()[:3]
    assert warning.startswith("warning: GITHUB_MCP_TOKEN ends at ")
    assert "ADO_MCP_TOKEN (HTTP 403, ForbiddenByRbac)" in note
    assert created.startswith("created the test mcp-multi-flat")


# ---- lab token


def test_a_token_for_azure_devops_is_written_to_the_vault_with_its_end_and_never_shown(
    azure: AzureStandin, tmp_path: Path
) -> None:
    azure.lifetime = 4000
    done = lab(project(tmp_path, azure), "token", "ado", **azure.variables, ADO_MCP_URL="")

    assert (done.code, done.err) == (0, "")
    written = azure.secrets["ado-mcp-token"]
    tenant, scope, ends = azure.tokens[written.value]
    assert (tenant, scope) == (TENANT, SCOPE)
    assert abs(written.attributes["exp"] - ends) <= 2
    assert written.content_type == CONTENT_TYPE
    assert re.fullmatch(
        rf"ADO_MCP_TOKEN: a token of tenant {TENANT} for {re.escape(SCOPE)} is in"
        rf" https://{azure.vault}/secrets/ado-mcp-token; it ends at \S+ \S+ UTC, in 6[67] min\n",
        done.out,
    )
    assert azure.asked("PUT") == ["ado-mcp-token"]
    assert not any(value in done.out for value in (*azure.tokens, CLIENT_SECRET))


def test_the_organisations_own_tenant_and_scope_are_used_as_its_server_publishes_them(
    azure: AzureStandin, tmp_path: Path
) -> None:
    signed_in = azure.az(tmp_path, TENANT, OTHER_TENANT)
    server = MCPServer()
    place = project(tmp_path, azure)
    with server:
        published = {
            "resource": f"{server.url}/an-org",
            "authorization_servers": [f"https://login.microsoftonline.com/{OTHER_TENANT}/v2.0"],
            "scopes_supported": [SCOPE],
        }
        server.on["GET"] = lambda peer: peer.json(published)
        done = lab(place, "token", "ado", **signed_in, ADO_MCP_URL=f"{server.url}/an-org")

    assert (done.code, done.err) == (0, "")
    assert azure.tokens[azure.secrets["ado-mcp-token"].value][:2] == (OTHER_TENANT, SCOPE)
    asked = (tmp_path / "az.log").read_text().splitlines()
    assert [line.rpartition("--tenant ")[2] for line in asked] == [OTHER_TENANT, TENANT]


def test_a_tenant_that_is_told_goes_before_all_others_and_the_secret_may_be_too(
    azure: AzureStandin, tmp_path: Path
) -> None:
    signed_in = azure.az(tmp_path, TENANT, OTHER_TENANT)
    words = ["token", "ado", "--tenant", OTHER_TENANT, "--vault-secret", azure.uri("another")]

    done = lab(tmp_path, *words, **signed_in | {"AZURE_TENANT_ID": TENANT})

    assert (done.code, done.err) == (0, "")
    assert azure.tokens[azure.secrets["another"].value][:2] == (OTHER_TENANT, SCOPE)


def test_a_tenant_that_nobody_is_signed_in_to_is_told_with_the_cure(
    azure: AzureStandin, tmp_path: Path
) -> None:
    signed_in = azure.az(tmp_path, TENANT)

    done = lab(project(tmp_path, azure), "token", "ado", "--tenant", OTHER_TENANT, **signed_in)

    assert done.code == 2
    (line,) = done.err.splitlines()
    assert "the sign-in was refused, AADSTS50020; sign in as somebody of the org" in line
    assert f"az login --tenant {OTHER_TENANT}" in line
    assert azure.asked("PUT") == []


def test_a_vault_that_does_not_let_write_is_told_and_the_token_is_not_shown(
    azure: AzureStandin, tmp_path: Path
) -> None:
    azure.secrets["ado-mcp-token"] = Secret(PLANTED, refused=(403, "ForbiddenByRbac"))

    done = lab(project(tmp_path, azure), "token", "ado", **azure.variables, ADO_MCP_URL="")

    assert done.code == 2
    (line,) = done.err.splitlines()
    assert "HTTP 403, ForbiddenByRbac; writing takes the role Key Vault Secrets Officer" in line
    assert not any(value in line for value in (*azure.tokens, CLIENT_SECRET, PLANTED))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "ADO_MCP_TOKEN of secrets is https://YOUR-VAULT"),
        (("--vault-secret", "https://v.test/keys/x"), "its address is no https://<vault>/secrets/"),
        (("--vault-secret", "https://v.test/secrets/x/01ab"), "names the version 01ab"),
    ],
)
def test_without_a_place_for_it_no_token_is_minted(
    azure: AzureStandin, words: tuple[str, ...], said: str
) -> None:
    done = lab(ROOT, "token", "ado", *words, **azure.variables)

    assert done.code == 2
    (line,) = done.err.splitlines()
    assert said in line
    assert azure.heard == []
