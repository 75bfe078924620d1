"""Real servers that no one here wrote: ten users each, all at once, for half a minute."""

from __future__ import annotations

import collections
import json
import shutil
import socket
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from lab.targets import Target
from tests.faulty.run import free_port, pace
from tests.live.servers import SERVERS, STATELESS_ERA, Server
from tests.locust_process import Seen, run_locust

pytestmark = pytest.mark.live

HERE = Path(__file__).parent
USERS = 10  # for each server
SECONDS = 30
AT_LEAST = 20  # calls of each harmless tool
PAUSE = (0.6, 1.0)


@dataclass(frozen=True)
class Evidence:
    """What our users recorded, what the proxy counted, and where the servers listened."""

    run: Seen
    counted: dict[str, collections.Counter[str]]
    listened: dict[str, set[str]]


def _fill(words: tuple[str, ...], ports: dict[str, int]) -> list[str]:
    return [word.format(**ports) for word in words]


def _start(server: Server, stack: ExitStack) -> tuple[int, Target]:
    ports = {"port": free_port(), "backend": free_port()}
    if server.backend:
        command = _fill(server.backend, ports)
        stack.enter_context(Target(command, ports["backend"], stop_seconds=2))
    variables = {name: value.format(**ports) for name, value in server.variables.items()}
    command = _fill(server.command, ports)
    target = Target(command, ports["port"], env=variables, stop_seconds=2)
    return ports["port"], stack.enter_context(target)


def _addresses(pid: int) -> set[str]:
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return {
        connection.laddr.ip
        for process in family
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }


def _count(control: int) -> dict[str, collections.Counter[str]]:
    with socket.create_connection(("127.0.0.1", control)) as asked:
        counts = json.loads(asked.makefile().readline())
    return {port: collections.Counter(names) for port, names in counts.items()}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    chosen = [server for server in SERVERS if _reason_to_skip(server) is None]
    folder = tmp_path_factory.mktemp("live")
    with ExitStack() as stack:
        started = {server.label: _start(server, stack) for server in chosen}
        listened = {label: _addresses(target.pid) for label, (_, target) in started.items()}
        front = {label: free_port() for label in started}
        control = free_port()
        pairs = [f"{front[label]}:{port}" for label, (port, _) in started.items()]
        proxy = [sys.executable, str(HERE / "counting_proxy.py"), str(control), *pairs]
        stack.enter_context(Target(proxy, control))
        plans = [
            {
                "label": server.label,
                "host": f"http://127.0.0.1:{front[server.label]}",
                "users": USERS,
                "sessions": server.sessions,
                "speaks": server.speaks,
                "calls": {tool: list(call) for tool, call in server.calls.items()},
            }
            for server in chosen
        ]
        run = _run(plans, folder)
        counted = _count(control)
    return Evidence(run, {label: counted[str(port)] for label, port in front.items()}, listened)


def _run(plans: list[dict[str, object]], folder: Path) -> Seen:
    described = folder / "plan.json"
    described.write_text(json.dumps(plans), encoding="utf-8")
    users = str(USERS * len(plans))
    command = ["--headless", "-u", users, "-r", "40", "-t", f"{SECONDS + 4}s"]
    command += ["--stop-timeout", "15", "--exit-code-on-error", "0"]
    variables = {**pace(PAUSE), "LIVE_PLAN": str(described)}
    return run_locust(str(HERE / "live_users.py"), command, folder, SECONDS + 90, **variables)


def _reason_to_skip(server: Server) -> str | None:
    if server.command[0] == "node" and not shutil.which("node"):
        return "Node is not on the PATH"
    return None if server.installed else f"{server.label} is not installed: make live-setup"


@pytest.fixture(params=SERVERS, ids=lambda server: server.label)
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.param
    reason = _reason_to_skip(found)
    if reason:
        pytest.skip(reason)
    return found


def test_every_harmless_tool_is_called_without_a_failure(
    server: Server, evidence: Evidence
) -> None:
    rows = evidence.run.named(server.label)
    times = collections.Counter(row["name"].partition(":")[2] for row in rows)

    assert [(row["name"], row["failure"]) for row in rows if row["failure"]] == []
    for tool in server.calls:
        assert times[f"tools/call:{tool}"] >= AT_LEAST


def test_what_is_recorded_is_what_was_requested(server: Server, evidence: Evidence) -> None:
    rows = evidence.run.named(server.label)
    ours = collections.Counter(row["name"].partition(":")[2] for row in rows)
    theirs = collections.Counter(evidence.counted[server.label])
    answered = [
        evidence.run.tally(server.label, f"server {what}")
        for what in ("ping answered", "request refused")
    ]
    cut = evidence.run.tally(server.label, "cut at the end")

    assert theirs.pop("client-response", 0) == sum(answered)
    assert sum((ours - theirs).values()) == 0
    assert sum((theirs - ours).values()) <= cut


def test_it_answers_in_its_form_and_its_sessions_are_closed(
    server: Server, evidence: Evidence
) -> None:
    rows = evidence.run.named(server.label)
    calls = [row for row in rows if ":tools/call:" in row["name"]]
    first = "server/discover" if server.speaks == STATELESS_ERA else "initialize"
    opened = sum(1 for row in rows if row["name"].endswith(f":{first}"))
    closed = sum(1 for row in rows if row["name"].endswith(":DELETE"))

    assert {row["trace"]["kind"] for row in calls} == {server.form}
    assert opened == USERS
    assert closed == (USERS if server.sessions else 0)


def test_it_listens_on_loopback_only(server: Server, evidence: Evidence) -> None:
    assert evidence.listened[server.label] <= {"127.0.0.1", "::1"}
    assert evidence.listened[server.label]


def test_no_exception_reaches_locusts_table(evidence: Evidence) -> None:
    assert [end["exceptions"] for end in evidence.run.ends] == [[]]
    assert evidence.run.code == 0
