"""What Key Vault holds: secrets read, all or as many as can be had, within bounds; and one written.

Whoever is signed in asks (DefaultAzureCredential). Why a secret cannot be had is told in a few
words with the vault's own error code; no message of a library is passed on, as they quote what was
sent. What waits runs in ordinary greenlets: azure-identity starts `az` as a child process, which
gevent's thread pool cannot. In a process without Locust they simply run.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Callable, NamedTuple
from urllib.parse import urlsplit

import gevent

# For all secrets; a sign-in by `az` alone may take 13 s (Azure/azure-cli#20404), and a worker that
# hears nothing of its master for 60 s gives up.
WAIT_S = 45.0
# azure-core waits 300 s for a connection, tries three times, and as long as a Retry-After says: the
# run has not begun, so whoever started it is told at once.
PATIENCE: dict[str, Any] = {
    "connection_timeout": 5,
    "read_timeout": 10,
    "retry_total": 1,
    "retry_connect": 1,
    "retry_read": 1,
    "retry_status": 0,
}
_URI = re.compile(r"/secrets/([0-9A-Za-z-]+)(?:/([0-9A-Za-z]*))?")


class SecretURI(NamedTuple):
    """Where a secret is: its vault's URL, its name and its version ("" for the newest)."""

    vault: str
    name: str
    version: str

    @classmethod
    def of(cls, uri: str) -> SecretURI:
        """Read `https://<vault>/secrets/<name>[/<version>]`; raises ValueError for another."""
        parts = urlsplit(uri)
        found = _URI.fullmatch(parts.path)
        if parts.scheme != "https" or not parts.hostname or found is None:
            raise ValueError("its address is no https://<vault>/secrets/<name>")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("its address has more than https://<vault>/secrets/<name>")
        return cls(f"https://{parts.netloc}", found[1], found[2] or "")


class Fetched(NamedTuple):
    """By variable: the values that came, the ends of those that have one, and why others failed.

    Ends are in seconds since the epoch.
    """

    values: dict[str, str]
    ends: dict[str, float]
    failures: dict[str, str]


def fetch(
    secrets: Mapping[str, str],
    *,
    credential: Callable[[], Any] | None = None,
    wait_s: float = WAIT_S,
    patience: Mapping[str, Any] = PATIENCE,
) -> Fetched:
    """Read the secrets, given as {variable: URI}; raises nothing for one that cannot be had.

    `credential` makes what signs in; by default DefaultAzureCredential.
    """
    fetched = Fetched({}, {}, {})
    places: dict[str, SecretURI] = {}
    for variable, uri in secrets.items():
        try:
            places[variable] = SecretURI.of(uri)
        except ValueError as error:
            fetched.failures[variable] = str(error)
    if places:
        make = credential or signed_in
        reading = gevent.spawn(_read_all, places, fetched, make, patience)
        reading.join(wait_s)
        if not reading.ready():
            reading.kill(block=False)
            late = places.keys() - fetched.values.keys() - fetched.failures.keys()
            fetched.failures.update(dict.fromkeys(sorted(late), f"no answer in {wait_s:g} s"))
    return fetched


def told(failures: Mapping[str, str]) -> str:
    """Return variables and why the vault gave no value, in one line."""
    return "; ".join(f"{variable} ({why})" for variable, why in failures.items())


def belongs(variable: str, label: str, needs: Sequence[str]) -> bool:
    """Does a class of this label, with these needs, use the variable?"""
    return variable in needs or variable.startswith(f"{label.upper()}_")


def signed_in() -> Any:
    """Return DefaultAzureCredential, for every tenant: a vault says in which one it is."""
    from azure.identity import DefaultAzureCredential  # 0.14 s, and only who uses it needs it

    return DefaultAzureCredential(
        process_timeout=30, additionally_allowed_tenants=["*"], **PATIENCE
    )


def client(vault: str, credential: Any, patience: Mapping[str, Any] = PATIENCE) -> Any:
    """Return azure-keyvault-secrets' client of a vault, as impatient as somebody who waits."""
    from azure.keyvault.secrets import SecretClient

    return SecretClient(vault, credential, **patience)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep azure's loggers to errors: it words the failures that we name, in many lines each."""
    logger = logging.getLogger("azure")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def reason(error: BaseException) -> str:
    """Say in a few words why a vault gave nothing: codes only, as messages quote what was sent."""
    from azure.core.exceptions import (
        ClientAuthenticationError,
        HttpResponseError,
        ServiceRequestError,
        ServiceResponseError,
    )

    if isinstance(error, ClientAuthenticationError) and not error.status_code:
        code = re.search(r"AADSTS\d+", str(error))  # none where nothing to sign in with was found
        return f"the sign-in was refused, {code[0]}" if code else "no sign-in worked"
    if isinstance(error, HttpResponseError) and error.status_code:
        code = re.fullmatch(r"[A-Za-z]{1,40}", _error_code(error))
        return f"HTTP {error.status_code}" + (f", {code[0]}" if code else "")
    if isinstance(error, ServiceRequestError):
        return "the vault cannot be reached"
    if isinstance(error, ServiceResponseError):
        return "the vault does not answer"
    return type(error).__name__


def _error_code(error: Any) -> str:
    """Return Key Vault's own code, the inner one (ForbiddenByRbac, SecretDisabled) if given."""
    told = getattr(error, "error", None)
    inner = getattr(told, "innererror", None)
    code = inner.get("code") if isinstance(inner, dict) else None
    return str(code or getattr(told, "code", "") or "")


def _read_all(
    places: Mapping[str, SecretURI],
    fetched: Fetched,
    make_credential: Callable[[], Any],
    patience: Mapping[str, Any],
) -> None:
    """Run as the reading greenlet; never raises, as gevent would print the error as it is."""
    with quiet():
        try:
            credential = make_credential()
            for vault_url in dict.fromkeys(place.vault for place in places.values()):
                theirs = {name: place for name, place in places.items() if place.vault == vault_url}
                with client(vault_url, credential, patience) as vault:
                    _read_vault(vault, theirs, fetched)
            getattr(credential, "close", lambda: None)()
        except Exception as error:
            left = places.keys() - fetched.values.keys() - fetched.failures.keys()
            fetched.failures.update(dict.fromkeys(sorted(left), type(error).__name__))


def _read_vault(vault: Any, places: Mapping[str, SecretURI], fetched: Fetched) -> None:
    """Add what a vault says; one that gave no HTTP answer is not asked again."""
    closed = ""
    for variable, place in places.items():
        if closed:
            fetched.failures[variable] = closed
            continue
        try:
            secret = vault.get_secret(place.name, place.version or None)
        except Exception as error:
            fetched.failures[variable] = reason(error)
            if not fetched.failures[variable].startswith("HTTP"):
                closed = fetched.failures[variable]
            continue
        value, ends = (secret.value or "").strip(), secret.properties.expires_on
        if not value or "\0" in value:
            fetched.failures[variable] = "the secret is empty, or no text"
        elif ends is not None and ends.timestamp() <= time.time():
            fetched.failures[variable] = f"the secret expired {ends:%Y-%m-%d %H:%M} UTC"
        else:
            fetched.values[variable] = value
            if ends is not None:
                fetched.ends[variable] = ends.timestamp()
