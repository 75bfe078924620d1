"""OAuth client credentials for MCP: from the server's own metadata to one token for all users.

The way there (specification/2025-11-25/basic/authorization; ext-auth, SEP-1046):

1. the protected resource says which authorization server and which scopes: RFC 9728, at the URL
   of the 401's challenge, else at the well-known place for the path, else for the host;
2. that server says where tokens are to be had: RFC 8414 or OpenID discovery;
3. the token is asked for with `grant_type=client_credentials` and `resource`, the client known by
   its secret or by a signed assertion (private_key_jwt).

None of it is a sample of Locust's. `requests_made` keeps what was asked, for the report.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import requests

from _auth import RenewedToken
from _tally import tallies
from _workload import secret, text

TIMEOUT_S = 10.0
LIFETIME_UNLESS_TOLD_S = 3600.0
ASSERTION_LIFETIME_S = 300
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class OAuthError(Exception):
    """Why no token came: what step, and the server's own error code; never a value."""


class Asked(NamedTuple):
    """One request on the way to a token."""

    at: float  # epoch seconds
    what: str
    milliseconds: float
    status: int  # 0: no answer


requests_made: list[Asked] = []


class ClientCredentials(RenewedToken):
    """A token for one MCP server, got with a client's own credentials and renewed before it ends.

    `client_secret`, or `private_key` (PEM) with its `algorithm`. `audience` of the assertion is
    the issuer unless told otherwise. `get` raises AuthError where no token can be had.
    """

    def __init__(
        self,
        mcp_url: str,
        *,
        client_id: str,
        client_secret: str | None = None,
        private_key: str | None = None,
        algorithm: str = "ES256",
        scope: str | None = None,
        audience: str | None = None,
        label: str = "oauth",
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(label, clock=clock)
        if not client_secret and not private_key:
            raise ValueError(f"{label}: a client id needs a client secret or a private key")
        self._url = mcp_url.partition("?")[0].partition("#")[0]
        self._client_id = client_id
        self._secret = client_secret
        self._key = private_key
        self._algorithm = algorithm
        self._scope = scope
        self._audience = audience
        self._resource: dict[str, Any] = {}
        self._server: dict[str, Any] = {}

    @classmethod
    def from_variables(cls, label: str, mcp_url: str) -> ClientCredentials | None:
        """Read <LABEL>_CLIENT_ID with _CLIENT_SECRET or _PRIVATE_KEY; None where no id is set."""
        upper = label.upper()
        client_id = text(f"{upper}_CLIENT_ID")
        if not client_id:
            return None
        return cls(
            mcp_url,
            client_id=client_id,
            client_secret=secret(f"{upper}_CLIENT_SECRET") or None,
            private_key=text(f"{upper}_PRIVATE_KEY").replace("\\n", "\n") or None,
            algorithm=text(f"{upper}_KEY_ALGORITHM", "ES256"),
            scope=text(f"{upper}_SCOPE") or None,
            label=label,
        )

    def _mint(self, fresh: bool) -> tuple[str, float]:
        if not self._server:
            challenge = self._challenge()
            self._resource = self._protected_resource(challenge.get("resource_metadata"))
            self._server = self._authorization_server()
            if self._scope is None:
                self._scope = challenge.get("scope") or " ".join(
                    self._resource.get("scopes_supported") or ()
                )
        asked_at = self._clock()
        granted = self._ask_for_a_token()
        token = granted.get("access_token")
        if not isinstance(token, str) or not token:
            raise OAuthError("token endpoint: no access_token in its answer")
        lifetime = granted.get("expires_in")
        if not isinstance(lifetime, (int, float)) or lifetime <= 0:
            lifetime = LIFETIME_UNLESS_TOLD_S
        return token, asked_at + float(lifetime)

    # ---- 1 the protected resource

    def _challenge(self) -> dict[str, str]:
        """Return the parameters of the server's 401, {} where it gives none."""
        status, headers, _ = self._send("POST", self._url, "challenge", json={})
        if status != 401:
            return {}
        return dict(re.findall(r'(\w+)="([^"]*)"', headers.get("WWW-Authenticate", "")))

    def _protected_resource(self, named: str | None) -> dict[str, Any]:
        for url in [named] if named else list(_well_known(self._url, "oauth-protected-resource")):
            status, _, document = self._send("GET", url, "protected resource metadata")
            if status == 200 and document.get("authorization_servers"):
                resource = str(document.get("resource", self._url))
                if not _covers(resource, self._url):
                    raise OAuthError("protected resource metadata: is about another resource")
                return document
        # 2025-03-26 had no such metadata: the server's own origin is the issuer.
        parts = urlsplit(self._url)
        return {"authorization_servers": [f"{parts.scheme}://{parts.netloc}"]}

    # ---- 2 the authorization server

    def _authorization_server(self) -> dict[str, Any]:
        issuer = str(self._resource["authorization_servers"][0])
        for url in _metadata_of_issuer(issuer):
            status, _, document = self._send("GET", url, "authorization server metadata")
            if status == 200 and document.get("token_endpoint"):
                if str(document.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):
                    raise OAuthError("authorization server metadata: names another issuer")
                return document
        raise OAuthError("authorization server metadata: not found")

    # ---- 3 the token

    def _ask_for_a_token(self) -> dict[str, Any]:
        form = {
            "grant_type": "client_credentials",
            "resource": str(self._resource.get("resource") or self._url),
        }
        if self._scope:
            form["scope"] = self._scope
        headers: dict[str, str] = {}
        offered = self._server.get("token_endpoint_auth_methods_supported") or ()
        if self._key:
            form["client_assertion_type"] = JWT_BEARER
            form["client_assertion"] = self._assertion()
        elif "client_secret_post" in offered and "client_secret_basic" not in offered:
            form["client_id"] = self._client_id
            form["client_secret"] = self._secret or ""
        else:
            pair = f"{quote(self._client_id, safe='')}:{quote(self._secret or '', safe='')}"
            headers["Authorization"] = requests.auth._basic_auth_str(*pair.split(":", 1))
        endpoint = str(self._server["token_endpoint"])
        status, _, document = self._send("POST", endpoint, "token", data=form, headers=headers)
        if status != 200:
            code = re.sub(r"[^\w.-]", "", str(document.get("error", "")))[:40]
            raise OAuthError(f"token endpoint: HTTP {status}" + (f", {code}" if code else ""))
        return document

    def _assertion(self) -> str:
        import jwt  # comes with azure-identity; only who signs needs it

        now = int(self._clock())
        claims = {
            "iss": self._client_id,
            "sub": self._client_id,
            "aud": self._audience or self._server["issuer"],
            "iat": now,
            "exp": now + ASSERTION_LIFETIME_S,
            "jti": secrets.token_urlsafe(16),
        }
        return jwt.encode(claims, self._key or "", algorithm=self._algorithm)

    def _send(
        self, verb: str, url: str, what: str, **more: Any
    ) -> tuple[int, Mapping[str, str], dict[str, Any]]:
        """(status, headers, JSON object or {}); redirects are not followed: they would take a
        secret along. Raises OAuthError for no answer at all.
        """
        headers = {"Accept": "application/json", **more.pop("headers", {})}
        tallies[self.label, f"{what} requests"] += 1
        began, at = time.perf_counter(), time.time()
        status = 0
        try:
            reply = requests.request(
                verb, url, headers=headers, timeout=TIMEOUT_S, allow_redirects=False, **more
            )
            status = reply.status_code
        except requests.RequestException as error:
            raise OAuthError(f"{what}: no answer, {type(error).__name__}") from None
        finally:
            requests_made.append(Asked(at, what, (time.perf_counter() - began) * 1000.0, status))
        try:
            document = reply.json()
        except ValueError:
            document = {}
        return status, reply.headers, document if isinstance(document, dict) else {}


def _well_known(url: str, name: str) -> Iterator[str]:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    if parts.path.rstrip("/"):
        yield f"{origin}/.well-known/{name}{parts.path.rstrip('/')}"
    yield f"{origin}/.well-known/{name}"


def _metadata_of_issuer(issuer: str) -> Iterator[str]:
    """Yield where an issuer's metadata may be, in the order of basic/authorization."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    yield f"{origin}/.well-known/oauth-authorization-server{path}"
    yield f"{origin}/.well-known/openid-configuration{path}"
    if path:
        yield f"{origin}{path}/.well-known/openid-configuration"


def _covers(resource: str, url: str) -> bool:
    ours, theirs = urlsplit(url), urlsplit(resource)
    same = (ours.scheme, ours.netloc.lower()) == (theirs.scheme, theirs.netloc.lower())
    return same and f"{ours.path.rstrip('/')}/".startswith(f"{theirs.path.rstrip('/')}/")
