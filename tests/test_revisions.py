"""The revisions that we know, and what each asks of a client."""

from __future__ import annotations

import pytest

from _revisions import (
    NEWEST_ENVELOPE,
    NEWEST_HANDSHAKE,
    REVISIONS,
    Era,
    revision_to_offer,
)


def test_each_era_has_its_newest() -> None:
    eras = {name: revision.era for name, revision in REVISIONS.items()}

    assert eras[NEWEST_HANDSHAKE.name] is Era.HANDSHAKE
    assert NEWEST_HANDSHAKE.name == max(n for n, era in eras.items() if era is Era.HANDSHAKE)
    assert NEWEST_ENVELOPE.name == max(n for n, era in eras.items() if era is Era.ENVELOPE)


def test_batches_are_those_of_one_revision() -> None:
    """specification/2025-06-18/changelog: support for JSON-RPC batching was removed."""
    assert [name for name, revision in REVISIONS.items() if revision.batches] == ["2025-03-26"]


@pytest.mark.parametrize("name", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_revision_that_we_speak_can_be_offered(name: str) -> None:
    assert revision_to_offer(name).name == name


@pytest.mark.parametrize("name", ["2024-11-05", "2099-01-01", "", "latest"])
def test_another_one_is_refused_with_those_that_can_be(name: str) -> None:
    with pytest.raises(ValueError, match=r"use one of 2025-03-26, .*2026-07-28, auto") as caught:
        revision_to_offer(name)

    assert repr(name) in str(caught.value)
