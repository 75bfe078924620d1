"""lab/stats.py against computations that share nothing with it."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from lab.stats import (
    PERCENTILES,
    Sample,
    Window,
    by_label,
    error_percent,
    mean,
    merge,
    percentile,
    percentile_interval,
    percentiles,
    rate,
    summarize,
    summarize_by_label,
    window,
)


def draws(n: int, seed: int = 7) -> list[float]:
    dice = random.Random(seed)
    return [dice.lognormvariate(6.0, 0.8) for _ in range(n)]


@pytest.mark.parametrize(
    ("values", "p", "expected"),
    [
        ([1.0], 99.0, 1.0),
        ([1.0, 2.0], 50.0, 1.5),
        ([1.0, 2.0, 3.0, 4.0], 50.0, 2.5),
        ([1.0, 2.0, 3.0, 4.0], 75.0, 3.25),
        ([4.0, 1.0, 3.0, 2.0], 0.0, 1.0),
        ([4.0, 1.0, 3.0, 2.0], 100.0, 4.0),
        ([10.0, 20.0, 30.0, 40.0, 50.0], 90.0, 46.0),
        ([15.0, 20.0, 35.0, 40.0, 50.0], 40.0, 29.0),
    ],
)
def test_a_percentile_is_interpolated_between_its_two_neighbours(
    values: list[float], p: float, expected: float
) -> None:
    """The expected values are numpy.percentile's."""
    assert expected == pytest.approx(percentile(values, p), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 84, 161, 10_000])
def test_every_percentile_agrees_with_the_standard_library(n: int) -> None:
    values = draws(n)
    cuts = statistics.quantiles(values, n=10_000, method="inclusive")

    ours = percentiles(values)

    assert list(PERCENTILES) == list(ours)
    for name, p in PERCENTILES.items():
        assert cuts[round(p * 100) - 1] == pytest.approx(ours[name], rel=1e-9)


def test_percentiles_never_fall_as_p_rises() -> None:
    values = [0.1, 0.1, 0.3, 0.3, 0.3000000001]

    found = [percentile(values, p / 10) for p in range(1001)]

    assert sorted(found) == found


def test_the_percentile_of_no_values_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        percentile([], 50.0)


@pytest.mark.parametrize("p", [-0.1, 100.1, math.nan])
def test_a_percentile_outside_0_to_100_is_refused_with_its_value(p: float) -> None:
    with pytest.raises(ValueError, match=str(p)):
        percentile([1.0], p)


def binomial_below(n: int, share: float, k: int) -> float:
    return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k))


@pytest.mark.parametrize("p", [50.0, 90.0, 99.0])
@pytest.mark.parametrize("n", [5, 40, 300])
def test_an_interval_is_the_narrowest_that_leaves_each_tail_its_share(n: int, p: float) -> None:
    """With the values 1..n a bound is its own rank, so binomial sums check it directly."""
    interval = percentile_interval([float(i) for i in range(1, n + 1)], p)

    if interval.low is None:
        assert binomial_below(n, p / 100, 1) > 0.025
    else:
        rank = int(interval.low)
        assert binomial_below(n, p / 100, rank) <= 0.025 < binomial_below(n, p / 100, rank + 1)
    if interval.high is None:
        assert 1 - binomial_below(n, p / 100, n) > 0.025
    else:
        rank = int(interval.high)
        assert 1 - binomial_below(n, p / 100, rank) <= 0.025
        assert 1 - binomial_below(n, p / 100, rank - 1) > 0.025


def test_an_interval_holds_the_true_percentile_as_often_as_it_says() -> None:
    dice, true_p90, held = random.Random(3), 0.9, 0
    for _ in range(2000):
        interval = percentile_interval([dice.random() for _ in range(120)], 90.0)
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= true_p90 <= interval.high

    assert held / 2000 >= 0.94


def test_84_samples_give_no_upper_bound_for_p99() -> None:
    interval = percentile_interval(draws(84), 99.0)

    assert interval.high is None
    assert interval.low is not None


def test_the_interval_of_a_million_samples_is_tight_around_the_percentile() -> None:
    values = [i / 1_000_000 for i in range(1_000_000)]

    interval = percentile_interval(values, 99.99)

    assert interval.low == pytest.approx(0.9999 - 1.96e-5, abs=2e-6)
    assert interval.high == pytest.approx(0.9999 + 1.96e-5, abs=2e-6)


@pytest.mark.parametrize(
    ("p", "confidence"), [(0.0, 0.95), (100.0, 0.95), (50.0, 0.0), (50.0, 1.0)]
)
def test_an_interval_that_nothing_can_give_is_refused(p: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="inside 0 to"):
        percentile_interval([1.0, 2.0], p, confidence)


def test_a_mean_loses_nothing_to_rounding() -> None:
    assert mean([1e16, 1.0, -1e16]) == pytest.approx(1 / 3)


def test_the_published_error_rate_is_three_of_2293() -> None:
    assert round(error_percent(2293, 3), 2) == 0.13


def test_a_rate_is_over_first_start_to_last_end() -> None:
    samples = [
        Sample("a", 100.0, 500.0, True),
        Sample("a", 101.0, 4000.0, True),
        Sample("a", 104.0, 100.0, True),
    ]

    span = window(samples)

    assert Window(100.0, 105.0) == span
    assert rate(3, span) == pytest.approx(0.6)


def test_a_window_without_length_gives_no_rate() -> None:
    assert rate(1, Window(5.0, 5.0)) == 0.0


def test_merging_engines_concatenates_their_samples_so_percentiles_are_of_all() -> None:
    one = [Sample("a", 2.0, 10.0, True), Sample("a", 4.0, 10.0, True)]
    two = [Sample("a", 1.0, 1000.0, True), Sample("a", 3.0, 1000.0, True)]

    merged = merge(one, two)

    assert [s.start for s in merged] == [1.0, 2.0, 3.0, 4.0]
    assert summarize(merged).p50 == pytest.approx(505.0)


def test_every_label_is_rated_over_the_whole_runs_window() -> None:
    samples = [
        Sample("b", 0.0, 1000.0, True),
        Sample("a", 4.0, 1000.0, False, "HTTP 502"),
        Sample("a", 9.0, 1000.0, True),
    ]

    table = summarize_by_label(samples)

    assert list(table) == ["a", "b"]
    assert table["a"].rate == pytest.approx(0.2)
    assert table["b"].rate == pytest.approx(0.1)


def test_a_failed_request_counts_in_the_times_and_in_the_failures() -> None:
    line = summarize([Sample("a", 0.0, 10.0, True), Sample("a", 1.0, 30.0, False, "tool error")])

    assert (line.count, line.failures, line.avg, line.min, line.max) == (2, 1, 20.0, 10.0, 30.0)
    assert line.error_percent == 50.0


def test_no_samples_give_an_empty_table_and_no_total() -> None:
    assert summarize_by_label([]) == {}
    with pytest.raises(ValueError, match="at least one"):
        summarize([])


def test_labels_are_grouped_in_the_order_in_which_they_appeared() -> None:
    samples = [Sample(label, 0.0, 1.0, True) for label in ("b", "a", "b")]

    groups = by_label(samples)

    assert list(groups) == ["b", "a"]
    assert [len(group) for group in groups.values()] == [2, 1]
