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
# is how long after its plan the request started, off the clock. revision is the one spoken, empty
# before one was agreed upon.
OUR_COLUMNS = (
    *("elapsed_ms", "method", "user_class", "session", "request_id", "kind", "failure_kind"),
    *("waited_ms", "connect_ms", "tls_ms", "headers_ms", "first_event_ms", "reply_ms", "end_ms"),
    "revision",
)
HEADER = ",".join(AZURE_COLUMNS + OUR_COLUMNS) + "\n"

LONGEST_TEXT = 300
MOST_KEPT = 10_000

# Numbers that come again, as text: looking one up costs a third of formatting it.
_WHOLE = [str(number) for number in range(MOST_KEPT)]
_THOUSANDTHS = [f".{number:03d}" for number in range(1000)]

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
    revision: str = ""


class Lines:
    """Makes lines; knows how many users there are, and keeps the cells that come again."""

    def __init__(self, secrets: list[str]) -> None:
        self._users: dict[str, int] = {}
        self._all_users = 0
        self._secrets = secrets
        self._cells: dict[object, str] = {}
        self._same: dict[str, tuple[int, str, str, str, str, str]] = {}

    def count(self, users: dict[str, int]) -> None:
        """Take the users of each class at present."""
        self._users, self._all_users = users, sum(users.values())
        self._same.clear()

    def line(
        self,
        at: float,
        elapsed: float,
        method: str,
        name: str,
        exception: object,
        url: str | None,
        facts: Any,
    ) -> str:
        """Return one request as its line of the results file.

        at is in epoch seconds, elapsed in milliseconds; facts is a trace, or has its attributes.
        Most requests are successes on an open connection whose reply came in one read. Theirs is
        the short way, which looks up what it can: formatting is all that recording costs.
        """
        replied = facts.replied
        if (
            exception is not None
            or not replied
            or facts.headers != replied
            or facts.connected
            or not facts.request_id  # a notification
        ):
            return self.any_line(at, elapsed, method, name, exception, url, facts)
        status, kind, user_class = facts.status, facts.kind, facts.user_class
        known = self._same.get(name)
        if known is None or known[0] != status or known[1] != kind or known[2] != user_class:
            parts = self._parts(name, status, user_class, method, url)
            known = self._same[name] = (status, kind, user_class, *parts)
        _, _, _, head, users, middle = known
        started, first, ended = facts.started, facts.first_event, facts.ended
        exact_us = int(elapsed * 1e3 + 0.5)
        whole = exact_us // 1000
        try:
            exact = _WHOLE[whole] + _THOUSANDTHS[exact_us - whole * 1000]
            rounded = _WHOLE[(exact_us + 500) // 1000]
            session = _WHOLE[facts.session]
            received, sent = _WHOLE[facts.received_bytes], _WHOLE[facts.sent_bytes]
            late_us = int((started - facts.planned) * 1e6 + 0.5)
            late = late_us // 1000
            waited = _WHOLE[late] + _THOUSANDTHS[late_us - late * 1000]
        except IndexError:  # ten seconds, ten thousand users, or 10 kB
            return self.any_line(at, elapsed, method, name, exception, url, facts)
        return (
            f"{int(at * 1e3)},{rounded},{head}{session},text,true,,{received},{sent},{users},"
            f"{rounded},0,0,{exact},{middle}{session},{facts.request_id},{kind},,{waited},,,"
            f"{exact},{exact if first == replied else _ms(first, started)},{exact},"
            f"{exact if ended == replied else _ms(ended, started)},{facts.revision}\n"
        )

    def any_line(
        self,
        at: float,
        elapsed: float,
        method: str,
        name: str,
        exception: object,
        url: str | None,
        facts: Any,
    ) -> str:
        """Return what line does, the long way, which is right for all requests."""
        started = facts.started
        if exception is None or exception == "":  # Locust counts an empty text as a success
            outcome, failure_kind = "true,", ""
        else:
            outcome = "false," + self._text(_words(exception))
            failure_kind = self._name(type(exception).__name__)
        head, users, middle = self._parts(name, facts.status, facts.user_class, method, url)
        request_id = "" if facts.request_id is None else facts.request_id
        headers, open_at = facts.headers, facts.secured or facts.connected
        instants = (facts.connected, facts.secured, headers, facts.first_event, facts.replied)
        return (
            f"{int(at * 1e3)},{_rounded(elapsed)},{head}{facts.session},text,{outcome},"
            f"{facts.received_bytes},{facts.sent_bytes},{users},"
            f"{_rounded((headers - started) * 1e3) if headers else 0},0,"
            f"{_rounded((open_at - started) * 1e3) if open_at else 0},"
            f"{_exact(elapsed)},{middle}{facts.session},{request_id},{facts.kind},{failure_kind},"
            f"{_ms(started, facts.planned)},"
            f"{','.join([_ms(each, started) for each in instants])},{_ms(facts.ended, started)},"
            f"{facts.revision}\n"
        )

    def _parts(
        self, name: str, status: int, user_class: str, method: str, url: str | None
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
        if len(self._cells) >= MOST_KEPT:  # names or addresses without number: hoard none
            self._cells.clear()
        self._cells[key] = made
        return made


def _rounded(ms: float) -> int:
    return int(ms + 0.5)


def _exact(ms: float) -> str:
    whole, rest = divmod(int(ms * 1e3 + 0.5), 1000)
    return f"{whole}.{rest:03d}"


def _ms(instant: float, since: float) -> str:
    return _exact((instant - since) * 1e3) if instant else ""


def _words(exception: object) -> str:
    try:
        return str(exception) or type(exception).__name__
    except Exception:  # an exception of somebody's, which cannot even be printed
        return type(exception).__name__
