"""The workflow files: valid by their schemas, safe in a public repository, calling what exists.

The schemas are those that check-jsonschema carries along: GitHub's of SchemaStore, and that of
Azure's own language server, to which every scalar is text. Nothing is fetched.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.resources
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
import yaml
from jsonschema.exceptions import best_match

from lab.cli import COMMANDS
from lab.manifest import load

ROOT = Path(__file__).parents[2]
GITHUB = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PIPELINE = ROOT / "azure-pipelines.yml"
AZURE = ROOT / ".github" / "workflows" / "azure-load-test.yml"
CHECK = ROOT / ".github" / "workflows" / "check.yml"
# Azure/load-testing@v1's action.yml and AzureLoadTest@1's reference, see azure-load-testing.md 5.
INPUTS: Final = {
    *("loadTestConfigFile", "loadTestResource", "resourceGroup", "loadtestRunName"),
    *("loadtestRunDescription", "secrets", "env", "overrideParameters", "outputVariableName"),
    *("waitForCompletion",),
}
NEEDED: Final = {"loadTestConfigFile", "loadTestResource", "resourceGroup"}


def parsed(path: Path) -> dict[str, Any]:
    document: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    # "on" is a boolean to YAML 1.1
    return {"on" if key is True else key: value for key, value in document.items()}


@functools.cache
def schema(name: str) -> dict[str, Any]:
    place = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    found: dict[str, Any] = json.loads((place / f"{name}.json").read_text(encoding="utf-8"))
    if name == "azure-pipelines":  # it knows the built-in tasks, and ours is an extension's
        task = found["definitions"]["task"]
        inputs = {each: {"type": "string"} for each in (*INPUTS, "azureSubscription")}
        task["properties"]["task"]["anyOf"].append({"enum": ["AzureLoadTest@1"]})
        of_ours = {"properties": inputs, "additionalProperties": False}
        named = {"pattern": "^AzureLoadTest@1$"}
        task["anyOf"].append({"properties": {"task": named, "inputs": of_ours}})
    return found


def mistakes(path: Path) -> list[str]:
    """What its schema says of the file."""
    azure = path.name == PIPELINE.name
    rules = schema("azure-pipelines" if azure else "github-workflows")
    validator = jsonschema.validators.validator_for(rules)(rules)
    text = path.read_text(encoding="utf-8")
    document = yaml.load(text, yaml.BaseLoader) if azure else parsed(path)  # noqa: S506  (text only)
    return [best_match([each]).message for each in validator.iter_errors(document)]


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    document = parsed(path)
    if path != PIPELINE:
        found: dict[str, dict[str, Any]] = document["jobs"]
        return found
    return {job["job"]: job for stage in document["stages"] for job in stage["jobs"]}


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job["steps"]]


def commands(path: Path) -> Iterator[list[str]]:
    """Each line that a step gives to a shell, as words."""
    for step in steps(path):
        for line in str(step.get("run", step.get("script", ""))).splitlines():
            yield shlex.split(line)


EVERY = pytest.mark.parametrize("path", [*GITHUB, PIPELINE], ids=lambda path: path.name)


def test_there_are_workflows_to_be_tested() -> None:
    assert {AZURE, CHECK} <= set(GITHUB)
    assert PIPELINE.is_file()


@EVERY
def test_a_workflow_is_valid_by_its_schema(path: Path) -> None:
    assert mistakes(path) == []


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (CHECK, "runs-on:", "run-on:"),
        (CHECK, "timeout-minutes: 30", "timeout-minutes: soon"),
        (CHECK, "contents: read", "contents: reading"),
        (PIPELINE, "timeoutInMinutes: 30", "timeoutInMinute: 30"),
        (PIPELINE, "loadTestResource:", "loadTestResorce:"),
    ],
)
def test_a_mistake_in_a_workflow_is_seen_by_its_schema(
    path: Path, old: str, new: str, tmp_path: Path
) -> None:
    wrong = tmp_path / path.name
    text = path.read_text(encoding="utf-8")
    assert old in text
    wrong.write_text(text.replace(old, new), encoding="utf-8")

    assert mistakes(wrong)


@pytest.mark.parametrize("path", GITHUB, ids=lambda path: path.name)
def test_no_workflow_runs_strangers_code_with_our_rights(path: Path) -> None:
    document = parsed(path)
    words = path.read_text(encoding="utf-8")

    assert "pull_request_target" not in words
    assert "workflow_run" not in document["on"]
    assert "secrets." not in words  # nothing of GitHub's own secret store is needed
    assert document["permissions"]["contents"] == "read"


@EVERY
def test_every_job_has_a_time_out(path: Path) -> None:
    key = "timeoutInMinutes" if path == PIPELINE else "timeout-minutes"

    for name, job in jobs(path).items():
        assert 0 < job.get(key, 0) <= 120, name


def test_the_azure_job_outlasts_its_own_run() -> None:
    """3 minutes of overhead, 10 of validation, and the run itself have to fit."""
    run = int(load(ROOT).environment["LOCUST_RUN_TIME"]) / 60

    assert jobs(AZURE)["load-test"]["timeout-minutes"] > run + 13
    assert jobs(PIPELINE)["load_test"]["timeoutInMinutes"] > run + 13


@pytest.mark.parametrize("path", GITHUB, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_major_version(path: Path) -> None:
    used = [step["uses"] for step in steps(path) if "uses" in step]

    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", each)] == []


def test_azure_is_signed_in_to_by_oidc_and_nothing_else() -> None:
    (login,) = [step for step in steps(AZURE) if step.get("uses", "").startswith("azure/login@")]

    assert set(login["with"]) == {"client-id", "tenant-id", "subscription-id"}
    assert parsed(AZURE)["permissions"] == {"contents": "read", "id-token": "write"}
    assert parsed(CHECK)["permissions"] == {"contents": "read"}


def test_the_run_in_azure_is_started_by_hand_or_by_schedule_alone() -> None:
    pipeline = parsed(PIPELINE)
    stage = next(each for each in pipeline["stages"] if each["stage"] == "run")

    assert set(parsed(AZURE)["on"]) == {"workflow_dispatch", "schedule"}
    assert pipeline["trigger"] == "none"
    assert "in(variables['Build.Reason'], 'Manual', 'Schedule')" in stage["condition"]
    assert "succeeded()" in stage["condition"]


def test_a_pull_request_gets_the_check_and_a_short_emulation_without_azure() -> None:
    assert "pull_request" in parsed(CHECK)["on"]
    pipeline = parsed(PIPELINE)
    first = next(each for each in pipeline["stages"] if each["stage"] == "check")
    scripts = [step["script"] for job in first["jobs"] for step in job["steps"] if "script" in step]

    for said in ([" ".join(words) for words in commands(CHECK)], scripts):
        assert any(each.endswith("-m lab check") for each in said)
        assert any("-m lab emulate --minutes 1" in each for each in said)
    assert not any("zure" in step.get("uses", "") for step in steps(CHECK))
    assert not any("zure" in step.get("task", "") for job in first["jobs"] for step in job["steps"])


def test_the_official_action_and_task_get_inputs_that_they_have() -> None:
    (action,) = [s for s in steps(AZURE) if s.get("uses", "").startswith("Azure/load-testing@")]
    (task,) = [s for s in steps(PIPELINE) if s.get("task") == "AzureLoadTest@1"]

    assert NEEDED <= set(action["with"]) <= INPUTS
    assert NEEDED | {"azureSubscription"} <= set(task["inputs"]) <= INPUTS | {"azureSubscription"}
    for given in (action["with"], task["inputs"]):
        assert (ROOT / given["loadTestConfigFile"]).is_file()
        assert given.get("waitForCompletion", True)  # v1.2.5 stops a run that it does not await


@EVERY
def test_what_a_step_calls_exists_and_takes_these_options(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    called = list(commands(path))

    assert called
    for words in called:
        if words[0] == "make":
            assert set(words[1:]) <= targets
            continue
        assert words[:3] == [".venv/bin/python", "-m", "lab"], words
        command = importlib.import_module(COMMANDS[words[3]])
        parser = argparse.ArgumentParser(exit_on_error=False)
        command.configure(parser)
        parser.parse_args(words[4:])


def test_the_check_that_workflows_call_ends_well_here() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab", "check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout


@EVERY
def test_what_a_run_leaves_is_kept_even_where_it_failed(path: Path) -> None:
    keeping = [
        (
            step.get("with", {}).get("path") or step.get("publish"),
            step.get("if", step.get("condition")),
        )
        for step in steps(path)
        if "upload-artifact" in step.get("uses", "") or "publish" in step
    ]

    assert keeping
    for where, when in keeping:
        assert str(where).rstrip("/").rpartition("/")[2] in {"runs", "loadTest"}
        assert when in {"always()", "succeededOrFailed()"}
