"""Which era an answer to `server/discover` tells (specification/2026-07-28/basic/versioning)."""

from __future__ import annotations

from typing import Any

import pytest

from _probe import judge_discovery

MODERN, LEGACY, UNKNOWN = "2026-07-28", "2025-11-25", None


def _error(code: int, **data: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "x", "data": data}}


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (200, {"result": {"supportedVersions": [MODERN]}}, MODERN),
        (200, {"result": {"supportedVersions": ["2099-01-01", MODERN]}}, MODERN),
        (200, {"result": {"supportedVersions": [LEGACY]}}, LEGACY),
        (200, {"result": {"supportedVersions": []}}, LEGACY),
        (200, {"result": {}}, LEGACY),
        (200, {"result": []}, LEGACY),
        (200, None, LEGACY),
        (400, _error(-32022, supported=[MODERN]), MODERN),
        (200, _error(-32022, supported=[MODERN, LEGACY]), MODERN),
        (400, _error(-32022, supported=[LEGACY, "2025-06-18"]), LEGACY),
        (400, _error(-32022, supported=["2025-03-26", "2025-06-18"]), "2025-06-18"),
        (400, _error(-32022, supported=["2099-01-01"]), UNKNOWN),
        (400, _error(-32022), LEGACY),
        (400, {"error": {"code": -32022, "data": None}}, LEGACY),
        (400, _error(-32020), MODERN),
        (400, _error(-32021, requiredCapabilities={}), MODERN),
        (400, _error(-32600), LEGACY),
        (200, _error(-32601), LEGACY),
        (200, _error(-32602), LEGACY),
        (404, _error(-32001), LEGACY),
        (400, None, LEGACY),
        (404, None, LEGACY),
        (405, None, LEGACY),
        (406, "not acceptable", LEGACY),
        (202, None, LEGACY),
        (401, None, UNKNOWN),
        (403, _error(-32022, supported=[MODERN]), UNKNOWN),
        (429, None, UNKNOWN),
        (500, None, UNKNOWN),
        (502, None, UNKNOWN),
        (503, _error(-32000), UNKNOWN),
        (301, None, UNKNOWN),
        (307, None, UNKNOWN),
        (0, None, UNKNOWN),
    ],
)
def test_an_answer_means_one_era_or_none(status: int, message: Any, expected: str | None) -> None:
    verdict = judge_discovery(status, message)

    assert (verdict.revision.name if verdict.revision else None) == expected
    assert verdict.why
