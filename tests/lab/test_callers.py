"""Several callers and their tokens, end to end: README's own class, a real run, and its report."""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import csv
import html
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.check import check
from tests.fake_server import MCPServer, Peer
from tests.lab.folders import files_with
from tests.locust_process import clean_environment
from tests.oauth_standin import OAuthStandin

ROOT = Path(__file__).parents[2]
SECRETS = {f"caller-{n}": f"a-secret-of-caller-{n}" for n in (1, 2, 3)}


def readmes_class() -> str:
    """Return the file that the README shows."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (plan,) = re.findall(r"```python\n(# acme_callers\.py\n.*?)```", readme, re.DOTALL)
    return str(plan)


class ProtectedServer(MCPServer):
    """An MCP server that lets in who has a token of the authorization server's."""

    def __init__(self, issuer: OAuthStandin) -> None:
        super().__init__()
        self._issuer = issuer

    def __enter__(self) -> ProtectedServer:
        super().__enter__()
        self._issuer.url = f"{self.url}/mcp"
        self._issuer.more_metadata = {"resource": self._issuer.url}
        self._issuer.more_clients = SECRETS
        return self

    def _answer(self, peer: Peer) -> None:
        scheme, _, token = peer.request.headers.get("authorization", "").partition(" ")
        if scheme == "Bearer" and token in self._issuer.tokens:
            super()._answer(peer)
            return
        place = f'Bearer resource_metadata="{self._issuer.mcp}{self._issuer.metadata_path}"'
        peer.reply(status=401, headers={"WWW-Authenticate": place})


class Ran:
    """A run of ten users for two seconds, in a folder of its own."""

    def __init__(self, folder: Path, url: str, issuer: OAuthStandin, *words: str) -> None:
        (folder / "acme_callers.py").write_text(readmes_class(), encoding="utf-8")
        lines = ["client_id,client_secret", *(",".join(pair) for pair in SECRETS.items())]
        (folder / "callers.csv").write_text("\n".join(lines), encoding="utf-8")
        short = ("--headless", "-u", "10", "-r", "10", "-t", "2s")
        made = subprocess.run(
            [sys.executable, "-m", "lab", "run", "--", "-f", "acme_callers.py", *short, *words],
            cwd=folder,
            env=clean_environment(
                ACME_MCP_URL=url,
                ACME_CREDENTIALS_FILE="callers.csv",
                MCP_IDENTITY_STATS="1",
                MCP_INTRA_MIN="0.05",
                MCP_INTRA_MAX="0.1",
                MCP_TURN_MIN="0.1",
                MCP_TURN_MAX="0.2",
            ),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.code, self.said = made.returncode, made.stdout + made.stderr
        assert "report:" in self.said, self.said
        (self.folder,) = (folder / "runs").iterdir()
        text = (self.folder / "verdict.json").read_text(encoding="utf-8")
        self.facts: dict[str, Any] = json.loads(text)
        self.page = html.unescape((self.folder / "report.html").read_text(encoding="utf-8"))
        self.issuer = issuer

    def steps(self, what: str) -> Any:
        """The report's figures of one step."""
        (found,) = [each for each in self.facts["tokens"] if each["what"] == what]
        return found

    def rows(self) -> Iterator[dict[str, str]]:
        """Every sample of every process."""
        for path in (self.folder / "results").glob("*.csv"):
            with path.open(encoding="utf-8", newline="") as file:
                yield from ({**row, "process": path.name} for row in csv.DictReader(file))


@pytest.fixture(scope="module", params=[(), ("--processes", "2")], ids=["one", "two processes"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with OAuthStandin(time.time) as issuer, ProtectedServer(issuer) as server:
        folder = tmp_path_factory.mktemp("callers")
        yield Ran(folder, issuer.url, issuer, *request.param)
        assert server.failures == []


def test_users_are_dealt_the_callers_of_the_file_in_turn(ran: Ran) -> None:
    users = {label: set[str]() for label in ("acme#1", "acme#2", "acme#3")}
    for row in ran.rows():
        users[row["label"].partition(":")[0]].add(row["process"] + row["session"])

    assert ran.code == 0, ran.said
    assert sorted(map(len, users.values())) == [3, 3, 4]


def test_each_caller_has_lines_of_its_own_in_the_report(ran: Ran) -> None:
    for number in (1, 2, 3):
        assert ran.facts["labels"][f"acme#{number}:tools/call:search"]["failures"] == 0
        assert f"acme#{number}:tools/call:search" in ran.page


def test_the_report_counts_the_requests_for_tokens_of_every_process(ran: Ran) -> None:
    forms = len(ran.issuer.forms)

    assert forms >= 3
    assert ran.steps("token")["count"] == ran.steps("renewal")["count"] == forms
    assert ran.steps("challenge")["failures"] == {}
    assert ran.steps("token")["p95"] > 0
    assert "<h2>Tokens</h2>" in ran.page


def test_requests_for_tokens_are_no_samples(ran: Ran) -> None:
    called = {row["label"].partition(":")[2] for row in ran.rows()}

    assert called <= {
        *("initialize", "notifications/initialized", "tools/list", "tools/call:search", "DELETE")
    }


def test_neither_a_secret_nor_a_token_is_in_any_file_of_the_run(ran: Ran) -> None:
    for secret in (*SECRETS.values(), *ran.issuer.tokens):
        assert files_with(secret, ran.folder) == []
        assert secret not in ran.said


def test_a_refused_client_is_told_by_kind_and_its_users_wait(tmp_path: Path) -> None:
    with OAuthStandin(time.time) as issuer, ProtectedServer(issuer):
        url = issuer.url
        issuer.more_clients = {"caller-1": SECRETS["caller-1"]}
        ran = Ran(tmp_path, url, issuer)

    assert ran.steps("token")["failures"] == {"HTTP 401": 2}
    assert ran.steps("renewal")["failures"] == {"OAuthError": 2}
    assert "2 failed (2 HTTP 401)" in ran.said
    failed = {each["label"].partition(":")[0] for each in ran.facts["failures"]}
    assert failed == {"acme#2", "acme#3"}


def test_what_the_class_needs_is_missed_where_it_is_not_uploaded(tmp_path: Path) -> None:
    for path in ROOT.glob("*.py"):
        shutil.copy(path, tmp_path)
    (tmp_path / "acme_callers.py").write_text(readmes_class(), encoding="utf-8")
    manifest = (ROOT / "azure-loadtest.yaml").read_text(encoding="utf-8")
    plan = re.sub(r"(?m)^testPlan: .*$", "testPlan: acme_callers.py", manifest)
    (tmp_path / "azure-loadtest.yaml").write_text(plan, encoding="utf-8")
    found = "\n".join(map(str, check(tmp_path)))

    for module in ("_identities", "_oauth", "_discovery"):
        assert f'{module}. Add "- {module}.py"' in found


@pytest.mark.parametrize("way", ["one client", "callers"])
def test_any_server_signs_in_as_an_oauth_client_without_a_line_of_code(
    way: str, tmp_path: Path
) -> None:
    pairs = [f"{who},{secret}" for who, secret in SECRETS.items()]
    signs_in = {
        "one client": {"ANY_CLIENT_ID": "caller-1", "ANY_CLIENT_SECRET": SECRETS["caller-1"]},
        "callers": {"ANY_CREDENTIALS": "\n".join(["client_id,client_secret", *pairs])},
    }[way]
    with OAuthStandin(time.time) as issuer, ProtectedServer(issuer) as server:
        short = ["-f", "any_server.py", "--headless", "-u", "3", "-r", "3", "-t", "3s", "--csv"]
        ran = subprocess.run(
            [sys.executable, "-m", "locust", *short, tmp_path / "a"],
            cwd=ROOT,
            env=clean_environment(
                ANY_MCP_URL=issuer.url, ANY_USERS="3", ANY_TOOLS="echo", **signs_in
            ),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        callers = {each.headers["authorization"] for each in server.of("tools/list")}

    assert ran.returncode == 0, ran.stderr
    assert len(callers) == len(issuer.forms) == (1 if way == "one client" else 3)
