"""Key Vault through azure-identity and azure-keyvault-secrets, as they speak to the real one."""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import _secrets
from _expiry import early
from _secrets import provide, references
from _vault import PATIENCE, SecretURI, fetch
from _workload import WorkloadError
from tests.azure_standin import (
    CLIENT_SECRET,
    LOGIN,
    OTHER_TENANT,
    TENANT,
    AzureStandin,
    Secret,
    token,
)

PLANTED = "planted-secret-0123456789"
HASTY = {**PATIENCE, "retry_total": 0, "retry_connect": 0, "retry_read": 0}


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureStandin]:
    with AzureStandin() as standin:
        for name, value in standin.variables.items():
            monkeypatch.setenv(name, value)
        yield standin


def test_a_secret_comes_by_its_reference_and_entra_is_asked_once_for_all(
    azure: AzureStandin,
) -> None:
    azure.secrets |= {name: Secret(f"{name}-{PLANTED}") for name in ("one", "two", "three")}

    fetched = fetch(
        {
            "ONE": azure.uri("one"),
            "TWO": azure.uri("two"),
            "THREE": f"https://{azure.other_vault}/secrets/three",
        }
    )

    assert fetched.failures == {}
    assert fetched.values == {
        "ONE": f"one-{PLANTED}",
        "TWO": f"two-{PLANTED}",
        "THREE": f"three-{PLANTED}",
    }
    assert len(azure.mints) == 1


def test_a_vault_in_another_tenant_is_asked_with_a_token_of_that_tenant(
    azure: AzureStandin,
) -> None:
    azure.vault_tenant = OTHER_TENANT
    azure.secrets["one"] = Secret(PLANTED)

    assert fetch({"ONE": azure.uri("one")}).values == {"ONE": PLANTED}
    assert [one.path.split("/")[1] for one in azure.mints] == [OTHER_TENANT]


def test_a_vault_that_names_a_foreign_resource_gets_no_token(azure: AzureStandin) -> None:
    azure.resource = "https://evil.test"

    assert fetch({"ONE": azure.uri("one")}).failures == {"ONE": "ValueError"}
    assert azure.mints == []


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        (Secret(PLANTED, refused=(403, "ForbiddenByRbac")), "HTTP 403, ForbiddenByRbac"),
        (Secret(PLANTED, refused=(403, "SecretDisabled")), "HTTP 403, SecretDisabled"),
        (Secret(PLANTED, refused=(403, "ForbiddenByFirewall")), "HTTP 403, ForbiddenByFirewall"),
        (None, "HTTP 404, SecretNotFound"),
        (Secret(" \n"), "the secret is empty, or no text"),
        (Secret(PLANTED, {"exp": 1_000_000_000}), "the secret expired 2001-09-09 01:46 UTC"),
    ],
    ids=["forbidden", "disabled", "firewall", "missing", "empty", "expired"],
)
def test_what_a_vault_refuses_is_told_by_its_own_code_and_the_rest_still_comes(
    azure: AzureStandin, secret: Secret | None, why: str
) -> None:
    azure.secrets["two"] = Secret("good")
    if secret is not None:
        azure.secrets["one"] = secret

    fetched = fetch({"ONE": azure.uri("one"), "TWO": azure.uri("two")})

    assert fetched.failures == {"ONE": why}
    assert fetched.values == {"TWO": "good"}


def test_a_sign_in_that_is_refused_is_told_by_entras_code(azure: AzureStandin) -> None:
    azure.login_error = "AADSTS700016"

    assert fetch({"ONE": azure.uri("one"), "TWO": azure.uri("two")}).failures == {
        "ONE": "the sign-in was refused, AADSTS700016",
        "TWO": "the sign-in was refused, AADSTS700016",
    }
    assert len(azure.mints) == 1


def test_who_signed_in_by_az_needs_no_variables(
    azure: AzureStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    azure.secrets["one"] = Secret(PLANTED)
    for name, value in azure.az(tmp_path, TENANT).items():
        monkeypatch.setenv(name, value)

    assert fetch({"ONE": azure.uri("one")}) == ({"ONE": PLANTED}, {}, {})
    assert azure.mints == []


def test_who_is_not_signed_in_is_told_so(
    azure: AzureStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_CLIENT_SECRET")

    assert fetch({"ONE": azure.uri("one")}).failures == {"ONE": "no sign-in worked"}


@pytest.mark.parametrize("host", ["the vault", LOGIN])
def test_a_host_that_is_down_is_told_within_the_bounds(azure: AzureStandin, host: str) -> None:
    azure.closed.add(azure.vault if host == "the vault" else host)

    fetched = fetch({"ONE": azure.uri("one"), "TWO": azure.uri("two")}, patience=HASTY)

    why = "no sign-in worked" if host == LOGIN else "the vault cannot be reached"
    assert fetched.failures == {"ONE": why, "TWO": why}
    assert azure.mints == []


@pytest.mark.parametrize("host", ["the vault", LOGIN])
def test_nobody_waits_longer_than_the_bound_for_a_slow_host(azure: AzureStandin, host: str) -> None:
    azure.hanging.add(azure.vault if host == "the vault" else host)

    assert fetch({"ONE": azure.uri("one")}, wait_s=0.3).failures == {"ONE": "no answer in 0.3 s"}


def test_a_vault_that_accepts_and_does_not_answer_is_asked_for_nothing_more(
    azure: AzureStandin,
) -> None:
    azure.hanging.add(azure.vault)

    failures = fetch(
        {"ONE": azure.uri("one"), "TWO": azure.uri("two")}, patience={**HASTY, "read_timeout": 0.2}
    ).failures

    assert failures == dict.fromkeys(("ONE", "TWO"), "the vault does not answer")
    assert len(azure.heard) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        "http://a-vault.vault.azure.net/secrets/x",
        "https://a-vault.vault.azure.net/keys/x",
        "https://a-vault.vault.azure.net/secrets/x?y=z",
        "https://user@a-vault.vault.azure.net/secrets/x",
        "ghp_notareference",
    ],
)
def test_an_address_that_is_no_secrets_is_not_asked(azure: AzureStandin, wrong: str) -> None:
    (why,) = fetch({"ONE": wrong}).failures.values()

    assert why.startswith("its address")
    assert azure.heard == []


def test_a_reference_may_name_a_version() -> None:
    assert SecretURI.of("https://v.test/secrets/x/0123") == ("https://v.test", "x", "0123")


# ---- the secrets of a run


def manifest(folder: Path, **secrets: str) -> Path:
    path = folder / "azure-loadtest.yaml"
    lines = [f"  - name: {name}\n    value: {value}\n" for name, value in secrets.items()]
    path.write_text("version: v0.1\nsecrets:\n" + "".join(lines), encoding="utf-8")
    return path


def user(label: str, *needs: str) -> Any:
    return SimpleNamespace(server_label=label, needs=needs, __name__=f"{label.title()}User")


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONE_MCP_TOKEN", "TWO_KEY", "TWO_MCP_TOKEN", "MCP_VAULT"):
        monkeypatch.setenv(name, "")  # so that what is set is taken back


@pytest.mark.usefixtures("unset")
def test_only_unset_variables_of_classes_that_take_part_are_asked_for(
    azure: AzureStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("yaml")
    azure.secrets |= {"one": Secret(f"{PLANTED}\n"), "two": Secret("never asked for")}
    monkeypatch.setenv("TWO_KEY", "set")
    path = manifest(
        tmp_path,
        ONE_MCP_TOKEN=azure.uri("one"),
        TWO_KEY=azure.uri("two"),
        THREE_TOKEN=azure.uri("three"),
        ONE_MORE="https://YOUR-VAULT.vault.azure.net/secrets/x",
    )

    provide([user("one"), user("two", "TWO_KEY")], path)

    assert azure.asked() == ["one"]
    assert os.environ["ONE_MCP_TOKEN"] == PLANTED


@pytest.mark.usefixtures("unset")
def test_a_variable_that_a_class_needs_and_the_vault_forbids_ends_the_run_in_one_line(
    azure: AzureStandin, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("yaml")
    azure.secrets["two"] = Secret(PLANTED, refused=(403, "ForbiddenByRbac"))
    path = manifest(tmp_path, TWO_KEY=azure.uri("two"))

    with pytest.raises(WorkloadError) as ended:
        provide([user("two", "TWO_KEY")], path)

    said = "".join(capfd.readouterr())
    assert ended.value.code == 2
    assert said.splitlines() == [str(ended.value)]
    assert "TWO_KEY (HTTP 403, ForbiddenByRbac)" in said
    assert PLANTED not in said
    assert CLIENT_SECRET not in said


@pytest.mark.usefixtures("unset")
def test_a_variable_that_a_class_can_do_without_is_done_without_and_said(
    azure: AzureStandin, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("yaml")
    azure.secrets["one"] = Secret(PLANTED, refused=(403, "ForbiddenByRbac"))

    with caplog.at_level(logging.DEBUG):
        provide([user("one")], manifest(tmp_path, ONE_MCP_TOKEN=azure.uri("one")))

    warned = [each.message for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(warned) == 1
    assert "ONE_MCP_TOKEN (HTTP 403, ForbiddenByRbac): the run goes on without" in warned[0]
    assert PLANTED not in caplog.text
    assert CLIENT_SECRET not in caplog.text


@pytest.mark.usefixtures("unset")
def test_a_token_out_of_the_vault_that_no_header_can_carry_ends_the_run_and_is_not_shown(
    azure: AzureStandin, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("yaml")
    azure.secrets["one"] = Secret(f"Bearer {PLANTED}")

    with pytest.raises(WorkloadError, match="ONE_MCP_TOKEN starts with the word Bearer"):
        provide([user("one")], manifest(tmp_path, ONE_MCP_TOKEN=azure.uri("one")))

    assert PLANTED not in "".join(capfd.readouterr())


@pytest.mark.usefixtures("unset")
def test_mcp_vault_0_asks_nobody(
    azure: AzureStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_VAULT", "0")

    provide([user("one")], manifest(tmp_path, ONE_MCP_TOKEN=azure.uri("one")))

    assert azure.heard == []


def test_without_the_yaml_there_are_no_references(tmp_path: Path) -> None:
    assert references(tmp_path / "azure-loadtest.yaml") == {}


@pytest.mark.parametrize("text", ["[1, 2", "secrets: 7", "secrets: [a, {name: B}]", "- x"])
def test_a_yaml_of_another_form_has_no_references(tmp_path: Path, text: str) -> None:
    path = tmp_path / "azure-loadtest.yaml"
    path.write_text(text, encoding="utf-8")

    assert references(path) == {}


# ---- tokens that end


def test_a_token_that_has_expired_ends_the_run_by_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    value = token(1_000_000_000)
    monkeypatch.setenv("ONE_MCP_TOKEN", value)

    with pytest.raises(WorkloadError) as ended:
        provide([user("one")], tmp_path / "none.yaml")

    assert ended.value.code == 2
    assert "ONE_MCP_TOKEN expired at 2001-09-09 01:46:40 UTC" in str(ended.value)
    assert "ONE_USERS=0" in str(ended.value)
    assert value not in "".join(capfd.readouterr())


def test_a_token_that_ends_within_the_run_is_told_and_one_that_lasts_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setenv("ONE_MCP_TOKEN", token(now + 600))
    monkeypatch.setenv("TWO_KEY", token(now + 4000))
    monkeypatch.setenv("THREE_MCP_TOKEN", token(1_000_000_000))
    monkeypatch.setenv("TWO_MCP_TOKEN", "eyJnot.a.token")

    provide([user("one"), user("two", "TWO_KEY")], tmp_path / "none.yaml")

    assert _secrets.early_ends(500) == []
    (line,) = _secrets.early_ends(900)
    assert line.startswith("ONE_MCP_TOKEN ends at ")
    assert "before a run of 15 min does" in line
    assert _secrets.early_ends(0) == []


def test_a_token_that_has_expired_since_the_run_began_is_told_so_before_the_next() -> None:
    (line,) = early({"ONE_MCP_TOKEN": 1_000_000_000.0}, 0, 1_000_000_700.0)

    assert line.startswith("ONE_MCP_TOKEN expired at 2001-09-09 01:46:40 UTC")


@pytest.mark.usefixtures("unset")
def test_the_vaults_own_word_on_a_secrets_end_counts_too(
    azure: AzureStandin, tmp_path: Path
) -> None:
    pytest.importorskip("yaml")
    now = time.time()
    azure.secrets["two"] = Secret("no-jwt", {"exp": int(now) + 600})

    provide([user("two", "TWO_KEY")], manifest(tmp_path, TWO_KEY=azure.uri("two")))

    (line,) = _secrets.early_ends(900)
    assert line.startswith("TWO_KEY ends at ")
    assert TENANT not in line
