"""Settings: what is read, what is refused, and what a refusal says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import _workload
from _workload import (
    ThinkTime,
    WorkloadError,
    count,
    endpoint,
    load_lines,
    missing,
    number,
    read_env_file,
    secret,
    text,
    think_time,
)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("MCP_", "T_"))]:
        monkeypatch.delenv(name)
    load_lines.cache_clear()
    think_time.cache_clear()
    yield
    load_lines.cache_clear()
    think_time.cache_clear()


def refused(capsys: pytest.CaptureFixture[str], error: WorkloadError) -> str:
    """Return the line of a refusal, having seen that it is one line, on stderr, with exit 2."""
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"{error}\n"
    assert error.code == 2
    return str(error)


# --- .env ------------------------------------------------------------------------------------


def test_an_env_file_as_windows_editors_write_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("T_A", "T_B", "T_C", "T_D"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    (tmp_path / ".env").write_bytes(
        b"\xef\xbb\xbfT_A=1\r\nexport T_B=\"x # y\"\r\nT_C= # none\r\nT_D='q'\r\n"
    )

    read_env_file(tmp_path / ".env")

    got = {name: os.environ.get(name) for name in ("T_A", "T_B", "T_C", "T_D")}
    assert got == {"T_A": "1", "T_B": "x # y", "T_C": "", "T_D": "q"}


def test_the_environment_wins_over_the_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T_A", "from the environment")
    (tmp_path / ".env").write_text("T_A=from the file\n")

    read_env_file(tmp_path / ".env")

    assert os.environ["T_A"] == "from the environment"


@pytest.mark.parametrize("word", ["1", "true", "TRUE", "yes"])
def test_a_disabled_env_file_is_left_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("PYTHON_DOTENV_DISABLED", word)
    (tmp_path / ".env").write_text("T_A=1\n")

    read_env_file(tmp_path / ".env")

    assert "T_A" not in os.environ


def test_an_env_file_in_another_encoding_stops_the_run_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PYTHON_DOTENV_DISABLED", raising=False)
    (tmp_path / ".env").write_text("T_A=1\n", encoding="utf-16")

    with pytest.raises(WorkloadError) as caught:
        read_env_file(tmp_path / ".env")

    assert f"{tmp_path / '.env'} cannot be read" in refused(capsys, caught.value)


def test_only_the_env_file_beside_the_module_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "outer" / "project"
    folder.mkdir(parents=True)
    (tmp_path / "outer" / ".env").write_text("T_OUTER=1\n")
    (folder / ".env").write_text("T_BESIDE=1\n")
    (folder / "_workload.py").write_bytes((ROOT / "_workload.py").read_bytes())
    probe = "import os, _workload; print(sorted(n for n in os.environ if n.startswith('T_')))"
    env = {k: v for k, v in os.environ.items() if k != "PYTHON_DOTENV_DISABLED"}

    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {probe}"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "['T_BESIDE']"


# --- numbers and texts -----------------------------------------------------------------------


@pytest.mark.parametrize("raw", ["", "abc", "nan", "inf", "-0.1", "1.01", "0,5"])
def test_a_number_that_cannot_be_used_is_refused_with_variable_value_and_cure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raw: str
) -> None:
    monkeypatch.setenv("T_PROB", raw)

    with pytest.raises(WorkloadError) as caught:
        number("T_PROB", 0.2, 0.0, 1.0)

    line = refused(capsys, caught.value)
    assert line.startswith(f"T_PROB={raw!r}: set it to a number, 0 to 1")
    assert "default 0.2" in line


def test_a_number_is_read_and_its_bounds_are_included(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_ONE", " 1.0 ")

    assert number("T_ONE", 0.2, 0.0, 1.0) == 1.0
    assert number("T_UNSET", 0.2, 0.0, 1.0) == 0.2


def test_a_text_comes_without_its_outer_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_TEXT", "  My project ")

    assert text("T_TEXT") == "My project"
    assert text("T_UNSET") == ""


def test_missing_names_what_is_unset_or_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_SET", "1")
    monkeypatch.setenv("T_BLANK", " \t")

    assert missing(("T_SET", "T_BLANK", "T_UNSET")) == ["T_BLANK", "T_UNSET"]


# --- secrets ---------------------------------------------------------------------------------


def test_a_secret_loses_the_newline_that_a_vault_or_a_file_gave_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("T_TOKEN", "planted-value\r\n")

    assert secret("T_TOKEN") == "planted-value"
    assert secret("T_UNSET") == ""


@pytest.mark.parametrize(
    "raw",
    [
        "planted-value\nX-Evil: 1",
        "planted-value\r1",
        "Bearer planted-value",
        "planted value",
        "planted-välue",
        "planted-value\x00",
    ],
)
def test_a_secret_that_no_header_can_carry_is_refused_without_being_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raw: str
) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "T_TOKEN": raw})

    with pytest.raises(WorkloadError) as caught:
        secret("T_TOKEN")

    line = refused(capsys, caught.value)
    assert line.startswith("T_TOKEN ")
    assert line.endswith("set it to the bare token")
    assert "planted" not in line


# --- counts ----------------------------------------------------------------------------------


def test_a_count_is_the_variable_or_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_USERS", "7")
    monkeypatch.setenv("T_NONE", "0")

    assert [count("T_USERS", 5), count("T_NONE", 5), count("T_UNSET", 5)] == [7, 0, 5]


@pytest.mark.parametrize("raw", ["", "five", "-1", "2.5", "1e3", "\u0661"])
def test_a_count_that_is_no_whole_number_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raw: str
) -> None:
    monkeypatch.setenv("T_USERS", raw)

    with pytest.raises(WorkloadError) as caught:
        count("T_USERS", 5)

    assert f"T_USERS={raw!r}: set it to a whole number" in refused(capsys, caught.value)


def test_engines_share_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_ENGINES", "2")
    monkeypatch.setenv("T_USERS", "10")

    assert count("T_USERS", 5) == 5
    assert count("T_UNSET", 4) == 2


def test_a_count_that_engines_cannot_share_is_refused_and_both_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MCP_ENGINES", "2")

    with pytest.raises(WorkloadError) as caught:
        count("T_USERS", 5)

    assert refused(capsys, caught.value) == (
        "T_USERS=5 does not divide by MCP_ENGINES=2: set T_USERS to 4 or 6, or change MCP_ENGINES"
    )


@pytest.mark.parametrize("raw", ["0", "two", ""])
def test_a_number_of_engines_that_cannot_be_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raw: str
) -> None:
    monkeypatch.setenv("MCP_ENGINES", raw)

    with pytest.raises(WorkloadError) as caught:
        count("T_USERS", 5)

    assert f"MCP_ENGINES={raw!r}" in refused(capsys, caught.value)


# --- addresses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://h.example/mcp", ("https://h.example", "/mcp")),
        ("http://127.0.0.1:8123/api/mcp/", ("http://127.0.0.1:8123", "/api/mcp/")),
        ("https://h.example", ("https://h.example", "/")),
        (" https://h.example/a?maxTokenBudget=9 ", ("https://h.example", "/a?maxTokenBudget=9")),
        ("http://[::1]:80/mcp", ("http://[::1]:80", "/mcp")),
        ("https://h.example/ä", ("https://h.example", "/%C3%A4")),
        ("https://h.example/a%20b", ("https://h.example", "/a%20b")),
    ],
)
def test_an_address_is_split_into_host_and_path(
    monkeypatch: pytest.MonkeyPatch, url: str, parts: tuple[str, str]
) -> None:
    monkeypatch.setenv("T_URL", url)

    assert endpoint("T_URL", "https://elsewhere.example/") == parts


def test_an_unset_address_is_the_default_one() -> None:
    assert endpoint("T_URL", "https://h.example/mcp") == ("https://h.example", "/mcp")
    assert endpoint("T_URL") == ("", "/")


def test_a_placeholder_is_filled_where_its_variable_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert endpoint("T_URL", "https://h.example/{T_ORG}") == ("https://h.example", "/{T_ORG}")

    monkeypatch.setenv("T_ORG", "my org/x")
    assert endpoint("T_URL", "https://h.example/{T_ORG}") == (
        "https://h.example",
        "/my%20org%2Fx",
    )


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h.example/mcp",
        "ftp://h.example/",
        "https://",
        "https:///mcp",
        "https://h.example:port/",
        "https://h.example:99999/",
        "https://h.example/a b",
        "https://h.example/#top",
        "http://[::1/",
    ],
)
def test_what_is_no_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    monkeypatch.setenv("T_URL", url)

    with pytest.raises(WorkloadError) as caught:
        endpoint("T_URL", "https://elsewhere.example/")

    line = refused(capsys, caught.value)
    assert line.startswith("T_URL")
    assert "such as https://example.com/mcp" in line


@pytest.mark.parametrize(
    "url",
    [
        "https://me:planted@h.example/",
        "https://planted@h.example/",
        "me:planted@h.example/mcp",
        "https://h.example/mcp?api_key=planted",
        "https://h.example/mcp?a=1&access_token=planted",
        "https://h.example/mcp?code=planted",
    ],
)
def test_a_credential_in_an_address_is_refused_without_being_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    monkeypatch.setenv("T_URL", url)

    with pytest.raises(WorkloadError) as caught:
        endpoint("T_URL", "https://elsewhere.example/")

    line = refused(capsys, caught.value)
    assert line.startswith("T_URL")
    assert "planted" not in line


# --- query files -----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(_workload, "HERE", tmp_path)
    return tmp_path


def test_lines_are_stripped_and_comments_and_blanks_left_out(folder: Path) -> None:
    (folder / "queries").mkdir()
    (folder / "queries" / "x_lines.txt").write_bytes(
        b"\xef\xbb\xbf# what it is for\r\n  one \r\n\r\n# two\r\nthree # four\r\n"
    )

    assert load_lines("x_lines.txt") == ("one", "three # four")


def test_a_file_that_azure_has_flattened_is_found_beside_us(folder: Path) -> None:
    (folder / "x_lines.txt").write_text("one\n")

    assert load_lines("x_lines.txt") == ("one",)


def test_the_queries_folder_comes_before_the_flat_one(folder: Path) -> None:
    (folder / "queries").mkdir()
    (folder / "queries" / "x_lines.txt").write_text("inner\n")
    (folder / "x_lines.txt").write_text("outer\n")

    assert load_lines("x_lines.txt") == ("inner",)


def test_a_missing_query_file_stops_the_run_and_names_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(WorkloadError) as caught:
        load_lines("x_lines.txt")

    line = refused(capsys, caught.value)
    assert line.startswith("x_lines.txt is missing")
    assert str(folder / "queries" / "x_lines.txt") in line
    assert str(folder / "x_lines.txt") in line
    assert "azure-loadtest.yaml" in line


@pytest.mark.parametrize("body", [b"", b"\n \n# only a comment\n"])
def test_an_empty_query_file_stops_the_run_and_names_it(
    folder: Path, capsys: pytest.CaptureFixture[str], body: bytes
) -> None:
    (folder / "x_lines.txt").write_bytes(body)

    with pytest.raises(WorkloadError) as caught:
        load_lines("x_lines.txt")

    assert str(folder / "x_lines.txt") in refused(capsys, caught.value)


def test_a_query_file_in_another_encoding_stops_the_run_and_names_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "x_lines.txt").write_bytes("größe".encode("latin-1"))

    with pytest.raises(WorkloadError) as caught:
        load_lines("x_lines.txt")

    assert str(folder / "x_lines.txt") in refused(capsys, caught.value)


# --- pauses ----------------------------------------------------------------------------------


def test_the_pauses_are_the_article_s_where_nothing_is_set() -> None:
    assert think_time() == ThinkTime(0.1, 0.5, 5.0, 30.0, 0.2)


def test_the_pauses_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TURN_MIN", "8")
    monkeypatch.setenv("MCP_TURN_MAX", "45")
    first = think_time()
    monkeypatch.setenv("MCP_TURN_MAX", "46")

    assert (first.turn_min, first.turn_max) == (8.0, 45.0)
    assert think_time() is first


def test_a_shortest_pause_above_the_longest_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MCP_INTRA_MIN", "2")

    with pytest.raises(WorkloadError) as caught:
        think_time()

    assert "MCP_INTRA_MIN=2 is above MCP_INTRA_MAX=0.5" in refused(capsys, caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MCP_TURN_PROB", "1.2"),
        ("MCP_TURN_PROB", "-0.1"),
        ("MCP_INTRA_MIN", "-1"),
        ("MCP_TURN_MAX", "soon"),
    ],
)
def test_a_pause_that_cannot_be_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(WorkloadError) as caught:
        think_time()

    assert refused(capsys, caught.value).startswith(f"{name}={value!r}")


# --- as Locust sees it -----------------------------------------------------------------------


def test_locust_ends_with_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "locustfile.py").write_text(
        "from locust import User, task\n"
        "from _workload import count\n"
        "class Someone(User):\n"
        "    fixed_count = count('T_USERS', 5)\n"
        "    @task\n"
        "    def nothing(self): ...\n"
    )
    env = {
        **os.environ,
        "T_USERS": "many",
        "PYTHONPATH": str(ROOT),
        "PYTHON_DOTENV_DISABLED": "1",
    }

    done = subprocess.run(
        [sys.executable, "-m", "locust", "-f", "locustfile.py", "--headless", "-t", "1s"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if "DeprecationWarning" not in line]
    assert lines == [
        "T_USERS='many': set it to a whole number, 0 or more, or remove it for the default 5"
    ]


_READ = re.compile(
    r'\b(?:text|secret|count|number|whole|endpoint|StaticToken)\(\s*"([A-Z][A-Z0-9_]+)"'
)


def test_every_variable_that_the_servers_read_is_in_the_example_file() -> None:
    root = Path(__file__).parents[1]
    code = "".join(path.read_text(encoding="utf-8") for path in root.glob("*.py"))
    example = (root / ".env.example").read_text(encoding="utf-8")

    found = set(_READ.findall(code)) - {"MY_MCP_URL"}  # of an example in a docstring

    assert {"ANY_TOOLS", "MCP_VAULT", "LEARN_USERS"} <= found
    assert {name for name in found if not re.search(rf"\b{name}\b", example)} == set()
