"""Named predicates on a tool's result: what a good answer looks like, and what a bad one is called.

A check is called with the result object of a `tools/call` and says whether it passes. Its
`reason(result)` says which predicate failed, so that "check failed: has_matches" is a finished
sentence and one row in the failure table. Three findings come before the check's own name,
because servers send them as ordinary text under HTTP 200:

    within_quota    the server says that a quota or a rate limit is used up
    is_authorized   the server says that the caller may not do this
    not_empty       the server says nothing at all

A page of documentation that merely mentions quotas is a good answer. So nothing is searched in
an answer that has what it was asked for, and otherwise only its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Result = Mapping[str, Any]  # the result object of a tools/call, as decoded from JSON

# Servers refuse in a sentence or two: Context7's longest is about 120 characters, Azure DevOps'
# about 200. What is longer is an answer, and only its beginning may be a refusal.
SHORT = 400

_QUOTA = re.compile(
    r"quota|rate.?limit|too many requests|throttl|TF400733"
    r"|\blimits? (?:is |was |has been |have been )?(?:reached|exceeded|hit)"
    r"|\bexceeded (?:your|the|its) .{0,30}\blimit|status(?: code)?:? 429|\b429 too",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    r"VS30063|TF400813|VS800075|AADSTS\d+|unauthori[sz]ed|not authori[sz]ed|access.denied|forbidden"
    r"|bad credentials|invalid (?:api.?key|credential|(?:access |bearer )?token|[\w-]*signature)"
    r"|(?:token|session|credentials?|api.?key|pat) (?:has |have |is |was )?(?:been )?"
    r"(?:expired|revoked|invalid)|expired (?:\w+ )?(?:token|credential|api.?key)"
    r"|(?:do(?:es)? not|don't) have (?:the )?permission|permission denied"
    r"|(?:authentication|authori[sz]ation|sign.?in|log.?in) (?:is )?(?:required|failed)"
    r"|requires authentication|must (?:be )?(?:authenticate|sign|log)"
    r"|(?:status(?: code)?|HTTP|error):? 40[13]\b|\b401\b|\b403\b",
    re.IGNORECASE,
)


def texts(result: Result) -> Iterator[str]:
    """Yield the texts of a result's content: text blocks and the text of embedded resources.

    Blocks without text (images, links, null, what is no block at all) are passed over.
    """
    content = result.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping):
            text = block.get("text")
            if not isinstance(text, str):
                resource = block.get("resource")
                text = resource.get("text") if isinstance(resource, Mapping) else None
            if isinstance(text, str):
                yield text


def text_of(result: Result) -> str:
    """Return all texts of a result, one after the other, joined by line ends."""
    found = list(texts(result))
    return found[0] if len(found) == 1 else "\n".join(found)


def refusal(text: str) -> str | None:
    """Return `within_quota` or `is_authorized` where the beginning of a text denies it."""
    beginning = text.lstrip()[:SHORT]
    if _QUOTA.search(beginning):
        return "within_quota"
    if _AUTHORIZATION.search(beginning):
        return "is_authorized"
    return None


class Check:
    """A predicate on a result; what passes is decided by `_passes`, its name is its finding."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, result: Result) -> bool:
        return self.reason(result) is None

    def __repr__(self) -> str:
        return f"<check {self.__name__}>"

    def reason(self, result: Result) -> str | None:
        """Return None where the result passes, else the name of what it lacks."""
        raise NotImplementedError


class _Contains(Check):
    def __init__(self, needles: tuple[str, ...], name: str | None) -> None:
        if not needles or not all(needles):
            raise ValueError("a check needs a text to look for, and no empty one")
        slug = re.sub(r"\W+", "_", needles[0]).strip("_").lower() or "text"
        super().__init__(name or f"contains_{slug}")
        self._needles = needles

    def reason(self, result: Result) -> str | None:
        text = text_of(result)
        if any(needle in text for needle in self._needles):
            return None
        if text.strip():
            return refusal(text) or self.__name__
        return self.__name__ if result.get("structuredContent") else "not_empty"


class _NotEmpty(Check):
    def reason(self, result: Result) -> str | None:
        text = text_of(result)
        if not text or text.isspace():
            return None if self._has_more(result) else self.__name__
        return refusal(text) if len(text) <= SHORT else None

    @staticmethod
    def _has_more(result: Result) -> bool:
        """Say whether there is something other than text: structured content, an image, a link."""
        if result.get("structuredContent"):
            return True
        content = result.get("content")
        blocks = content if isinstance(content, list) else ()
        return any(
            isinstance(block, Mapping)
            and any(block.get(key) for key in ("data", "uri", "resource"))
            for block in blocks
        )


def expect_contains(needle: str, *, name: str | None = None) -> Check:
    """Return a check that the result's text (not its structured content) has `needle` in it."""
    return _Contains((needle,), name)


def expect_any_contains(*needles: str, name: str | None = None) -> Check:
    """Return a check that the result's text has at least one of the needles in it."""
    return _Contains(needles, name)


def expect_not_empty(name: str = "not_empty") -> Check:
    """Return a check that there is any content: text, structured content, an image, a link."""
    return _NotEmpty(name)
