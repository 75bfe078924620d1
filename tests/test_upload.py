"""What azure-loadtest.yaml lists is what multi.py imports and reads, and it runs flat."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")  # the lab's, not the engine's
jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[1]
MANIFEST: dict[str, Any] = yaml.safe_load((ROOT / "azure-loadtest.yaml").read_text("utf-8"))
LISTED = [Path(name) for name in MANIFEST["configurationFiles"]]
PUBLISHED = json.loads((ROOT / "lab/data/run-2026-05-09.json").read_text("utf-8"))["requests"]


def imported_by(module: str, seen: set[str]) -> set[str]:
    """The root modules that a root module imports, and those that they import."""
    tree = ast.parse((ROOT / f"{module}.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            if (ROOT / f"{name}.py").is_file() and name not in seen:
                imported_by(name, seen | {name})
                seen |= {name} | imported_by(name, seen | {name})
    return seen


def files_read_by(modules: set[str]) -> set[str]:
    found: set[str] = set()
    for module in modules:
        tree = ast.parse((ROOT / f"{module}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "load_lines"
            ):
                found.add(ast.literal_eval(node.args[0]))
    return found


def test_every_module_that_multi_imports_is_listed_and_none_beside() -> None:
    listed = {path.stem for path in LISTED if path.suffix == ".py"}

    assert imported_by("multi", set()) == listed


def test_every_query_file_that_is_read_is_listed_and_none_beside() -> None:
    listed = {path.name for path in LISTED if path.suffix == ".txt"} - {"requirements.txt"}

    assert files_read_by(imported_by("multi", set())) == listed


def test_it_is_valid_by_the_strict_schema() -> None:
    schema = json.loads((ROOT / "lab/data/azure/azure-loadtest.strict.schema.json").read_text())

    jsonschema.validate(MANIFEST, schema)


def test_each_published_tool_has_a_limit_of_about_twice_its_published_p95() -> None:
    limits = {}
    for item in MANIFEST["failureCriteria"]["clientMetrics"]:
        if isinstance(item, dict):
            ((name, text),) = item.items()
            if text.startswith("p95(response_time_ms) > "):
                limits[name] = int(text.rpartition(" ")[2])

    tools = {name: row for name, row in PUBLISHED.items() if ":tools/call:" in name}
    assert limits.keys() == tools.keys()
    for name, limit in limits.items():
        assert limit == pytest.approx(2 * tools[name]["p95"], abs=50)


def test_users_are_the_sum_of_the_counts() -> None:
    env = {entry["name"]: entry["value"] for entry in MANIFEST["env"]}
    counts = [int(value) for name, value in env.items() if name.endswith("_USERS")]

    # LOCUST_USERS ends the same way, and is their sum.
    assert sum(counts) == 2 * int(env["LOCUST_USERS"])


def test_the_listed_files_alone_run_flat_from_an_empty_folder(tmp_path: Path) -> None:
    for path in [*LISTED, Path(MANIFEST["testPlan"])]:
        shutil.copy(ROOT / path, tmp_path / path.name)
    tmp_path.chmod(0o555)
    given = {entry["name"]: entry["value"] for entry in MANIFEST["env"]}
    given.update({entry["name"]: "dummy" for entry in MANIFEST["secrets"]})
    code = "import multi; print(sorted(multi.__all__))"

    done = subprocess.run(
        [sys.executable, "-B", "-W", "ignore", "-c", f"import locust; {code}"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **given},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['ADOUser', 'Context7User', 'GitHubUser', 'LearnUser']"


def test_a_folder_without_one_query_file_stops_the_run_and_names_it(tmp_path: Path) -> None:
    for path in [*LISTED, Path(MANIFEST["testPlan"])]:
        shutil.copy(ROOT / path, tmp_path / path.name)
    (tmp_path / "ado_phrases.txt").unlink()

    done = subprocess.run(
        [sys.executable, "-m", "locust", "-f", "multi.py", "--headless", "-t", "1s"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("ado_phrases.txt is missing, looked for ")
    assert "Traceback" not in done.stderr
