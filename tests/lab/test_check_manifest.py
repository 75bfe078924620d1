"""The 65 recorded mutations of azure-loadtest.yaml, each through the whole of ``lab check``.

Each is written as a change of the minimal valid file, by its recorded name. It must be an error
wherever the GitHub action refused it or the strict schema refuses it, and no error elsewhere.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from lab.check import check
from lab.lint.finding import Finding, Level

DATA = Path(__file__).parents[2] / "lab" / "data" / "azure"
MINIMAL = (DATA / "minimal-valid-azure-loadtest.yaml").read_text(encoding="utf-8")
RECORDED: dict[str, str] = {
    case["case"]: case["result"]
    for case in json.loads((DATA / "parser_results_yaml.json").read_text(encoding="utf-8"))["cases"]
}
SCHEMA = Draft202012Validator(
    json.loads((DATA / "azure-loadtest.strict.schema.json").read_text(encoding="utf-8"))
)

PROJECT = {
    "multi.py": """from __future__ import annotations

from _base import MCPUserBase, load_lines

QUERIES = load_lines("queries.txt")
TOKEN = "GITHUB_MCP_TOKEN"


class GitHubUser(MCPUserBase):
    server_label = "github"

    def search(self) -> None:
        self._call("search_code", {"query": QUERIES[0]})
""",
    "_base.py": """from __future__ import annotations

from pathlib import Path

from locust import FastHttpUser


class MCPUserBase(FastHttpUser):
    abstract = True


def load_lines(name: str) -> list[str]:
    return Path(name).read_text(encoding="utf-8").splitlines()
""",
    "requirements.txt": "locust>=2.33.2\n",
    "queries.txt": "a query\n",
    "locust.conf": "locustfile = multi.py\nusers = 17\n",
    "locust.toml": '[tool.locust]\nlocustfile = "multi.py"\nusers = 17\n',
    "locust.cfg": "users = 17\n",
    "multi.txt": "",
    "sub/queries.txt": "a query\n",
    "data.txt": "",
}

Mutation = Callable[[str], str]


def swap(old: str, new: str) -> Mutation:
    def mutate(text: str) -> str:
        assert text.count(old) == 1, (old, text.count(old))
        return text.replace(old, new)

    return mutate


def add(lines: str) -> Mutation:
    return lambda text: f"{text}{lines}\n"


def both(*mutations: Mutation) -> Mutation:
    def mutate(text: str) -> str:
        for each in mutations:
            text = each(text)
        return text

    return mutate


NO_IDENTITIES = swap("referenceIdentities:\n  - kind: KeyVault\n    type: SystemAssigned\n", "")
USERS = '  - name: LOCUST_USERS\n    value: "17"\n'
AUTO_STOP = "autoStop:\n  errorPercentage: 80\n  timeWindow: 60\n"
SECRET = "https://example-kv.vault.azure.net/secrets/github-mcp-token"
KEY_VAULT = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/"
    "Microsoft.ManagedIdentity/userAssignedIdentities/load"
)
REGIONS = "regionalLoadTestConfig:\n  - region: eastus\n    engineInstances: 1"
SECOND_REGION = "\n  - region: westeurope\n    engineInstances: 1"

MUTATIONS: dict[str, Mutation] = {
    "upstream as is": both(NO_IDENTITIES, add("keyvaultReferenceIdentityType: SystemAssigned")),
    "upstream, key renamed": both(
        NO_IDENTITIES, add("keyVaultReferenceIdentityType: SystemAssigned")
    ),
    "no identityType": NO_IDENTITIES,
    "version missing": swap("version: v0.1\n", ""),
    "version v9": swap("version: v0.1", "version: v9"),
    "testType locust lower": swap("testType: Locust", "testType: locust"),
    "testType LOCUST": swap("testType: Locust", "testType: LOCUST"),
    "no testType (.py)": swap("testType: Locust\n", ""),
    "testId uppercase": swap("testId: mcp-multi-flat", "testId: MCP-multi-flat"),
    "testId dot": swap("testId: mcp-multi-flat", "testId: mcp.multi"),
    "testId 1 char": swap("testId: mcp-multi-flat", "testId: m"),
    "testId 51": swap("testId: mcp-multi-flat", f"testId: {'m' * 51}"),
    "displayName 51": swap("displayName: MCP multi-server", f"displayName: {'d' * 51}"),
    "description 101": swap(
        "description: Locust load test of hosted MCP servers", f"description: {'d' * 101}"
    ),
    "testPlan .txt": swap("testPlan: multi.py", "testPlan: multi.txt"),
    "testPlan .PY": swap("testPlan: multi.py", "testPlan: multi.PY"),
    "engine 0": swap("engineInstances: 1", "engineInstances: 0"),
    "engine 401": swap("engineInstances: 1", "engineInstances: 401"),
    "engine 1.5": swap("engineInstances: 1", "engineInstances: 1.5"),
    'engine "2"': swap("engineInstances: 1", 'engineInstances: "2"'),
    "engine two": swap("engineInstances: 1", "engineInstances: two"),
    "prop .cfg": swap("userPropertyFile: locust.conf", "userPropertyFile: locust.cfg"),
    "prop .toml": swap("userPropertyFile: locust.conf", "userPropertyFile: locust.toml"),
    "properties other key": swap("properties:\n", "properties:\n  other: true\n"),
    "env int": swap(USERS, USERS.replace('"17"', "17")),
    "env bool": swap(USERS, USERS.replace('"17"', "true")),
    "env null": swap(USERS, USERS.replace('"17"', "null")),
    "env no name": swap(USERS, '  - value: "17"\n'),
    "env dup": swap(USERS, USERS * 2),
    "env as map": lambda text: re.sub(
        r"env:\n(?:  .*\n)+", 'env:\n  LOCUST_USERS: "17"\n', text, count=1
    ),
    "secret raw value": swap(SECRET, "abc"),
    "secret /keys/": swap(SECRET, SECRET.replace("/secrets/", "/keys/")),
    "secret empty name": swap("  - name: GITHUB_MCP_TOKEN\n    value:", "  - value:"),
    "cfgfile subdir": swap("  - queries.txt", "  - sub/queries.txt"),
    "cfgfile dict": swap("  - queries.txt", "  - queries.txt: data.txt"),
    "cfgfile dup": swap("  - queries.txt", "  - queries.txt\n  - queries.txt"),
    "config contains testPlan": swap("  - queries.txt", "  - queries.txt\n  - multi.py"),
    "autoStop disable": swap(AUTO_STOP, "autoStop: disable\n"),
    "autoStop false": swap(AUTO_STOP, "autoStop: false\n"),
    "autoStop only pct": swap("  timeWindow: 60\n", ""),
    "autoStop only window": swap("  errorPercentage: 80\n", ""),
    "autoStop pct 0": swap("errorPercentage: 80", "errorPercentage: 0"),
    "autoStop pct 80.5": swap("errorPercentage: 80", "errorPercentage: 80.5"),
    "autoStop window 0": swap("timeWindow: 60", "timeWindow: 0"),
    "autoStop window 1.5": swap("timeWindow: 60", "timeWindow: 1.5"),
    "autoStop +maxVU": swap(AUTO_STOP, AUTO_STOP + "  maximumVirtualUsersPerEngine: 500\n"),
    "autoStop unknown": swap(AUTO_STOP, AUTO_STOP + "  other: 1\n"),
    "autoStop null": swap(AUTO_STOP, "autoStop:\n"),
    "splitAllCSVs true": add("splitAllCSVs: true"),
    'splitAllCSVs "true"': add('splitAllCSVs: "true"'),
    "splitAllCSVs True": add("splitAllCSVs: True"),
    "publicIPDisabled w/o subnet": add("publicIPDisabled: true"),
    "quickStartTest": add("quickStartTest: true"),
    "x-anchor key": add("x-common: &common\n  name: A"),
    "kvType lower + kv": add(f"keyVaultReferenceIdentity: {KEY_VAULT}"),
    "refIdentities alone": lambda text: text,
    "regional 1": add(REGIONS),
    "regional 2 sum mismatch": add(REGIONS + SECOND_REGION),
    "regional 2 ok": both(
        swap("engineInstances: 1", "engineInstances: 2"), add(REGIONS + SECOND_REGION)
    ),
    "duplicate yaml key": add("testId: mcp-multi-flat"),
    "zip in list": add("zipArtifacts:\n  - data.zip"),
    "zip non-zip": add("zipArtifacts:\n  - data.txt"),
    "empty file": lambda _: "",
    "list file": lambda _: "- version: v0.1\n",
    "anchors": both(swap("testId: mcp-multi-flat", "testId: &id mcp-multi-flat"),
                    swap("displayName: MCP multi-server", "displayName: *id")),
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with everything that the mutations name."""
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "multi.PY").write_text(PROJECT["multi.py"], encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("inside.txt", "data")
    return tmp_path


def errors(project: Path, text: str) -> list[Finding]:
    (project / "azure-loadtest.yaml").write_text(text, encoding="utf-8")
    return [finding for finding in check(project) if finding.level is Level.ERROR]


def refused_by_schema(text: str) -> bool:
    data: Any = yaml.safe_load(text)
    return not SCHEMA.is_valid(data)


def test_every_recorded_case_is_written_as_a_mutation_and_no_other() -> None:
    assert len(RECORDED) == 65
    assert set(MUTATIONS) == set(RECORDED)


def test_every_mutation_changes_the_file_except_the_one_that_is_the_file() -> None:
    same = [name for name, mutate in MUTATIONS.items() if mutate(MINIMAL) == MINIMAL]

    assert same == ["refIdentities alone"]


def test_the_minimal_file_has_no_error(project: Path) -> None:
    assert errors(project, MINIMAL) == []


@pytest.mark.parametrize("name", RECORDED)
def test_a_case_is_an_error_exactly_where_the_action_or_the_strict_schema_refuses_it(
    name: str, project: Path
) -> None:
    text = MUTATIONS[name](MINIMAL)
    refused = RECORDED[name].startswith("ERR") or refused_by_schema(text)

    found = errors(project, text)

    assert bool(found) == refused, found
    assert all(finding.cure and finding.line >= 1 for finding in found)
    assert not refused or "azure-loadtest.yaml" in {finding.file for finding in found}


def test_both_verdicts_are_among_the_cases() -> None:
    refused = [
        name
        for name, result in RECORDED.items()
        if result.startswith("ERR") or refused_by_schema(MUTATIONS[name](MINIMAL))
    ]

    assert 40 < len(refused) < 55


@pytest.mark.parametrize(
    ("name", "line", "value", "cure"),
    [
        ("upstream as is", 33, "keyvaultReferenceIdentityType", "referenceIdentities"),
        ("testType locust lower", 5, "locust", "testType: Locust"),
        ("engine 401", 7, "401", "1 to 400"),
        ("env int", 16, "17", 'value: "17"'),
        ("autoStop only pct", 33, "", "timeWindow"),
        ("cfgfile dup", 8, "queries.txt", "List each file once"),
        ("regional 2 sum mismatch", 36, "2", "engineInstances: 2"),
        ("kvType lower + kv", 36, "keyVaultReferenceIdentity", "Remove"),
        ("duplicate yaml key", 36, "testId", "Keep one"),
        ("secret raw value", 23, "(not shown)", "vault.azure.net"),
    ],
)
def test_an_error_has_its_line_its_value_and_its_cure(
    name: str, line: int, value: str, cure: str, project: Path
) -> None:
    (finding, *_) = errors(project, MUTATIONS[name](MINIMAL))

    assert finding.line == line, finding
    assert value in finding.value
    assert cure in finding.cure


@pytest.mark.parametrize("secret", ["hunter2-hunter2", "ghp_" + "a1B2" * 9])
def test_a_secret_in_the_wrong_place_is_never_printed(secret: str, project: Path) -> None:
    for text in (
        MINIMAL.replace(SECRET, secret),
        MINIMAL.replace(SECRET, secret).replace("GITHUB_MCP_TOKEN", "PLAIN"),
        MINIMAL.replace('value: "17"', f"value: {secret}").replace("LOCUST_USERS", "MY_TOKEN"),
        MINIMAL.replace('value: "17"', "value: [" + secret + "]").replace("LOCUST_USERS", "A_KEY"),
    ):
        (project / "azure-loadtest.yaml").write_text(text, encoding="utf-8")
        report = "\n".join(str(finding) for finding in check(project))
        assert "error" in report
        assert secret not in report
