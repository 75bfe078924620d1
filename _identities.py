"""Who a user is to the server: one of N identities, dealt out in turn, and never shown.

A server limits and caches per caller, so a load of one caller measures its limiter. A pool holds
tokens, or OAuth clients, from a file or a variable. An identity is known by its ordinal alone, in
errors and in statistics.

    class MyUser(WithIdentity, MCPUserBase):
        host, mcp_path = endpoint("MY_MCP_URL", "https://mcp.example.com/mcp")
        server_label = "my"
        identities = Identities.from_variables("my", host + mcp_path)

MY_CREDENTIALS, or the file that MY_CREDENTIALS_FILE names, then decides; `Identities([source])` is
for one source that all users share, such as `_oauth.ClientCredentials`.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from _oauth import ClientCredentials
from _workload import HERE, WorkloadError, text, whole

CLIENT_COLUMNS = frozenset({"client_id", "client_secret", "private_key_file", "scope"})
_Line = tuple[int, str]  # its number in the source, and the line


class TokenSource(Protocol):
    """What `_auth` calls the source of a token."""

    def get(self) -> str:
        """Return the token to send now."""

    def rejected(self, token: str) -> None:
        """Take note that the server answered 401 to this one."""


class _Given:
    """A token that nobody renews."""

    def __init__(self, value: str) -> None:
        self._value = value

    def get(self) -> str:
        return self._value

    def rejected(self, token: str) -> None:
        """Do nothing: there is no other token."""


class Identity:
    """One caller: its ordinal, from 1, and its token, by the two methods of every source."""

    def __init__(self, ordinal: int, source: TokenSource) -> None:
        self.ordinal = ordinal
        self._source = source

    def __repr__(self) -> str:
        return f"<identity {self.ordinal}>"

    def get(self) -> str:
        """Return its token; may wait, and raise AuthError, where it is an OAuth client's."""
        return self._source.get()

    def rejected(self, token: str) -> None:
        """Renew an OAuth client's token; a given one stays."""
        self._source.rejected(token)

    def label(self, server_label: str) -> str:
        """Return the label of its user: `server#ordinal` where MCP_IDENTITY_STATS is 1.

        The names of the statistics begin with it. Azure shows 30 of them at most, and criteria
        that name the plain label no longer match: so only on request.
        """
        return f"{server_label}#{self.ordinal}" if has_own_statistics() else server_label


class Identities(Sequence[Identity]):
    """The callers of one server; `take` deals them to its users in turn."""

    def __init__(self, sources: Sequence[TokenSource]) -> None:
        self._all = [Identity(number, source) for number, source in enumerate(sources, 1)]
        self._turns: dict[int, Iterator[int]] = {}

    @classmethod
    def from_variables(cls, label: str, mcp_url: str = "") -> Identities | None:
        """Read <LABEL>_CREDENTIALS, or the file that <LABEL>_CREDENTIALS_FILE names.

        One token a line, or CSV with a header of `token`, or of `client_id` with `client_secret`
        or `private_key_file`, and perhaps `scope`: those are OAuth clients of `mcp_url`. Blank
        lines and lines that start with # are left out. In a variable, bare tokens may stand on
        one line, with commas between them. None where neither is set; what cannot work stops the
        run, and names the line.
        """
        variable = f"{label.upper()}_CREDENTIALS"
        given, named = text(variable), text(f"{variable}_FILE")
        if given and named:
            raise WorkloadError(f"{variable} and {variable}_FILE are both set: unset one of them")
        if not given and not named:
            return None
        where, content = (f"{variable}_FILE={named}", _read(named)) if named else (variable, given)
        if not named:
            content = content.replace("\\n", "\n")
            if "\n" not in content and not content.startswith("#"):
                content = re.sub(r"[,\s]+", "\n", content)
        lines = [
            (number, line.strip())
            for number, line in enumerate(content.splitlines(), 1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        sources = list(_sources(where, lines, label, mcp_url))
        if not sources:
            raise WorkloadError(f"{where} has no line with a token: write one a line")
        return cls(sources)

    def take(self, user: Any = None) -> Identity:
        """Return the next user's identity; of N, the N+1st user gets the first again.

        Processes know no other's turn, so each worker (of `user`'s run) begins elsewhere in the
        pool: at its half, its quarters, its eighths.
        """
        runner = getattr(getattr(user, "environment", None), "runner", None)
        worker = max(0, int(getattr(runner, "worker_index", 0) or 0))
        if worker not in self._turns:
            self._turns[worker] = itertools.count(int(_spread(worker) * len(self._all)))
        return self._all[next(self._turns[worker]) % len(self._all)]

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, index: Any) -> Any:
        return self._all[index]


class WithIdentity:
    """Comes before a user's base class: each user is one caller of `identities`.

    Without identities, or where a token is "", the user is what it would be without this class.
    """

    identities: ClassVar[Identities | None] = None
    server_label: str

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._identity = self.identities.take(self) if self.identities else None
        self._shown = ""
        if self._identity is not None:
            self.server_label = self._identity.label(self.server_label)

    def _extra_headers(self) -> dict[str, str]:
        headers: dict[str, str] = super()._extra_headers()  # type: ignore[misc]
        self._shown = self._identity.get() if self._identity is not None else ""
        if self._shown:
            headers["Authorization"] = f"Bearer {self._shown}"
        return headers

    def _token_rejected(self) -> None:
        if self._identity is not None:
            self._identity.rejected(self._shown)


def has_own_statistics() -> bool:
    """Are identities told apart in the statistics? MCP_IDENTITY_STATS=1: they are."""
    return whole("MCP_IDENTITY_STATS", 0) != 0


def _spread(worker: int) -> float:
    """0, 1/2, 1/4, 3/4, 1/8, …: however many there are, they are nearly as far apart as can be."""
    share, step = 0.0, 0.5
    while worker:
        share += step * (worker & 1)
        worker, step = worker >> 1, step / 2
    return share


def _read(name: str) -> str:
    path = next((place for place in (Path(name), HERE / name) if place.is_file()), Path(name))
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = type(error).__name__
        raise WorkloadError(f"{path} cannot be read ({why}): give a file of UTF-8 text") from None


def _sources(where: str, lines: list[_Line], label: str, mcp_url: str) -> Iterator[TokenSource]:
    head = [name.strip().lower() for name in lines[0][1].split(",")] if lines else []
    if head == ["token"] or "client_id" in head:
        lines = lines[1:]
    else:
        head = ["token"]
    unknown = [name for name in head if name not in CLIENT_COLUMNS] if head != ["token"] else []
    if unknown:
        raise WorkloadError(
            f"{where} has the column {unknown[0]!r}: there are token, or client_id with"
            " client_secret or private_key_file, and scope"
        )
    seen: dict[str, int] = {}
    for number, line in lines:
        place = f"{where}, line {number}"
        cells = [cell.strip() for cell in next(csv.reader([line], strict=False))]
        if len(cells) != len(head):
            raise WorkloadError(
                f"{place} has {len(cells)} columns, not {len(head)}: write one token a line, or"
                " begin with a header such as client_id,client_secret"
            )
        row = dict(zip(head, cells))
        who = row.get("client_id") or row.get("token", "")
        if who in seen:
            raise WorkloadError(f"{place} repeats line {seen[who]}: give each identity one line")
        seen[who] = number
        yield _client(place, row, label, mcp_url) if "client_id" in row else _token(place, who)


def _token(place: str, value: str) -> TokenSource:
    if not re.fullmatch(r"[!-~]+", value):
        raise WorkloadError(f"{place} is no token that a header can carry: write the bare token")
    return _Given(value)


def _client(place: str, row: dict[str, str], label: str, mcp_url: str) -> TokenSource:
    secret, key_file = row.get("client_secret", ""), row.get("private_key_file", "")
    if not row["client_id"] or bool(secret) == bool(key_file):
        raise WorkloadError(
            f"{place} is no client: it takes a client_id, and a client_secret or private_key_file"
        )
    if not mcp_url:
        raise WorkloadError(f"{place} is an OAuth client, and {label} takes tokens only")
    return ClientCredentials(
        mcp_url,
        client_id=row["client_id"],
        client_secret=secret or None,
        private_key=_read(key_file) if key_file else None,
        scope=row.get("scope") or None,
        label=label,
    )
