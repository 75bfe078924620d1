"""The map of the house, kept true: who may import whom, on which Python, under which name."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
UPLOADED = sorted(ROOT.glob("*.py"))
LAB = sorted((ROOT / "lab").rglob("*.py"))
ON_THE_ENGINE = [
    *UPLOADED,
    ROOT / "lab" / "record.py",
    ROOT / "lab" / "rows.py",
]  # the recorder is uploaded beside the root

SUPPORT = {"_base", "_auth", "_workload", "_checks"}
SERVER_FILES = {"learn", "github", "context7", "ado"}

# Beside the standard library. "locust" first in a row's file too: it patches that library.
MAY_IMPORT: dict[str, set[str]] = {
    "_sse": set(),
    "_revisions": set(),
    "_failures": set(),
    "_trace": set(),
    "_tally": set(),
    "_cookies": set(),
    "_checks": set(),
    "_examples": set(),
    "_jsonrpc": {"_failures", "orjson"},
    "_envelope": {"_revisions", "_failures"},
    "_reply": {"_sse", "_failures", "_jsonrpc", "orjson"},
    "mcp_client": {"_sse", "_revisions", "_failures", "_jsonrpc", "_reply", "_envelope", "_trace"},
    "_origin": {"_failures", "gevent", "certifi"},
    "_tls": {"_failures"},
    "_dial": {"_failures", "_tls", "_origin", "gevent"},
    "_framing": {"_failures", "_reply", "_trace", "httptools"},
    "_http": {"_failures", "_framing", "_dial", "_tls", "_origin", "_reply", "_trace", "gevent"},
    "_wire": {"_failures", "_cookies", "_http", "_origin", "_reply", "_trace", "mcp_client"}
    | {"gevent"},
    "_probe": {"_revisions"},
    "_metadata": {"_tally"},
    "_auth": {"_failures", "_metadata", "_tally", "_workload", "gevent", "azure"},
    "_discovery": {"_metadata", "_tally", "gevent", "requests"},
    "_oauth": {"_auth", "_discovery", "_workload", "gevent", "jwt"},
    "_identities": {"_oauth", "_workload"},
    "_vault": {"gevent", "azure"},
    "_expiry": set(),
    "_secrets": {"_expiry", "_vault", "_workload", "yaml"},
    "_workload": {"dotenv"},
    "_shapes": {"locust"},
    "_process": {"gevent", "locust"},
    "_roster": {"locust", "gevent", "_origin", "_process", "_revisions", "_secrets"}
    | {"_tally", "_workload"},
    "_exchange": {"locust", "gevent", "mcp_client", "_jsonrpc", "_origin", "_tally", "_wire"}
    | {"_workload", "_reply", "_trace"},
    "_lifecycle": {"gevent", "mcp_client", "_envelope", "_exchange", "_jsonrpc", "_probe"}
    | {"_revisions", "_roster", "_tally", "_trace"},
    "_listener": {"gevent", "mcp_client", "_jsonrpc", "_lifecycle", "_reply", "_tally", "_trace"},
    "_habits": {"_roster", "_lifecycle", "_listener"},
    "_primitives": {"mcp_client", "_exchange", "_habits"},
    "_legacy": {"_exchange", "_failures", "_jsonrpc", "_reply", "_roster", "_tally", "_trace"},
    "_base": {"gevent", "mcp_client", "_envelope", "_exchange", "_jsonrpc", "_legacy", "_lifecycle"}
    | {"_primitives", "_roster", "_tally"},
    **dict.fromkeys(SERVER_FILES, SUPPORT | {"locust"}),
    "any_server": SUPPORT | {"locust", "_examples", "_identities", "_oauth", "_roster"},
    "multi": SERVER_FILES | {"locust", "_base", "_shapes"},
    "learn_first": {"locust"},
}
ONLY_INSIDE_FUNCTIONS = {"azure", "jwt", "yaml"}  # 0.14 s, and not everybody has them

STDLIB_FOLDER = Path(os.__file__).parent
STDLIB: frozenset[str] = getattr(sys, "stdlib_module_names", None) or frozenset(  # 3.9 has no list
    {*sys.builtin_module_names, "__future__"}
    | {each.name.partition(".")[0] for each in STDLIB_FOLDER.iterdir()}
    | {each.name.partition(".")[0] for each in (STDLIB_FOLDER / "lib-dynload").glob("*")}
)

# Modules that a shadowing root file would break, beside the standard library and what is installed.
OTHERS = {"mcp", "fastmcp", "azure", "locust", "gevent", "httptools", "orjson", "dotenv", "yaml"}


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _imports(tree: ast.AST) -> set[str]:
    """Top-level names of everything imported anywhere below the node."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _imports_at_import_time(tree: ast.Module) -> set[str]:
    """Names imported when the module itself is: not inside functions, not for types only."""
    found: set[str] = set()
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= _imports(node)
        elif not isinstance(node, (ast.FunctionDef, ast.Lambda)) and not _for_types_only(node):
            stack.extend(ast.iter_child_nodes(node))
    return found


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", UPLOADED, ids=_name)
def test_a_room_imports_only_what_the_map_allows(path: Path) -> None:
    assert path.stem in MAY_IMPORT, f"{path.name} is on no map: add its arrow here and in docs"

    foreign = _imports(_tree(path)) - STDLIB - {path.stem}

    assert foreign - MAY_IMPORT[path.stem] == set()


@pytest.mark.parametrize("path", UPLOADED, ids=_name)
def test_the_root_never_imports_the_lab_or_the_tests(path: Path) -> None:
    assert _imports(_tree(path)) & {"lab", "tests"} == set()


@pytest.mark.parametrize("path", UPLOADED, ids=_name)
def test_heavy_libraries_are_imported_only_by_what_needs_them(path: Path) -> None:
    assert _imports_at_import_time(_tree(path)) & ONLY_INSIDE_FUNCTIONS == set()


@pytest.mark.parametrize("path", UPLOADED, ids=_name)
def test_locust_is_imported_before_anything_it_patches(path: Path) -> None:
    tree = _tree(path)
    named = [sorted(_imports(node)) for node in tree.body if _imports(node) - {"__future__"}]
    if "locust" in _imports_at_import_time(tree):
        assert named[0] == ["locust"]


@pytest.mark.parametrize("path", ON_THE_ENGINE, ids=_name)
def test_what_the_engine_runs_is_python_3_9(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, str(path), feature_version=(3, 9))

    newer = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if (getattr(node.func, "id", ""), keyword.arg)
        in {("dataclass", "slots"), ("dataclass", "kw_only"), ("zip", "strict")}
    ]

    assert newer == []
    assert "annotations" in {
        alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }, "without `from __future__ import annotations` a `X | None` fails on the engine"


@pytest.mark.parametrize("path", UPLOADED, ids=_name)
def test_no_module_takes_the_name_of_another(path: Path) -> None:
    assert path.stem not in STDLIB
    assert path.stem not in OTHERS


def test_no_installed_distribution_provides_one_of_our_names() -> None:
    ours = {path.stem for path in UPLOADED} | {"lab"}
    taken = {
        f"{distribution.metadata['Name']} provides {file}"
        for distribution in importlib.metadata.distributions()
        for file in distribution.files or ()
        if file.parts[0].partition(".")[0] in ours and file.suffix in {".py", ".so", ".pyd"}
    }

    assert taken == set()


def test_every_uploaded_file_has_a_name_of_its_own() -> None:
    """Azure flattens the folder (learn.microsoft.com/azure/load-testing: files by name only)."""
    uploaded = [path.name for path in [*ROOT.glob("*.*"), *(ROOT / "queries").glob("*")]]

    assert sorted(uploaded) == sorted(set(uploaded))


@pytest.mark.parametrize("path", [*UPLOADED, *LAB], ids=_name)
def test_a_module_is_short_enough_to_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300


def test_uv_and_pip_install_the_same_engine() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = (\[.*?^\])", project, re.DOTALL | re.MULTILINE)
    assert listed
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    required = [line.partition("#")[0].strip() for line in lines]

    assert sorted(ast.literal_eval(listed[1])) == sorted(filter(None, required))
