"""Judges a finished run by its failureCriteria, from raw samples.

A criterion that is true fails the run. The measured value is rounded as the service rounds it
(an average to whole ms, an error percentage to two decimals) and the rounded value is compared,
so that what is printed is what was judged. Percentiles are exact here and sketched in Azure
(see lab/stats.py): one within 5 % of its limit is said to be near, as Azure may decide otherwise.

Two things differ from the service, on purpose:

* a criterion on a request that was never sent is "undetermined" to both; the service lets the
  run pass, this gate fails it where the request's class took part;
* latency criteria and server metrics are not judged here, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from lab.lint.finding import Finding, error
from lab.lint.traps import METRICS, explain
from lab.stats import PERCENTILES, Sample, Window, mean, percentile, rate, window

ALL_REQUESTS = "all requests"
NEAR = 0.05

_CRITERION = re.compile(
    r"(?P<aggregate>[a-z][a-z0-9]*)[ \t]*\((?P<metric>[a-z_]+)\)\s*(?P<operator>[<>])\s*"
    r"(?P<limit>[0-9]+(?P<decimals>\.[0-9]+)?)"
)
_UNITS = {"response_time_ms": " ms", "latency": " ms", "requests_per_sec": "/s", "error": " %"}


@dataclass(frozen=True, slots=True)
class Criterion:
    """One client criterion: ``aggregate(metric) operator limit``, of one request or of all.

    request  the statistics name, or None for all requests together
    text     as written, without surrounding blanks
    line     in its file, from 1; 0 where it came from no file
    """

    request: str | None
    aggregate: str
    metric: str
    operator: str
    limit: float
    text: str
    line: int = 0

    @property
    def subject(self) -> str:
        """The label it speaks of."""
        return ALL_REQUESTS if self.request is None else self.request

    @property
    def what(self) -> tuple[str | None, str, str, str]:
        """What it limits: the action keeps a single criterion for each of these."""
        return (self.request, self.metric, self.aggregate, self.operator)

    def is_true_of(self, value: float) -> bool:
        """Return whether the value fails the run; a value equal to the limit does not."""
        return value > self.limit if self.operator == ">" else value < self.limit

    def __str__(self) -> str:
        return self.text if self.request is None else f"{self.request}: {self.text}"


class Outcome(Enum):
    """What became of one criterion."""

    PASSED = "passed"
    FAILED = "failed"
    UNDETERMINED = "undetermined"  # took part, but no such request: fails our gate
    NOT_APPLICABLE = "not applicable"  # its class took no part
    NOT_JUDGED = "not judged"  # only the service can


@dataclass(frozen=True, slots=True)
class Judgement:
    """One criterion's outcome. measured is in the metric's unit, None where there is none."""

    criterion: Criterion
    outcome: Outcome
    measured: float | None
    why: str

    @property
    def fails(self) -> bool:
        """Whether it fails the run by our gate."""
        return self.outcome in {Outcome.FAILED, Outcome.UNDETERMINED}

    @property
    def near(self) -> bool:
        """Whether a percentile lies so close to its limit that Azure may decide otherwise."""
        if self.measured is None or self.criterion.aggregate not in PERCENTILES:
            return False
        return abs(self.measured - self.criterion.limit) <= NEAR * self.criterion.limit

    def __str__(self) -> str:
        c = self.criterion
        return f"{self.outcome.value}: {c.subject}: {c.text}: {self.why}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The run's verdict and what it is made of, in the criteria's order."""

    judgements: tuple[Judgement, ...]
    samples: int

    @property
    def passed(self) -> bool:
        """Whether nothing fails the run, and there was a run."""
        return self.samples > 0 and not any(j.fails for j in self.judgements)

    @property
    def word(self) -> str:
        """PASSED or FAILED."""
        return "PASSED" if self.passed else "FAILED"

    @property
    def first_line(self) -> str:
        """The verdict in one line: when failed, with label, criterion, measured and limit."""
        if not self.samples:
            return "FAILED: no request was recorded, so there is nothing to judge"
        failing = sorted((j for j in self.judgements if j.fails), key=_telling)
        if not failing:
            counts = [
                f"{sum(j.outcome is outcome for j in self.judgements)} {outcome.value}"
                for outcome in Outcome
                if any(j.outcome is outcome for j in self.judgements)
            ]
            return f"PASSED: criteria: {', '.join(counts) or 'none'}"
        first = failing[0]
        more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
        return f"FAILED: {first.criterion.subject}: {first.criterion.text}: {first.why}{more}"

    @property
    def lines(self) -> list[str]:
        """The whole verdict: the first line, then one line a criterion."""
        return [self.first_line, *(f"  {judgement}" for judgement in self.judgements)]


def parse(
    text: object, *, request: str | None = None, file: str = "", line: int = 0
) -> Criterion | Finding:
    """Return the criterion, or the trap that it would fall into, as an error finding.

    Accepts exactly what the GitHub action and the CLI both send on with one meaning.
    """
    if not isinstance(text, str):
        what = "a criterion that is not text: both tools stumble over it"
        return error(file, line, what, repr(text), "Write it as in avg(response_time_ms) > 2000")
    match = _CRITERION.fullmatch(text.strip())
    if match:
        metric, aggregate, limit = match["metric"], match["aggregate"], float(match["limit"])
        whole = match["decimals"] is None or metric == "requests_per_sec"
        sane = metric != "error" or (match["operator"] == ">" and limit <= 100)
        if aggregate in METRICS.get(metric, ()) and whole and sane:
            return Criterion(
                request, aggregate, metric, match["operator"], limit, text.strip(), line
            )
    what, cure = explain(text)
    return error(file, line, what, text, cure)


def effective(criteria: Iterable[Criterion]) -> list[Criterion]:
    """Return what the action sends: of several limits for one thing, the strictest alone."""
    kept: dict[tuple[str | None, str, str, str], Criterion] = {}
    for criterion in criteria:
        other = kept.get(criterion.what)
        if other is None or criterion.is_true_of(other.limit):
            kept[criterion.what] = criterion
    return list(kept.values())


def judge(
    samples: Sequence[Sample],
    criteria: Iterable[Criterion],
    participating: Collection[str] | None = None,
    *,
    known: Collection[str] | None = None,
) -> Verdict:
    """Return the verdict over a finished run.

    participating  server labels ("learn", "github") of the classes that took part; without it,
                   those that the samples name
    known          server labels of all classes there are; with it, a criterion on a label that is
                   no class's is undetermined, not "not applicable", so that a typing error
                   cannot hide a request from the gate
    """
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.label, []).append(sample)
    took_part = {class_label(name) for name in groups} if participating is None else participating
    span = window(samples) if samples else Window(0.0, 0.0)
    judgements = []
    for criterion in effective(criteria):
        asked = samples if criterion.request is None else groups.get(criterion.request, [])
        judgements.append(_judge_one(criterion, asked, span, set(took_part), known))
    return Verdict(tuple(judgements), len(samples))


def class_label(name: str) -> str:
    """Return the server label in a statistics name: "learn" of "learn:tools/list"."""
    return name.partition(":")[0]


def _judge_one(
    criterion: Criterion,
    samples: Sequence[Sample],
    span: Window,
    took_part: set[str],
    known: Collection[str] | None,
) -> Judgement:
    request = criterion.request
    if not samples:
        owner = class_label(request) if request is not None and ":" in request else None
        if owner is not None and owner not in took_part and (known is None or owner in known):
            why = f"{owner} took no part in this run"
            return Judgement(criterion, Outcome.NOT_APPLICABLE, None, why)
        why = (
            f"no such request was recorded, limit {_with_unit(criterion.limit, criterion.metric)}; "
            "this gate is stricter than the service, which calls it undetermined and passes"
        )
        return Judgement(criterion, Outcome.UNDETERMINED, None, why)
    if criterion.metric == "latency":
        why = "latency of Locust rows is not documented, only the service can judge it"
        return Judgement(criterion, Outcome.NOT_JUDGED, None, why)
    measured = measure(criterion.aggregate, criterion.metric, samples, span)
    outcome = Outcome.FAILED if criterion.is_true_of(measured) else Outcome.PASSED
    why = (
        f"measured {_with_unit(measured, criterion.metric)}, "
        f"limit {_with_unit(criterion.limit, criterion.metric)}"
    )
    judgement = Judgement(criterion, outcome, measured, why)
    if judgement.near:
        why += f"; within {NEAR:.0%} of the limit, Azure's percentile may fall on the other side"
        return Judgement(criterion, outcome, measured, why)
    return judgement


def measure(aggregate: str, metric: str, samples: Sequence[Sample], span: Window) -> float:
    """Return the metric's value over the samples, rounded as the service rounds it.

    span is the run's window, for the rate. Raises ValueError for no samples and for a metric
    that is not judged here (latency).
    """
    if metric == "requests":
        return float(len(samples))
    if metric == "error":
        return round(100.0 * sum(not s.success for s in samples) / len(samples), 2)
    if metric == "requests_per_sec":
        return round(rate(len(samples), span), 3)
    if metric != "response_time_ms":
        raise ValueError(f"{aggregate}({metric}) is not judged here, only by the service")
    times = [s.elapsed_ms for s in samples]
    if aggregate == "avg":
        return float(round(mean(times)))
    if aggregate in {"min", "max"}:
        return round(min(times) if aggregate == "min" else max(times), 3)
    return round(percentile(times, PERCENTILES[aggregate]), 3)


def auto_stop(
    samples: Sequence[Sample], error_percentage: float, time_window: float
) -> float | None:
    """Return the instant (epoch s) at which autoStop would have ended the run, or None.

    That is the first end of a request at which more than error_percentage of the requests ended
    in the last time_window seconds had failed, once the run is that old. The documents say no
    more than "exceeds" and "for a time window": how the service steps its window is unknown.
    """
    ended = sorted(((s.end, not s.success) for s in samples), key=lambda pair: pair[0])
    first = failures = 0
    begin = min((s.start for s in samples), default=0.0)
    for last, (now, failed) in enumerate(ended):
        failures += failed
        while ended[first][0] <= now - time_window:
            failures -= ended[first][1]
            first += 1
        if now - begin >= time_window and 100.0 * failures > error_percentage * (last - first + 1):
            return now
    return None


def _telling(judgement: Judgement) -> tuple[bool, bool, float]:
    """Order failures for the first line: a named label first, measured first, the worst first."""
    c = judgement.criterion
    excess = 0.0
    if judgement.measured is not None:
        excess = abs(judgement.measured - c.limit) / max(c.limit, 1.0)
    return (c.request is None, judgement.measured is None, -excess)


def _with_unit(value: float, metric: str) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") + _UNITS.get(metric, "")
