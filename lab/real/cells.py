"""A real server and one revision that it is asked for: what was called, and the verdict on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from _revisions import AUTO, REVISIONS
from lab.real.servers import Server
from lab.results import Request
from lab.runs import Run

COLUMNS = (*(revision.name for revision in REVISIONS.values() if revision.offered), AUTO)
_OPENINGS = ("initialize", "server/discover")
_REFUSALS = ("HTTPStatusError", "RPCError")
"""Kinds of failure by which a server says that it does not accept a revision."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: the calls without failure, the revision they spoke, and what failed.

    spoke: "" where nothing was agreed upon.  refusal: how a revision was not accepted, or "".
    """

    server: str
    asked: str
    calls: int
    spoke: str
    refusal: str = ""
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Nothing failed; a revision that a server does not accept is no failure."""
        return not self.failures

    @property
    def short(self) -> str:
        """The cell as the table has it."""
        if self.failures:
            return "FAILED"
        if self.refusal:
            return f"- ({self.refusal.replace('JSON-RPC error ', '')})"
        return f"{self.calls} at {self.spoke}" if self.asked == AUTO else str(self.calls)

    def __str__(self) -> str:
        word = "passed" if self.passed else "FAILED"
        what = f"- {self.refusal}" if self.refusal else f"{self.calls:3} calls"
        if self.spoke not in ("", self.asked) and not self.refusal:
            what += f" at {self.spoke}"
        line = f"{word}  {self.server:22} {self.asked:10}  {what}"
        return "\n".join([line, *(f"        {failure}" for failure in self.failures)])


def label_of(server: Server, asked: str) -> str:
    """Return what the statistics of a cell's users begin with."""
    return f"{server.label}@{asked}"


def judge(server: Server, asked: str, run: Run, least: int) -> Cell:
    """Judge what the recorder kept of one cell's users.

    least: how often each harmless tool was to be called. That a server accepts a revision is
    held against `Server.accepts` in both directions: otherwise a request that is wrong, and
    refused for it, would look like a revision that is not spoken.
    """
    label = label_of(server, asked)
    ours = [each for each in run.requests if each.label.startswith(f"{label}:")]
    spoke = str(run.servers.get(label, {}).get("protocolVersion", ""))
    called = Counter(_what(each, label) for each in ours if each.success)
    calls = sum(called[f"tools/call:{tool}"] for tool in server.calls)
    expected = server.speaks(asked)
    if expected:
        failures = _failed(ours, label)
        if spoke != expected:
            failures.append(f"answers {spoke or 'no revision'}, and not {expected}")
        failures += [
            f"{tool}: {called[f'tools/call:{tool}']} of {least} calls"
            for tool in server.calls
            if called[f"tools/call:{tool}"] != least
        ]
        return Cell(server.label, asked, calls, spoke, failures=tuple(failures))
    if spoke == asked:
        failures = ["accepts it, and its description says that it does not: add it to `accepts`"]
        return Cell(server.label, asked, calls, spoke, failures=tuple(failures))
    if spoke:
        failed = tuple(_failed(ours, label))
        return Cell(server.label, asked, calls, spoke, f"answers {spoke}", failed)
    refused = [each for each in ours if _is_refusal(each, label)]
    failures = _failed([each for each in ours if each not in refused], label)
    if not refused:
        failures.append("neither accepts nor refuses it: nothing was answered")
    refusal = refused[0].failure if refused else ""
    return Cell(server.label, asked, calls, spoke, refusal, tuple(failures))


def _what(request: Request, label: str) -> str:
    return request.label.removeprefix(f"{label}:")


def _is_refusal(request: Request, label: str) -> bool:
    return (
        not request.success
        and _what(request, label) in _OPENINGS
        and request.failure_kind in _REFUSALS
        and not request.failure.startswith("HTTP 5")  # that is an outage
    )


def _failed(requests: Sequence[Request], label: str) -> list[str]:
    """One line for each kind of failed sample, with how often it came."""
    kinds = Counter(
        f"{_what(each, label)}: {each.failure}" for each in requests if not each.success
    )
    return [f"{kind} ({times} times)" if times > 1 else kind for kind, times in kinds.items()]


def table(servers: Sequence[Server], cells: Sequence[Cell]) -> str:
    """One column per revision, one row per server; those of one SDK with equal cells share it."""
    at = {(cell.server, cell.asked): cell.short for cell in cells}
    rows: dict[tuple[str, ...], list[str]] = {}
    for server in servers:
        row = (server.sdk, *(at.get((server.label, asked), "") for asked in COLUMNS))
        rows.setdefault(row, []).append(server.label)
    lines = [f"| made of | server | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 2) + "|"]
    for row, labels in rows.items():
        lines.append(f"| {row[0]} | {', '.join(labels)} | {' | '.join(row[1:])} |")
    return "\n".join(lines)
