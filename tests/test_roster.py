"""Who takes part in a run: judged in process, and as a user of `locust` sees it."""

from __future__ import annotations

from locust.env import Environment

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import _roster
import _workload
from _base import MCPUserBase, StatelessMCPUser
from tests.fake_server import MCPServer
from tests.locust_process import Seen, run_locust

LOCUSTFILE = """
from __future__ import annotations

from locust import task

import os

from _base import MCPUserBase, StatelessMCPUser
from _workload import count, endpoint


class OneUser(MCPUserBase):
    host, mcp_path = endpoint("ONE_MCP_URL", "http://127.0.0.1:9/mcp")
    server_label = "one"
    fixed_count = count("ONE_USERS", 2)

    @task
    def call(self) -> None:
        self._call("echo", {})


class TwoUser(StatelessMCPUser):
    host, mcp_path = endpoint("TWO_MCP_URL", "http://localhost:9/mcp")
    server_label = "two"
    fixed_count = count("TWO_USERS", 1)
    needs = ("TWO_KEY",)

    @task
    def call(self) -> None:
        self._call("echo", {})
"""


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "MCP_PROTOCOL_VERSION"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    _forget()
    yield
    _forget()


def _forget() -> None:
    for cached in (
        _workload.think_time,
        _roster.honours_retry_after,
        _roster.burst_probability,
        _roster.pinned_revision,
    ):
        cached.cache_clear()


def _user(name: str, base: type[Any] = MCPUserBase, **facts: Any) -> Any:
    label = name.lower()
    usual = {"host": f"https://{label}.example.com", "server_label": label, "fixed_count": 1}
    return type(f"{name}User", (base,), {"__module__": __name__, **usual, **facts})


def _judged(*classes: Any, users: int | None = None, host: str | None = None) -> Environment:
    environment = Environment(user_classes=list(classes), host=host)
    environment.parsed_options = argparse.Namespace(num_users=users)
    _roster.judge(environment, [c for c in classes if issubclass(c, MCPUserBase)])
    return environment


def _refusal(capsys: pytest.CaptureFixture[str], *classes: Any, **more: Any) -> str:
    with pytest.raises(SystemExit) as caught:
        _judged(*classes, **more)
    assert caught.value.code == 2
    line = capsys.readouterr().err
    assert line.endswith("\n")
    assert line.count("\n") == 1
    return line[:-1]


def test_every_run_begins_with_the_manners(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    _judged(_user("One"))

    assert caplog.records[0].getMessage() == _roster.MANNERS


def test_a_class_that_counts_0_is_left_out_and_so_are_its_needs() -> None:
    one, two = _user("One"), _user("Two", fixed_count=0, needs=("NOT_SET_ANYWHERE",))

    assert _judged(one, two).user_classes == [one]


def test_a_class_without_a_count_takes_part() -> None:
    one = type("PlainUser", (MCPUserBase,), {"host": "https://h", "__module__": __name__})
    two = _user("Two")

    assert _judged(one, two).user_classes == [one, two]


def test_a_count_is_inherited_from_a_base_of_the_user_s() -> None:
    base = _user("Base", fixed_count=0, abstract=True)
    one = type("ChildUser", (base,), {"__module__": __name__})

    assert _judged(one, _user("Two")).user_classes[0].__name__ == "TwoUser"


def test_nobody_left_stops_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    line = _refusal(capsys, _user("One", fixed_count=0), _user("Two", fixed_count=0))

    assert line == "no users are left: every count is 0 (OneUser, TwoUser); set one above 0"


@pytest.mark.parametrize("value", [None, "", "   "])
def test_a_missing_variable_is_named_with_its_class_and_the_cure(
    value: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ONE_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("ONE_KEY", value)
    line = _refusal(capsys, _user("One", needs=("ONE_KEY",)), _user("Two"))

    assert line.startswith("ONE_KEY is not set, and OneUser needs it: ")
    assert line.endswith("leave the class out with ONE_USERS=0")


def test_a_variable_that_is_set_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE_KEY", "x")

    assert len(_judged(_user("One", needs=("ONE_KEY",))).user_classes) == 1


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"host": "one.example.com"}, "'one.example.com' is not an http:// or https:// URL"),
        ({"host": None}, "is not an http:// or https:// URL"),
        ({"host": "https://h/api"}, "mcp_path"),
        ({"protocol_version": "2024-11-05"}, "'2024-11-05' is not one we speak: use one of"),
        ({"protocol_versions": {"auto": 1, "x": 1}}, "'x' is not one we speak: use one of"),
        ({"protocol_versions": {"auto": -1}}, "the weight -1 of auto: use 0 or more"),
        ({"protocol_versions": {"auto": 0}}, "all weights of auto are 0: raise one of them"),
    ],
)
def test_a_class_that_could_never_be_connected_stops_the_run(
    facts: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = _refusal(capsys, _user("One", **facts))

    assert line.startswith("OneUser: ")
    assert words in line


def test_a_proxy_that_nobody_can_use_stops_the_run_and_its_password_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://me:s3cret@proxy:1080")
    line = _refusal(capsys, _user("One"))

    assert "HTTPS_PROXY is not an http:// URL" in line
    assert "s3cret" not in line


def test_one_host_for_several_servers_stops_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    line = _refusal(capsys, _user("One"), _user("Two"), host="https://h")

    assert "would send every class, with its token, to one host" in line
    assert "<LABEL>_MCP_URL" in line


def test_one_host_for_one_server_is_obeyed() -> None:
    one = _user("One")

    assert _judged(one, host="https://h").user_classes == [one]
    assert _judged(one, _user("Two", host=one.host), host="https://h").user_classes


def test_a_host_of_the_web_form_is_forgotten_where_several_servers_take_part(
    caplog: pytest.LogCaptureFixture,
) -> None:
    classes = [_user("One"), _user("Two")]
    environment = Environment(user_classes=classes, host="https://h")
    _roster.forget_host_of_the_form(environment, classes)

    assert environment.host is None
    assert "would send every class" in caplog.text


def test_a_class_that_is_alone_obeys_the_number_of_users() -> None:
    one = _user("One", fixed_count=5)
    _judged(one, _user("Two", fixed_count=0), users=7)

    assert one.fixed_count == 0


def test_a_class_beside_others_keeps_its_count() -> None:
    one = _user("One", fixed_count=5)
    _judged(one, _user("Two"), users=6)

    assert one.fixed_count == 5


@pytest.mark.parametrize(("users", "warned"), [(3, False), (2, True), (4, True), (None, False)])
def test_users_that_are_not_the_sum_of_the_counts_are_one_warning_with_the_cure(
    users: int | None, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    _judged(_user("One", fixed_count=2), _user("Two", StatelessMCPUser), users=users)
    warnings = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]

    expected = (
        f"{users} users are asked for and the classes count 3 (ONE_USERS=2, TWO_USERS=1):"
        " set -u/LOCUST_USERS to 3 or change the counts"
    )
    assert warnings == ([expected] if warned else [])


def test_more_users_than_open_files_stop_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    line = _refusal(capsys, _user("One"), users=100_000_000)

    assert "ulimit -Hn" in line


# ---- as a user of locust sees it


def _locust(folder: Path, *arguments: str, **variables: str) -> Seen:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tested.py"
    path.write_text(LOCUSTFILE, encoding="utf-8")
    return run_locust(str(path), ["--headless", *arguments], folder, 60.0, **variables)


REFUSED: dict[str, tuple[dict[str, str], tuple[str, ...], str]] = {
    "a pause that is no number": ({"MCP_INTRA_MIN": "fast"}, (), "MCP_INTRA_MIN='fast': set it to"),
    "pauses the wrong way round": (
        {"MCP_TURN_MIN": "9", "MCP_TURN_MAX": "1"},
        (),
        "MCP_TURN_MIN=9 is above MCP_TURN_MAX=1",
    ),
    "a share above one": ({"MCP_BURST_PROB": "1.5"}, (), "MCP_BURST_PROB='1.5': set it to"),
    "a switch that is a word": ({"MCP_HONOUR_RETRY_AFTER": "yes"}, (), "MCP_HONOUR_RETRY_AFTER="),
    "a revision that nobody speaks": (
        {"MCP_PROTOCOL_VERSION": "2099-01-01"},
        (),
        "MCP_PROTOCOL_VERSION: protocol_version '2099-01-01' is not one we speak",
    ),
    "a missing key": ({"TWO_KEY": ""}, (), "TWO_KEY is not set, and TwoUser needs it"),
    "one host for two servers": ({}, ("-H", "http://127.0.0.1:9"), "-H/LOCUST_HOST="),
    "nobody at all": ({"ONE_USERS": "0", "TWO_USERS": "0"}, (), "no users are left"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_run_that_cannot_start_says_so_in_one_line_and_exits_with_2(
    what: str, tmp_path: Path
) -> None:
    variables, arguments, words = REFUSED[what]
    seen = _locust(tmp_path, "-t", "20s", *arguments, **{"TWO_KEY": "x", **variables})
    said = [line for line in seen.said.splitlines() if line and not line.startswith("[")]

    assert seen.code == 2
    assert len(said) == 1, seen.said
    assert said[0].startswith(words)
    assert seen.rows == []


def test_counts_rule_a_run_of_several_classes_and_the_number_of_users_a_run_of_one(
    tmp_path: Path,
) -> None:
    quick = {"MCP_INTRA_MIN": "0.01", "MCP_INTRA_MAX": "0.02", "MCP_TURN_PROB": "0"}
    with MCPServer() as one, MCPServer() as two:
        urls = {"ONE_MCP_URL": f"{one.url}/mcp", "TWO_MCP_URL": f"{two.url}/mcp", "TWO_KEY": "x"}
        both = _locust(tmp_path / "both", "-u", "3", "-r", "9", "-t", "2s", **urls, **quick)
        counts = len(one.sessions), len(two.sessions)
        alone = _locust(
            tmp_path / "alone", "-u", "4", "-r", "9", "-t", "2s", **urls, TWO_USERS="0", **quick
        )
        obeyed = len(one.sessions) - counts[0], len(two.sessions) - counts[1]
        requests = len(one.requests) + len(two.requests)

    assert (both.code, alone.code) == (0, 0), both.said + alone.said
    assert counts == (2, 1)
    assert obeyed == (4, 0)
    assert len(both.rows) + len(alone.rows) == requests
    assert len(one.of("DELETE")) == len(one.sessions)
    assert len(two.of("DELETE")) == len(two.sessions)
