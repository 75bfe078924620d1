"""``python -m lab token ado``: a token of Entra ID for Azure DevOps, written to Key Vault.

An engine's managed identity may list Azure DevOps' tools but not call them, and the organisation
may be in another tenant than the load test. So somebody who may call them signs in here (az login)
and the engine finds the token in the vault. It lasts about an hour; it is shown nowhere.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dotenv import dotenv_values

import _vault
from _expiry import clock
from _metadata import documents, scope_of
from lab.cli import CannotRun
from lab.lint.placeholders import is_placeholder
from lab.manifest import Manifest, ManifestError, load

HELP = "mint a token for Azure DevOps and write it to Key Vault, for the next run in Azure"

VARIABLE = "ADO_MCP_TOKEN"
SCOPE = "https://mcp.dev.azure.com/.default"
CONTENT_TYPE = "Entra ID access token for Azure DevOps"
_TENANT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add = parser.add_argument
    add("server", choices=["ado"], help="whose token: Azure DevOps'")
    add("--folder", type=Path, default=Path(), help="of azure-loadtest.yaml (default: this one)")
    add(
        "--tenant",
        default="",
        help="of the organisation (default: AZURE_TENANT_ID, or as its server says)",
    )
    add("--vault-secret", default="", metavar="URI", help=f"where to (default: {VARIABLE}'s, YAML)")


def run(args: argparse.Namespace) -> int:
    """Mint and write; 0 where the vault has the token."""
    try:
        manifest = load(args.folder)
    except ManifestError as wrong:
        if not args.vault_secret:
            raise CannotRun(str(wrong)) from wrong
        manifest = None
    place = _place(args.vault_secret, manifest)
    settings = _settings(args.folder, manifest)
    scope, published = _published(settings)
    tenant = args.tenant or settings.get("AZURE_TENANT_ID", "").strip() or published
    with _vault.quiet():
        credential = _vault.signed_in()
        minted = _mint(credential, scope, tenant)
        _write(credential, place, minted.token, minted.expires_on)
    minutes = (minted.expires_on - time.time()) / 60
    print(
        f"{VARIABLE}: a token of {f'tenant {tenant}' if tenant else 'the tenant signed in to'} for"
        f" {scope} is in {place.vault}/secrets/{place.name}; it ends at {clock(minted.expires_on)},"
        f" in {minutes:.0f} min"
    )
    return 0


def _place(given: str, manifest: Manifest | None) -> _vault.SecretURI:
    """Return where the token goes: the URI given, or the reference of the YAML."""
    listed = manifest.secrets if manifest else ()
    uri = given or next((entry.value for entry in listed if entry.name == VARIABLE), "")
    whose = "--vault-secret" if given else f"{VARIABLE} of secrets"
    if not uri or is_placeholder(uri):
        raise CannotRun(
            f"{whose} is {uri or 'absent'}: fill it in, or name the secret with"
            " --vault-secret https://VAULT.vault.azure.net/secrets/NAME"
        )
    try:
        place = _vault.SecretURI.of(uri)
    except ValueError as wrong:
        raise CannotRun(f"{whose}: {wrong}: name the secret without its version") from wrong
    if place.version:
        raise CannotRun(
            f"{whose} names the version {place.version}, and a new token is another: remove it"
        )
    return place


def _settings(folder: Path, manifest: Manifest | None) -> dict[str, str]:
    """Return the variables that name the organisation: the YAML's, then .env's, then our own."""
    listed = manifest.environment if manifest else {}
    filled = {name: value for name, value in listed.items() if not is_placeholder(value)}
    dotenv = {name: value or "" for name, value in dotenv_values(folder / ".env").items()}
    return {**filled, **{n: v for n, v in dotenv.items() if v}, **os.environ}


def _published(settings: Mapping[str, str]) -> tuple[str, str]:
    """Return (scope, tenant) as the organisation's server says; else the usual scope, and ""."""
    organisation = settings.get("ADO_ORG", "").strip()
    url = settings.get("ADO_MCP_URL", "").strip()
    if not url and organisation:
        url = f"https://mcp.dev.azure.com/{organisation}"
    parts = urlsplit(url)
    host, path = f"{parts.scheme}://{parts.netloc}", parts.path
    for document in documents("ado", host, path) if url else ():
        scope = scope_of(document, host, path)
        if scope:
            return scope, _tenant(document)
    return SCOPE, ""


def _tenant(document: Any) -> str:
    servers = document.get("authorization_servers")
    for server in servers if isinstance(servers, list) else ():
        for part in urlsplit(str(server)).path.split("/"):
            if _TENANT.fullmatch(part):
                return part
    return ""


def _mint(credential: Any, scope: str, tenant: str) -> Any:
    try:
        return credential.get_token(scope, **({"tenant_id": tenant} if tenant else {}))
    except Exception as error:
        raise CannotRun(
            f"no token for {scope}: {_vault.reason(error)}; sign in as somebody of the"
            f" organisation{f' (az login --tenant {tenant})' if tenant else ' (az login)'}"
        ) from None


def _write(credential: Any, place: _vault.SecretURI, value: str, ends: float) -> None:
    try:
        with _vault.client(place.vault, credential) as vault:
            vault.set_secret(
                place.name,
                value,
                content_type=CONTENT_TYPE,
                expires_on=datetime.fromtimestamp(ends, UTC),
            )
    except Exception as error:
        raise CannotRun(
            f"{VARIABLE} is not written to {place.vault}/secrets/{place.name}:"
            f" {_vault.reason(error)}; writing takes the role Key Vault Secrets Officer"
        ) from None
