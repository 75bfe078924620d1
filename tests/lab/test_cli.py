"""``python -m lab``: what every command keeps to."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from lab import cli

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_command_is_a_module_with_a_line_of_help_its_options_and_a_run(name: str) -> None:
    module = importlib.import_module(cli.COMMANDS[name])
    parser = argparse.ArgumentParser()
    module.configure(parser)

    assert "\n" not in module.HELP
    assert callable(module.run)
    assert name in cli.overview()


def test_a_command_that_is_none_is_refused_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["dmeo"]) == 2

    said = capsys.readouterr().err
    assert said.startswith("lab: no command 'dmeo'; there are demo, run, report")


def test_help_is_no_failure_and_no_command_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert [cli.main(["--help"]), cli.main([])] == [0, 2]
    assert "exit code: 0 PASSED, 1 FAILED, 2 could not run" in capsys.readouterr().out


def test_a_reason_not_to_run_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["report", str(tmp_path / "nowhere")]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lab report: ")


def test_a_fault_of_the_labs_own_is_never_taken_for_a_failed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a_faulty_command.py").write_text(
        "HELP = ''\ndef configure(parser): pass\ndef run(args): return {}['absent']\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(cli.COMMANDS, "faulty", "a_faulty_command")

    assert cli.main(["faulty"]) == 2
    assert "KeyError: 'absent'" in capsys.readouterr().err


def test_a_report_needs_neither_locust_nor_gevent() -> None:
    """Locust patches the standard library of the process that imports it."""
    asked = "import sys, lab.report; print([m for m in ('locust', 'gevent') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
