"""Real servers that no one here wrote: ten users each, all at once, for half a minute."""

from __future__ import annotations

import collections
import json
import socket
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from lab.real.servers import HANDSHAKES, SERVERS, STATELESS, Server, serving
from lab.targets import Target
from tests.faulty.run import free_port, pace
from tests.locust_process import ROOT, Seen, run_locust

pytestmark = pytest.mark.live

HERE = Path(__file__).parent
USERS_FILE = str(ROOT / "lab" / "real" / "users.py")
USERS = 10  # for each subject
SECONDS = 30
AT_LEAST = 20  # calls of each harmless tool
PAUSE = (0.6, 1.0)
# Servers that are asked in the stateless era as well, with the form of their answers in it.
ALSO_STATELESS = {
    "mcp2-sessions-sse": "json",
    "fastmcp-sessions-sse": "json",
    "ts2-stateless": "json",
    "go-stateless-sse": "sse",
}


@dataclass(frozen=True)
class Subject:
    """A server and the era that its ten users speak."""

    label: str
    server: Server
    speaks: tuple[str, ...]
    form: str
    sessions: bool


SUBJECTS = [
    Subject(
        server.label,
        server,
        tuple(revision for revision in server.accepts if revision in HANDSHAKES),
        server.form,
        server.sessions,
    )
    for server in SERVERS
] + [
    Subject(
        f"{server.label}-{STATELESS}", server, (STATELESS,), ALSO_STATELESS[server.label], False
    )
    for server in SERVERS
    if server.label in ALSO_STATELESS
]


@dataclass(frozen=True)
class Evidence:
    """What our users recorded, what the proxy counted, and where the servers listened."""

    run: Seen
    counted: dict[str, collections.Counter[str]]
    listened: dict[str, set[str]]


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
    chosen = [subject for subject in SUBJECTS if not subject.server.missing]
    folder = tmp_path_factory.mktemp("live")
    with ExitStack() as stack:
        started = {each.label: stack.enter_context(serving(each.server)) for each in chosen}
        listened = {label: _addresses(target.pid) for label, (_, target) in started.items()}
        front = {label: free_port() for label in started}
        control = free_port()
        pairs = [f"{front[label]}:{port}" for label, (port, _) in started.items()]
        proxy = [sys.executable, str(HERE / "counting_proxy.py"), str(control), *pairs]
        stack.enter_context(Target(proxy, control))
        plans = [
            {
                "label": subject.label,
                "host": f"http://127.0.0.1:{front[subject.label]}",
                "path": subject.server.path,
                "headers": dict(subject.server.headers),
                "users": USERS,
                "rounds": 0,
                "sessions": subject.sessions,
                "speaks": subject.speaks,
                "calls": {tool: list(call) for tool, call in subject.server.calls.items()},
            }
            for subject in chosen
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
    variables = {**pace(PAUSE), "REAL_PLAN": str(described)}
    return run_locust(USERS_FILE, command, folder, SECONDS + 90, **variables)


@pytest.fixture(params=SUBJECTS, ids=lambda subject: subject.label)
def subject(request: pytest.FixtureRequest) -> Subject:
    found: Subject = request.param
    if found.server.missing:
        pytest.skip(found.server.missing)
    return found


def test_every_harmless_tool_is_called_without_a_failure(
    subject: Subject, evidence: Evidence
) -> None:
    rows = evidence.run.named(subject.label)
    times = collections.Counter(row["name"].partition(":")[2] for row in rows)

    assert [(row["name"], row["failure"]) for row in rows if row["failure"]] == []
    for tool in subject.server.calls:
        assert times[f"tools/call:{tool}"] >= AT_LEAST


def test_what_is_recorded_is_what_was_requested(subject: Subject, evidence: Evidence) -> None:
    rows = evidence.run.named(subject.label)
    ours = collections.Counter(row["name"].partition(":")[2] for row in rows)
    theirs = collections.Counter(evidence.counted[subject.label])
    answered = [
        evidence.run.tally(subject.label, f"server {what}")
        for what in ("ping answered", "request refused")
    ]
    cut = evidence.run.tally(subject.label, "cut at the end")

    assert theirs.pop("client-response", 0) == sum(answered)
    assert sum((ours - theirs).values()) == 0
    assert sum((theirs - ours).values()) <= cut


def test_it_answers_in_its_form_and_its_sessions_are_closed(
    subject: Subject, evidence: Evidence
) -> None:
    rows = evidence.run.named(subject.label)
    calls = [row for row in rows if ":tools/call:" in row["name"]]
    first = "server/discover" if subject.speaks == (STATELESS,) else "initialize"
    opened = sum(1 for row in rows if row["name"].endswith(f":{first}"))
    closed = sum(1 for row in rows if row["name"].endswith(":DELETE"))

    assert {row["trace"]["kind"] for row in calls} == {subject.form}
    assert opened == USERS
    assert closed == (USERS if subject.sessions else 0)


def test_it_listens_on_loopback_only(subject: Subject, evidence: Evidence) -> None:
    assert evidence.listened[subject.label] <= {"127.0.0.1", "::1"}
    assert evidence.listened[subject.label]


def test_no_exception_reaches_locusts_table(evidence: Evidence) -> None:
    assert [end["exceptions"] for end in evidence.run.ends] == [[]]
    assert evidence.run.code == 0
