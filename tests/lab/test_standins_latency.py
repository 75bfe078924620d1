"""The stand-ins' latencies have the published run's distribution."""

from __future__ import annotations

from itertools import islice

import pytest

from lab.standins.catalogue import published_run
from lab.standins.latency import Quantiles

LABELS = sorted(published_run())
DRAWS = 20_000


def empirical(draws: list[float], level: float) -> float:
    return sorted(draws)[round(level * len(draws)) - 1]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("seed", [1, 20260509])
def test_twenty_thousand_draws_lie_within_3_percent_of_the_published_run(
    label: str, seed: int
) -> None:
    row = published_run()[label]

    draws = list(islice(Quantiles.of(row).draws(f"{seed}:{label}"), DRAWS))

    assert empirical(draws, 0.50) == pytest.approx(row["p50"], rel=0.03)
    assert empirical(draws, 0.90) == pytest.approx(row["p90"], rel=0.03)
    assert empirical(draws, 0.95) == pytest.approx(row["p95"], rel=0.03)
    assert row["min"] <= min(draws)
    assert max(draws) <= row["max"]


@pytest.mark.parametrize("label", [name for name in LABELS if ":tools/call:" in name])
def test_the_mean_of_a_tool_is_the_published_one(label: str) -> None:
    row = published_run()[label]

    quantiles = Quantiles.of(row)
    draws = list(islice(quantiles.draws(label), DRAWS))

    assert quantiles.mean == pytest.approx(row["avg"], rel=0.005)
    assert sum(draws) / DRAWS == pytest.approx(quantiles.mean, rel=0.005)


def test_every_label_of_the_article_has_a_distribution() -> None:
    tools = [name for name in LABELS if ":tools/call:" in name]

    assert len(LABELS) == 27
    assert len(tools) == 13
    assert {name.partition(":")[0] for name in tools} == {"learn", "github", "context7", "ado"}


@pytest.mark.parametrize("label", LABELS)
def test_a_quantile_function_never_falls_and_meets_its_points(label: str) -> None:
    row = published_run()[label]
    quantiles = Quantiles.of(row)

    values = [quantiles.at(step / 1000) for step in range(1001)]

    assert values == sorted(values)
    for level, name in ((0, "min"), (500, "p50"), (900, "p90"), (950, "p95"), (990, "p99")):
        assert values[level] == pytest.approx(row[name])
    assert values[-1] == row["max"]


def test_the_same_seed_draws_the_same_and_another_seed_does_not() -> None:
    quantiles = Quantiles.of(published_run()["context7:tools/call:query-docs"])

    first = list(islice(quantiles.draws("a"), 50))

    assert list(islice(quantiles.draws("a"), 50)) == first
    assert list(islice(quantiles.draws("b"), 50)) != first


def test_a_hundred_draws_hold_the_tail_once() -> None:
    row = published_run()["github:tools/call:search_code"]

    draws = list(islice(Quantiles.of(row).draws("any"), 100))

    assert sum(value > row["p95"] for value in draws) == 5
    assert sum(value > row["p90"] for value in draws) == 10


def test_a_row_that_lacks_a_point_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="lacks p99, avg"):
        Quantiles.of({"min": 1, "p50": 2, "p90": 3, "p95": 4, "max": 5})


def test_points_that_fall_are_refused() -> None:
    with pytest.raises(ValueError, match="published points fall"):
        Quantiles.of({"min": 1, "p50": 2, "p90": 5, "p95": 4, "p99": 6, "max": 7, "avg": 3})
