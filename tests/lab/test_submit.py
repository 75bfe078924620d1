"""`lab submit` against a stand-in of the Azure CLI: its options, its lack of an upsert."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Submit = Callable[..., "subprocess.CompletedProcess[str]"]

MANIFEST = """\
version: v0.1
testId: mcp-multi-flat
testType: Locust
testPlan: plan.py
engineInstances: 1
configurationFiles: [requirements.txt]
failureCriteria:
  - percentage(error) > 25
"""
PLAN = """\
from locust import FastHttpUser, task


class Plain(FastHttpUser):
    host = "https://server.test"

    @task
    def call(self):
        self.client.get("/")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "azure-loadtest.yaml").write_text(MANIFEST)
    (folder / "plan.py").write_text(PLAN)
    (folder / "requirements.txt").write_text("locust\n")
    return folder


@pytest.fixture
def submit(tmp_path: Path, project: Path) -> Submit:
    path = tmp_path / "bin"
    path.mkdir()
    az = path / "az"
    standin = Path(__file__).with_name("az_standin.py")
    az.write_text(f'#!/bin/sh\nexec {sys.executable} {standin} "$@"\n')
    az.chmod(az.stat().st_mode | stat.S_IXUSR)

    def run(
        *options: str, with_cli: bool = True, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "lab",
            "submit",
            "--resource",
            "r",
            "--resource-group",
            "g",
        ]
        return subprocess.run(
            [*command, "--every", "0", "--run-id", "run1", *options],
            cwd=project,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PATH": f"{path if with_cli else tmp_path}:{Path(shutil.which('sh') or '').parent}"
                if with_cli
                else str(tmp_path),
                "AZ_STANDIN_STATE": str(tmp_path / "state.json"),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def _calls(tmp_path: Path) -> list[str]:
    calls: list[str] = json.loads((tmp_path / "state.json").read_text())["calls"]
    return calls


def test_the_first_submission_creates_the_test_and_exits_with_its_verdict(
    submit: Submit, tmp_path: Path
) -> None:
    done = submit()

    assert done.returncode == 0, done.stderr + done.stdout
    assert _calls(tmp_path)[:3] == ["test show", "test create", "test-run create"]
    assert "passed       percentage(error) > 25.0, measured 0.13" in done.stdout
    assert done.stdout.splitlines()[-1] == "PASSED (the run is DONE)"


def test_the_next_submission_updates_it(submit: Submit, tmp_path: Path) -> None:
    submit()
    again = submit()

    assert again.returncode == 0, again.stderr
    assert "test update" in _calls(tmp_path)


def test_a_failed_criterion_is_named_and_exits_with_1(submit: Submit) -> None:
    done = submit(AZ_STANDIN_RESULT="FAILED")

    assert done.returncode == 1
    assert "failed       percentage(error) > 25.0, measured 40.0" in done.stdout


def test_results_are_downloaded_into_the_run_s_folder(submit: Submit, project: Path) -> None:
    submit()

    assert (project / "runs" / "run1" / "results.zip").is_file()


def test_a_placeholder_left_in_the_yaml_uploads_nothing(
    submit: Submit, project: Path, tmp_path: Path
) -> None:
    manifest = project / "azure-loadtest.yaml"
    manifest.write_text(
        MANIFEST + "secrets:\n  - name: GITHUB_MCP_TOKEN\n"
        "    value: https://your-vault.vault.azure.net/secrets/github-mcp-token\n"
    )

    done = submit()

    assert done.returncode == 2
    assert "placeholders are left in the YAML" in done.stderr
    assert not (tmp_path / "state.json").exists()


def test_an_error_of_the_check_uploads_nothing(
    submit: Submit, project: Path, tmp_path: Path
) -> None:
    (project / "requirements.txt").unlink()

    done = submit()

    assert done.returncode == 2
    assert "nothing was uploaded" in done.stderr
    assert not (tmp_path / "state.json").exists()


def test_without_the_azure_cli_one_line_says_how_to_get_it(submit: Submit) -> None:
    done = submit(with_cli=False)

    assert done.returncode == 2
    assert "az is not on the PATH" in done.stderr
    assert "Traceback" not in done.stderr
