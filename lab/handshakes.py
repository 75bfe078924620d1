"""The handshake's price: what opening a session costs at each server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.results import Request
from lab.timeline import server_of

SETTING_UP = ("initialize", "notifications/initialized", "tools/list")


@dataclass(frozen=True, slots=True)
class Handshake:
    """What opening a session cost at one server, on average, in ms.

    share_of_waiting  percent of its sessions' summed response times
    share_of_time     percent of its sessions' whole lives; None where rows name no session
    """

    server: str
    sessions: int
    initialize_ms: float
    initialized_ms: float
    list_ms: float
    share_of_waiting: float
    share_of_time: float | None

    @property
    def total_ms(self) -> float:
        """All three together: what an agent waits before its first call."""
        return self.initialize_ms + self.initialized_ms + self.list_ms


def handshakes(requests: Sequence[Request]) -> list[Handshake]:
    """Return the price at each server that opened a session, over the users that have any."""
    opened = {each.user for each in requests if each.label.endswith(":initialize")}
    servers: dict[str, list[Request]] = {}
    for each in requests:
        if not each.session or each.user in opened:
            servers.setdefault(server_of(each.label), []).append(each)
    found = (_handshake(server, rows) for server, rows in sorted(servers.items()))
    return [each for each in found if each is not None]


def _handshake(server: str, rows: list[Request]) -> Handshake | None:
    spent = dict.fromkeys(SETTING_UP, 0.0)
    lives: dict[tuple[int, str, int], tuple[float, float]] = {}
    opened = 0
    for each in rows:
        what = each.label.partition(":")[2]
        if what in spent:
            spent[what] += each.elapsed_ms
            opened += what == "initialize" and each.success
        if each.session:
            first, last = lives.get(each.user, (each.start, each.end))
            lives[each.user] = (min(first, each.start), max(last, each.end))
    if not opened:
        return None
    sum_ms = sum(spent.values())
    lived = sum(last - first for first, last in lives.values()) * 1000.0
    waited = max(sum(each.elapsed_ms for each in rows), 1e-9)
    return Handshake(
        server,
        opened,
        initialize_ms=spent["initialize"] / opened,
        initialized_ms=spent["notifications/initialized"] / opened,
        list_ms=spent["tools/list"] / opened,
        share_of_waiting=100.0 * sum_ms / waited,
        share_of_time=100.0 * sum_ms / lived if lived else None,
    )
