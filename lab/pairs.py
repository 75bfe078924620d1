"""Our figures against the stand-ins' own record of the very same requests.

A request is paired by its JSON-RPC id, which no other request of the run has. What has none (a
notification, a DELETE) is paired within its label in the order of time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.results import Request
from lab.stats import percentile

SHOWN = {"p50": 50.0, "p90": 90.0, "p99": 99.0}
WITHIN_MS = 5.0
WITHIN_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Answered:
    """One HTTP request as a stand-in saw it. at: epoch s; elapsed_ms: arrival to last byte."""

    label: str
    at: float
    elapsed_ms: float
    request_id: int | None


@dataclass(frozen=True, slots=True)
class Pairing:
    """The paired requests of one label: our ms and theirs, index by index."""

    label: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    def at(self, p: float) -> tuple[float, float]:
        """Return our p-th percentile and theirs, over the same requests."""
        return percentile(self.ours, p), percentile(self.theirs, p)

    @property
    def agrees(self) -> bool:
        """Whether p50, p90 and p99 differ by at most 5 ms or 1 %, whichever is more."""
        both = [self.at(p) for p in SHOWN.values()]
        return all(abs(a - b) <= max(WITHIN_MS, WITHIN_SHARE * b) for a, b in both)


def read_log(folder: Path) -> list[Answered]:
    """Return what all stand-ins of a run answered; their answers from clients are left out."""
    rows = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if not row["name"].endswith(":client-response"):
                request_id = row["id"] if isinstance(row["id"], int) else None
                rows.append(Answered(row["name"], row["t"], row["elapsed_ms"], request_id))
    return rows


def differences(
    requests: Iterable[Request], log: Iterable[Answered], cut: Counter[str]
) -> list[str]:
    """Return a line for each label whose samples are not as many as the stand-in's requests.

    cut  server label -> requests that the end of the run cut off: answered, perhaps, and no sample
    """
    ours, theirs = Counter(r.label for r in requests), Counter(r.label for r in log)
    spare = cut.copy()
    lines = []
    for label in sorted(ours.keys() | theirs.keys()):
        missing = theirs[label] - ours[label]
        server = label.partition(":")[0]
        if 0 < missing <= spare[server]:
            spare[server] -= missing
        elif missing:
            lines.append(f"{label}: {ours[label]} samples, {theirs[label]} in the stand-in's log")
    return lines


def left_open(folder: Path, cut: Counter[str]) -> list[str]:
    """Return a line for each server with sessions that nobody ended, beyond those cut off."""
    path = folder / "sessions.json"
    counts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return [
        f"{server}: {of['open']} of {of['opened']} sessions left open"
        for server, of in counts.items()
        if of["open"] > cut[server]
    ]


def pair(requests: Iterable[Request], log: Iterable[Answered]) -> list[Pairing]:
    """Return the pairs by label, in the labels' order; what has no partner is left out."""
    by_id = {(each.label, each.request_id): each for each in log if each.request_id is not None}
    found: dict[str, list[tuple[float, float]]] = {}
    ours: dict[str, list[Request]] = {}
    for each in requests:
        if each.request_id is None:
            ours.setdefault(each.label, []).append(each)
        elif (theirs := by_id.get((each.label, each.request_id))) is not None:
            found.setdefault(each.label, []).append((each.elapsed_ms, theirs.elapsed_ms))
    for label, mine in ours.items():
        answered = sorted(
            (each for each in log if each.label == label and each.request_id is None),
            key=lambda each: each.at,
        )
        mine.sort(key=lambda each: each.start)
        both = zip(mine, answered, strict=False)
        found.setdefault(label, []).extend((a.elapsed_ms, b.elapsed_ms) for a, b in both)
    return [
        Pairing(label, *zip(*pairs, strict=True)) for label, pairs in sorted(found.items()) if pairs
    ]


def table(pairings: Sequence[Pairing]) -> str:
    """Return the comparison as text: a label a line, our figure, theirs, and the difference."""
    heads = ["label", "pairs"]
    heads += [f"{name}{what}" for name in SHOWN for what in (" ours", " theirs", " diff")]
    rows = [[*heads, "within 5 ms or 1 %"]]
    for each in pairings:
        cells = [each.label, str(len(each.ours))]
        for p in SHOWN.values():
            a, b = each.at(p)
            cells += [f"{a:.1f}", f"{b:.1f}", f"{a - b:+.2f}"]
        rows.append([*cells, "yes" if each.agrees else "NO"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    )
