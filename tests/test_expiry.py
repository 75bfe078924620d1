"""When a token ends is read from the token, and never believed beyond what it says."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pytest

from _expiry import claims_of, jwt_end


def token_of(claims: Any) -> str:
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), "x"])


@pytest.mark.parametrize("ends", [1_800_000_000, 1_800_000_000.5])
def test_a_web_token_says_when_it_ends(ends: float) -> None:
    assert jwt_end(token_of({"exp": ends, "sub": "ü~?"})) == ends


@pytest.mark.parametrize(
    "token",
    ["", "ghp_opaque", "a.b.c", "..", token_of({}), token_of([])]
    + [token_of({"exp": ends}) for ends in ("soon", True, None, math.nan)],
)
def test_a_token_that_does_not_say_when_it_ends_has_no_end(token: str) -> None:
    assert jwt_end(token) is None


def test_the_claims_of_a_token_are_read_unverified() -> None:
    assert claims_of(token_of({"scp": "x"}) + "\n") == {"scp": "x"}
