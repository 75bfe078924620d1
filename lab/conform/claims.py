"""What our own servers claim, as server scenarios of the suite: the stand-ins and the null server.

All of them offer tools and nothing else: no resources, prompts, completions, logging, sampling,
elicitation. Most server scenarios call a diagnostic tool by its name, which a server made for the
suite would have. Where a scenario tests more than is claimed, the checks left out are named, each
with its reason.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lab.conform.outcome import ROOT, Outcome, ask, weigh
from lab.null_server import NullServer, free_port
from lab.targets import Target, standins

HANDSHAKES = ("2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
NULL_SERVERS = {"null-json": "json", "null-sse": "sse", "null-open": "open"}
STANDINS = {"learn": "", "github": "GITHUB_MCP_TOKEN", "context7": "", "ado": "ADO_MCP_TOKEN"}
"""Label -> the variable of its token, where it answers 401 without one."""
IN_SESSIONS = ("learn", "github")

_NO_PROMPTS = "offers tools only"
LISTS = {
    "sep-2549-prompts-list-caching-hints": _NO_PROMPTS,
    "sep-2549-resources-list-caching-hints": _NO_PROMPTS,
    "sep-2549-resources-templates-list-caching-hints": _NO_PROMPTS,
}
_NO_TOOL = "has no tool for the suite's diagnosis"
CAPABILITIES = {
    "sep-2575-missing-capability-http-400": _NO_TOOL,
    "sep-2575-server-rejects-undeclared-capability": _NO_TOOL,
}
DIAGNOSIS = {
    **CAPABILITIES,
    "sep-2575-http-server-no-independent-requests-on-stream": _NO_TOOL,
    "sep-2575-server-no-log-without-loglevel": _NO_TOOL,
}
SPACES = {
    "sep-2243-server-accepts-whitespace-header-value": "its HTTP parser keeps the space behind one",
}
_BODY_ONLY = "reads a request's era from its body and looks at no header"
BODY_ONLY = {
    **CAPABILITIES,
    "sep-2575-request-meta-invalid-missing-meta": _BODY_ONLY,
    "sep-2575-request-meta-invalid-missing-protocol-version": _BODY_ONLY,
    "sep-2575-request-meta-invalid-missing-client-capabilities": _BODY_ONLY,
    "sep-2575-http-server-meta-invalid-400": _BODY_ONLY,
    "sep-2575-http-server-header-mismatch-400": _BODY_ONLY,
}
ONE_SESSION = {"server-session-terminated-returns-404": "gives one id to all and keeps no session"}


@dataclass(frozen=True, slots=True)
class Claim:
    """A server passes a scenario at a revision, but for the checks of what it does not claim."""

    server: str
    revision: str
    scenario: str
    unclaimed: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.server} {self.revision} {self.scenario}"


def _of_null_server(label: str) -> list[Claim]:
    found = [
        Claim(label, revision, scenario)
        for revision in HANDSHAKES
        for scenario in ("server-initialize", "ping", "tools-list", "tools-call-simple-text")
    ]
    found += [
        Claim(label, revision, "server-session-lifecycle", ONE_SESSION) for revision in HANDSHAKES
    ]
    found.append(Claim(label, "2025-11-25", "server-sse-multiple-streams"))
    found += [
        Claim(label, STATELESS, scenario)
        for scenario in ("tools-list", "tools-call-simple-text", "server-sse-multiple-streams")
    ]
    found.append(Claim(label, STATELESS, "caching", LISTS))
    found.append(Claim(label, STATELESS, "server-stateless", BODY_ONLY))
    return found


def _of_standin(label: str) -> list[Claim]:
    found = [
        Claim(label, revision, scenario)
        for revision in HANDSHAKES
        for scenario in ("server-initialize", "ping", "tools-list")
    ]
    if label in IN_SESSIONS:
        found += [Claim(label, revision, "server-session-lifecycle") for revision in HANDSHAKES]
        found.append(Claim(label, "2025-11-25", "server-sse-multiple-streams"))
    found += [
        Claim(label, STATELESS, "tools-list"),
        Claim(label, STATELESS, "server-sse-multiple-streams"),
        Claim(label, STATELESS, "input-required-result-unsupported-methods"),
        Claim(label, STATELESS, "caching", LISTS),
        Claim(label, STATELESS, "http-header-validation", SPACES),
        # An unknown tool is a result at Azure DevOps: what calls one gets an answer there.
        Claim(label, STATELESS, "server-stateless", CAPABILITIES if label == "ado" else DIAGNOSIS),
    ]
    return found


CLAIMS = tuple(
    claim
    for claims in (
        *(_of_null_server(label) for label in NULL_SERVERS),
        *(_of_standin(label) for label in STANDINS),
    )
    for claim in claims
)


@contextmanager
def serving(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run all of our servers on loopback; give the URL of each, open to callers without a token.

    folder: where the stand-ins write their logs.
    """
    with ExitStack() as stack:
        urls = {
            label: stack.enter_context(NullServer(mode)).url for label, mode in NULL_SERVERS.items()
        }
        announced = stack.enter_context(standins(folder, latency="none")).announced
        for label, token in STANDINS.items():
            url = str(announced["urls"][f"{label.upper()}_MCP_URL"])
            if token:
                proxy, url = _open(url, announced["tokens"][token])
                stack.enter_context(proxy)
            urls[label] = url
        yield urls


def _open(url: str, token: str) -> tuple[Target, str]:
    """Return a proxy that adds the token, and the URL by which it leads to the server."""
    parts, port = urlsplit(url), free_port()
    words = [sys.executable, "-m", "lab.conform.token_proxy", str(port), str(parts.port)]
    target = Target(words, port, env={"PROXY_TOKEN": token}, cwd=ROOT, stop_seconds=2.0)
    return target, f"http://127.0.0.1:{port}{parts.path}"


def judge_claim(program: Sequence[str], claim: Claim, urls: Mapping[str, str]) -> Outcome:
    """Run one server scenario against the server that claims it."""
    words = [*program, "server", "--url", urls[claim.server], "--scenario", claim.scenario]
    _, checks = ask([*words, "--spec-version", claim.revision])
    return weigh(
        claim.scenario, claim.revision, checks, subject=claim.server, unclaimed=claim.unclaimed
    )
