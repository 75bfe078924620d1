"""Where a token comes from: a variable, or Entra; renewed off the clock, once for all users.

Each source has the same two methods:

    get() -> str            the token to send now; may wait, so it is called off the clock
    rejected(token) -> None the server answered 401 to this one

A source that can renew is a `RenewedToken`: whoever finds the token old starts the one renewing
greenlet, and everybody who cannot go on without a new one waits for it. Later sources (Key Vault,
OAuth client credentials) subclass it and say only how to `_mint`. Nothing here touches the
network before the first `get()`.

A renewal runs in an ordinary greenlet, never in gevent's thread pool: azure-identity's
AzureCliCredential starts a child process, and child watchers exist on the main loop only.
"""

from __future__ import annotations

import logging
import os
import re
import time
from typing import Any, Callable, NamedTuple

import gevent

from _failures import AuthError
from _metadata import documents, scope_of
from _tally import Sent, sent, tallies
from _workload import secret

logger = logging.getLogger(__name__)

# azure-identity and MSAL hand out their cached token until 300 s before its end; an earlier
# renewal would get the same one back. Short-lived tokens are renewed after 80 % of their life.
RENEW_BEFORE_S = 240.0
UNUSABLE_BEFORE_S = 30.0  # clocks differ, and a token has to survive its request
PAUSE_S = 30.0  # between two attempts that brought nothing new, as azure-identity itself pauses
WAIT_S = 60.0  # for one renewal; `az` alone may take 13 s (Azure/azure-cli#20404)


class StaticToken:
    """The token in a variable. Nobody renews it: after a 401 the failures go on, at think time.

    One that is unset at first is read again at the first use: Key Vault may have given it.
    """

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._value: str | None = secret(variable) or None

    def __bool__(self) -> bool:
        return bool(self.get())

    def get(self) -> str:
        """Return the token, "" where the variable is not set."""
        if self._value is None:
            self._value = secret(self._variable)
        return self._value

    def rejected(self, token: str) -> None:
        """Do nothing: there is no other token."""


class _Token(NamedTuple):
    value: str
    renew_at: float
    usable_until: float


class RenewedToken:
    """A token that ends, and its renewal; `clock` gives seconds since the epoch.

    label: whose token this is, in the log and in the tallies.
    requests: how many tokens were asked for so far.
    A server that refuses even the token it made us renew is not obeyed again for `PAUSE_S`.
    """

    def __init__(self, label: str, *, clock: Callable[[], float] = time.time) -> None:
        self.label = label
        self.requests = 0
        self._clock = clock
        self._token: _Token | None = None
        self._refused = ""  # the value that a server answered 401 to
        self._renewal: gevent.Greenlet | None = None
        self._not_before = 0.0
        self._deaf_until = 0.0  # to rejections
        self._failure = ""

    def get(self) -> str:
        """Return a token that can be used now, having waited for one if need be.

        Raises AuthError ("no token, <why>") where none can be had; for `PAUSE_S` after a failed
        attempt it does so at once.
        """
        token, now = self._token, self._clock()
        if token is not None and now < token.renew_at:
            return token.value
        renewal = self._start()
        if token is not None and now < token.usable_until:
            return token.value
        if renewal is not None:
            renewal.join(WAIT_S)
            token = self._token
            if token is not None and self._clock() < token.usable_until:
                return token.value
            if not renewal.ready():
                raise AuthError("no token, time is up", rejected=False)
        raise AuthError(f"no token, {self._failure or 'expired'}", rejected=False)

    def rejected(self, token: str) -> None:
        """Renew, unless somebody has already: only the current token's 401 counts."""
        if self._token is None or token != self._token.value:
            return
        if self._clock() < max(self._not_before, self._deaf_until):
            return
        self._refused = token
        self._token = None
        self._start()

    def _mint(self, fresh: bool) -> tuple[str, float]:
        """Ask for a token: its value, and its end in seconds since the epoch.

        `fresh`: the last one was refused, so what a cache holds is of no use. May raise anything.
        """
        raise NotImplementedError

    def _renewal_due(self, ends: float, lifetime: float) -> float:
        """Return when, in seconds since the epoch, a token that has just come is to be renewed."""
        return ends - min(RENEW_BEFORE_S, lifetime / 5)

    def _count_request(self) -> None:
        """Count a token that is asked for; called by `_mint`, as what it has need not be asked."""
        self.requests += 1
        tallies[self.label, "token requests"] += 1

    def _start(self) -> gevent.Greenlet | None:
        if self._renewal is None and self._clock() >= self._not_before:
            self._renewal = gevent.spawn(self._renew)
        return self._renewal

    def _renew(self) -> None:
        """Run as the one renewing greenlet; never raises."""
        last, fresh = self._token.value if self._token else self._refused, bool(self._refused)
        at, began, asked, failure = time.time(), time.perf_counter(), self.requests, ""
        try:
            value, ends = self._mint(fresh)
            lifetime = ends - self._clock()
            if lifetime <= 0:
                raise ValueError("the token that came has already expired")
            self._token = _Token(
                value,
                renew_at=self._renewal_due(ends, lifetime),
                usable_until=ends - min(UNUSABLE_BEFORE_S, lifetime / 10),
            )
            self._not_before = self._clock() + PAUSE_S if value == last else 0.0
            self._deaf_until = self._clock() + PAUSE_S if fresh else 0.0
            self._failure = self._refused = ""
        except Exception as error:
            if not self._failure:
                logger.error("%s: no token, %s", self.label, scrubbed(error))
            self._failure = failure = type(error).__name__
            self._not_before = self._clock() + PAUSE_S
        finally:
            self._renewal = None
            if failure or self.requests > asked:  # else it had one that another class asked for
                took = (time.perf_counter() - began) * 1000.0
                sent.append(Sent(at, self.label, "renewal", took, error=failure))


class EntraToken(RenewedToken):
    """A token of Entra ID for a scope, or the one in the variable `instead` where that is set.

    The scope is what the server's protected-resource metadata (RFC 9728) names; `scope` is for
    servers whose metadata cannot be read, or all there is where no `server` (host, path) is
    given. `credential` makes what azure-core calls a TokenCredential; by default that is
    DefaultAzureCredential, which uses what it finds: environment, managed identity, `az login`.
    """

    def __init__(
        self,
        scope: str,
        *,
        instead: str = "",
        label: str = "entra",
        server: tuple[str, str] = ("", ""),
        credential: Callable[[], Any] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(label, clock=clock)
        self._default_scope = scope
        self._scope = ""
        self._server = server
        self._static = StaticToken(instead)
        self._make_credential = credential or _default_credential
        self._credential: Any = None

    def get(self) -> str:
        """Return the static token, or a minted one; raises AuthError where none can be had."""
        return self._static.get() or super().get()

    def rejected(self, token: str) -> None:
        """Renew a minted token; a static one stays."""
        if not self._static:
            super().rejected(token)

    def _mint(self, fresh: bool) -> tuple[str, float]:
        self._count_request()
        if not self._scope:
            self._scope = self._published_scope() or self._default_scope
        if fresh and self._credential is not None:  # its cache would give the refused one again
            old, self._credential = self._credential, None
            getattr(old, "close", lambda: None)()
        if self._credential is None:
            self._credential = self._make_credential()
        minted = self._credential.get_token(self._scope)
        return str(minted.token), float(minted.expires_on)

    def _published_scope(self) -> str:
        for document in documents(self.label, *self._server):
            scope = scope_of(document, *self._server)
            if scope:
                logger.info("%s: token scope %s, as the server publishes it", self.label, scope)
                return scope
        return ""


def _default_credential() -> Any:
    from azure.identity import DefaultAzureCredential  # 0.14 s, and only who uses it needs it

    return DefaultAzureCredential(process_timeout=30)


_SECRET_NAMES = re.compile(r"TOKEN|SECRET|PASSWORD|KEY|CREDENTIAL", re.IGNORECASE)
_TOKEN_LIKE = re.compile(
    r"eyJ[\w-]+(?:\.[\w-]*)*"  # a JSON Web Token, whole or cut
    r"|(?<=[=:])\s*[^\s&\"',;]{6,}(?<!://)"  # secret=value
    r"|(?=[\w+/=.~-]*\d)(?=[\w+/=.~-]*[A-Za-z])[\w+/=.~-]{20,}"  # a run that no word is
)


def scrubbed(error: BaseException) -> str:
    """Return an error as one line of 400 characters at most, without what could be a token."""
    line = " ".join(str(error).split())
    for name, value in os.environ.items():
        if len(value.strip()) >= 6 and _SECRET_NAMES.search(name):
            line = line.replace(value.strip(), "…")
    return f"{type(error).__name__}: {_TOKEN_LIKE.sub('…', line)[:400]}"
