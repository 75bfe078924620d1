"""Latencies with a published summary: pure numbers, no clock.  Milliseconds throughout.

A published row gives seven points of a distribution (min, p50, p90, p95, p99, max) and its
mean.  `Quantiles` joins the points by a function that never falls; the mean, which the
points alone miss by up to a third, bends the two widest pieces (min to p50, p50 to p90).

Draws are stratified: every block of 100 takes one value out of each hundredth of the
distribution, in shuffled order.  Plain draws would put the p90 of a steep distribution
(GitHub's code search rises from 1.56 s to 3.07 s between p90 and p95) outside 3 % in one
series of 20,000 out of four; these keep short runs close to the published one, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

Millisecond = float

_LEVELS: Final = (0.0, 0.5, 0.9, 0.95, 0.99, 1.0)
_NAMES: Final = ("min", "p50", "p90", "p95", "p99", "max")
_BENT: Final = 2  # pieces that the mean bends
_STRATA: Final = 100
# Flatter than the square root, a piece jumps so fast that its own end is blurred.
_EXPONENTS: Final = (0.5, 8.0)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A quantile function through published points; `points` never fall."""

    points: tuple[Millisecond, ...]
    exponent: float = 1.0

    @classmethod
    def of(cls, row: Mapping[str, float]) -> Quantiles:
        """Make it from a published row with min, p50, p90, p95, p99, max and avg.

        Raises ValueError when a point is missing or the points fall.
        """
        missing = [name for name in (*_NAMES, "avg") if name not in row]
        if missing:
            raise ValueError(f"a published row lacks {', '.join(missing)}: it has {sorted(row)}")
        points = tuple(float(row[name]) for name in _NAMES)
        if sorted(points) != list(points):
            raise ValueError(f"published points fall: {dict(zip(_NAMES, points, strict=True))}")
        return cls(points, _exponent(points, float(row["avg"])))

    def at(self, level: float) -> Millisecond:
        """Give the latency at a level between 0 and 1."""
        piece = next(i for i in range(1, len(_LEVELS)) if level <= _LEVELS[i])
        low, high = _LEVELS[piece - 1], _LEVELS[piece]
        share = (level - low) / (high - low)
        if piece <= _BENT:
            share **= self.exponent
        start, end = self.points[piece - 1], self.points[piece]
        return start + (end - start) * share

    @property
    def mean(self) -> Millisecond:
        """The mean of the whole function, in closed form."""
        return _mean(self.points, self.exponent)

    def draws(self, seed: str) -> Iterator[Millisecond]:
        """Draw for ever; the same seed gives the same series on every machine."""
        generator = random.Random(seed)
        while True:
            strata = list(range(_STRATA))
            generator.shuffle(strata)
            for stratum in strata:
                yield self.at((stratum + generator.random()) / _STRATA)


def _mean(points: tuple[Millisecond, ...], exponent: float) -> Millisecond:
    total = 0.0
    for piece in range(1, len(_LEVELS)):
        start, end = points[piece - 1], points[piece]
        share = 1 / (exponent + 1) if piece <= _BENT else 0.5
        total += (_LEVELS[piece] - _LEVELS[piece - 1]) * (start + (end - start) * share)
    return total


def _exponent(points: tuple[Millisecond, ...], mean: Millisecond) -> float:
    """Find the bend that gives the mean, or the nearest allowed one (rows of two samples)."""
    low, high = _EXPONENTS
    for _ in range(50):  # the mean falls as the exponent rises
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(points, middle) > mean else (low, middle)
    return (low + high) / 2
