"""Entra ID and Key Vault on loopback, under their real names: what azure-identity really says.

A proxy takes CONNECT for the names that exist here, and no other, and leads to a TLS server with a
certificate for that name. So the libraries run as they do in the world, with instance discovery and
the check of a vault's challenge, and nothing leaves this machine. `variables` steer a process so.
"""

from __future__ import annotations

import locust  # noqa: F401  (before ssl: it patches the standard library)

import base64
import itertools
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, NamedTuple
from urllib.parse import parse_qs

import gevent
from gevent import socket
from gevent.event import Event
from gevent.pywsgi import WSGIServer
from gevent.server import StreamServer

from tests.certificates import authority

LOGIN = "login.microsoftonline.com"
TENANT = "11111111-2222-3333-4444-555555555555"
OTHER_TENANT = "99999999-8888-7777-6666-555555555555"
CLIENT, CLIENT_SECRET = "a-client", "planted~client.secret-0123456789"
VAULT_SCOPE = "https://vault.azure.net/.default"
_NUMBERS = itertools.count(1)  # a process remembers each vault's challenge


class Heard(NamedTuple):
    """One request: the host asked, the method, the path, and what was sent."""

    host: str
    verb: str
    path: str
    sent: dict[str, Any]


Answer = tuple[int, dict[str, str], Any]


@dataclass
class Secret:
    """What a vault holds under a name; `refused` is an HTTP status and Key Vault's inner code."""

    value: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    content_type: str = ""
    refused: tuple[int, str] | None = None


class AzureStandin:
    """Use it as a context manager; `secrets` are the vault's, by name."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.lifetime = 3600
        self.tokens: dict[str, tuple[str, str, float]] = {}  # value: (tenant, scope, its end)
        self.secrets: dict[str, Secret] = {}
        self.login_error = ""  # AADSTS code
        self.vault_tenant = TENANT
        self.resource = "https://vault.azure.net"
        self.hanging: set[str] = set()  # hosts that take a request and never answer
        self.closed: set[str] = set()  # hosts that cannot be reached
        self.released = Event()
        self.vault, self.other_vault = (f"v-{next(_NUMBERS)}.vault.azure.net" for _ in range(2))
        servers = {LOGIN: self._login, self.vault: self._vault, self.other_vault: self._vault}
        self._backends = {host: self._serve(host, app) for host, app in servers.items()}
        self._proxy = StreamServer(("127.0.0.1", 0), self._connect)
        self._proxy.start()

    def __enter__(self) -> AzureStandin:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.released.set()
        for server in (self._proxy, *self._backends.values()):
            server.stop(timeout=1)

    @property
    def variables(self) -> dict[str, str]:
        """What a process needs to sign in here as an application."""
        proxy, bundle = f"http://127.0.0.1:{self._proxy.server_port}", str(authority().bundle)
        return {
            "HTTPS_PROXY": proxy,
            "https_proxy": proxy,
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "REQUESTS_CA_BUNDLE": bundle,
            "AZURE_TENANT_ID": TENANT,
            "AZURE_CLIENT_ID": CLIENT,
            "AZURE_CLIENT_SECRET": CLIENT_SECRET,
            "AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential",
        }

    def uri(self, name: str) -> str:
        """Return the reference of a secret in the vault."""
        return f"https://{self.vault}/secrets/{name}"

    def az(self, folder: Path, *signed_in: str) -> dict[str, str]:
        """Put a signed-in `az` into the folder; return what makes a process use it, and it alone.

        It has a token of each tenant for the vault and for Azure DevOps. What it is asked goes
        into `az.log`. `signed_in` are the tenants, this one's first.
        """
        script = ["#!/bin/sh", f'echo "$*" >> {folder}/az.log', 'case "$*" in']
        for tenant in signed_in:
            for resource in ("https://vault.azure.net", "https://mcp.dev.azure.com"):
                ends = int(time.time()) + self.lifetime
                value = token(ends, number=len(self.tokens), tid=tenant)
                self.tokens[value] = (tenant, f"{resource}/.default", ends)
                told = json.dumps({"accessToken": value, "expires_on": ends, "tenant": tenant})
                named = f"*'--resource {resource}'*'--tenant {tenant}'*"
                usual = f"|*'--resource {resource}'" if tenant == signed_in[0] else ""
                script.append(f"{named}{usual}) echo '{told}';;")
        script += ["*) echo 'ERROR: AADSTS50020: not in this tenant' >&2; exit 1;;", "esac"]
        path = folder / "az"
        path.write_text("\n".join(script) + "\n", encoding="utf-8")
        path.chmod(0o700)
        return {
            **self.variables,
            **dict.fromkeys(("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"), ""),
            "AZURE_TOKEN_CREDENTIALS": "AzureCliCredential",
            "PATH": f"{folder}:/usr/bin:/bin",
        }

    @property
    def mints(self) -> list[Heard]:
        """The token requests."""
        return [one for one in self.heard if one.path.endswith("/oauth2/v2.0/token")]

    def asked(self, verb: str = "GET") -> list[str]:
        """The names of secrets that were asked for by somebody signed in."""
        return [
            one.path.split("/")[2]
            for one in self.heard
            if one.verb == verb and one.path.startswith("/secrets/") and one.sent["bearer"]
        ]

    def lives(self, value: str) -> bool:
        """Is this a token that was given here and has not ended?"""
        return value in self.tokens and time.time() < self.tokens[value][2]

    # ---- Entra

    def _login(self, heard: Heard) -> Answer:
        tenant, _, rest = heard.path.lstrip("/").partition("/")
        if heard.path == "/common/discovery/instance":
            where = f"https://{LOGIN}/{TENANT}/v2.0/.well-known/openid-configuration"
            names = {"preferred_network": LOGIN, "preferred_cache": LOGIN, "aliases": [LOGIN]}
            return 200, {}, {"tenant_discovery_endpoint": where, "metadata": [names]}
        if rest == "v2.0/.well-known/openid-configuration":
            base = f"https://{LOGIN}/{tenant}"
            return (
                200,
                {},
                {
                    "issuer": f"{base}/v2.0",
                    "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
                    "token_endpoint": f"{base}/oauth2/v2.0/token",
                },
            )
        if rest == "oauth2/v2.0/token" and heard.verb == "POST":
            form = heard.sent
            known = (form.get("client_id"), form.get("client_secret")) == (CLIENT, CLIENT_SECRET)
            code = self.login_error or ("" if known else "AADSTS7000215")
            if code or form.get("grant_type") != "client_credentials":
                said = f"{code}: refused. client_secret={form.get('client_secret')}"
                return 401, {}, {"error": "invalid_client", "error_description": said}
            ends = time.time() + self.lifetime
            value = token(ends, number=len(self.tokens), tid=tenant)
            self.tokens[value] = (tenant, form["scope"], ends)
            granted = {"token_type": "Bearer", "expires_in": self.lifetime, "access_token": value}
            return 200, {}, {**granted, "ext_expires_in": self.lifetime}
        return 404, {}, {}

    # ---- Key Vault

    def _vault(self, heard: Heard) -> Answer:
        tenant, scope, _ = self.tokens.get(heard.sent["bearer"], ("", "", 0.0))
        if (tenant, scope) != (self.vault_tenant, VAULT_SCOPE):
            challenge = (
                f'Bearer authorization="https://{LOGIN}/{self.vault_tenant}",'
                f' resource="{self.resource}"'
            )
            return 401, {"WWW-Authenticate": challenge}, _error("Unauthorized", "")
        name = heard.path.split("/")[2]
        if "api-version" not in heard.sent["query"]:
            return 400, {}, _error("BadParameter", "")
        secret = self.secrets.get(name)
        if secret is not None and secret.refused is not None:
            status, inner = secret.refused
            return status, {}, _error("Forbidden", inner, secret.value)
        if heard.verb == "PUT":
            body = heard.sent["body"]
            attributes = body.get("attributes", {})
            secret = Secret(body["value"], attributes, body.get("contentType", ""))
            self.secrets[name] = secret
        elif secret is None:
            return 404, {}, _error("SecretNotFound", "")
        return (
            200,
            {},
            {
                "value": secret.value,
                "id": f"https://{heard.host}/secrets/{name}/0123456789abcdef0123456789abcdef",
                "contentType": secret.content_type,
                "attributes": {"enabled": True, "created": 1, "updated": 1, **secret.attributes},
            },
        )

    # ---- the wire

    def _serve(self, host: str, answer: Callable[[Heard], Answer]) -> WSGIServer:
        def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            raw = environ["wsgi.input"].read().decode()
            if host == LOGIN:
                sent: dict[str, Any] = {name: each[0] for name, each in parse_qs(raw).items()}
            else:
                _, _, bearer = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
                sent = {"bearer": bearer, "query": parse_qs(environ["QUERY_STRING"])}
                sent["body"] = json.loads(raw) if raw else {}
            heard = Heard(host, environ["REQUEST_METHOD"], environ["PATH_INFO"], sent)
            self.heard.append(heard)
            if host in self.hanging:
                self.released.wait()
            status, headers, document = answer(heard)
            start(f"{status} X", [("Content-Type", "application/json"), *headers.items()])
            return [json.dumps(document).encode()]

        context = authority().server(host)
        server = WSGIServer(("127.0.0.1", 0), app, log=None, error_log=None, ssl_context=context)
        server.start()
        return server

    def _connect(self, client: Any, _address: Any) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            chunk = client.recv(4096)
            if not chunk:
                return
            head += chunk
        verb, target = head.split(b" ")[:2]
        host = target.decode().partition(":")[0]
        if verb != b"CONNECT" or host not in self._backends or host in self.closed:
            client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        backend = socket.create_connection(("127.0.0.1", self._backends[host].server_port))
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        gevent.joinall([gevent.spawn(_pipe, client, backend), gevent.spawn(_pipe, backend, client)])
        backend.close()


def _pipe(source: Any, sink: Any) -> None:
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


def _error(code: str, inner: str, quoted: str = "") -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": f"it is refused, and quotes {quoted}"}
    return {"error": {**error, "innererror": {"code": inner}} if inner else error}


def token(ends: float, **claims: Any) -> str:
    """Return a JSON Web Token without a signature that says when it ends."""
    parts = ({"alg": "none", "typ": "JWT"}, {"exp": int(ends), **claims})
    encoded = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in parts]
    return (b".".join(encoded) + b".c2lnbmF0dXJl").decode()
