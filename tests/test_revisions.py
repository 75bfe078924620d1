"""The revisions that we know, and what each asks of a client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from _revisions import (
    NEWEST_ENVELOPE,
    NEWEST_HANDSHAKE,
    REVISIONS,
    Dealer,
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


@pytest.mark.parametrize("worker", [-1, 0, 1, 2])  # -1 is where there are no workers
@pytest.mark.parametrize("weights", [{"a": 1, "b": 1}, {"a": 3, "b": 1}, {"a": 2, "b": 1, "c": 1}])
def test_users_are_dealt_among_revisions_by_weight_whatever_their_number(
    weights: Mapping[str, float], worker: int
) -> None:
    dealer = Dealer(weights, worker)
    dealt: Counter[str] = Counter()
    for users in range(1, 41):
        dealt[dealer.deal()] += 1

        for name, weight in weights.items():
            assert abs(dealt[name] - users * weight / sum(weights.values())) <= 1


def test_workers_with_one_user_each_do_not_all_speak_the_same_revision() -> None:
    weights = {"a": 1, "b": 1}

    assert Counter(Dealer(weights, worker).deal() for worker in range(4)) == {"a": 2, "b": 2}
