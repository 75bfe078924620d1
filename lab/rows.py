"""One request as one line of Azure Load Testing's results format, and what must not stand in it.

No I/O, standard library only, and safe on Python 3.9: the recorder needs it on every engine.
"""

from __future__ import annotations

import http.client
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

AZURE_COLUMNS = (
    *("timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName"),
    *("dataType", "success", "failureMessage", "bytes", "sentBytes", "grpThreads"),
    *("allThreads", "URL", "Latency", "IdleTime", "Connect"),
)
# Instants are milliseconds after the clock started, empty where they did not happen; waited_ms
# is how long after its plan the request started, off the clock.
OUR_COLUMNS = (
    *("elapsed_ms", "method", "user_class", "session", "request_id", "kind", "failure_kind"),
    *("waited_ms", "connect_ms", "tls_ms", "headers_ms", "first_event_ms", "reply_ms", "end_ms"),
)
HEADER = ",".join(AZURE_COLUMNS + OUR_COLUMNS) + "\n"

LONGEST_TEXT = 300
_SHORT = [f"{us / 1e3:.3f}" for us in range(1000)]
MOST_CELLS = 10_000

SECRET_NAME = re.compile(r"TOKEN|KEY|SECRET|PASSW|PWD|CREDENTIAL", re.IGNORECASE)
_SECRET_SHAPE = re.compile(
    r"\b(?:bearer|basic)\s+[\w.~+/=-]{6,}"  # an Authorization header's value
    r"|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"  # a JSON web token
    r"|(?<=[\w/])\?[^\s'\")>]*=[^\s'\")>]*",  # an address's query string
    re.IGNORECASE,
)


def secret_values(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return every form in which a secret of the environment could be printed, longest first."""
    forms: set[str] = set()
    for name, value in environment.items():
        if len(value) >= 8 and SECRET_NAME.search(name):
            forms |= {value, quote(value, safe=""), quote_plus(value)}
            for shift, mixed in enumerate((0, 2, 3)):  # base64 of a longer text that holds it
                encoded = b64encode(b"\0" * shift + value.encode()).decode().rstrip("=")
                forms.add(encoded[mixed:-2])
    return sorted(forms, key=len, reverse=True)


def redact(text: str, secrets: list[str]) -> str:
    """Return the text without the secrets given, and without what looks like one."""
    for secret in secrets:
        text = text.replace(secret, "[secret]")
    return _SECRET_SHAPE.sub("[secret]", text)


def one_line(text: str) -> str:
    """Return the text on one line, cut at 300 characters."""
    return " ".join(text.split())[:LONGEST_TEXT]


def cell(text: str) -> str:
    """Return the text as one cell of a CSV line, quoted where it must be."""
    if "," in text or '"' in text or "\n" in text or "\r" in text:
        return '"' + text.replace('"', '""') + '"'
    return text


class Facts(NamedTuple):
    """What ours knows of a request and Locust's event does not; instants by perf_counter, or 0."""

    planned: float = 0.0
    started: float = 0.0
    connected: float = 0.0
    secured: float = 0.0
    headers: float = 0.0
    first_event: float = 0.0
    replied: float = 0.0
    ended: float = 0.0
    status: int = 0
    kind: str = ""
    request_id: int | None = None
    sent_bytes: int = 0
    received_bytes: int = 0
    user_class: str = ""
    session: int = 0


class Row(NamedTuple):
    """One request event, as it was kept. at: epoch seconds; elapsed: milliseconds.

    facts is a trace of ours, or has its attributes.
    """

    at: float
    elapsed: float
    method: str
    name: str
    length: int | None
    exception: object
    url: str | None
    facts: Any = Facts()


class Lines:
    """Makes lines; knows how many users there are, and keeps the cells that come again."""

    def __init__(self, secrets: list[str]) -> None:
        self._users: dict[str, int] = {}
        self._all_users = 0
        self._secrets = secrets
        self._cells: dict[object, str] = {}
        self._same: dict[str, tuple[tuple[object, ...], str, str, str]] = {}

    def count(self, users: dict[str, int]) -> None:
        """Take the users of each class at present."""
        self._users, self._all_users = users, sum(users.values())
        self._same.clear()

    def line(self, row: tuple[Any, ...]) -> str:
        """Return one row as its line of the results file; a plain tuple in Row's order will do.

        Most rows are successes on an open connection whose reply came in one read. Theirs is the
        short way, with as little formatting as can be: it is most of what recording costs.
        """
        at, elapsed, method, name, length, exception, url, facts = row
        replied = facts.replied
        if exception is not None or facts.connected or not replied or facts.headers != replied:
            return self._any_line(*row)
        kind = (facts.status, facts.kind, facts.user_class, method, url)
        known = self._same.get(name)
        if known is None or known[0] != kind:
            known = self._same[name] = (kind, *self._parts(name, *kind))
        _, head, users, middle = known
        session = facts.session
        exact = f"{elapsed:.3f}"
        whole = int(elapsed + 0.5)
        started, first, ended = facts.started, facts.first_event, facts.ended
        late = int((started - facts.planned) * 1e6 + 0.5)
        waited = _SHORT[late] if 0 <= late < len(_SHORT) else _ms(started, facts.planned)
        request_id = "" if facts.request_id is None else facts.request_id
        return (
            f"{int(at * 1e3)},{whole},{head}{session},text,true,,"
            f"{facts.received_bytes or length or 0},{facts.sent_bytes},{users},{whole},0,0,"
            f"{exact},{middle}{session},{request_id},{facts.kind},,{waited},,,{exact},"
            f"{exact if first == replied else _ms(first, started)},{exact},"
            f"{exact if ended == replied else _ms(ended, started)}\n"
        )

    def _any_line(
        self,
        at: float,
        elapsed: float,
        method: str,
        name: str,
        length: int | None,
        exception: object,
        url: str | None,
        facts: Any,
    ) -> str:
        started = facts.started
        if exception is None or exception == "":  # Locust counts an empty text as a success
            outcome, failure_kind = "true,", ""
        else:
            outcome = "false," + self._text(_words(exception))
            failure_kind = self._name(type(exception).__name__)
        kind = (facts.status, facts.kind, facts.user_class, method, url)
        head, users, middle = self._parts(name, *kind)
        open_at = facts.secured or facts.connected
        headers = facts.headers
        instants = (facts.connected, facts.secured, headers, facts.first_event, facts.replied)
        return (
            f"{int(at * 1e3)},{int(elapsed + 0.5)},{head}{facts.session},text,{outcome},"
            f"{facts.received_bytes or length or 0},{facts.sent_bytes},{users},"
            f"{(headers - started) * 1e3 if headers else 0:.0f},0,"
            f"{(open_at - started) * 1e3 if open_at else 0:.0f},"
            f"{elapsed:.3f},{middle}{facts.session},"
            f"{'' if facts.request_id is None else facts.request_id},{facts.kind},{failure_kind},"
            f"{_ms(started, facts.planned) if started else ''},"
            f"{','.join([_ms(each, started) for each in instants])},{_ms(facts.ended, started)}\n"
        )

    def _parts(
        self, name: str, status: int, _: str, user_class: str, method: str, url: str | None
    ) -> tuple[str, str, str]:
        """Return what is the same in all rows of a kind: three runs of cells."""
        users = self._users.get(user_class, self._all_users)
        return (
            f"{self._name(name)},{self._status(status)},{user_class or 'locust'}-",
            f"{users},{self._all_users},{self._url(url)}",
            f"{self._name(method)},{user_class},",
        )

    def _name(self, name: str) -> str:
        known = self._cells.get(name)
        if known is not None:
            return known
        return self._keep(name, cell(redact(name, self._secrets).replace("\n", " ")))

    def _text(self, text: str) -> str:
        key = ("text", text)
        known = self._cells.get(key)
        if known is not None:
            return known
        return self._keep(key, cell(one_line(redact(text, self._secrets))))

    def _url(self, url: str | None) -> str:
        key = ("url", url)
        known = self._cells.get(key)
        if known is not None:
            return known
        bare = re.sub(r"[?#].*|(?<=//)[^/@]*@", "", url or "null", flags=re.DOTALL)
        return self._keep(key, cell(one_line(redact(bare, self._secrets))))

    def _status(self, status: int) -> str:
        known = self._cells.get(status)
        if known is not None:
            return known
        return self._keep(status, f"{status},{cell(http.client.responses.get(status, ''))}")

    def _keep(self, key: object, made: str) -> str:
        if len(self._cells) >= MOST_CELLS:  # names or addresses without number: hoard none
            self._cells.clear()
        self._cells[key] = made
        return made


def _ms(instant: float, since: float) -> str:
    return f"{(instant - since) * 1e3:.3f}" if instant else ""


def _words(exception: object) -> str:
    try:
        return str(exception) or type(exception).__name__
    except Exception:  # an exception of somebody's, which cannot even be printed
        return type(exception).__name__
