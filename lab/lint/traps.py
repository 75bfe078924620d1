"""Why a criterion is refused: the trap it would have fallen into, by name.

The GitHub action scans characters: the aggregate before "(", the metric up to ")", the operator
up to the first digit, then a whole number (``parseInt``), and after a comma an action. The CLI
passes the text on. So what looks right may mean two things, or a third that nobody wrote.
What both really did to 67 criteria is in data/azure/parser_results_criteria.json.
"""

from __future__ import annotations

import re

TIME_AGGREGATES = (
    "avg", "min", "max", "p50", "p75", "p90", "p95", "p96", "p97", "p98", "p99", "p999", "p9999",
)  # fmt: skip

METRICS: dict[str, tuple[str, ...]] = {
    "response_time_ms": TIME_AGGREGATES,
    "latency": TIME_AGGREGATES,
    "requests_per_sec": ("avg",),
    "requests": ("count",),
    "error": ("percentage",),
}

EXAMPLE = "p95(response_time_ms) > 2000"

_SHAPE = re.compile(r"(?P<aggregate>[^(]*)\((?P<metric>[^)]*)\)(?P<rest>.*)", re.DOTALL)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def explain(text: str) -> tuple[str, str]:
    """Return (what is wrong, the cure) for a criterion that the strict grammar refuses."""
    shape = _SHAPE.fullmatch(text.strip())
    if not shape:
        return "a criterion without its parentheses", f"Write aggregate(metric), as in {EXAMPLE}"
    aggregate, metric = shape["aggregate"].strip(), shape["metric"]
    return (
        _metric_trap(metric)
        or _aggregate_trap(aggregate, metric)
        or _operator_trap(shape["rest"].strip(), metric)
        or _value_trap(shape["rest"].strip()[1:].strip(), metric)
        or ("not a criterion of the strict grammar", f"Write it as in {EXAMPLE}")
    )


def _metric_trap(metric: str) -> tuple[str, str] | None:
    if metric in METRICS:
        return None
    if metric.strip() in METRICS:
        return (
            "spaces inside the parentheses: the action refuses the criterion, the CLI trims them",
            f"Write ({metric.strip()})",
        )
    if metric.replace("_", "").lower() in {"responsetimems", "responsetime"}:
        return (
            f'the metric "{metric}": the service\'s documents show it, the action refuses it',
            "Write response_time_ms",
        )
    return f'an unknown metric "{metric}"', f"Use one of {', '.join(METRICS)}"


def _aggregate_trap(aggregate: str, metric: str) -> tuple[str, str] | None:
    allowed = METRICS[metric]
    if aggregate in allowed:
        return None
    if aggregate.lower() in allowed:
        return (
            "an aggregate in capitals: the action refuses it, the CLI sends it",
            f"Write {aggregate.lower()}({metric})",
        )
    dotless = aggregate.replace(".", "")
    if "." in aggregate and dotless in allowed:
        return (
            f'"{aggregate}": the API\'s name for it, which the action refuses in YAML',
            f"Write {dotless}({metric})",
        )
    if aggregate == "median" and "p50" in allowed:
        return 'no aggregate "median"', f"Write p50({metric})"
    return f'no aggregate "{aggregate}" of {metric}', f"Use one of {', '.join(allowed)}"


def _operator_trap(rest: str, metric: str) -> tuple[str, str] | None:
    operator = re.match(r"[<>=!]+", rest)
    if not operator:
        return "no operator > or < right after the parentheses", f"Write it as in {EXAMPLE}"
    if operator[0] not in {"<", ">"}:
        return (
            f'the operator "{operator[0]}", where there is only > and <: the action refuses it',
            f"Write {operator[0][0] if operator[0][0] in '<>' else '>'} and move the limit by one",
        )
    if metric == "error" and operator[0] == "<":
        return (
            "percentage(error) with <: the action refuses it, the service only knows >",
            "Write percentage(error) > N: a criterion that is true fails the run",
        )
    return None


def _value_trap(value: str, metric: str) -> tuple[str, str] | None:
    number = _NUMBER.match(value)
    if not value:
        return "no value after the operator", f"Write it as in {EXAMPLE}"
    if not number:
        if value.startswith("-"):
            return (
                "a negative limit: the action refuses it, the CLI sends it",
                "Write a number that is not negative",
            )
        return "no number after the operator", f"Write it as in {EXAMPLE}"
    return _suffix_trap(value, number, metric) or _number_trap(number[0], metric)


def _suffix_trap(value: str, number: re.Match[str], metric: str) -> tuple[str, str] | None:
    after = value[number.end() :]
    seen = f"the action reads {number[0].partition('.')[0]}, the CLI sends the text"
    if not after:
        return None
    if re.fullmatch(r"\s*,\s*[A-Za-z]+", after):
        return (
            f'the suffix "{after.strip()}": the CLI sends it as part of the value',
            f"Write the number alone: {number[0]} (continue is the default)",
        )
    if re.match(r",[0-9]", after):
        return (
            "a thousands separator: the action refuses it, the CLI sends it",
            f"Write {value.replace(',', '')}",
        )
    if re.fullmatch(r"[eE][+-]?[0-9]+", after):
        return f"an exponent: {seen}", f"Write {float(number[0] + after):.0f}"
    if re.match(r"_[0-9]", after):
        return f"an underscore in the number: {seen}", f"Write {value.replace('_', '')}"
    return (
        f'a unit or other text after the number, "{after.strip()}": {seen}',
        f"Write the number alone; {metric} has its unit by definition",
    )


def _number_trap(number: str, metric: str) -> tuple[str, str] | None:
    whole, dot, _ = number.partition(".")
    if dot and metric != "requests_per_sec":
        failing = ": any single error fails the run" if metric == "error" and whole == "0" else ""
        return (
            f"a decimal limit: the action cuts {number} to {whole}{failing}; the CLI does not",
            f"Write a whole number, {whole if whole != '0' else '1'} or {int(whole) + 1}",
        )
    if metric == "error" and float(number) > 100:
        return (
            "an error percentage above 100: the action refuses it, the CLI sends it",
            "Write a whole number from 0 to 100",
        )
    return None
