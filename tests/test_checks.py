"""Named checks on a tool's result: what passes, and the name of what does not."""

from __future__ import annotations

from typing import Any

import pytest

from _checks import expect_any_contains, expect_contains, expect_not_empty

has_matches = expect_contains('"results"', name="has_matches")


def result(*blocks: Any, **more: Any) -> dict[str, Any]:
    return {"content": list(blocks), **more}


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def test_a_result_that_holds_the_text_passes() -> None:
    assert has_matches.reason(result(text('{"results": []}'))) is None
    assert has_matches(result(text('{"results": []}')))


def test_the_name_of_a_check_is_what_its_failure_says() -> None:
    assert has_matches.reason(result(text("{}"))) == "has_matches"
    assert has_matches.__name__ == "has_matches"


def test_any_of_several_texts_is_enough() -> None:
    check = expect_any_contains('"a"', '"b"', name="has_letters")

    assert check.reason(result(text('{"b": 1}'))) is None
    assert check.reason(result(text('{"c": 1}'))) == "has_letters"


@pytest.mark.parametrize(
    ("refusal", "name"),
    [
        ("Monthly quota exceeded. Create a free API key for more requests.", "within_quota"),
        ("API rate limit exceeded for user ID 1.", "within_quota"),
        ("TF400733: The request has been canceled", "within_quota"),
        ("VS30063: You are not authorized to access https://dev.azure.com.", "is_authorized"),
        ("The access token expired", "is_authorized"),
        ("Bad credentials", "is_authorized"),
    ],
)
@pytest.mark.parametrize("check", [has_matches, expect_not_empty()], ids=["contains", "not_empty"])
def test_a_refusal_in_an_ordinary_reply_is_named(check: Any, refusal: str, name: str) -> None:
    assert check.reason(result(text(refusal))) == name


def test_a_page_that_mentions_quotas_is_an_answer() -> None:
    page = "Service limits. " + "x" * 2000 + " When the quota is exceeded, requests are throttled."

    assert expect_not_empty().reason(result(text(page))) is None
    assert expect_contains("Service limits").reason(result(text(page))) is None


@pytest.mark.parametrize("blocks", [[], [None], [{"type": "text"}], [text("  ")]], ids=str)
def test_an_empty_result_is_named_so(blocks: list[Any]) -> None:
    assert expect_not_empty().reason(result(*blocks)) == "not_empty"


def test_structured_content_alone_is_not_empty_but_holds_no_text() -> None:
    structured = result(structuredContent={"results": [1]})

    assert expect_not_empty().reason(structured) is None
    assert has_matches.reason(structured) == "has_matches"


def test_odd_blocks_are_passed_over() -> None:
    odd = [None, "x", {"type": "image", "data": "AA=="}, {"type": "text"}, text('"results"')]

    assert has_matches.reason(result(*odd)) is None


def test_the_text_of_an_embedded_resource_counts() -> None:
    block = {"type": "resource", "resource": {"uri": "repo://x", "text": '"results"'}}

    assert has_matches.reason(result(block)) is None


@pytest.mark.parametrize("content", [None, "text", 3, {"text": "x"}], ids=str)
def test_content_that_is_no_list_is_empty(content: Any) -> None:
    assert expect_not_empty().reason({"content": content}) == "not_empty"


def test_a_check_needs_something_to_look_for() -> None:
    with pytest.raises(ValueError, match="needs a text"):
        expect_contains("")
