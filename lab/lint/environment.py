"""The variables that an engine gets: those the code reads, those the classes need, no host."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from lab.lint.classes import UserClass
from lab.lint.conf import options
from lab.lint.finding import Finding, error, warning
from lab.lint.sources import Project, called, text_of
from lab.manifest import Entry, Manifest

# Read by libraries and not by name in this folder.
_LIBRARIES = ("AZURE_", "PYTHON", "GEVENT", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "OTEL_", "IDENTITY_")
_PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "TZ", "LANG", "LC_ALL"}
_MANAGED = (
    "the engine's managed identity for Azure DevOps: its service lets one list the tools but not "
    "call them"
)


def check(project: Project, classes: list[UserClass]) -> list[Finding]:
    """Return what is wrong with env and secrets as the code sees them."""
    manifest = project.manifest
    return [
        *_host(manifest),
        *_needs(manifest, classes),
        *_tokens(project, classes),
        *_unread(project),
    ]


def _given(manifest: Manifest) -> dict[str, Entry]:
    return {entry.name: entry for entry in (*manifest.env, *manifest.secrets)}


def takes_part(manifest: Manifest, each: UserClass) -> bool:
    """Return whether the class has users by the manifest's counts."""
    if each.count is None:
        return True
    entry = manifest.entry(each.count.variable) if each.count.variable else None
    return (entry.value.strip() if entry else str(each.count.default)) != "0"


def _host(manifest: Manifest) -> Iterator[Finding]:
    entry = _given(manifest).get("LOCUST_HOST")
    if entry is not None:
        what = "LOCUST_HOST: it sends every class, with its token, to this one host"
        cure = "Remove it; set <LABEL>_MCP_URL, as in LEARN_MCP_URL"
        yield error(manifest.path.name, entry.line, what, entry.value or "empty", cure)


def _needs(manifest: Manifest, classes: list[UserClass]) -> Iterator[Finding]:
    given = _given(manifest)
    for each in classes:
        if not takes_part(manifest, each):
            continue
        for name in each.needs:
            if name not in given or not given[name].value.strip():
                line = given[name].line if name in given else manifest.document.line("env")
                what = f"{each.name} needs a variable that the engine would not have"
                cure = f"Add {name} to env or secrets"
                if each.count is not None and each.count.variable:
                    cure += f", or leave the class out with {each.count.variable}: 0"
                yield error(manifest.path.name, line, what, name, cure)


def _tokens(project: Project, classes: list[UserClass]) -> Iterator[Finding]:
    """Return what is known to go wrong with tokens that a class would mint on the engine."""
    manifest, given = project.manifest, _given(project.manifest)
    engine = next((i for i in manifest.identities if i.kind == "Engine"), None)
    files = {each.file for each in classes if takes_part(manifest, each)}
    for source in project.sources.values():
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Call) or called(node) != "EntraToken":
                continue
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            instead = text_of(keywords.get("instead"), source.constants)
            if source.path not in files or (instead and instead in given):
                continue
            cure = f"Add {instead or 'the token'} to secrets"
            if engine is not None:
                line, what = engine.line, _MANAGED
                yield warning(manifest.path.name, line, what, engine.type, cure)
            else:
                what = "a token that nothing on the engine can mint or give"
                yield error(source.path, node.lineno, what, instead or "EntraToken", cure)


def _unread(project: Project) -> Iterator[Finding]:
    """Return variables that nothing reads: most are typing errors."""
    manifest = project.manifest
    if project.plan is None:
        return
    read = {
        node.value
        for source in project.all_sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    locust = {option["env"] for option in options().values() if option["env"]}
    for name, entry in _given(manifest).items():
        if name in read | locust | _PROXIES or name.startswith(_LIBRARIES) or name == "LOCUST_HOST":
            continue
        candidates = [n for n in read | locust if n.isupper() and "_" in n]
        near = difflib.get_close_matches(name, candidates, n=1, cutoff=0.8)
        cure = f"Write {near[0]}, or remove it" if near else "Remove it, or correct its name"
        what = "a variable that neither the uploaded code nor Locust reads"
        yield warning(manifest.path.name, entry.line, what, name, cure)
