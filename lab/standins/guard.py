"""Who may call: the hosted servers' ways to ask for a token, with dummies made at each start.

GitHub and Azure DevOps answer 401 with `WWW-Authenticate: Bearer resource_metadata="…"`
and serve the RFC 9728 document it names.  The document names no real authorization server,
so that no client can be led off the machine.  GitHub answers 400 to a malformed header.
Context7's key is optional; a wrong one is told so in an ordinary tool result, as the real
server does (`refuses_key`).  Learn asks for nothing.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.responses import JSONResponse, PlainTextResponse, Response

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
SCOPES: Final = {
    "github": ("repo", "read:org", "read:user", "user:email", "gist", "notifications"),
    "ado": ("https://mcp.dev.azure.com/.default",),
}
_KEY_HEADERS: Final = ("x-context7-api-key", "context7-api-key", "x-api-key")


def dummy_token(label: str) -> str | None:
    """Make a token in the form of the server's own, good for this start only."""
    if label == "github":
        return f"ghp_{secrets.token_hex(18)}"
    if label == "context7":
        return f"ctx7sk-{secrets.token_hex(16)}"
    if label == "ado":
        # Holds '+', '/' and '=': its URL-encoded form differs, so that a search for leaks
        # has to look for that, too.
        return "dummy+/" + base64.b64encode(secrets.token_bytes(31)).decode("ascii")
    return None


@dataclass(frozen=True, slots=True)
class Guard:
    """One server's door; `origin` is `http://127.0.0.1:port`, `path` the MCP endpoint's."""

    label: str
    token: str | None
    origin: str
    path: str

    def refusal(self, headers: Mapping[str, str]) -> Response | None:
        """Give the answer to a request that may not pass; `headers` have lower-case names."""
        if self.label not in SCOPES or self.token is None:
            return None
        given = headers.get("authorization")
        scheme, _, token = (given or "").partition(" ")
        malformed = given is not None and (scheme.lower() != "bearer" or not token.strip())
        if malformed and self.label == "github":
            return PlainTextResponse("bad request: Authorization header is badly formatted\n", 400)
        if not malformed and hmac.compare_digest(token.strip().encode(), self.token.encode()):
            return None
        named = f'Bearer resource_metadata="{self.origin}{WELL_KNOWN}{self.path}"'
        if given is not None:
            named = named.replace("Bearer ", 'Bearer error="invalid_token", ', 1)
        return PlainTextResponse("unauthorized\n", 401, {"WWW-Authenticate": named})

    def metadata(self, path: str) -> Response | None:
        """Give the protected resource's document, where `path` asks for one that exists."""
        if self.label not in SCOPES or not path.startswith(WELL_KNOWN):
            return None
        if path.removeprefix(WELL_KNOWN).strip("/") not in ("", self.path.strip("/")):
            return None
        document = {
            "resource": f"{self.origin}{self.path}",
            "resource_name": f"stand-in for {self.label} (loopback)",
            "authorization_servers": [self.origin],
            "bearer_methods_supported": ["header"],
            "scopes_supported": list(SCOPES[self.label]),
        }
        return JSONResponse(document)

    def refuses_key(self, headers: Mapping[str, str]) -> bool:
        """Whether a key was given and is not ours; only Context7 takes one so."""
        if self.label != "context7" or self.token is None:
            return False
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        given = [key for key in (bearer, *(headers.get(h, "") for h in _KEY_HEADERS)) if key]
        return any(not hmac.compare_digest(k.encode(), self.token.encode()) for k in given)
