"""One line of the self-benchmark: what was measured, its bound, and whether it holds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Row:
    """A figure and the bound that it must keep.

    value    None where it could not be measured, which `why` explains
    bound    the most that it may be, or the least with `least`
    aim      what we should like it to be; None where the bound is all
    unit     of both, with its leading blank; "" for ratios
    detail   what the reader needs beside it: the figures that it is made of
    optional a witness that may be absent: the verdict does not need it
    """

    name: str
    bound: float
    value: float | None = None
    unit: str = ""
    aim: float | None = None
    least: bool = False
    detail: str = ""
    why: str = ""
    optional: bool = False

    @property
    def holds(self) -> bool:
        """Does the figure keep its bound? One that is not there does so only where it may."""
        if self.value is None:
            return self.optional
        return self.value >= self.bound if self.least else self.value <= self.bound

    @property
    def verdict(self) -> str:
        """In one word, for the table."""
        if self.value is None:
            return "skipped" if self.optional else "NOT MEASURED"
        return "holds" if self.holds else "FAILS"

    def measured(self, value: float, detail: str = "") -> Self:
        """Return the row with its figure."""
        return replace(self, value=value, detail=detail)

    def missing(self, why: str) -> Self:
        """Return the row without a figure, and why there is none."""
        return replace(self, value=None, why=why)

    def shown(self, value: float | None) -> str:
        """Return a figure of this row as text, with its unit."""
        if value is None:
            return "-"
        digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
        if not self.unit and abs(value) < 10:
            digits = 3 if value != round(value, 2) else 2
        text = f"{value:.{digits}f}"
        return f"{text}{self.unit}" if value else f"0{self.unit}"


def median_ratio(ours: Iterable[float], theirs: Iterable[float]) -> float:
    """Return the median over the rounds of each round's own ratio: both had the same weather."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
