"""The rules of ``lab check`` one by one: what they find, and what they are silent on."""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path

import pytest

from lab import check as command
from lab.check import check
from lab.lint import conf, placeholders, uploads
from lab.lint.finding import Finding, Level, is_secretive, looks_like_a_token, shown

MANIFEST = """version: v0.1
testId: some-test
testType: Locust
testPlan: multi.py
engineInstances: {engines}
configurationFiles:
  - requirements.txt
{files}properties:
  userPropertyFile: locust.conf
env:
  - name: LOCUST_USERS
    value: "{users}"
{env}failureCriteria:
{criteria}  - avg(response_time_ms) > 8000
{more}"""

BASE = """from __future__ import annotations

from locust import FastHttpUser


class MCPUserBase(FastHttpUser):
    abstract = True


class StatelessMCPUser(MCPUserBase):
    abstract = True
"""


class Folder:
    """A project of as many files as a test needs, and what the check says of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parts: dict[str, str] = {"engines": "1", "users": "1"}
        self.write("requirements.txt", "locust>=2.33.2\n")
        self.write("locust.conf", "locustfile = multi.py\n")

    def write(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text(text, encoding="utf-8")

    def plan(self, body: str, head: str = "") -> None:
        start = "from __future__ import annotations\n\n"
        self.write("multi.py", f"{start}{head}{BASE.partition('annotations')[2]}\n\n{body}")

    def found(self, **parts: str) -> list[Finding]:
        filled = {"files": "", "env": "", "criteria": "", "more": "", **self.parts, **parts}
        self.write("azure-loadtest.yaml", MANIFEST.format(**filled))
        return check(self.path)

    def only(self, **parts: str) -> Finding:
        findings = self.found(**parts)
        assert len(findings) == 1, [str(finding) for finding in findings]
        return findings[0]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a sound project of one class."""
    made = Folder(tmp_path)
    made.plan(LEARN)
    return made


LEARN = """class LearnUser(MCPUserBase):
    server_label = "learn"

    def search(self) -> None:
        self._call("search", {})
"""


def criterion(name: str) -> str:
    return f'  - "{name}": avg(response_time_ms) > 8000\n'


def variable(name: str, value: str) -> str:
    return f'  - name: {name}\n    value: "{value}"\n'


def test_a_sound_project_is_silent(folder: Folder) -> None:
    assert folder.found() == []


# --- labels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "learn:initialize",
        "learn:notifications/initialized",
        "learn:tools/list",
        "learn:tools/call:search",
        "learn:DELETE",
    ],
)
def test_a_criterion_may_name_what_a_class_sends(name: str, folder: Folder) -> None:
    assert folder.found(criteria=criterion(name)) == []


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('self._call_all([{"tool": "a"}, dict(tool="b", name="c")])', "tools/call:a tools/call:c"),
        ('self._get_prompt("greet")', "prompts/get:greet"),
        ('self._get_prompt("greet", name="hello")', "prompts/get:hello"),
        ('self._read_resource("file:///a")', "resources/read"),
        ('self._read_resource("file:///a", name="page")', "resources/read:page"),
        ("self._prompts_list()", "prompts/list"),
        ('self._call(tool="a", arguments={})', "tools/call:a"),
        ('self._jsonrpc("logging/setLevel", {}, name="debug")', "logging/setLevel:debug"),
    ],
)
def test_every_way_to_send_has_its_name(code: str, names: str, folder: Folder) -> None:
    folder.plan(f"{LEARN}        {code}\n")

    criteria = "".join(criterion(f"learn:{name}") for name in names.split())

    assert folder.found(criteria=criteria) == []
    assert folder.only(criteria=criterion("learn:tools/call:other")).level is Level.ERROR


def test_calls_written_down_in_one_method_and_sent_in_another_have_their_names(
    folder: Folder,
) -> None:
    folder.plan(
        f"{LEARN}        self._call(**self.one())\n"
        "        self._call_all([self.one(), self.two()])\n\n"
        "    def one(self):\n"
        '        return {"tool": "first", "arguments": {}}\n\n'
        "    def two(self):\n"
        '        return dict(tool="second", arguments={}, name="renamed")\n'
    )
    sent = ("first", "renamed", "search")

    assert folder.found(criteria="".join(criterion(f"learn:tools/call:{n}") for n in sent)) == []
    assert folder.only(criteria=criterion("learn:tools/call:second")).level is Level.ERROR


def test_a_call_written_down_with_a_tool_of_the_run_leaves_the_names_open(folder: Folder) -> None:
    folder.plan(
        f"{LEARN}        self._call(**self.one())\n\n"
        "    def one(self):\n"
        '        return {"tool": self.tools[0], "arguments": {}}\n'
    )

    assert folder.only(criteria=criterion("learn:tools/call:any")).level is Level.NOTE


@pytest.mark.parametrize("code", ["self._call_all(self.plan())", "self._call_all([self.one()])"])
def test_calls_made_up_in_the_run_leave_the_names_open(code: str, folder: Folder) -> None:
    folder.plan(f"{LEARN}        {code}\n")

    assert folder.only(criteria=criterion("learn:tools/call:other")).level is Level.NOTE


@pytest.mark.parametrize("name", ["learn:tools/call:serch", "learn:ping", "front page"])
def test_a_criterion_may_not_name_what_no_class_sends(name: str, folder: Folder) -> None:
    finding = folder.only(criteria=criterion(name))

    assert (finding.level, finding.value) == (Level.ERROR, name)


@pytest.mark.parametrize("name", ["notifications/cancelled", "server/discover"])
def test_a_criterion_on_what_is_sent_only_at_times_is_a_warning(name: str, folder: Folder) -> None:
    finding = folder.only(criteria=criterion(f"learn:{name}"))

    assert finding.level is Level.WARNING


def test_names_are_found_through_inheritance_constants_and_the_name_argument(
    folder: Folder,
) -> None:
    folder.write("_base.py", BASE)
    folder.write(
        "shared.py",
        'from _base import MCPUserBase\n\nTOOL = "from_a_constant"\n\n\n'
        "class Shared(MCPUserBase):\n"
        "    abstract = True\n"
        '    server_label = "shared"\n'
        '    other = "from_an_attribute"\n\n'
        "    def a(self):\n"
        "        self._call(TOOL, {})\n"
        "        self._call(self.other, {})\n"
        '        self._call("hidden", {}, name="by_its_name")\n'
        '        self._call("one" if self.other else "two", {})\n'
        '        self._jsonrpc("prompts/list")\n',
    )
    folder.write(
        "multi.py",
        "from shared import Shared as Common\n\n\nclass OneUser(Common):\n"
        '    server_label = "one"\n',
    )
    tools = ("from_a_constant", "from_an_attribute", "by_its_name", "one", "two")
    sent = [f"one:tools/call:{tool}" for tool in tools] + ["one:prompts/list"]
    files = "  - _base.py\n  - shared.py\n"

    assert folder.found(files=files, criteria="".join(map(criterion, sent))) == []
    assert folder.only(files=files, criteria=criterion("one:tools/call:hidden")).value
    assert folder.only(files=files, criteria=criterion("shared:tools/list")).value


def test_a_class_that_finds_its_tools_in_the_run_gets_a_note_and_no_error(folder: Folder) -> None:
    folder.plan(LEARN.replace('"search"', 'self.tools[0]["name"]'))

    finding = folder.only(criteria=criterion("learn:tools/call:whatever"))

    assert finding.level is Level.NOTE
    assert folder.only(criteria=criterion("lurn:tools/list")).level is Level.ERROR


def test_a_plain_locust_user_may_send_any_name_but_not_anothers_label(folder: Folder) -> None:
    folder.plan(f"class PageUser(FastHttpUser):\n    pass\n\n\n{LEARN}")

    assert folder.only(criteria=criterion("front page")).level is Level.NOTE
    assert folder.only(criteria=criterion("learn:nothing")).level is Level.ERROR


def test_more_labels_than_the_service_has_graphs_for_are_a_warning(folder: Folder) -> None:
    calls = [f'        self._call("tool{n}", {{}})\n' for n in range(26)]
    folder.plan(LEARN + "".join(calls[:25]))
    assert folder.found() == []
    folder.plan(LEARN + "".join(calls))

    finding = folder.only()

    assert (finding.level, finding.value) == (Level.WARNING, "31")


# --- users ------------------------------------------------------------------------------------

COUNT = "def count(variable: str, default: int) -> int:\n    return default\n\n\n"
TWO = (
    COUNT
    + LEARN.replace("    def", '    fixed_count = count("LEARN_USERS", 4)\n\n    def', 1)
    + "\n\nclass OtherUser(MCPUserBase):\n"
    '    server_label = "other"\n    fixed_count = count("OTHER_USERS", 2)\n'
)


def test_users_equal_to_the_sum_of_the_counts_are_fine(folder: Folder) -> None:
    folder.plan(TWO)

    assert folder.found(users="6") == []
    assert folder.only(users="7").value == "7"
    assert folder.only(users="5").value == "5"


def test_a_count_of_the_manifest_beats_the_default(folder: Folder) -> None:
    folder.plan(TWO)

    assert folder.found(users="9", env=variable("LEARN_USERS", "7")) == []


def test_a_count_of_zero_leaves_its_class_out(folder: Folder) -> None:
    folder.plan(
        TWO.replace(
            "class OtherUser",
            "class ThirdUser(MCPUserBase):\n"
            '    server_label = "third"\n'
            '    fixed_count = count("THIRD_USERS", 3)\n\n\nclass OtherUser',
        )
    )

    assert folder.found(users="5", env=variable("LEARN_USERS", "0")) == []


def test_a_run_of_a_single_class_obeys_the_number_asked_for(folder: Folder) -> None:
    folder.plan(TWO)

    assert folder.found(users="70", env=variable("LEARN_USERS", "0")) == []


def test_a_run_without_any_users_is_an_error(folder: Folder) -> None:
    folder.plan(TWO)

    zeros = variable("LEARN_USERS", "0") + variable("OTHER_USERS", "0")

    assert "no users are left" in folder.only(env=zeros).what


def test_a_shape_rules_the_users_by_itself(folder: Folder) -> None:
    folder.plan(
        TWO + "\n\nclass Ramp(LoadTestShape):\n    pass\n", head="from locust import LoadTestShape"
    )

    assert folder.found(users="70") == []


def test_counts_that_divide_by_the_engines_are_fine(folder: Folder) -> None:
    folder.plan(TWO + "\n\nENGINES = 'MCP_ENGINES'\n")

    assert folder.found(users="6", engines="2", env=variable("MCP_ENGINES", "2")) == []


def test_users_that_do_not_divide_are_a_warning_where_nobody_counts(folder: Folder) -> None:
    assert folder.only(users="7", engines="2").level is Level.WARNING


def test_more_than_500_users_an_engine_are_a_warning_with_the_number_needed(folder: Folder) -> None:
    assert folder.only(users="1201").cure == "Use 3 engines"


@pytest.mark.parametrize("users", ["0", "many", "-1", "1.5", "²"])
def test_a_number_of_users_that_is_none_is_an_error(users: str, folder: Folder) -> None:
    finding = folder.only(users=users)

    assert (finding.level, finding.value) == (Level.ERROR, users)


@pytest.mark.parametrize(
    ("time", "same"),
    [("900", True), ("15m", True), ("0h15m", True), ("16m", False), ("901", False)],
)
def test_a_run_time_that_differs_between_env_and_conf_is_a_warning(
    time: str, same: bool, folder: Folder
) -> None:
    folder.write("locust.conf", f"locustfile = multi.py\nrun-time = {time}\n")

    findings = folder.found(env=variable("LOCUST_RUN_TIME", "900"))

    assert [f.level for f in findings] == ([] if same else [Level.WARNING])


# --- locust.conf ------------------------------------------------------------------------------


def test_every_option_of_locust_2_33_2_is_known_and_no_newer_one() -> None:
    assert len(conf.options()) == 54
    assert {"users", "spawn-rate", "run-time", "csv", "html", "stop-timeout"} <= set(conf.options())
    assert not {"json-file", "profile", "num-users"} & set(conf.options())


@pytest.mark.parametrize(
    "text",
    [
        "users 1\n--run-time: 15m\nheadless\n",
        "# a comment\n; another\n---\n[section]\nlocustfile = multi.py\nusers=1 # why\n",
        'html = "results/run.html"\nlocustfile = multi.py\n',
        "tags = [a, b]\nlocustfile = multi.py\n",
        "",
        "# nothing set\n",
    ],
)
def test_every_form_that_locust_reads_is_read(text: str, folder: Folder) -> None:
    folder.write("locust.conf", text)

    assert folder.found() == []


@pytest.mark.parametrize("text", ["users = 17\nheadless = true\n", "[locust]\nusers = 17\n"])
def test_a_conf_that_is_toml_by_accident_is_an_error_because_locust_reads_nothing_of_it(
    text: str, folder: Folder
) -> None:
    """Seen with Locust 2.33.2: --config of such a file leaves every option at its default."""
    folder.write("locust.conf", text)

    assert "reads nothing" in folder.only().what


def test_an_option_that_the_plan_itself_adds_is_known(folder: Folder) -> None:
    folder.plan(f'{LEARN}\n\ndef add(parser):\n    parser.add_argument("--depth")\n')
    folder.write("locust.conf", "locustfile = multi.py\ndepth = 3\n")

    assert folder.found() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("locustfile = learn.py\n", "not the testPlan"),
        ("locustfile = multi.py\nusers = 1\nusers = 1\n", "set twice"),
    ],
)
def test_a_conf_that_may_mislead_is_a_warning(text: str, said: str, folder: Folder) -> None:
    folder.write("locust.conf", text)

    finding = folder.only()

    assert finding.level is Level.WARNING
    assert said in finding.what


# --- the engine's Python ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from typing import TypeAlias\n",
        "try:\n    import tomllib\nexcept ImportError:\n    tomllib = None\n",
        "import sys\n\nif sys.version_info >= (3, 11):\n    import tomllib\n",
        "def f(a: int | None = None) -> str | None: ...\n",
        "x: int | None = 1\n",
        "import re\n\nFLAGS = re.I | re.M\n",
        "BOTH = {1: 2} | {3: 4}\n",
        'TEXT = "a".removeprefix("a")\n',
        "def f() -> list[dict[str, int]]: ...\n",
        "from functools import cache\n",
    ],
)
def test_what_the_engine_can_run_or_never_runs_is_trusted(code: str, folder: Folder) -> None:
    folder.plan(f"{LEARN}\n\n{code}")

    assert folder.found() == []


@pytest.mark.parametrize(
    "code",
    [
        "from typing import Optional, cast\n\nX = cast(Optional[int] | None, 1)\n",
        "class A: ...\n\n\nB = A | int\n",
        "def f(a):\n    return issubclass(a, ValueError | KeyError)\n",
        "from dataclasses import dataclass\n\n\n@dataclass(slots=True)\nclass A: ...\n",
        "import sys\n\nsys.stdlib_module_names\n",
        "try:\n    pass\nexcept* ValueError:\n    pass\n",
        "import datetime\n\ndatetime.UTC\n",
        "from enum import StrEnum\n",
        "from typing import Self\n",
    ],
)
def test_what_the_engine_cannot_run_is_an_error(code: str, folder: Folder) -> None:
    folder.plan(f"{LEARN}\n\n{code}")

    finding = folder.only()

    assert finding.level is Level.ERROR
    assert "the engine has 3.9" in finding.what


def test_a_module_that_is_listed_but_never_imported_is_read_too(folder: Folder) -> None:
    folder.write("spare.py", "import tomllib\n")

    levels = [f.level for f in folder.found(files="  - spare.py\n")]

    assert levels == [Level.ERROR, Level.WARNING], "too new, and not needed"


def test_no_comment_hides_syntax_that_the_engine_cannot_parse(folder: Folder) -> None:
    """Vermin obeys its own comment, which is meant for guarded names; the parser does not."""
    folder.plan(f"{LEARN}\n\ndef f(a):\n    match a:  # novermin\n        case 1: ...\n")

    assert "Pattern matching" in folder.only().what


def test_broken_python_is_an_error_with_its_line(folder: Folder) -> None:
    folder.plan(LEARN)
    folder.write("multi.py", "x = 1\ny = = 2\n")

    finding = folder.only()

    assert (finding.file, finding.line) == ("multi.py", 2)


# --- requirements -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "locust",
        "locust>=2.31  # the article's",
        "locust==2.33.2",
        "locust<2.40",
        "orjson>=3.10,<4",
        "azure-identity>=1.19",
        "python-dotenv",
        "gevent>=24.2,<26",
    ],
)
def test_a_requirement_that_exists_for_the_engine_is_fine(text: str, folder: Folder) -> None:
    folder.write("requirements.txt", f"{text}\n")

    assert folder.found() == []


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("locust>2.33.2", Level.ERROR),
        ("locust==2.34.0", Level.ERROR),
        ("locust~=2.47", Level.ERROR),
        ("locust==2.20.0", Level.WARNING),
        ("orjson==3.11.9", Level.ERROR),
        ("orjson>3.11.5", Level.ERROR),
        ("python-dotenv>=1.2.2", Level.ERROR),
        ("something-else", Level.WARNING),
        ('orjson ; python_version >= "3.10"', Level.WARNING),
        ("-r more.txt", Level.ERROR),
        ("orjson @ https://example.org/orjson.whl", Level.ERROR),
        ("not a requirement", Level.ERROR),
    ],
)
def test_a_requirement_that_the_engine_may_not_get_is_found(
    text: str, level: Level, folder: Folder
) -> None:
    folder.write("requirements.txt", f"{text}\n")

    finding = folder.only()

    assert (finding.level, finding.line) == (level, 1)


@pytest.mark.parametrize("module", ["gevent", "certifi", "zmq", "requests", "locust"])
def test_what_locust_brings_may_be_imported(module: str, folder: Folder) -> None:
    folder.plan(f"import {module}\n\n\n{LEARN}")

    assert folder.found() == []


def test_what_only_the_laptop_has_may_not_be_imported(folder: Folder) -> None:
    folder.plan(f"import orjson\nimport yaml\n\n\n{LEARN}")

    assert [f.value for f in folder.found()] == ["orjson", "yaml"]
    folder.write("requirements.txt", "locust\norjson>=3.10\n")
    assert [f.value for f in folder.found()] == ["yaml"]


# --- files ------------------------------------------------------------------------------------


def test_a_listed_file_that_nothing_uses_is_a_warning(folder: Folder) -> None:
    folder.write("notes.txt", "x\n")

    finding = folder.only(files="  - notes.txt\n")

    assert (finding.level, finding.value, finding.line) == (Level.WARNING, "notes.txt", 8)


@pytest.mark.parametrize(
    "code",
    ['open("data.csv")', 'Path("data.csv").read_text()', '(HERE / "data.csv").read_text()'],
)
def test_a_data_file_opened_in_any_usual_way_must_be_listed(code: str, folder: Folder) -> None:
    folder.plan(f"{LEARN}\n\nDATA = {code}\n", head="from pathlib import Path\n\nHERE = Path()\n")
    folder.write("data.csv", "a,b\n")

    assert "not listed" in folder.only().what
    assert folder.found(files="  - data.csv\n") == []


def test_a_file_that_the_code_may_write_need_not_be_there(folder: Folder) -> None:
    folder.plan(f'{LEARN}\n\nOUT = open("later.csv", "w")\n')

    assert folder.found() == []


def test_a_package_of_the_folder_is_an_error(folder: Folder) -> None:
    folder.write("tools/__init__.py", "")
    folder.plan(LEARN, head="import tools\n")

    assert "package" in folder.only().what


def test_a_file_above_the_limit_is_an_error(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MOST_BYTES", 100)
    folder.write("queries.txt", "x" * 101)
    folder.plan(f'{LEARN}\n\nQ = open("queries.txt")\n' + "#" * 9)

    findings = [f for f in folder.found(files="  - queries.txt\n") if f.value == "queries.txt"]

    assert ["above the limit of 100" in f.what for f in findings] == [True]


def test_a_zip_is_looked_into(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_IN_A_ZIP", 1)
    with zipfile.ZipFile(folder.path / "many.zip", "w") as archive:
        archive.writestr("a", "")
        archive.writestr("b", "")
    folder.write("none.zip", "no zip")

    findings = folder.found(more="zipArtifacts:\n  - many.zip\n  - none.zip\n")

    assert ["2 files" in findings[0].what, "cannot be opened" in findings[1].what] == [True, True]


# --- variables, tokens, secrets ---------------------------------------------------------------

ENTRA = "from tokens import EntraToken\n"
ADO = LEARN + '    token = EntraToken("https://a/.default", instead="ADO_MCP_TOKEN")\n'
SECRET = "secrets:\n  - name: ADO_MCP_TOKEN\n    value: https://a.vault.azure.net/secrets/b\n"
IDENTITY = "referenceIdentities:\n  - kind: Engine\n    type: SystemAssigned\n"


def test_a_managed_identity_for_azure_devops_is_a_warning(folder: Folder) -> None:
    folder.write("tokens.py", "class EntraToken: ...\n")
    folder.plan(ADO, head=ENTRA)
    files = "  - tokens.py\n"

    assert folder.found(files=files, more=SECRET) == []
    assert folder.only(files=files, more=IDENTITY).level is Level.WARNING
    assert "lets one list the tools" in folder.only(files=files, more=IDENTITY).what
    assert "nothing on the engine can mint" in folder.only(files=files).what


def test_a_variable_that_nothing_reads_is_a_warning_with_the_name_that_was_meant(
    folder: Folder,
) -> None:
    folder.plan(f'{LEARN}\n\nPAUSE = "MCP_TURN_MIN"\n')

    finding = folder.only(env=variable("MCP_TRUN_MIN", "3"))

    assert (finding.level, finding.value) == (Level.WARNING, "MCP_TRUN_MIN")
    assert "Write MCP_TURN_MIN" in finding.cure


@pytest.mark.parametrize("name", ["LOCUST_TAGS", "HTTPS_PROXY", "AZURE_CLIENT_ID", "SSL_CERT_FILE"])
def test_a_variable_that_a_library_reads_is_fine(name: str, folder: Folder) -> None:
    assert folder.found(env=variable(name, "x")) == []


def test_a_variable_given_twice_is_a_warning(folder: Folder) -> None:
    finding = folder.only(env=variable("LOCUST_TAGS", "a") + variable("LOCUST_TAGS", "b"))

    assert finding.level is Level.WARNING


@pytest.mark.parametrize(
    "token",
    [
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2_" * 9,
        "ctx7sk-01234567-89ab",
        "eyJ" + "hbGciOiJub25l.eyJhdWQiOiJhYmMi" + ".c2ln",
        "Authorization: Bearer " + "abcdefghij" * 3,
        "-----BEGIN " + "PRIVATE KEY-----",
        "abc8Q~" + "abcdefghij" * 4,
    ],
)
def test_a_credential_is_told_by_its_look_and_never_shown(token: str) -> None:
    assert looks_like_a_token(token)
    assert shown(f"x {token} y") == "(not shown)"


@pytest.mark.parametrize(
    "text",
    [
        "https://mcp.dev.azure.com/.default",
        'f"Bearer {TOKEN.get()}"',
        "repo:microsoft/vscode is:issue label:bug",
        "What is the basic authentication scheme?",
        "how do I rotate a sk-token in the key vault",
        "0" * 40,
    ],
)
def test_what_is_no_credential_is_not_taken_for_one(text: str) -> None:
    assert not looks_like_a_token(text)


@pytest.mark.parametrize(
    "name", ["A_TOKEN", "API_KEY", "SECRET", "ADO_PAT", "DB_PASSWORD", "key_id"]
)
def test_a_variable_of_a_secretive_name_is_told(name: str) -> None:
    assert is_secretive(name)


@pytest.mark.parametrize("name", ["KEYBOARD", "LEARN_USERS", "PATH", "MONKEY", "TOKENS"])
def test_a_harmless_name_is_not(name: str) -> None:
    assert not is_secretive(name)


@pytest.mark.parametrize(
    "code",
    [
        'TOKEN_VARIABLE = "GITHUB_MCP_TOKEN"',
        'TOKEN_URL = "https://login.example.com/oauth2/token"',
        'f(token_hint="a sentence about what to do")',
        'API_KEY = ""',
    ],
)
def test_a_name_an_address_or_a_sentence_in_the_code_is_no_secret(
    code: str, folder: Folder
) -> None:
    folder.plan(f"def f(**_): ...\n\n\n{LEARN}\n\n{code}\n")

    assert folder.found() == []


@pytest.mark.parametrize(
    ("value", "stands"),
    [
        ("your-organisation", True),
        ("https://your-key-vault.vault.azure.net/secrets/a", True),
        ("https://example-kv.vault.azure.net/secrets/a", True),
        ("<ADO_PROJECT>", True),
        ("CHANGE_ME", True),
        ("/subscriptions/00000000-0000-0000-0000-000000000000/x", True),
        ("contoso", False),
        ("yourself-hosted", False),
        ("17", False),
        ("https://contoso-kv.vault.azure.net/secrets/github-mcp-token", False),
    ],
)
def test_a_placeholder_is_told_from_a_name(value: str, stands: bool) -> None:
    assert placeholders.is_placeholder(value) is stands


# --- the command ------------------------------------------------------------------------------


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.configure(parser)
    return parser.parse_args(given)


def test_the_command_prints_one_line_a_finding_and_ends_with_1_on_an_error(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.found(more="testId: twice\n")

    code = command.run(arguments(str(folder.path)))

    *lines, last = capsys.readouterr().out.splitlines()
    assert code == 1
    assert lines[0].startswith("azure-loadtest.yaml:15: error: a duplicate key, first on line 2")
    assert last == "check: 1 error, 0 warnings, 0 notes"


def test_the_command_ends_with_0_on_warnings(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.found(env=variable("NOBODY_READS", "x"))

    assert command.run(arguments(str(folder.path))) == 0
    assert "1 warning" in capsys.readouterr().out


def test_errors_come_before_warnings_and_notes(folder: Folder) -> None:
    findings = folder.found(
        env=variable("NOBODY_READS", "your-name"), more="unknown: 1\nsubnetId: x\n"
    )

    levels = [finding.level for finding in findings]
    assert levels == [Level.ERROR, Level.ERROR, Level.WARNING, Level.NOTE]


def test_a_folder_without_a_manifest_is_an_error(tmp_path: Path) -> None:
    (finding,) = check(tmp_path)

    assert (finding.level, finding.file) == (Level.ERROR, "azure-loadtest.yaml")


def test_an_import_that_may_fail_asks_for_no_package_and_one_that_may_not_does(
    folder: Folder,
) -> None:
    guarded = "try:\n    import yaml\nexcept {}:\n    yaml = None\n"
    for caught in ("ImportError", "ModuleNotFoundError", "(OSError, ImportError)"):
        folder.plan(LEARN + guarded.format(caught))
        assert folder.found() == []

    folder.plan(LEARN + guarded.format("OSError"))
    assert "an import that neither this folder nor" in str(folder.only())


def test_the_manifest_itself_is_read_where_it_is_and_never_listed(folder: Folder) -> None:
    folder.plan(LEARN + 'Path("azure-loadtest.yaml")\n', head="from pathlib import Path\n")

    assert folder.found() == []
