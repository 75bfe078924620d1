"""``python -m lab submit``: upload the folder to Azure Load Testing, run it, exit with its verdict.

What can be known here is known first: an error of ``lab check`` or a placeholder left in the YAML
ends the submission before anything is sent.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import _vault
from _expiry import early
from lab import variables
from lab.azure_cli import AzureCliError, LoadTests
from lab.check import check
from lab.lint.finding import Level
from lab.lint.placeholders import check as placeholders_of
from lab.manifest import Manifest, ManifestError, load

HELP = "upload to Azure Load Testing through the Azure CLI, run, and exit with the verdict"
ENDED = ("DONE", "FAILED", "CANCELLED", "VALIDATION_FAILURE")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--resource", required=True, help="the Azure Load Testing resource")
    parser.add_argument("--resource-group", required=True, help="its resource group")
    parser.add_argument("--config", type=Path, default=Path("azure-loadtest.yaml"))
    parser.add_argument("--run-id", help="the run's id (default: made from the time)")
    parser.add_argument(
        "--every", type=float, default=15.0, help="seconds between two looks at the run"
    )
    parser.add_argument(
        "--within", type=float, default=7200.0, help="seconds after which the run is stopped"
    )


def run(args: argparse.Namespace) -> int:
    """Return 0 for PASSED, 1 for FAILED, 2 where no verdict could be had."""
    try:
        manifest = load(args.config)
    except ManifestError as error:
        return _cannot(str(error))
    refused = _refused(manifest)
    if refused:
        return refused
    _warn_of_ends(manifest)
    tests = LoadTests(args.resource, args.resource_group)
    run_id = args.run_id or datetime.now(UTC).strftime("run-%Y%m%d-%H%M%S")
    try:
        verb = tests.upload(manifest.test_id, manifest.path)
        print(f"{verb}d the test {manifest.test_id}, starting {run_id}")
        tests.start(manifest.test_id, run_id, run_id)
        state = _follow(tests, run_id, args.every, args.within)
        folder = Path("runs") / run_id
        folder.mkdir(parents=True, exist_ok=True)
        tests.download(run_id, folder)
    except AzureCliError as error:
        return _cannot(str(error))
    print(f"results and report: {folder} (python -m lab report {folder})")
    return _verdict(state)


def _refused(manifest: Manifest) -> int:
    errors = [f for f in check(manifest.path) if f.level is Level.ERROR]
    for finding in [*errors, *placeholders_of(manifest)]:
        print(finding)
    if errors:
        return _cannot("lab check found errors: nothing was uploaded")
    if placeholders_of(manifest):
        return _cannot("placeholders are left in the YAML: fill them in; nothing was uploaded")
    return 0


def _warn_of_ends(manifest: Manifest) -> None:
    """Say which secrets end in the run, as far as whoever is signed in here may read them."""
    if os.environ.get("MCP_VAULT", "").strip() == "0":
        return
    fetched = _vault.fetch({each.name: each.value for each in variables.used(manifest)})
    ends = variables.ends_of(fetched.values, fetched.ends)
    seconds = variables.run_seconds(manifest.environment, manifest) or 0.0
    for line in early(ends, seconds, time.time()):
        print(f"warning: {line}")
    if fetched.failures:
        print(
            f"note: not known here whether they last: {_vault.told(fetched.failures)}; the engine"
            " reads them by an identity of its own (MCP_VAULT=0 asks no vault)"
        )


def _follow(tests: LoadTests, run_id: str, every: float, within: float) -> dict[str, Any]:
    began, said = time.monotonic(), ""
    while True:
        state = tests.run(run_id)
        status = str(state.get("status", ""))
        if status != said:
            print(f"{time.monotonic() - began:6.0f} s  {status}", flush=True)
            said = status
        if status in ENDED:
            return state
        if time.monotonic() - began > within:
            tests.stop(run_id)
            raise AzureCliError(f"{run_id} was stopped: it took longer than {within:.0f} s")
        time.sleep(every)


def _verdict(state: dict[str, Any]) -> int:
    metrics = (state.get("passFailCriteria") or {}).get("passFailMetrics") or {}
    for one in metrics.values():
        name = f"{one.get('requestName')}: " if one.get("requestName") else ""
        print(
            f"{one.get('result') or 'undetermined':12} {name}{one.get('aggregate')}"
            f"({one.get('clientMetric')}) {one.get('condition')} {one.get('value')},"
            f" measured {one.get('actualValue')}"
        )
    status, result = str(state.get("status")), str(state.get("testResult"))
    print(f"{result} (the run is {status})")
    if status != "DONE":
        return 1 if result == "FAILED" else 2
    return {"PASSED": 0, "FAILED": 1}.get(result, 2)


def _cannot(line: str) -> int:
    print(f"lab submit: {line}", file=sys.stderr)
    return 2
