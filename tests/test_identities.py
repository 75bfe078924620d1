"""A pool of identities: dealt in turn, told apart by ordinals, and never shown."""

from __future__ import annotations

from locust.env import Environment

import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from _base import MCPUserBase
from _identities import Identities, WithIdentity
from _workload import WorkloadError
from tests.fake_server import MCPServer
from tests.oauth_standin import OAuthStandin

SECRET = "s3cret-0123456789"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANY_CREDENTIALS", "ANY_CREDENTIALS_FILE", "MCP_IDENTITY_STATS"):
        monkeypatch.delenv(name, raising=False)


def pool_of(monkeypatch: pytest.MonkeyPatch, content: str, url: str = "") -> Identities:
    monkeypatch.setenv("ANY_CREDENTIALS", content)
    pool = Identities.from_variables("any", url)
    assert pool is not None
    return pool


def user_of_worker(index: int) -> Any:
    return SimpleNamespace(environment=SimpleNamespace(runner=SimpleNamespace(worker_index=index)))


# ---- where they come from


def test_without_variables_there_is_no_pool() -> None:
    assert Identities.from_variables("any") is None


@pytest.mark.parametrize("content", ["a\nb\nc", "token\na\nb\nc", "a,b,c", "a b, c", "a\\nb\\nc"])
def test_tokens_are_read_from_a_variable_however_they_are_listed(
    monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    assert [one.get() for one in pool_of(monkeypatch, content)] == ["a", "b", "c"]


def test_tokens_are_read_from_a_file_without_its_comments_and_blank_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "tokens.txt"
    file.write_bytes("\ufeff# of 2026\r\n\r\n a \r\n#b\r\nc".encode())
    monkeypatch.setenv("ANY_CREDENTIALS_FILE", str(file))
    pool = Identities.from_variables("any")

    assert pool is not None
    assert [one.get() for one in pool] == ["a", "c"]


def test_clients_are_read_from_csv_and_each_gets_a_token_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with OAuthStandin(time.time) as server:
        server.client_secret = "a,b"
        rows = f'client_secret,client_id,scope\n"a,b",{server.client_id},x y\nwrong,other,\n'
        pool = pool_of(monkeypatch, rows, server.url)

        assert pool[0].get() == server.tokens[0]
        assert server.forms[0]["scope"] == "x y"
        with pytest.raises(Exception, match="no token, OAuthError"):
            pool[1].get()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("# nothing\n\n", "ANY_CREDENTIALS has no line with a token"),
        ("token\n", "ANY_CREDENTIALS has no line with a token"),
        (f"a\nBearer {SECRET}", "ANY_CREDENTIALS, line 2 is no token that a header can carry"),
        (f"a\n# b\n{SECRET},c", "ANY_CREDENTIALS, line 3 has 2 columns, not 1"),
        (f"{SECRET}\nb\n{SECRET}", "ANY_CREDENTIALS, line 3 repeats line 1"),
        (f"client_id,client_secret\na,{SECRET}\na,b", "line 3 repeats line 2"),
        (f"client_id,client_secret\n,{SECRET}", "line 2 is no client"),
        ("client_id,client_secret\na,", "line 2 is no client"),
        (f"client_id,client_secret,private_key_file\na,{SECRET},k", "line 2 is no client"),
        (f"client_id,client_secret\na,b,{SECRET}", "line 2 has 3 columns, not 2"),
        (f"client_id,password\na,{SECRET}", "ANY_CREDENTIALS has the column 'password'"),
        ("client_id,private_key_file\na,/nowhere", "/nowhere cannot be read (FileNotFoundError)"),
    ],
)
def test_a_pool_that_cannot_work_stops_the_run_by_its_line_and_shows_no_secret(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: str,
    line: str,
) -> None:
    with pytest.raises(WorkloadError):
        pool_of(monkeypatch, content, "https://s.test/mcp")

    said = capsys.readouterr().err
    assert line in said
    assert SECRET not in said


def test_clients_of_a_server_that_takes_tokens_only_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(WorkloadError, match="line 2 is an OAuth client, and any takes tokens only"):
        pool_of(monkeypatch, "client_id,client_secret\na,b")


def test_a_variable_and_a_file_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANY_CREDENTIALS_FILE", "x")

    with pytest.raises(WorkloadError, match="are both set"):
        pool_of(monkeypatch, "a")


def test_a_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANY_CREDENTIALS_FILE", "/nowhere/tokens.txt")

    with pytest.raises(WorkloadError, match="FileNotFoundError"):
        Identities.from_variables("any")


# ---- one per user, in turn


def test_users_get_identities_in_turn_and_share_them_evenly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = pool_of(monkeypatch, "a b c")

    assert [pool.take().ordinal for _ in range(7)] == [1, 2, 3, 1, 2, 3, 1]


@pytest.mark.parametrize(("workers", "most"), [(1, 1), (2, 1), (3, 2), (4, 1), (8, 1)])
def test_workers_that_know_nothing_of_each_other_hardly_meet(
    monkeypatch: pytest.MonkeyPatch, workers: int, most: int
) -> None:
    pool = pool_of(monkeypatch, " ".join(f"t{number}" for number in range(48)))
    taken = Counter(
        pool.take(user_of_worker(worker)).ordinal
        for worker in range(workers)
        for _ in range(48 // workers)
    )

    assert max(taken.values()) == most


def test_an_identity_shows_its_ordinal_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = pool_of(monkeypatch, SECRET)

    assert repr(pool[0]) == "<identity 1>"
    assert SECRET not in f"{pool!r}{pool[0]!s}{vars(pool)}{vars(pool[0])}"


# ---- in a run


class Recorded:
    """Three users with a pool of two, each of which has made one call."""

    def __init__(self, server: MCPServer, pool: Identities, revision: str = "2025-06-18") -> None:
        class PoolUser(WithIdentity, MCPUserBase):
            abstract = True
            host = server.url
            server_label = "any"
            identities = pool
            protocol_version = revision

        environment = Environment(user_classes=[PoolUser])
        environment.create_local_runner()
        self.names: list[str] = []
        environment.events.request.add_listener(lambda name, **_: self.names.append(name))
        for _ in range(3):
            user: Any = PoolUser(environment)
            user._state = "running"
            user._establish()
            user._call("one", {})
        self.calls = [name for name in self.names if name.endswith("tools/call:one")]
        self.sent = [one.headers["authorization"] for one in server.of("tools/call")]


def test_a_user_keeps_its_identity_in_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with MCPServer() as server:
        recorded = Recorded(server, pool_of(monkeypatch, "one two"))
        sessions: dict[str, set[str]] = {}
        for request in server.requests:
            session = request.headers.get("mcp-session-id", "")
            sessions.setdefault(session, set()).add(request.headers["authorization"])

    assert recorded.sent == ["Bearer one", "Bearer two", "Bearer one"]
    assert recorded.calls == ["any:tools/call:one"] * 3


def test_identities_have_statistics_of_their_own_on_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCP_IDENTITY_STATS", "1")
    with MCPServer() as server:
        recorded = Recorded(server, pool_of(monkeypatch, f"{SECRET} two"))

    assert recorded.calls == [f"any#{number}:tools/call:one" for number in (1, 2, 1)]
    assert SECRET not in "".join(recorded.names)


def test_a_refused_token_is_renewed_by_the_identity_that_sent_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with OAuthStandin(time.time) as issuer:
        rows = f"client_id,client_secret\na,b\n{issuer.client_id},s"
        issuer.client_secret, issuer.more_clients = "s", {"a": "b"}

        class PoolUser(WithIdentity, MCPUserBase):
            abstract = True
            host = issuer.mcp
            identities = pool_of(monkeypatch, rows, issuer.url)

        environment = Environment(user_classes=[PoolUser])
        one, other = (PoolUser(environment) for _ in range(2))
        first = [one._extra_headers(), other._extra_headers()]
        one._token_rejected()
        second = [one._extra_headers(), other._extra_headers()]

    assert second[0] != first[0]
    assert second[1] == first[1]
    assert len(issuer.forms) == 3


def test_without_identities_a_user_sends_what_it_would_without_them() -> None:
    class PlainUser(WithIdentity, MCPUserBase):
        abstract = True
        host = "http://127.0.0.1:9"
        auth_headers = {"X-Key": "k"}

    user = PlainUser(Environment(user_classes=[PlainUser]))
    user._token_rejected()

    assert user._extra_headers() == {"X-Key": "k"}
    assert user.server_label == MCPUserBase.server_label


def test_callers_with_statistics_of_their_own_share_one_probe_of_the_era(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCP_IDENTITY_STATS", "1")
    with MCPServer() as server:
        recorded = Recorded(server, pool_of(monkeypatch, "one two"), "auto")
        probes_and_discoveries = len(server.of("server/discover"))

    discoveries = [name for name in recorded.names if name.endswith(":server/discover")]
    assert sorted(set(discoveries)) == ["any#1:server/discover", "any#2:server/discover"]
    assert probes_and_discoveries == len(discoveries) + 1
