"""Revisions compared: what each cost at a server that spoke more than one in the run.

A handshake is paid once a session, the stateless envelope with each call. So the question is how
many calls a session needs. Calls are compared tool by tool, each weighted by its calls at both
revisions: revisions whose users happened to call other tools would differ by that alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any

from lab import stats
from lab.results import Request
from lab.stats import Summary, Window
from lab.timeline import is_call, server_of
from lab.units import ms

HANDSHAKE = ("initialize", "notifications/initialized")
DISCOVERY = "server/discover"
SMALL_SHARE = 0.05  # of handshake and calls: what is less is hardly felt
HEADINGS = (
    *("revision", "users", "sessions", "opening", "calls", "failed", "avg", "p50", "p90", "p95"),
    *("calls/session", "sent", "received"),
)
CONFIDENCE_99 = 2.576  # standard errors; at 95 % one in 20 would be seen by chance

_User = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class Spoken:
    """One revision at one server.

    sessions     handshakes, or discoveries; users where there were neither
    opening_ms   what a session's handshake, or its discovery, took on average
    calls        the summary of its tools/call; bytes are averages of one
    has_sessions whether it begins with a handshake
    """

    revision: str
    has_sessions: bool
    users: int
    sessions: int
    opening_ms: float
    calls: Summary
    sent_bytes: float
    received_bytes: float

    @property
    def calls_per_session(self) -> float:
        """How many calls a session of this run had."""
        return self.calls.count / self.sessions

    def small_from(self) -> int:
        """Return how many calls make a handshake less than 5 % of itself and them together."""
        return int((1 / SMALL_SHARE - 1) * self.opening_ms / max(self.calls.avg, 1e-9)) + 1


@dataclass(frozen=True, slots=True)
class Difference:
    """How much longer a call takes without a session: ms, give or take, at 99 % confidence."""

    ms: float
    give_or_take: float

    @property
    def is_seen(self) -> bool:
        """Whether it is more than chance makes."""
        return abs(self.ms) > self.give_or_take


@dataclass(frozen=True, slots=True)
class Era:
    """A server that spoke more than one revision: each, and what follows, as sentences."""

    server: str
    spoken: tuple[Spoken, ...]
    said: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the figures, times in ms."""
        return {
            "server": self.server,
            "said": list(self.said),
            "spoken": [
                {
                    "revision": each.revision,
                    "users": each.users,
                    "sessions": each.sessions,
                    "opening": round(each.opening_ms, 3),
                    "calls": each.calls.count,
                    "failures": each.calls.failures,
                    **{n: round(getattr(each.calls, n), 3) for n in ("avg", "p50", "p90", "p95")},
                    "sent_bytes": round(each.sent_bytes),
                    "received_bytes": round(each.received_bytes),
                }
                for each in self.spoken
            ],
        }


def cells(spoken: Spoken) -> tuple[str, ...]:
    """Return a revision's line in the order of HEADINGS; times in ms, bytes of one call."""
    calls = spoken.calls
    return (
        *(spoken.revision, f"{spoken.users:,}", f"{spoken.sessions:,}", ms(spoken.opening_ms)),
        *(f"{calls.count:,}", f"{calls.failures:,}"),
        *(ms(value) for value in (calls.avg, calls.p50, calls.p90, calls.p95)),
        f"{spoken.calls_per_session:.1f}",
        *(f"{value:,.0f} B" for value in (spoken.sent_bytes, spoken.received_bytes)),
    )


def eras(requests: Sequence[Request], span: Window) -> list[Era]:
    """Return the servers whose tools were called at more than one revision."""
    found: list[Era] = []
    if len({each.revision for each in requests} - {""}) < 2:
        return found
    for server, by_revision in sorted(_by_server(requests).items()):
        spoken = {
            revision: _spoken(revision, rows, span)
            for revision, rows in sorted(by_revision.items())
            if any(is_call(each.label) for each in rows)
        }
        if len(spoken) > 1:
            said = tuple(_sentences(spoken, by_revision))
            found.append(Era(server, tuple(spoken.values()), said))
    return found


def _by_server(requests: Iterable[Request]) -> dict[str, dict[str, list[Request]]]:
    """Server -> revision -> its rows; what failed before one was agreed upon is of its user's."""
    last: dict[_User, str] = {}
    early: dict[_User, list[Request]] = {}
    servers: dict[str, dict[str, list[Request]]] = {}
    for each in requests:
        if not each.revision and each.user not in last:
            early.setdefault(each.user, []).append(each)
            continue
        revision = last[each.user] = each.revision or last[each.user]
        rows = servers.setdefault(server_of(each.label), {}).setdefault(revision, [])
        rows += [*early.pop(each.user, ()), each]
    return servers


def _spoken(revision: str, rows: list[Request], span: Window) -> Spoken:
    calls = [each for each in rows if is_call(each.label)]
    users = {each.user for each in rows}
    opened = {name: [0, 0.0] for name in (*HANDSHAKE, DISCOVERY)}
    for each in rows:
        what = each.label.partition(":")[2]
        if what in opened:
            opened[what][0] += each.success
            opened[what][1] += each.elapsed_ms
    has_sessions = bool(opened["initialize"][0])
    sessions = int(opened["initialize"][0] or opened[DISCOVERY][0] or len(users))
    return Spoken(
        revision,
        has_sessions,
        len(users),
        sessions,
        opening_ms=sum(spent for _, spent in opened.values()) / sessions,
        calls=stats.summarize(calls, label=revision, span=span),
        sent_bytes=fmean(each.sent_bytes for each in calls),
        received_bytes=fmean(each.received_bytes for each in calls),
    )


def difference(one: Iterable[Request], other: Iterable[Request]) -> Difference | None:
    """Return how much longer the other's calls take, with the same mix of tools.

    None where no tool has two successes on either side.
    """
    ours, theirs = _by_tool(one), _by_tool(other)
    shared = [tool for tool in ours if min(len(ours[tool]), len(theirs.get(tool, ()))) > 1]
    if not shared:
        return None
    whole = sum(len(ours[tool]) + len(theirs[tool]) for tool in shared)
    apart = spread = 0.0
    for tool in shared:
        a, b = ours[tool], theirs[tool]
        weight = (len(a) + len(b)) / whole
        apart += weight * (fmean(b) - fmean(a))
        spread += weight**2 * (variance(a) / len(a) + variance(b) / len(b))
    return Difference(apart, CONFIDENCE_99 * math.sqrt(spread))


def _by_tool(rows: Iterable[Request]) -> dict[str, list[float]]:
    tools: dict[str, list[float]] = {}
    for each in rows:
        if is_call(each.label) and each.success:
            tools.setdefault(each.label, []).append(each.elapsed_ms)
    return tools


def _sentences(spoken: dict[str, Spoken], by_revision: dict[str, list[Request]]) -> Iterator[str]:
    for one in spoken.values():
        if not one.has_sessions:
            continue
        for other in spoken.values():
            if not other.has_sessions:
                apart = difference(by_revision[one.revision], by_revision[other.revision])
                yield _compared(one, other, apart)
        share = one.opening_ms / (one.opening_ms + one.calls_per_session * one.calls.avg)
        yield (
            f"From {_calls(one.small_from())} a session on, the handshake of {one.revision} is"
            f" less than {100 * SMALL_SHARE:g} % of handshake and calls together; here it was"
            f" {100 * share:.1f} %, at {one.calls_per_session:.1f} calls a session."
        )


def _compared(one: Spoken, other: Spoken, apart: Difference | None) -> str:
    """Say from how many calls on which is cheaper; one has sessions, the other has none."""
    saved = one.opening_ms - other.opening_ms  # by opening without a handshake
    opening = (
        f"Opening takes {ms(one.opening_ms)} ms at {one.revision} and {ms(other.opening_ms)} ms"
        f" at {other.revision}"
    )
    if apart is None:
        return f"{opening}; no tool was called often enough at both to compare its calls."
    if not apart.is_seen:
        paid = (
            "so no number of calls is known to pay for the handshake"
            if saved > 0
            else "and a session opens no slower"
        )
        told = f"no difference between their calls can be told (±{ms(apart.give_or_take)} ms)"
        return f"{opening}; {told}, {paid}."
    even = _even(abs(saved), abs(apart.ms), apart.give_or_take)
    more = f"a call takes {ms(abs(apart.ms))} (±{ms(apart.give_or_take)}) ms"
    if apart.ms > 0:
        end = (
            f"the handshake pays from {even} a session on"
            if saved > 0
            else "a session is cheaper from its first call on"
        )
        return f"{opening}, but {more} more without a session: {end}."
    end = (
        "no number of calls pays for the handshake"
        if saved >= 0
        else f"going without is cheaper from {even} on"
    )
    return f"{opening}, and {more} less without a session: {end}."


def _calls(number: int) -> str:
    return f"{number:,} call{'s' * (number != 1)}"


def _even(saved: float, apart: float, give_or_take: float) -> str:
    """Say how many calls that are so far apart make up for what was saved, and how sure it is."""
    at, least, most = (
        math.ceil(saved / each) for each in (apart, apart + give_or_take, apart - give_or_take)
    )
    return _calls(at) + (f" ({least:,} to {most:,})" if most > least else "")
