"""failureCriteria: every limit of the manifest, or the reason why it is none.

A criterion is accepted where the GitHub action and the CLI send the service the same, whole
meaning; what the documents do not promise beside that is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.criteria import Criterion, parse
from lab.lint.document import Document, Path
from lab.lint.finding import Finding, Level, error, note, warning

KEY = "failureCriteria"
CLIENT, SERVER = "clientMetrics", "serverMetrics"
MOST = 50

_DOCUMENTED_LATENCY = {"avg", "min", "max", "p50", "p90", "p95", "p99"}


def read(doc: Document, file: str) -> tuple[list[Criterion], list[Finding]]:
    """Return the client criteria that have one meaning, and what is wrong with all of them."""
    if KEY not in doc.data:
        return [], []
    value = doc.data[KEY]
    if not value:
        what, cure = "no criteria, so nothing can fail a run", "Write one, or remove the key"
        if value is None or isinstance(value, list):
            return [], [warning(file, doc.line(KEY), what, "", cure)]
    path: Path = (KEY,)
    findings: list[Finding] = []
    server = 0
    if isinstance(value, dict):
        findings += _unknown_keys(doc, value, file)
        server = len(value[SERVER]) if isinstance(value.get(SERVER), list) else 0
        value, path = value.get(CLIENT), (KEY, CLIENT)
    if value is not None and not isinstance(value, list):
        what = "criteria that are not a list"
        findings.append(error(file, doc.line(*path), what, repr(value), "Write a list of them"))
        value = None
    criteria: list[Criterion] = []
    for index, item in enumerate(value or []):
        for each in _item(doc, item, (*path, index), file):
            if isinstance(each, Criterion):
                criteria.append(each)
                findings += _cautions(each, file)
            else:
                findings.append(each)
    findings += _duplicates(criteria, file)
    total = len(value or []) + server
    if total > MOST:
        what = f"more than {MOST} criteria, over clientMetrics and serverMetrics together"
        findings.append(error(file, doc.line(KEY), what, str(total), f"Keep {MOST} of them"))
    if server:
        what = "server metrics: only the service judges them, the local gate cannot"
        findings.append(note(file, doc.line(KEY, SERVER), what, str(server), "Read them in Azure"))
    return criteria, findings


def _unknown_keys(doc: Document, value: dict[str, object], file: str) -> Iterator[Finding]:
    if not value:
        cure = f"Write {CLIENT} and a list of criteria"
        yield error(file, doc.line(KEY), "failureCriteria without a list", "{}", cure)
    for key in value:
        if key not in {CLIENT, SERVER}:
            yield error(
                file,
                doc.line(KEY, key),
                "an unknown key in failureCriteria: the action refuses it, the CLI sends nothing",
                key,
                f'Write {CLIENT}, and below it a list: - "{key}": avg(response_time_ms) > 2000',
            )


def _item(doc: Document, item: object, path: Path, file: str) -> Iterator[Criterion | Finding]:
    line = doc.line(*path)
    if not isinstance(item, dict):
        yield parse(item, file=file, line=line)
        return
    if len(item) != 1:
        yield error(
            file,
            line,
            "a list item with several requests: both tools silently drop all but the first",
            ", ".join(item) or "{}",
            "Give each request its own list item",
        )
        return
    for request, text in item.items():
        if request.strip() != request or not request:
            what = "a request's name with blanks around it: whether the service trims is unknown"
            yield error(file, line, what, repr(request), "Remove the blanks")
        else:
            yield parse(text, request=request, file=file, line=doc.line(*path, request))


def _cautions(criterion: Criterion, file: str) -> Iterator[Finding]:
    line, text = criterion.line, criterion.text
    if criterion.metric == "latency":
        what = "latency, of which nobody has documented what a Locust row holds"
        cure = f"Use {criterion.aggregate}(response_time_ms)"
        if criterion.aggregate not in _DOCUMENTED_LATENCY:
            what += f"; {criterion.aggregate} of it is not documented either"
        yield Finding(Level.WARNING, file, line, what, text, cure)
    if criterion.metric == "requests_per_sec" and len(text.partition(".")[2]) > 2:
        what = "more than the two decimals that the documents allow"
        yield warning(file, line, what, text, "Round the limit to two decimals")
    if not text.startswith(f"{criterion.aggregate}("):
        what = "a blank before the parenthesis: both tools take it, the documents do not show it"
        yield warning(file, line, what, text, f"Write {criterion.aggregate}({criterion.metric})")


def _duplicates(criteria: list[Criterion], file: str) -> Iterator[Finding]:
    first: dict[tuple[str | None, str, str, str], Criterion] = {}
    for criterion in criteria:
        other = first.setdefault(criterion.what, criterion)
        if other is not criterion:
            kept = "lowest" if criterion.operator == ">" else "highest"
            yield error(
                file,
                criterion.line,
                f"a second limit for what line {other.line} limits: the action sends the {kept} "
                "alone, the CLI sends both",
                str(criterion),
                "Keep the stricter of the two",
            )
