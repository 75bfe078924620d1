"""OAuth client credentials for MCP: one token for all users of a client, renewed off the clock.

Where tokens come from is `_discovery`'s to find. There one is asked for with
`grant_type=client_credentials` and `resource` (ext-auth, SEP-1046), the client known by its secret
or by a signed assertion (private_key_jwt).
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote

from gevent.lock import BoundedSemaphore

from _auth import RenewedToken
from _discovery import OAuthError, Place, discover, send
from _workload import WorkloadError, secret, text

__all__ = ["ClientCredentials", "OAuthError"]

LIFETIME_UNLESS_TOLD_S = 3600.0
RENEW_AT = (0.75, 0.85)  # of the lifetime: engines that began together do not renew together
ASSERTION_LIFETIME_S = 300
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHMS = ("ES256", "RS256", "EdDSA")  # the first that the key can do, unless one is told


class _Grant:
    """The one token of a process for an issuer, client, resource and scope."""

    def __init__(self) -> None:
        self.lock = BoundedSemaphore(1)
        self.value = ""
        self.ends = self.renew_at = 0.0


_grants: dict[tuple[str, str, str, str], _Grant] = {}


class ClientCredentials(RenewedToken):
    """A token for one MCP server, got with a client's own credentials and renewed before it ends.

    `client_secret`, or `private_key` (PEM), which signs by `algorithm`; `key_id` says which of a
    client's keys that is. `scope` goes before what the server asks for. `audience` of the
    assertion is the issuer unless told otherwise. With `issuer` the credentials are for that
    authorization server only, whatever the MCP server names. Objects that come to the same
    (issuer, client, resource, scope) share one token. `get` raises AuthError where there is none.
    """

    def __init__(
        self,
        mcp_url: str,
        *,
        client_id: str,
        client_secret: str | None = None,
        private_key: str | None = None,
        algorithm: str | None = None,
        key_id: str | None = None,
        scope: str | None = None,
        audience: str | None = None,
        issuer: str | None = None,
        label: str = "oauth",
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(label, clock=clock)
        if not client_secret and not private_key:
            raise ValueError(f"{label}: a client id needs a client secret or a private key")
        self._url = mcp_url.partition("#")[0]
        self._client_id = client_id
        self._secret = client_secret or ""
        self._key = private_key or ""
        self._algorithms = (algorithm,) if algorithm else ALGORITHMS
        self._key_id = key_id
        self._scope = scope
        self._audience = audience
        self._issuer = issuer
        self._place: Place | None = None
        self._grant = _Grant()

    @classmethod
    def from_variables(cls, label: str, mcp_url: str) -> ClientCredentials | None:
        """Read <LABEL>_CLIENT_ID and _CLIENT_SECRET, _PRIVATE_KEY or _PRIVATE_KEY_FILE.

        Optional: _KEY_ALGORITHM, _KEY_ID, _SCOPE, _ISSUER, _AUDIENCE. None where nothing is set;
        what cannot work stops the run.
        """
        its = f"{label.upper()}_"
        proofs = [f"{its}{name}" for name in ("CLIENT_SECRET", "PRIVATE_KEY", "PRIVATE_KEY_FILE")]
        given = [name for name in proofs if text(name)]
        client_id = secret(f"{its}CLIENT_ID")
        if not client_id and not given:
            return None
        if not client_id:
            raise WorkloadError(f"{given[0]} is set without {its}CLIENT_ID: set both, or neither")
        if len(given) != 1:
            what = f"{' and '.join(given)} are both set" if given else "nothing proves its client"
            raise WorkloadError(f"{its}CLIENT_ID: {what}; set one of {', '.join(proofs)}")
        return cls(
            mcp_url,
            client_id=client_id,
            client_secret=secret(proofs[0]) or None,
            private_key=text(proofs[1]).replace("\\n", "\n") or _key_in_the_file(proofs[2]),
            algorithm=text(f"{its}KEY_ALGORITHM") or None,
            key_id=text(f"{its}KEY_ID") or None,
            scope=text(f"{its}SCOPE") or None,
            audience=text(f"{its}AUDIENCE") or None,
            issuer=text(f"{its}ISSUER") or None,
            label=label,
        )

    def _mint(self, fresh: bool) -> tuple[str, float]:
        if self._place is None or fresh:  # a 401 may name another scope, or another server
            self._place = discover(self.label, self._url, self._issuer)
        place, self._place = self._place, None  # after a failure it is looked for again
        if self._scope is not None:
            place = place._replace(scope=self._scope)
        key = (place.issuer, self._client_id, place.resource, place.scope)
        grant = self._grant = _grants.setdefault(key, _Grant())
        with grant.lock:
            if self._clock() >= grant.renew_at or grant.value == self._refused:
                self._ask_for_a_token(place, grant)
            self._place = place
            return grant.value, grant.ends

    def _renewal_due(self, ends: float, lifetime: float) -> float:
        return self._grant.renew_at

    def _ask_for_a_token(self, place: Place, grant: _Grant) -> None:
        form = {"grant_type": "client_credentials", "resource": place.resource}
        if place.scope:
            form["scope"] = place.scope
        basic: tuple[str, str] | None = None
        if self._key:
            form["client_assertion_type"] = JWT_BEARER
            form["client_assertion"] = self._assertion(place.issuer)
        elif "client_secret_post" in place.methods and "client_secret_basic" not in place.methods:
            form["client_id"], form["client_secret"] = self._client_id, self._secret
        else:  # RFC 6749, 2.3.1: both are encoded as in a form first
            basic = quote(self._client_id, safe=""), quote(self._secret, safe="")
        self._count_request()
        asked_at = self._clock()
        status, _, granted = send(
            self.label, "POST", place.endpoint, "token", data=form, auth=basic
        )
        if status != 200:
            code = re.sub(r"[^\w.-]", "", str(granted.get("error", "")))[:40]
            raise OAuthError(f"token endpoint, HTTP {status}" + (f", {code}" if code else ""))
        value = granted.get("access_token")
        if not isinstance(value, str) or not re.fullmatch(r"[!-~]+", value):
            raise OAuthError("token endpoint, no access_token that a header can carry")
        if str(granted.get("token_type", "Bearer")).lower() != "bearer":
            raise OAuthError("token endpoint, what it gave is no bearer token")
        lifetime = _seconds(granted.get("expires_in"))
        grant.value, grant.ends = value, asked_at + lifetime
        grant.renew_at = asked_at + lifetime * random.uniform(*RENEW_AT)

    def _assertion(self, issuer: str) -> str:
        import jwt  # comes with azure-identity; only who signs needs it

        now = int(self._clock())
        claims = {
            "iss": self._client_id,
            "sub": self._client_id,
            "aud": self._audience or issuer,
            "iat": now,
            "exp": now + ASSERTION_LIFETIME_S,
            "jti": token_urlsafe(16),
        }
        headers = {"kid": self._key_id} if self._key_id else None
        for algorithm in self._algorithms:
            try:
                return jwt.encode(claims, self._key, algorithm=algorithm, headers=headers)
            except Exception:  # noqa: S112 - each kind of wrong key has an error of its own
                continue
        raise OAuthError(f"the private key does not sign by {' or '.join(self._algorithms)}")


def _seconds(value: Any) -> float:
    """Return `expires_in` as seconds; some servers send a text, and it may be left out."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return LIFETIME_UNLESS_TOLD_S
    return seconds if seconds > 0 and math.isfinite(seconds) else LIFETIME_UNLESS_TOLD_S


def _key_in_the_file(variable: str) -> str | None:
    path = text(variable)
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = type(error).__name__
        raise WorkloadError(f"{variable}={path} cannot be read ({why}): give a PEM file") from None
