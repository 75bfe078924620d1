"""A stand-in for `az` on the PATH: the options of the `load` extension and no others, no upsert.

Its state is a JSON file beside it. It is told by AZ_STANDIN_RESULT how runs end.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

STATE = Path(os.environ["AZ_STANDIN_STATE"])


def fail(text: str) -> NoReturn:
    sys.stderr.write(f"ERROR: {text}\n")
    raise SystemExit(1)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="az", allow_abbrev=False)
    kinds = top.add_subparsers(dest="kind", required=True)
    test = kinds.add_parser("test").add_subparsers(dest="verb", required=True)
    run = kinds.add_parser("test-run").add_subparsers(dest="verb", required=True)

    def add(group: Any, verb: str, *options: str, flags: Sequence[str] = ()) -> None:
        one = group.add_parser(verb, allow_abbrev=False)
        one.add_argument("--load-test-resource", required=True)
        one.add_argument("--resource-group", required=True)
        one.add_argument("--output", required=True, choices=["json"])
        for option in options:
            one.add_argument(option, required=option in ("--test-id", "--test-run-id"))
        for flag in flags:
            one.add_argument(flag, action="store_true")

    add(test, "show", "--test-id")
    for verb in ("create", "update"):
        add(test, verb, "--test-id", "--load-test-config-file", flags=["--no-wait"])
    add(run, "create", "--test-id", "--test-run-id", "--display-name", flags=["--no-wait"])
    add(run, "show", "--test-run-id")
    add(run, "stop", "--test-run-id", flags=["--yes"])
    add(
        run,
        "download-files",
        "--test-run-id",
        "--path",
        flags=["--input", "--log", "--result", "--report", "--force"],
    )
    return top


def main() -> None:
    words = sys.argv[1:]
    if words[:1] != ["load"]:
        fail(f"'{' '.join(words[:1])}' is misspelled or not recognized by the system.")
    said = parser().parse_args(words[1:])
    state: dict[str, Any] = (
        json.loads(STATE.read_text()) if STATE.exists() else {"tests": [], "looks": 0}
    )
    state.setdefault("calls", []).append(f"{said.kind} {said.verb}")
    answer: object = {}
    if said.kind == "test":
        exists = said.test_id in state["tests"]
        if said.verb == "show" and not exists:
            STATE.write_text(json.dumps(state))
            fail(f"(TestNotFound) Test with given test ID : {said.test_id} does not exist.")
        if said.verb == "create" and exists:
            fail(f"Test with given test ID : {said.test_id} already exist.")
        if said.verb == "update" and not exists:
            fail(f"Test with given test ID : {said.test_id} does not exist.")
        if said.verb in ("create", "update"):
            if not Path(said.load_test_config_file).is_file():
                fail(f"{said.load_test_config_file} not found")
            state["tests"] = sorted({*state["tests"], said.test_id})
    elif said.verb == "show":
        state["looks"] += 1
        result = os.environ.get("AZ_STANDIN_RESULT", "PASSED")
        metric = {
            "clientMetric": "error",
            "aggregate": "percentage",
            "condition": ">",
            "value": 25.0,
            "requestName": None,
            "actualValue": 0.13 if result == "PASSED" else 40.0,
            "result": result.lower(),
        }
        done = state["looks"] > 1
        answer = {
            "status": "DONE" if done else "EXECUTING",
            "testResult": result if done else "NOT_APPLICABLE",
            "passFailCriteria": {"passFailMetrics": {"1": metric}},
        }
    elif said.verb == "download-files":
        Path(said.path, "results.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    STATE.write_text(json.dumps(state))
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
