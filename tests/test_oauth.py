"""OAuth client credentials against a protected server and an authorization server on loopback."""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest

import _discovery
from _discovery import challenge_of
from _oauth import ClientCredentials
from _tally import sent, tallies
from _workload import WorkloadError
from mcp_client import AuthError
from tests.oauth_standin import OAuthStandin, key_pair


class Clock:
    """Real time, moved forward by the tests."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(clock: Clock) -> Iterator[OAuthStandin]:
    with OAuthStandin(clock) as standin:
        yield standin


def client_of(server: OAuthStandin, **more: Any) -> ClientCredentials:
    how: dict[str, Any] = {"client_id": server.client_id, "clock": server.clock, "label": "srv"}
    if "private_key" not in more:
        how["client_secret"] = server.client_secret
    return ClientCredentials(server.url, **{**how, **more})


def failure_of(client: ClientCredentials, caplog: pytest.LogCaptureFixture) -> str:
    """Return what the log says of why there is no token."""
    with caplog.at_level(logging.ERROR, "_auth"), pytest.raises(AuthError) as caught:
        client.get()
    assert str(caught.value) == "no token, OAuthError"
    return caplog.messages[-1]


def at_once(count: int, work: Any, *arguments: Any) -> list[Any]:
    users = [gevent.spawn(work, *arguments) for _ in range(count)]
    gevent.joinall(users, raise_error=True)
    return [user.value for user in users]


# ---- from the server on


def test_the_way_to_a_token_starts_at_the_challenge_of_the_server(server: OAuthStandin) -> None:
    assert client_of(server).get() == server.tokens[0]

    assert server.asked("mcp", "POST") == ["/mcp"]
    assert server.asked("mcp") == ["/elsewhere/metadata"]
    assert server.asked("issuer") == ["/.well-known/oauth-authorization-server"]
    assert server.forms[0]["resource"] == server.url


@pytest.mark.parametrize("challenge", [None, "Bearer", 'Basic realm="x"'])
@pytest.mark.parametrize(
    "places",
    [
        ["/.well-known/oauth-protected-resource/mcp"],
        ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"],
    ],
)
def test_metadata_that_no_challenge_names_is_looked_for_by_path_then_at_the_root(
    server: OAuthStandin, challenge: str | None, places: list[str]
) -> None:
    server.challenge, server.metadata_path = challenge, places[-1]

    assert client_of(server).get() == server.tokens[0]
    assert server.asked("mcp") == places


@pytest.mark.parametrize("found", [0, 1, 2])
def test_an_issuer_with_a_path_is_looked_up_in_the_order_of_the_specification(
    clock: Clock, found: int
) -> None:
    places = [
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
    ]
    with OAuthStandin(clock, issuer_path="/tenant") as server:
        server.server_metadata_path = places[found]

        assert client_of(server).get() == server.tokens[0]
        assert server.asked("issuer") == places[: found + 1]


def test_an_issuer_without_a_path_has_two_places(
    server: OAuthStandin, caplog: pytest.LogCaptureFixture
) -> None:
    server.server_metadata_path = "/nowhere"

    assert "authorization server metadata, not found" in failure_of(client_of(server), caplog)
    assert server.asked("issuer") == [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ]


def test_without_any_metadata_of_the_resource_its_own_origin_issues(clock: Clock) -> None:
    """basic/authorization of 2025-03-26, which had no protected-resource metadata."""
    with OAuthStandin(clock) as server:
        server.challenge, server.metadata_path = None, "/nowhere"
        document = {"issuer": server.mcp, "token_endpoint": f"{server.origin}/token"}
        server.instead["/.well-known/oauth-authorization-server"] = lambda: (200, {}, document)

        assert client_of(server).get() == server.tokens[0]


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:1", "", None])
def test_metadata_that_names_another_issuer_gets_no_secret(
    server: OAuthStandin, caplog: pytest.LogCaptureFixture, issuer: str | None
) -> None:
    server.more_server_metadata = {"issuer": issuer}

    assert "names another issuer" in failure_of(client_of(server), caplog)
    assert server.forms == []


@pytest.mark.parametrize("resource", ["https://evil.test/mcp", "{mcp}/other", "{mcp}/mc", "", None])
def test_metadata_about_another_resource_is_not_used(
    server: OAuthStandin, caplog: pytest.LogCaptureFixture, resource: str | None
) -> None:
    server.more_metadata = {"resource": resource and resource.replace("{mcp}", server.mcp)}

    assert "is about another resource" in failure_of(client_of(server), caplog)
    assert server.forms == []


def test_credentials_for_one_issuer_go_to_no_other_that_a_server_names(
    server: OAuthStandin, caplog: pytest.LogCaptureFixture
) -> None:
    """basic/authorization of 2026-07-28: credentials are keyed by their issuer."""
    theirs = client_of(server, issuer="https://login.example")
    assert "names no issuer that our client belongs to" in failure_of(theirs, caplog)

    server.more_metadata = {"authorization_servers": ["https://evil.test", server.issuer]}
    ours = client_of(server, issuer=f"{server.issuer}/")

    assert ours.get() == server.tokens[0]


def test_an_outage_of_the_metadata_is_no_absence(
    server: OAuthStandin, caplog: pytest.LogCaptureFixture
) -> None:
    server.instead["/elsewhere/metadata"] = lambda: (503, {}, {})

    assert "protected resource metadata, HTTP 503" in failure_of(client_of(server), caplog)
    assert server.asked("mcp") == ["/elsewhere/metadata"]


@pytest.mark.parametrize(
    ("own", "challenged", "supported", "sent"),
    [
        (None, "a b", ["c"], "a b"),
        (None, "", ["c", "d"], "c d"),
        (None, "", None, None),
        ("mine", "a b", ["c"], "mine"),
        ("", "a b", ["c"], None),
    ],
)
def test_the_scope_is_the_callers_the_challenges_all_supported_or_none(
    server: OAuthStandin, own: str | None, challenged: str, supported: Any, sent: str | None
) -> None:
    server.scopes = supported
    if challenged:
        server.challenge = f'{server.challenge}, scope="{challenged}"'
    client_of(server, scope=own).get()

    assert server.forms[0].get("scope") == sent


@pytest.mark.parametrize(
    ("header", "parameters"),
    [
        ('Bearer resource_metadata="u", scope="a b"', {"resource_metadata": "u", "scope": "a b"}),
        ("bearer scope=a,error=invalid_token", {"scope": "a", "error": "invalid_token"}),
        ('Basic realm="b", Bearer realm="m"', {"realm": "m"}),
        ('Bearer realm="a \\"b\\"", Basic realm="c"', {"realm": 'a "b"'}),
        ('BearerX scope="a"', {}),
        ("Bearer", {}),
        ("", {}),
    ],
)
def test_a_challenge_is_read_however_it_is_written(header: str, parameters: dict[str, str]) -> None:
    assert challenge_of(header) == parameters


# ---- who the client is


@pytest.mark.parametrize("methods", [None, ["client_secret_basic", "client_secret_post"]])
def test_a_secret_goes_into_the_authorization_header(
    server: OAuthStandin, methods: list[str] | None
) -> None:
    server.methods = methods

    assert client_of(server).get() == server.tokens[0]
    assert set(server.forms[0]) == {"grant_type", "resource", "scope"}


def test_a_secret_goes_into_the_form_where_only_that_is_offered(server: OAuthStandin) -> None:
    server.methods = ["client_secret_post"]

    assert client_of(server).get() == server.tokens[0]
    assert server.heard[-1].authorization == ""


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
@pytest.mark.parametrize("told", [True, False])
def test_a_signed_assertion_proves_the_client(
    server: OAuthStandin, algorithm: str, told: bool
) -> None:
    pem, server.public_key = key_pair(algorithm)
    client = client_of(server, private_key=pem, algorithm=algorithm if told else None)
    client.rejected(client.get())

    assert client.get() == server.tokens[1]


def test_the_audience_of_an_assertion_can_be_another_than_the_issuer(server: OAuthStandin) -> None:
    pem, server.public_key = key_pair("ES256")
    server.audience = f"{server.origin}/token"

    assert client_of(server, private_key=pem, audience=server.audience).get() == server.tokens[0]


def test_a_key_that_cannot_sign_is_named_and_not_shown(
    server: OAuthStandin, caplog: pytest.LogCaptureFixture
) -> None:
    pem, _ = key_pair("RS256")
    said = failure_of(client_of(server, private_key=pem, algorithm="ES256"), caplog)

    assert "the private key does not sign by ES256" in said
    assert pem.splitlines()[1] not in caplog.text


# ---- one token for all


def test_fifty_users_that_start_together_ask_for_one_token(server: OAuthStandin) -> None:
    assert at_once(50, client_of(server).get) == [server.tokens[0]] * 50
    assert len(server.heard) == 4


def test_classes_with_the_same_client_share_one_token_and_its_renewals(
    server: OAuthStandin, clock: Clock
) -> None:
    one, other = client_of(server), client_of(server)
    sent.clear()
    assert [one.get(), other.get()] == [server.tokens[0]] * 2
    assert [each.what for each in sent].count("renewal") == 1

    at_once(10, one.rejected, server.tokens[0])
    at_once(10, other.rejected, server.tokens[0])

    assert [one.get(), other.get()] == [server.tokens[1]] * 2
    assert len(server.tokens) == 2


def test_clients_and_scopes_have_tokens_of_their_own(server: OAuthStandin) -> None:
    tokens = {client_of(server, scope=scope).get() for scope in ("a", "b", "a")}

    assert tokens == set(server.tokens)
    assert len(server.tokens) == 2


@pytest.mark.parametrize(("share", "renewals"), [(0.74, 0), (0.86, 1)])
def test_a_token_is_renewed_at_about_four_fifths_of_its_life_while_it_still_serves(
    server: OAuthStandin, clock: Clock, share: float, renewals: int
) -> None:
    server.lifetime = 1000
    client = client_of(server)
    client.get()
    clock.ahead = 1000 * share
    server.instead["/token"] = hang_once(server)

    assert at_once(50, client.get) == [server.tokens[0]] * 50
    server.released.set()
    wait_for_renewal(client)
    assert client.get() == server.tokens[renewals]
    assert len(server.tokens) == 1 + renewals


def hang_once(server: OAuthStandin) -> Any:
    def answer() -> Any:
        heard = server.heard[-1]
        server.released.wait()
        return server._token(heard)

    return answer


def wait_for_renewal(client: ClientCredentials) -> None:
    if client._renewal is not None:
        client._renewal.join(10)


def test_engines_that_began_together_do_not_renew_together(server: OAuthStandin) -> None:
    due = set()
    for number in range(10):
        client = client_of(server, scope=str(number))
        client.get()
        due.add(round(client._grant.renew_at - client._grant.ends))

    assert len(due) > 1
    assert all(-0.25 * 3600 - 1 <= moment <= -0.15 * 3600 + 1 for moment in due)


@pytest.mark.parametrize(
    ("expires_in", "seconds"),
    [(60, 60), ("60", 60), (None, 3600), (0, 3600), (-1, 3600), ("soon", 3600), ("nan", 3600)],
)
def test_a_lifetime_that_is_no_number_is_an_hour(
    server: OAuthStandin, clock: Clock, expires_in: Any, seconds: int
) -> None:
    server.lifetime = expires_in
    client = client_of(server)
    began = clock()
    client.get()

    assert began + seconds <= client._grant.ends <= clock() + seconds


def test_a_rejected_token_is_renewed_once_for_all_users(server: OAuthStandin) -> None:
    client = client_of(server)
    at_once(50, client.rejected, client.get())

    assert at_once(50, client.get) == [server.tokens[1]] * 50
    assert len(server.tokens) == 2


def test_a_server_that_refuses_every_token_does_not_burden_the_issuer(
    server: OAuthStandin, clock: Clock
) -> None:
    client = client_of(server)
    for _ in range(20):
        client.rejected(client.get())
    assert len(server.tokens) == 2

    clock.ahead = 31
    client.rejected(client.get())
    client.get()

    assert len(server.tokens) == 3


def test_a_401_may_name_another_scope(server: OAuthStandin) -> None:
    client = client_of(server)
    old = client.get()
    server.challenge = f'{server.challenge}, scope="tools:admin"'
    client.rejected(old)
    client.get()

    assert [form["scope"] for form in server.forms] == ["tools:read tools:call", "tools:admin"]


def test_an_issuer_that_has_moved_is_found_again_after_a_failure(
    server: OAuthStandin, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(server)
    old = client.get()
    server.instead["/token"] = lambda: (404, {}, {})
    clock.ahead = 3600
    assert "token endpoint, HTTP 404" in failure_of(client, caplog)

    server.more_server_metadata = {"token_endpoint": f"{server.origin}/token2"}
    server.instead["/token2"] = lambda: server._token(server.heard[-1])
    clock.ahead += 31

    assert client.get() == server.tokens[-1] != old


# ---- what a secret is never sent to, and where it is never shown


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_takes_no_secret_to_another_origin(
    server: OAuthStandin, clock: Clock, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    with OAuthStandin(clock) as other:
        location = {"Location": f"{other.origin}/token"}
        server.instead["/token"] = lambda: (status, location, {})

        assert f"token endpoint, HTTP {status}" in failure_of(client_of(server), caplog)
        assert other.heard == []


def test_a_redirect_within_the_origin_is_followed(server: OAuthStandin) -> None:
    server.instead["/elsewhere/metadata"] = lambda: (302, {"Location": "/there"}, {})
    server.metadata_path = "/there"
    server.more_server_metadata = {"token_endpoint": f"{server.origin}/old"}
    server.instead["/old"] = lambda: (307, {"Location": "/token"}, {})

    assert client_of(server).get() == server.tokens[0]


def test_a_redirect_that_never_ends_does(
    server: OAuthStandin, caplog: pytest.LogCaptureFixture
) -> None:
    server.instead["/token"] = lambda: (307, {"Location": "/token"}, {})

    assert "token endpoint, HTTP 307" in failure_of(client_of(server), caplog)
    assert len(server.forms) == _discovery.SENDINGS_LIMIT


@pytest.mark.parametrize(
    "endpoint", ["http://login.example/token", "ftp://x/token", "token", "https://[", "https://"]
)
def test_a_secret_goes_over_https_or_stays_on_this_machine(
    server: OAuthStandin, caplog: pytest.LogCaptureFixture, endpoint: str
) -> None:
    server.more_server_metadata = {"token_endpoint": endpoint}

    assert "token, its address is neither https" in failure_of(client_of(server), caplog)


def test_a_server_in_clear_text_is_not_even_asked_who_issues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = ClientCredentials("http://mcp.example/mcp", client_id="a", client_secret="b")

    assert "challenge, its address is neither https" in failure_of(client, caplog)


def test_what_a_netrc_says_is_no_credential_of_ours(
    server: OAuthStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    server.methods = ["client_secret_post"]

    assert client_of(server).get() == server.tokens[0]
    assert {one.authorization for one in server.heard} == {""}


def test_a_refusal_is_told_by_its_code_and_shows_no_secret(
    server: OAuthStandin, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = "wr0ng-s3cret-0123456789abcdef"
    with caplog.at_level(logging.DEBUG):
        said = failure_of(client_of(server, client_secret=wrong), caplog)

    assert "token endpoint, HTTP 401, invalid_client" in said
    shown = f"{caplog.text}{sent}{tallies}"
    assert wrong not in shown
    assert server.client_secret not in shown


@pytest.mark.parametrize(
    ("granted", "why"),
    [
        ({"access_token": ""}, "no access_token"),
        ({"access_token": None}, "no access_token"),
        ({"access_token": "a\r\nX-Evil: 1"}, "no access_token"),
        ({"token_type": "DPoP"}, "no bearer token"),
    ],
)
def test_what_cannot_be_sent_as_a_bearer_is_no_token(
    server: OAuthStandin, caplog: pytest.LogCaptureFixture, granted: dict[str, Any], why: str
) -> None:
    server.more_granted = granted

    assert why in failure_of(client_of(server), caplog)


def test_a_server_that_is_down_fails_by_name_and_is_left_alone_for_a_while(
    server: OAuthStandin, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server.more_server_metadata = {"token_endpoint": f"http://127.0.0.1:{port}/token"}
    client = client_of(server)
    assert "token, no answer, ConnectionError" in failure_of(client, caplog)

    heard = len(server.heard)
    with pytest.raises(AuthError, match="no token, OAuthError"):
        client.get()
    assert len(server.heard) == heard

    server.more_server_metadata = {}
    clock.ahead = 31

    assert client.get() == server.tokens[0]


def test_a_server_that_never_answers_costs_its_time_limit_and_no_user_more(
    server: OAuthStandin, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_discovery, "TIMEOUT_S", 0.1)
    server.instead["/token"] = server.hang
    client = client_of(server)
    users = [gevent.spawn(client.get) for _ in range(20)]
    gevent.joinall(users)

    assert {str(user.exception) for user in users} == {"no token, OAuthError"}
    assert len(server.forms) == 1


# ---- the report's, and not Locust's


def test_its_requests_are_kept_for_the_report_with_what_they_took(server: OAuthStandin) -> None:
    sent.clear()
    tallies.clear()
    began = time.time()
    client_of(server).get()

    assert [(each.label, each.what, each.status, each.error) for each in sent] == [
        ("srv", "challenge", 401, ""),
        ("srv", "protected resource metadata", 200, ""),
        ("srv", "authorization server metadata", 200, ""),
        ("srv", "token", 200, ""),
        ("srv", "renewal", 0, ""),
    ]
    assert all(began <= each.at <= time.time() and each.milliseconds > 0 for each in sent)
    assert tallies == {("srv", "metadata requests"): 3, ("srv", "token requests"): 1}


# ---- from variables


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("CLIENT_ID", "CLIENT_SECRET", "PRIVATE_KEY", "PRIVATE_KEY_FILE", "KEY_ALGORITHM"):
        monkeypatch.delenv(f"SRV_{name}", raising=False)
    return monkeypatch


def test_without_variables_there_is_no_client(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("SRV_CLIENT_ID", " ")

    assert ClientCredentials.from_variables("srv", "https://s.test/mcp") is None


def test_a_client_is_made_from_an_id_and_a_secret(
    server: OAuthStandin, variables: pytest.MonkeyPatch
) -> None:
    server.client_id, server.client_secret = "id", "secret"
    variables.setenv("SRV_CLIENT_ID", "id")
    variables.setenv("SRV_CLIENT_SECRET", "secret\n")
    client = ClientCredentials.from_variables("srv", server.url)

    assert client is not None
    assert client.get() == server.tokens[0]


@pytest.mark.parametrize("where", ["PRIVATE_KEY", "PRIVATE_KEY on one line", "PRIVATE_KEY_FILE"])
def test_a_client_is_made_from_an_id_and_a_key(
    server: OAuthStandin, variables: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    pem, server.public_key = key_pair("ES256")
    server.client_id = "id"
    value = pem.replace("\n", "\\n") if "line" in where else pem
    if where == "PRIVATE_KEY_FILE":
        (tmp_path / "key.pem").write_text(pem, encoding="ascii")
        value = str(tmp_path / "key.pem")
    variables.setenv("SRV_CLIENT_ID", "id")
    variables.setenv(f"SRV_{where.split()[0]}", value)
    client = ClientCredentials.from_variables("srv", server.url)

    assert client is not None
    assert client.get() == server.tokens[0]


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"CLIENT_SECRET": "s3cret"}, "SRV_CLIENT_SECRET is set without SRV_CLIENT_ID"),
        ({"CLIENT_ID": "id"}, "SRV_CLIENT_ID: nothing proves its client; set one of"),
        (
            {"CLIENT_ID": "id", "CLIENT_SECRET": "s3cret", "PRIVATE_KEY": "s3cret"},
            "SRV_CLIENT_SECRET and SRV_PRIVATE_KEY are both set",
        ),
        (
            {"CLIENT_ID": "id", "PRIVATE_KEY_FILE": "/nowhere/key.pem"},
            "SRV_PRIVATE_KEY_FILE=/nowhere/key.pem cannot be read (FileNotFoundError)",
        ),
    ],
)
def test_variables_that_cannot_work_stop_the_run_by_name(
    variables: pytest.MonkeyPatch, given: dict[str, str], line: str
) -> None:
    for name, value in given.items():
        variables.setenv(f"SRV_{name}", value)

    with pytest.raises(WorkloadError) as caught:
        ClientCredentials.from_variables("srv", "https://s.test/mcp")

    assert line in caught.value.line
    assert "s3cret" not in caught.value.line
