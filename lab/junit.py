"""A verdict as JUnit XML: a test case for each criterion and for each label."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from lab.criteria import Outcome, Verdict
from lab.digest import Digest

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, 2.2


def document(digest: Digest, verdict: Verdict, problem: str = "") -> str:
    """Return the XML text.

    A criterion that fails the run is a failed case; one that was not judged is skipped. A label's
    case says its figures; it fails only by a criterion, never by single failed requests. A
    problem (the run could not be judged) is a case in error.
    """
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", name=_clean(digest.run.name))
    failures = skipped = 0
    for each in verdict.judgements:
        case = _case(suite, "criteria", str(each.criterion), 0.0)
        if each.fails:
            failures += 1
            ET.SubElement(case, "failure", message=_clean(str(each)), type=each.outcome.value)
        elif each.outcome is not Outcome.PASSED:
            skipped += 1
            ET.SubElement(case, "skipped", message=_clean(each.why))
        else:
            ET.SubElement(case, "system-out").text = _clean(each.why)
    failing = {each.criterion.request: each for each in reversed(verdict.judgements) if each.fails}
    for line in digest.lines:
        s = line.summary
        case = _case(suite, "requests", s.label, s.avg * s.count / 1000.0)
        said = (
            f"{s.count} requests, {s.failures} failed; ms: avg {s.avg:.1f}, p50 {s.p50:.1f},"
            f" p90 {s.p90:.1f}, p95 {s.p95:.1f}, p99 {s.p99:.1f}, max {s.max:.1f}"
        )
        if s.label in failing:
            failures += 1
            ET.SubElement(case, "failure", message=_clean(str(failing[s.label])), type="criterion")
        ET.SubElement(case, "system-out").text = _clean(
            f"{said}; {line.mark}" if line.mark else said
        )
    if problem:
        case = _case(suite, "run", "the run could be judged", 0.0)
        ET.SubElement(case, "error", message=_clean(problem), type="could not run")
    counts = {
        "tests": len(suite),
        "failures": failures,
        "errors": int(bool(problem)),
        "skipped": skipped,
    }
    for element in (suites, suite):
        for name, count in counts.items():
            element.set(name, str(count))
        element.set("time", f"{digest.span.seconds:.3f}")
    ET.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _case(suite: ET.Element, group: str, name: str, seconds: float) -> ET.Element:
    attributes = {"classname": group, "name": _clean(name), "time": f"{seconds:.3f}"}
    return ET.SubElement(suite, "testcase", attributes)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
