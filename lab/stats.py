"""Pure numbers about requests: percentiles, means, error rates, rates, intervals.

Everything here is computed from raw samples, never from somebody's buckets, and runs are merged
by concatenating their samples: no percentile can be made from other percentiles.

Three conventions, each a choice that changes printed figures:

* A percentile is linearly interpolated between the two order statistics around it (rank
  ``p / 100 * (n - 1)``, counted from 0): numpy's default, ``statistics``' "inclusive".
  Azure Load Testing uses a sketch, so its figures differ from these by up to a few percent.
* A rate is count / (last end - first start), and the window is the whole run's, the same for
  every label: the published Azure run shows one window for all 27 of its labels.
* Failed requests have a response time too, and count in every figure.

Units: seconds since the epoch for instants, milliseconds for response times, 0 to 100 for shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

TOTAL = "Total"

# Azure's names, in the order in which a table shows them.
PERCENTILES: Mapping[str, float] = {
    "p50": 50.0,
    "p75": 75.0,
    "p90": 90.0,
    "p95": 95.0,
    "p96": 96.0,
    "p97": 97.0,
    "p98": 98.0,
    "p99": 99.0,
    "p999": 99.9,
    "p9999": 99.99,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One attempted request.

    start       seconds since the epoch
    elapsed_ms  response time in milliseconds
    failure     the short stable text of what went wrong; "" where success
    """

    label: str
    start: float
    elapsed_ms: float
    success: bool
    failure: str = ""

    @property
    def end(self) -> float:
        """The instant of the reply's end, in seconds since the epoch."""
        return self.start + self.elapsed_ms / 1000.0


@dataclass(frozen=True, slots=True)
class Window:
    """The span of a run in seconds since the epoch: first sample's start to last sample's end."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Interval:
    """Where the true percentile lies with the stated confidence.

    A bound is None where the samples are too few to give one: 84 of them cannot say how bad
    the 99th percentile may be.
    """

    low: float | None
    high: float | None
    confidence: float


@dataclass(frozen=True, slots=True)
class Summary:
    """One line of the table: a label's requests. Times in ms, rate per second."""

    label: str
    count: int
    failures: int
    avg: float
    min: float
    max: float
    p50: float
    p75: float
    p90: float
    p95: float
    p99: float
    rate: float

    @property
    def error_percent(self) -> float:
        """The share of failures, 0 to 100."""
        return error_percent(self.count, self.failures)


def percentile_of_sorted(ordered: Sequence[float], p: float) -> float:
    """Return the p-th percentile (0 to 100) of values that are already in ascending order.

    Raises ValueError for no values, or for a p outside 0 to 100.
    """
    if not ordered:
        raise ValueError("a percentile needs at least one value, got none")
    if not 0.0 <= p <= 100.0:
        raise ValueError(f"a percentile is asked for between 0 and 100, got {p}")
    rank = p / 100.0 * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def percentile(values: Iterable[float], p: float) -> float:
    """Return the p-th percentile (0 to 100) of values in any order."""
    return percentile_of_sorted(sorted(values), p)


def percentiles(values: Iterable[float], names: Iterable[str] = PERCENTILES) -> dict[str, float]:
    """Return name -> value for Azure's percentile names (p50 .. p9999), sorting once."""
    ordered = sorted(values)
    return {name: percentile_of_sorted(ordered, PERCENTILES[name]) for name in names}


def percentile_interval(values: Iterable[float], p: float, confidence: float = 0.95) -> Interval:
    """Return the interval of order statistics that holds the true p-th percentile.

    Distribution-free and exact: the number of samples below the true percentile is binomial
    (n, p / 100), so the bounds are the outermost order statistics that leave at most
    (1 - confidence) / 2 on either side. Assumes independent samples, which a server under load
    rarely gives: read it as the least uncertainty there is.

    Raises ValueError for no values, a p outside 0 to 100 or a confidence outside 0 to 1.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("an interval needs at least one value, got none")
    if not 0.0 < p < 100.0:
        raise ValueError(f"an interval is asked for a percentile inside 0 to 100, got {p}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence lies inside 0 to 1, got {confidence}")
    tail, n = (1.0 - confidence) / 2.0, len(ordered)
    from_below = _lowest_rank(n, p / 100.0, tail)
    from_above = _lowest_rank(n, 1.0 - p / 100.0, tail)
    return Interval(
        low=ordered[from_below - 1] if from_below else None,
        high=ordered[n - from_above] if from_above else None,
        confidence=confidence,
    )


def _lowest_rank(n: int, share: float, tail: float) -> int:
    """Return the largest k with P(Binomial(n, share) < k) <= tail; 0 where there is none."""
    mean, spread = n * share, math.sqrt(n * share * (1.0 - share))
    k = max(0, math.floor(mean - 12.0 * spread - 12.0))  # below it lies nothing that a float sees
    odds = math.log(share) - math.log1p(-share)
    log_mass = (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(share)
        + (n - k) * math.log1p(-share)
    )
    below = 0.0
    while k <= n:
        below += math.exp(log_mass)
        if below > tail:
            return k
        log_mass += odds + math.log(n - k) - math.log(k + 1) if k < n else 0.0
        k += 1
    return n


def mean(values: Iterable[float]) -> float:
    """Return the arithmetic mean, summed without rounding loss. Raises ValueError for none."""
    listed = values if isinstance(values, (list, tuple)) else list(values)
    if not listed:
        raise ValueError("a mean needs at least one value, got none")
    return math.fsum(listed) / len(listed)


def error_percent(count: int, failures: int) -> float:
    """Return the share of failures, 0 to 100. Raises ValueError for no requests."""
    if count <= 0:
        raise ValueError(f"an error rate needs at least one request, got {count}")
    return 100.0 * failures / count


def window(samples: Iterable[Sample]) -> Window:
    """Return the span from the first start to the last end. Raises ValueError for no samples."""
    listed = samples if isinstance(samples, (list, tuple)) else list(samples)
    if not listed:
        raise ValueError("a window needs at least one sample, got none")
    return Window(min(s.start for s in listed), max(s.end for s in listed))


def rate(count: int, span: Window) -> float:
    """Return requests per second; 0.0 where the window has no length, as no rate can be told."""
    return count / span.seconds if span.seconds > 0.0 else 0.0


def merge(*runs: Iterable[Sample]) -> list[Sample]:
    """Return all samples of several engines or runs, in the order of their starts."""
    return sorted(chain.from_iterable(runs), key=lambda sample: sample.start)


def by_label(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Return label -> its samples, labels in the order of their first appearance."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.label, []).append(sample)
    return groups


def summarize(
    samples: Sequence[Sample], *, label: str = TOTAL, span: Window | None = None
) -> Summary:
    """Return one line over all the samples given.

    span is the run's window for the rate; without it, the samples' own. Pass the run's where
    the samples are one label's. Raises ValueError for no samples.
    """
    ordered = sorted(s.elapsed_ms for s in samples)
    average = mean(ordered)
    return Summary(
        label=label,
        count=len(ordered),
        failures=sum(not s.success for s in samples),
        avg=average,
        min=ordered[0],
        max=ordered[-1],
        p50=percentile_of_sorted(ordered, 50.0),
        p75=percentile_of_sorted(ordered, 75.0),
        p90=percentile_of_sorted(ordered, 90.0),
        p95=percentile_of_sorted(ordered, 95.0),
        p99=percentile_of_sorted(ordered, 99.0),
        rate=rate(len(ordered), span or window(samples)),
    )


def summarize_by_label(samples: Sequence[Sample]) -> dict[str, Summary]:
    """Return label -> its line, sorted by label; rates over the whole run's window.

    Empty for no samples. The line over everything is ``summarize(samples)``.
    """
    if not samples:
        return {}
    span = window(samples)
    groups = by_label(samples)
    return {label: summarize(groups[label], label=label, span=span) for label in sorted(groups)}
