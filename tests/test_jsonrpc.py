"""JSON-RPC messages, made and taken apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from _failures import MCPError
from _jsonrpc import (
    decode,
    decode_or_none,
    error_code,
    next_id,
    notification_body,
    request_body,
    response_body,
    result_of,
)

ROOT = Path(__file__).parent.parent


def test_a_request_a_notification_and_an_answer_have_the_members_of_json_rpc_2() -> None:
    assert json.loads(request_body(7, "ping", None)) == {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "ping",
    }
    assert json.loads(notification_body("notifications/x", {"a": 1})) == {
        "jsonrpc": "2.0",
        "method": "notifications/x",
        "params": {"a": 1},
    }
    assert json.loads(response_body("srv-1", "result", {})) == {
        "jsonrpc": "2.0",
        "id": "srv-1",
        "result": {},
    }


def test_empty_params_are_sent_and_missing_ones_are_not() -> None:
    assert json.loads(request_body(1, "x", {}))["params"] == {}
    assert "params" not in json.loads(notification_body("x"))


def test_ids_are_unique_and_small_enough_for_javascript() -> None:
    ids = [next_id() for _ in range(1000)]

    assert len(set(ids)) == 1000
    assert all(0 < each < 2**53 for each in ids)


def test_two_processes_do_not_send_the_same_ids() -> None:
    """Servers with one shared transport route replies by id alone (GHSA-345p-7cg4-v4c7)."""
    code = (
        "import os, _jsonrpc\n"
        "first = _jsonrpc.next_id()\n"
        "child = os.fork()\n"
        "os.write(1, b'%d\\n' % (_jsonrpc.next_id() >> 32))\n"
        "child and os.waitpid(child, 0)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert len(set(found.stdout.split())) == 2


@pytest.mark.parametrize("arguments", [{"a": object()}, {"a": "\ud83d"}, {"a": {1, 2}}])
def test_arguments_that_are_no_json_are_a_failure_with_a_name(arguments: Any) -> None:
    with pytest.raises(MCPError, match=r"^arguments are no JSON$"):
        request_body(1, "tools/call", {"arguments": arguments})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"{}", {}),
        (b"\xef\xbb\xbf{}", {}),
        (b' \r\n{"a": 1} ', {"a": 1}),
        (b'{"a": "\\ud83d"}', {"a": "\ud83d"}),
        ('{"a": "é"}'.encode(), {"a": "é"}),
    ],
)
def test_json_is_decoded_as_servers_send_it(data: bytes, expected: Any) -> None:
    assert decode(data) == expected


@pytest.mark.parametrize(
    "data", [b"", b"{", b"<html>", b'{"a": NaN}', b'{"a": "\xe9"}', b"[" * 200_000, b"\xff\xfe"]
)
def test_what_is_no_json_is_a_value_error_and_nothing_else(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whose text is nobody's business
        decode(data)
    assert decode_or_none(data) is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"error": {"code": -32602}}, -32602),
        ({"error": {"code": True}}, None),
        ({"error": {"code": "x"}}, None),
        ({"error": []}, None),
        ({"result": {}}, None),
        ([], None),
        (None, None),
    ],
)
def test_an_error_code_is_a_whole_number_or_none(message: Any, expected: int | None) -> None:
    assert error_code(message) == expected


def test_an_error_goes_before_a_result_that_is_there_too() -> None:
    with pytest.raises(MCPError, match=r"^JSON-RPC error -1$"):
        result_of({"result": {}, "error": {"code": -1}}, False)


def test_the_text_of_an_error_is_in_no_failure() -> None:
    with pytest.raises(MCPError) as caught:
        result_of({"error": {"code": -32603, "message": "token secret-1, " * 1000}}, True)

    assert str(caught.value) == "JSON-RPC error -32603"
