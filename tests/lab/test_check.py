"""``lab check``: each fault planted in a sound project is found with its line, value and cure.

The faults are planted twice: in a small project of the test's own, whose lines are known, and
in a copy of the one that is shipped.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.check import check
from lab.lint.finding import Finding, Level

ROOT = Path(__file__).parents[2]
MANIFEST = "azure-loadtest.yaml"

SMALL = {
    MANIFEST: """version: v0.1
testId: mcp-multi-flat
testType: Locust
testPlan: multi.py
engineInstances: 1
configurationFiles:
  - _base.py
  - _workload.py
  - github.py
  - learn.py
  - requirements.txt
  - queries/github_queries.txt
  - queries/learn_queries.txt
properties:
  userPropertyFile: locust.conf
env:
  - name: LOCUST_USERS
    value: "7"
  - name: LOCUST_RUN_TIME
    value: "900"
  - name: GITHUB_USERS
    value: "2"
secrets:
  - name: GITHUB_MCP_TOKEN
    value: https://your-key-vault.vault.azure.net/secrets/github-mcp-token
referenceIdentities:
  - kind: KeyVault
    type: SystemAssigned
failureCriteria:
  clientMetrics:
    - percentage(error) > 25
    - avg(response_time_ms) > 8000
    - "github:tools/call:search_code": p95(response_time_ms) > 3000
    - "learn:tools/list": p95(response_time_ms) > 3000
autoStop:
  errorPercentage: 80
  timeWindow: 60
""",
    "multi.py": '''"""Both servers in one process."""

from __future__ import annotations

from github import GitHubUser
from learn import LearnUser

__all__ = ["GitHubUser", "LearnUser"]
''',
    "github.py": '''"""GitHub's server."""

from __future__ import annotations

from locust import task

from _base import MCPUserBase
from _workload import count, load_lines

QUERIES = load_lines("github_queries.txt")


class GitHubUser(MCPUserBase):
    server_label = "github"
    fixed_count = count("GITHUB_USERS", 2)
    needs = ("GITHUB_MCP_TOKEN",)

    @task
    def search(self) -> None:
        self._call("search_code", {"query": QUERIES[0]})
''',
    "learn.py": '''"""Microsoft Learn's server."""

from __future__ import annotations

from locust import task

from _base import MCPUserBase
from _workload import count, load_lines

QUERIES = load_lines("learn_queries.txt")


class LearnUser(MCPUserBase):
    server_label = "learn"
    fixed_count = count("LEARN_USERS", 5)

    @task
    def search(self) -> None:
        self._call("microsoft_docs_search", {"query": QUERIES[0]})
''',
    "_base.py": """from __future__ import annotations

from typing import Any

import orjson
from locust import FastHttpUser


class MCPUserBase(FastHttpUser):
    abstract = True
    requires_session = True

    def _call(self, tool: str, arguments: Any, *, name: str | None = None) -> None:
        orjson.dumps(arguments)
        self._jsonrpc("tools/call", arguments, name=name or tool)

    def _jsonrpc(self, method: str, params: Any, *, name: str | None = None) -> None:
        pass
""",
    "_workload.py": """from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENV_FILE = HERE / ".env"


def load_lines(name: str) -> list[str]:
    places = (HERE / "queries" / name, HERE / name)
    return next(p for p in places if p.is_file()).read_text(encoding="utf-8").splitlines()


def count(variable: str, default: int) -> int:
    return int(os.environ.get(variable, default))
""",
    "requirements.txt": "# the engine's own\nlocust>=2.33.2\norjson>=3.10\n",
    "locust.conf": "locustfile = multi.py\nheadless = true\nusers = 7\nrun-time = 15m\n",
    "queries/github_queries.txt": "repo:a b\n",
    "queries/learn_queries.txt": "What is MCP?\n",
    "pyproject.toml": "[tool.locust]\nusers = 3\n",
    ".env": "GITHUB_MCP_TOKEN=not-read\n",
}

Plant = Callable[[Path], object]


@dataclass(frozen=True)
class Fault:
    """A fault, and the one error that must tell it. line is a text that only its line has."""

    plant: Plant
    file: str
    line: str
    value: str
    cure: str


def edit(folder: Path, name: str, change: Callable[[str], str]) -> None:
    path = folder / name
    old = path.read_text(encoding="utf-8")
    new = change(old)
    assert new != old, f"nothing was planted in {name}"
    path.write_text(new, encoding="utf-8")


def append(name: str, text: str) -> Plant:
    return lambda folder: edit(folder, name, lambda old: f"{old}{text}\n")


def item(key: str, lines: str) -> Plant:
    """Add an item at the head of one of the manifest's lists, indented as its others are."""

    def plant(folder: Path) -> None:
        def change(text: str) -> str:
            found = re.search(rf"^ *{key}:\n(?: *#.*\n)*(?P<indent> *)- ", text, re.MULTILINE)
            assert found, f"the manifest has no list {key}"
            at, indent = found.start("indent"), found["indent"]
            new = "".join(f"{indent}{line}\n" for line in lines.splitlines())
            return text[:at] + new + text[at:]

        edit(folder, MANIFEST, change)

    return plant


def drop(line: str) -> Plant:
    def plant(folder: Path) -> None:
        listed = re.compile(rf"^ *- {re.escape(line)}\n", re.MULTILINE)
        edit(folder, MANIFEST, lambda text: listed.sub("", text))

    return plant


def several(*plants: Plant) -> Plant:
    def plant(folder: Path) -> None:
        for each in plants:
            each(folder)

    return plant


def write(name: str, text: str) -> Plant:
    def plant(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    return plant


def remove(name: str) -> Plant:
    return lambda folder: (folder / name).unlink()


def a_query_file(folder: Path) -> str:
    return next(p.name for p in sorted((folder / "queries").glob("github_*.txt")))


def a_second_one_of_the_same_name(folder: Path) -> None:
    name = a_query_file(folder)
    write(f"other/{name}", "another\n")(folder)
    item("configurationFiles", f"- other/{name}")(folder)


def users(number: str) -> Plant:
    def plant(folder: Path) -> None:
        pattern = re.compile(r'(name: LOCUST_USERS\n\s*value: )"\d+"')
        edit(folder, MANIFEST, lambda text: pattern.sub(rf'\1"{number}"', text))

    return plant


def python(code: str) -> Plant:
    return append("github.py", f"\n\n{code}")


TOKEN = "ghp_" + "a1B2" * 9

FAULTS = {
    "an unlisted module": Fault(drop("_base.py"), "*.py", "from _base", "_base", "- _base.py"),
    "an unlisted query file": Fault(
        several(write("queries/new.txt", "x\n"), python('NEW = load_lines("new.txt")')),
        "github.py",
        '"new.txt"',
        "new.txt",
        "- queries/new.txt",
    ),
    "a listed file that is missing": Fault(
        item("configurationFiles", "- gone.txt"), MANIFEST, "gone.txt", "gone.txt", "remove"
    ),
    "a query file that is nowhere": Fault(
        python('NEW = load_lines("nowhere.txt")'), "github.py", "nowhere", "nowhere.txt", "Write"
    ),
    "a new local import": Fault(
        several(write("novel.py", "X = 1\n"), python("import novel")),
        "github.py",
        "import novel",
        "novel",
        "- novel.py",
    ),
    "an import that nothing brings": Fault(
        python("import numpy_but_not_there"),
        "github.py",
        "numpy_but_not_there",
        "numpy_but_not_there",
        "requirements.txt",
    ),
    "match": Fault(
        python("def f(a):\n    match a:\n        case 1:\n            return 2"),
        "github.py",
        "match a",
        "match a:",
        "3.9",
    ),
    "a union in isinstance": Fault(
        python("def f(a):\n    return isinstance(a, int | str)"),
        "github.py",
        "isinstance",
        "return isinstance(a, int | str)",
        "Optional[X]",
    ),
    "a union as an alias": Fault(
        python("Maybe = int | None"), "github.py", "Maybe", "Maybe = int | None", "Optional[X]"
    ),
    "a union in an annotation that is evaluated": Fault(
        several(
            write("novel.py", "def f(a: str | None) -> None: ...\n"),
            python("import novel"),
            item("configurationFiles", "- novel.py"),
        ),
        "novel.py",
        "def f",
        "def f(a: str | None)",
        "from __future__ import annotations",
    ),
    "a module of 3.11": Fault(
        python("import tomllib"), "github.py", "tomllib", "import tomllib", "3.9"
    ),
    "a name of 3.10": Fault(
        python("from itertools import pairwise"), "github.py", "pairwise", "pairwise", "3.9"
    ),
    "a parameter of 3.10": Fault(
        python("list(zip([], [], strict=True))"), "github.py", "strict=", "strict=True", "3.9"
    ),
    "users against the sum": Fault(users("9"), MANIFEST, 'value: "9"', "9", "LOCUST_USERS to "),
    "a criterion on an impossible label": Fault(
        item("clientMetrics", '- "github:tools/call:search_cod": p95(response_time_ms) > 9'),
        MANIFEST,
        'search_cod"',
        "github:tools/call:search_cod",
        'Write "github:tools/call:search_code"',
    ),
    "a criterion on a label of no class": Fault(
        item("clientMetrics", '- "nobody:initialize": p95(response_time_ms) > 9'),
        MANIFEST,
        "nobody",
        "nobody:initialize",
        "Write",
    ),
    "a duplicate basename": Fault(
        a_second_one_of_the_same_name, MANIFEST, "queries/", "queries/", "Rename"
    ),
    "a duplicate key": Fault(
        append(MANIFEST, "testType: Locust # again"), MANIFEST, "again", "testType", "Keep one"
    ),
    "an unknown key": Fault(append(MANIFEST, "x-common: 1"), MANIFEST, "x-c", "x-common", "Remove"),
    "0.5": Fault(
        item("clientMetrics", "- percentage(error) > 0.5"),
        MANIFEST,
        "0.5",
        "percentage(error) > 0.5",
        "whole number",
    ),
    ">=": Fault(
        item("clientMetrics", "- avg(response_time_ms) >= 300"),
        MANIFEST,
        ">=",
        "avg(response_time_ms) >= 300",
        "Write >",
    ),
    "an unknown conf key": Fault(
        append("locust.conf", "spawn_rate = 5"),
        "locust.conf",
        "spawn_rate",
        "spawn_rate",
        "Write spawn-rate",
    ),
    "a conf value of the wrong type": Fault(
        append("locust.conf", "stop-timeout = soon"),
        "locust.conf",
        "soon",
        "soon",
        "15m",
    ),
    "a key for distributed runs": Fault(
        append("locust.conf", "processes = 2"),
        "locust.conf",
        "processes",
        "processes",
        "engineInstances",
    ),
    "pyproject listed": Fault(
        item("configurationFiles", "- pyproject.toml"),
        MANIFEST,
        "pyproject.toml",
        "pyproject.toml",
        "Remove",
    ),
    ".env listed": Fault(
        several(write(".env", "A=b\n"), item("configurationFiles", "- .env")),
        MANIFEST,
        "- .env",
        ".env",
        "Remove",
    ),
    "a wildcard": Fault(
        item("configurationFiles", "- 'queries/q%.txt'"),
        MANIFEST,
        "q%",
        "queries/q%.txt",
        "Rename",
    ),
    "locust>=2.40": Fault(
        lambda folder: edit(
            folder,
            "requirements.txt",
            lambda text: re.sub(r"^locust\b.*$", "locust>=2.40", text, flags=re.MULTILINE),
        ),
        "requirements.txt",
        "locust>=2.40",
        "locust>=2.40",
        "locust>=2.33.2",
    ),
    "a release that Python 3.9 does not have": Fault(
        append("requirements.txt", "gevent>=26.1"),
        "requirements.txt",
        "gevent>=26.1",
        "gevent>=26.1",
        "gevent<=25.9.1",
    ),
    "a requirement by its path": Fault(
        append("requirements.txt", "./local-1.0-py3-none-any.whl"),
        "requirements.txt",
        "./local",
        "./local",
        "PyPI",
    ),
    "LOCUST_HOST in env": Fault(
        item("env", '- name: LOCUST_HOST\n  value: "https://example.org"'),
        MANIFEST,
        "LOCUST_HOST",
        "https://example.org",
        "LEARN_MCP_URL",
    ),
    "a host in the conf": Fault(
        append("locust.conf", "host = https://example.org"),
        "locust.conf",
        "example.org",
        "https://example.org",
        "MCP_URL",
    ),
    "a secret in clear text in env": Fault(
        item("env", '- name: CONTEXT7_API_KEY\n  value: "hunter2-hunter2"'),
        MANIFEST,
        "CONTEXT7_API_KEY\n  ",
        "(not shown)",
        "Key Vault",
    ),
    "a token in a query file": Fault(
        lambda folder: append(f"queries/{a_query_file(folder)}", f"use {TOKEN}")(folder),
        "queries/*",
        TOKEN,
        "(not shown)",
        "Key Vault",
    ),
    "a token in the code": Fault(
        python(f'HEADERS = {{"X": "{TOKEN}"}}'), "github.py", TOKEN, "(not shown)", "Key Vault"
    ),
    "a password in the code": Fault(
        python('API_KEY = "0123456789abcdef"'), "github.py", "API_KEY", "(not shown)", "Key Vault"
    ),
    "engines without MCP_ENGINES": Fault(
        lambda folder: edit(
            folder, MANIFEST, lambda text: text.replace("engineInstances: 1", "engineInstances: 2")
        ),
        MANIFEST,
        "engineInstances",
        "2",
        'value: "2"',
    ),
    "MCP_ENGINES that differs": Fault(
        item("env", '- name: MCP_ENGINES\n  value: "3"'),
        MANIFEST,
        "MCP_ENGINES",
        "3",
        'value: "1"',
    ),
    "a count that does not divide": Fault(
        several(
            lambda folder: edit(
                folder,
                MANIFEST,
                lambda text: text.replace("engineInstances: 1", "engineInstances: 2"),
            ),
            item("env", '- name: MCP_ENGINES\n  value: "2"'),
        ),
        "*",
        "LEARN_USERS",
        "5",
        "4 or 6",
    ),
    "a count that is no number": Fault(
        several(
            lambda folder: (folder / MANIFEST).write_text(
                re.sub(
                    r" *- name: GITHUB_USERS\n.*\n",
                    "",
                    (folder / MANIFEST).read_text(encoding="utf-8"),
                ),
                encoding="utf-8",
            ),
            item("env", '- name: GITHUB_USERS\n  value: "two"'),
        ),
        MANIFEST,
        "GITHUB_USERS",
        "two",
        'value: "5"',
    ),
    "a needed variable that is not given": Fault(
        lambda folder: edit(
            folder,
            MANIFEST,
            lambda text: re.sub(r" *- name: GITHUB_MCP_TOKEN\n.*\n", "", text),
        ),
        MANIFEST,
        "env:",
        "GITHUB_MCP_TOKEN",
        "env or secrets",
    ),
    "two classes under one label": Fault(
        lambda folder: edit(
            folder, "learn.py", lambda text: text.replace('label = "learn"', 'label = "github"')
        ),
        "learn.py",
        "class LearnUser",
        "github",
        "own label",
    ),
}


def copy_of_the_shipped_project(folder: Path) -> None:
    for path in [*ROOT.glob("*.py"), *ROOT.glob("*.txt"), *ROOT.glob("*.toml")]:
        shutil.copy(path, folder)
    for name in (MANIFEST, "locust.conf"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "queries", folder / "queries")


def small_project(folder: Path) -> None:
    for name, text in SMALL.items():
        write(name, text)(folder)


@pytest.fixture(params=["small", "shipped"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a sound project to plant a fault in."""
    if request.param == "small":
        small_project(tmp_path)
    elif (ROOT / MANIFEST).is_file():
        copy_of_the_shipped_project(tmp_path)
    else:
        pytest.skip("the shipped project has no manifest yet")
    return tmp_path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the test's own project."""
    small_project(tmp_path)
    return tmp_path


def errors(folder: Path) -> list[Finding]:
    return [finding for finding in check(folder) if finding.level is Level.ERROR]


def test_a_sound_project_is_silent_but_for_its_placeholders(project: Path) -> None:
    findings = check(project)

    assert [f for f in findings if f.level is not Level.NOTE] == []
    assert findings
    assert all("placeholder" in finding.what for finding in findings), findings


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_an_error_with_its_file_line_value_and_cure(
    name: str, project: Path
) -> None:
    fault = FAULTS[name]
    fault.plant(project)

    found = errors(project)

    told = [
        finding
        for finding in found
        if Path(finding.file).match(fault.file)
        and fault.value in finding.value
        and fault.cure in finding.cure
        and fault.line.strip() in around(project, finding)
    ]
    assert told, [str(finding) for finding in found]
    assert TOKEN not in "\n".join(str(finding) for finding in found)
    assert "hunter2" not in "\n".join(str(finding) for finding in found)


def around(project: Path, finding: Finding) -> str:
    """Return the finding's line and the one after it, where a list item's value stands."""
    lines = (project / finding.file).read_text(encoding="utf-8").splitlines()
    return "\n".join(lines[finding.line - 1 : finding.line + 1])


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_raises_no_alarm_elsewhere_in_the_small_project(
    name: str, small: Path
) -> None:
    """One fault may be told from two sides, by the list and by the code; engines from three."""
    FAULTS[name].plant(small)

    assert 1 <= len(errors(small)) <= (3 if "engines" in name else 2)
