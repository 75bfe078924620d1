"""Tokens: one renewal for all users, off the clock, and never a value in an error."""

from __future__ import annotations

import logging
from typing import Any

import gevent
import pytest
from azure.core.credentials import AccessToken

from _auth import EntraToken, StaticToken, scrubbed
from _metadata import scope_of
from _tally import sent
from mcp_client import AuthError

SECRET = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJl"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Entra:
    """A stand-in of Entra ID behind the interface that azure-core calls a TokenCredential."""

    def __init__(self, clock: Clock, lifetime: float = 3600.0) -> None:
        self.clock, self.lifetime = clock, lifetime
        self.asked: list[str] = []
        self.failure: Exception | None = None
        self.same = False

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        self.asked.append(scopes[0])
        gevent.sleep(0)
        if self.failure is not None:
            raise self.failure
        number = 1 if self.same else len(self.asked)
        return AccessToken(f"token-{number}", int(self.clock() + self.lifetime))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def entra(clock: Clock) -> Entra:
    return Entra(clock)


@pytest.fixture
def token(entra: Entra, clock: Clock) -> EntraToken:
    return EntraToken("scope/.default", label="ado", credential=lambda: entra, clock=clock)


def test_fifty_users_that_start_together_mint_one_token(token: EntraToken, entra: Entra) -> None:
    users = [gevent.spawn(token.get) for _ in range(50)]
    gevent.joinall(users)

    assert {user.value for user in users} == {"token-1"}
    assert entra.asked == ["scope/.default"]


def test_a_token_is_renewed_before_it_ends_while_the_old_one_still_serves(
    token: EntraToken, entra: Entra, clock: Clock
) -> None:
    token.get()
    clock.now += 3600 - 100

    assert token.get() == "token-1"
    gevent.idle()
    gevent.sleep(0)
    assert token.get() == "token-2"
    assert len(entra.asked) == 2


def test_a_rejected_token_is_renewed_once_for_all_users(token: EntraToken, entra: Entra) -> None:
    old = token.get()
    users = [gevent.spawn(token.rejected, old) for _ in range(50)]
    gevent.joinall(users)

    assert token.get() == "token-2"
    assert len(entra.asked) == 2


def test_the_rejection_of_a_token_that_is_no_longer_in_use_renews_nothing(
    token: EntraToken, entra: Entra
) -> None:
    token.get()
    token.rejected("an older one")

    assert token.get() == "token-1"
    assert len(entra.asked) == 1


def test_a_server_that_refuses_every_token_does_not_make_a_tight_loop(
    token: EntraToken, entra: Entra
) -> None:
    entra.same = True
    for _ in range(20):
        token.rejected(token.get())

    assert len(entra.asked) <= 2


def test_each_renewal_is_kept_for_the_report_with_its_failure_by_name(
    token: EntraToken, entra: Entra, clock: Clock
) -> None:
    sent.clear()
    first = token.get()
    entra.failure = ValueError(f"no, {SECRET}")
    token.rejected(first)
    with pytest.raises(AuthError):
        token.get()

    assert [(each.label, each.what, each.error) for each in sent] == [
        ("ado", "renewal", ""),
        ("ado", "renewal", "ValueError"),
    ]
    assert SECRET not in str(sent)


def test_without_a_token_the_failure_has_a_name_and_no_value(
    token: EntraToken, entra: Entra, caplog: pytest.LogCaptureFixture
) -> None:
    entra.failure = RuntimeError(f"AADSTS700016: refused, assertion={SECRET}")

    with caplog.at_level(logging.DEBUG), pytest.raises(AuthError) as caught:
        token.get()

    assert str(caught.value) == "no token, RuntimeError"
    assert "AADSTS700016" in caplog.text
    assert SECRET not in caplog.text


def test_a_static_token_goes_before_entra_and_is_never_renewed(
    monkeypatch: pytest.MonkeyPatch, entra: Entra
) -> None:
    monkeypatch.setenv("ADO_MCP_TOKEN", "given\n")
    token = EntraToken("scope", instead="ADO_MCP_TOKEN", credential=lambda: entra)
    token.rejected(token.get())

    assert token.get() == "given"
    assert entra.asked == []


def test_a_static_token_stays_after_it_was_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "abc")
    token = StaticToken("A_TOKEN")
    token.rejected("abc")

    assert token.get() == "abc"


def test_an_unset_static_token_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_TOKEN", raising=False)

    assert not StaticToken("A_TOKEN")


@pytest.mark.parametrize(
    ("document", "scope"),
    [
        ({"resource": "https://s.test/org", "scopes_supported": ["a", "x/.default"]}, "x/.default"),
        ({"resource": "https://s.test", "scopes_supported": ["a"]}, "a"),
        ({"resource": "https://evil.test/org", "scopes_supported": ["a"]}, ""),
        ({"resource": "https://s.test/other", "scopes_supported": ["a"]}, ""),
        ({"resource": "https://s.test/org"}, ""),
        ("no object", ""),
    ],
    ids=str,
)
def test_only_metadata_about_the_server_asked_names_a_scope(document: Any, scope: str) -> None:
    assert scope_of(document, "https://s.test", "/org") == scope


@pytest.mark.parametrize("error", [SECRET, f"token={SECRET}", f'{{"access_token": "{SECRET}"}}'])
def test_nothing_like_a_token_leaves_an_error(error: str) -> None:
    assert SECRET not in scrubbed(RuntimeError(error))
