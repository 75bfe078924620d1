"""A protected MCP server and its authorization server on loopback, as strict as the RFCs.

One process, two origins. The client's proof is verified here by `cryptography` alone, so that a
fault of the library that signs cannot hide. What a test wants otherwise it sets on the object.
"""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import base64
import json
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from gevent.event import Event
from gevent.pywsgi import WSGIServer

JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class Heard(NamedTuple):
    """One request: who was asked ("mcp" or "issuer"), for what, with which form and headers."""

    who: str
    verb: str
    path: str
    form: dict[str, str]
    authorization: str


class Refused(Exception):
    """A token request that the authorization server turns down; the text is OAuth's error code."""


Reply = tuple[int, dict[str, str], Any]


class OAuthStandin:
    """Use it as a context manager; `clock` is the one that assertions are judged by."""

    def __init__(self, clock: Callable[[], float], *, issuer_path: str = "") -> None:
        self.clock = clock
        self.heard: list[Heard] = []
        self.tokens: list[str] = []
        self.client_id, self.client_secret = "load test", "s3cret/+ %:&=é~0123456789"
        self.more_clients: dict[str, str] = {}  # id: secret
        self.public_key: Any = None
        self.audience = ""  # the issuer
        self.methods: list[str] | None = None
        self.lifetime: Any = 3600
        self.more_granted: dict[str, Any] = {}
        self.challenge: str | None = 'Bearer resource_metadata="{mcp}/elsewhere/metadata"'
        self.metadata_path = "/elsewhere/metadata"  # where the protected resource describes itself
        self.scopes: list[str] | None = ["tools:read", "tools:call"]
        self.more_metadata: dict[str, Any] = {}
        self.server_metadata_path: str | None = None  # the first place asked, unless told
        self.more_server_metadata: dict[str, Any] = {}
        self.instead: dict[str, Callable[[], Reply]] = {}  # by path, before all else
        self.released = Event()
        self._assertions: set[str] = set()
        self._servers = [self._serve("mcp", self._mcp), self._serve("issuer", self._as)]
        self.mcp, self.origin = (
            f"http://127.0.0.1:{server.server_port}" for server in self._servers
        )
        self.url, self.issuer = f"{self.mcp}/mcp", f"{self.origin}{issuer_path}"

    def __enter__(self) -> OAuthStandin:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.released.set()
        for server in self._servers:
            server.stop(timeout=1)

    def asked(self, who: str, verb: str = "GET") -> list[str]:
        """Return the paths that one of the two was asked for, in their order."""
        return [one.path for one in self.heard if (one.who, one.verb) == (who, verb)]

    @property
    def forms(self) -> list[dict[str, str]]:
        """Return the token requests."""
        return [one.form for one in self.heard if one.path == "/token"]

    def hang(self) -> Reply:
        """Answer, in `instead`, only when the test is over."""
        self.released.wait()
        return 503, {}, {}

    # ---- the two servers

    def _mcp(self, heard: Heard) -> Reply:
        if heard.path == "/mcp":
            headers = {} if self.challenge is None else {"WWW-Authenticate": self.challenge}
            return 401, {k: v.replace("{mcp}", self.mcp) for k, v in headers.items()}, {}
        if heard.path == self.metadata_path:
            document = {"resource": self.url, "authorization_servers": [self.issuer]}
            if self.scopes is not None:
                document["scopes_supported"] = self.scopes
            return 200, {}, {**document, **self.more_metadata}
        return 404, {}, {}

    def _as(self, heard: Heard) -> Reply:
        path = urlsplit(self.issuer).path
        place = self.server_metadata_path or f"/.well-known/oauth-authorization-server{path}"
        if heard.path == place:
            document: dict[str, Any] = {
                "issuer": self.issuer,
                "token_endpoint": f"{self.origin}/token",
            }
            if self.methods is not None:
                document["token_endpoint_auth_methods_supported"] = self.methods
            return 200, {}, {**document, **self.more_server_metadata}
        if heard.path == "/token" and heard.verb == "POST":
            return self._token(heard)
        return 404, {}, {}

    def _token(self, heard: Heard) -> Reply:
        try:
            self._know_the_client(heard)
            if heard.form.get("grant_type") != "client_credentials":
                raise Refused("unsupported_grant_type")
            if heard.form.get("resource") != self.url:
                raise Refused("invalid_target")
        except Refused as error:
            return 401 if str(error) == "invalid_client" else 400, {}, {"error": str(error)}
        self.tokens.append(f"token-{len(self.tokens) + 1}-of-{self.origin}")
        granted = {"access_token": self.tokens[-1], "token_type": "Bearer"}
        if self.lifetime is not None:
            granted["expires_in"] = self.lifetime
        return 200, {}, {**granted, **self.more_granted}

    def _know_the_client(self, heard: Heard) -> None:
        form = heard.form
        if self.public_key is not None:
            if form.get("client_assertion_type") != JWT_BEARER or "client_secret" in form:
                raise Refused("invalid_client")
            self._verify(form.get("client_assertion", ""))
            return
        scheme, _, encoded = heard.authorization.partition(" ")
        if scheme == "Basic" and "client_secret_basic" in (self.methods or ["client_secret_basic"]):
            user, _, password = base64.b64decode(encoded).decode().partition(":")
            pair = unquote(user), unquote(password)
        elif "client_secret_post" in (self.methods or ()):
            pair = form.get("client_id", ""), form.get("client_secret", "")
        else:
            raise Refused("invalid_client")
        known = {self.client_id: self.client_secret, **self.more_clients}
        if known.get(pair[0]) != pair[1]:
            raise Refused("invalid_client")

    def _verify(self, assertion: str) -> None:
        signed, _, signature = assertion.rpartition(".")
        header, claims = (json.loads(_decoded(part)) for part in signed.split("."))
        key, data, raw = self.public_key, signed.encode(), _decoded(signature)
        if header["alg"] == "ES256":
            halves = (int.from_bytes(half, "big") for half in (raw[:32], raw[32:]))
            key.verify(encode_dss_signature(*halves), data, ec.ECDSA(hashes.SHA256()))
        elif header["alg"] == "RS256":
            key.verify(raw, data, padding.PKCS1v15(), hashes.SHA256())
        else:
            raise Refused("invalid_client")
        wanted = {"iss": self.client_id, "sub": self.client_id}
        wanted["aud"] = self.audience or self.issuer
        is_new = claims["jti"] not in self._assertions
        in_time = claims["iat"] <= self.clock() + 1 < claims["exp"]
        if not (is_new and in_time and wanted.items() <= claims.items()):
            raise Refused("invalid_client")
        self._assertions.add(claims["jti"])

    def _serve(self, who: str, answer: Callable[[Heard], Reply]) -> WSGIServer:
        def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            body = environ["wsgi.input"].read().decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            heard = Heard(
                who, environ["REQUEST_METHOD"], environ["PATH_INFO"], form,
                environ.get("HTTP_AUTHORIZATION", ""),
            )  # fmt: skip
            self.heard.append(heard)
            instead = self.instead.get(heard.path)
            status, headers, document = instead() if instead else answer(heard)
            start(f"{status} X", [("Content-Type", "application/json"), *headers.items()])
            return [json.dumps(document).encode()]

        server = WSGIServer(("127.0.0.1", 0), app, log=None, error_log=None)
        server.start()
        return server


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def key_pair(kind: str) -> tuple[str, Any]:
    """Return (private key as PEM, public key) of a new pair for ES256 or RS256."""
    key: Any = (
        ec.generate_private_key(ec.SECP256R1())
        if kind == "ES256"
        else rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return pem.decode(), key.public_key()
