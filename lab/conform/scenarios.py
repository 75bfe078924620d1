"""The suite's client scenarios: those that our client is put through, and those left out, by name.

A test compares both lists with the suite's own, so that a scenario that is new is noticed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lab.conform.outcome import Outcome, ask, weigh

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
SCENARIOS: tuple[tuple[str, str | None], ...] = (
    ("initialize", "2025-06-18"),
    ("tools_call", "2025-06-18"),
    ("initialize", "2025-11-25"),
    ("tools_call", "2025-11-25"),
    ("sse-retry", "2025-11-25"),
    ("elicitation-sep1034-client-defaults", "2025-11-25"),
    ("json-schema-2020-12-preservation", "2025-11-25"),
    ("tools_call", "2026-07-28"),
    ("request-metadata", "2026-07-28"),
    ("http-standard-headers", "2026-07-28"),
    ("http-custom-headers", "2026-07-28"),
    ("http-invalid-tool-headers", "2026-07-28"),
    ("sep-2322-client-request-state", "2026-07-28"),
    ("json-schema-ref-no-deref", "2026-07-28"),
    ("json-schema-2020-12-preservation", "2026-07-28"),
    ("auth/client-credentials-basic", None),
    ("auth/client-credentials-jwt", None),
)
"""(scenario, revision); None is the suite's word for an extension, which it runs at any."""

INTERACTIVE = (
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
)
"""Left out: the authorization code flow, in which a person signs in by a browser."""

OTHER_EXTENSIONS = (
    "auth/enterprise-managed-authorization",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/wif-jwt-bearer",
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
)
"""Left out: extensions of the specification that this client does not speak."""


def judge(program: Sequence[str], scenario: str, revision: str | None) -> Outcome:
    """Run one scenario against our client; it has to end well, too."""
    words = [
        *(*program, "client", "--command", f"{sys.executable} -m lab.conformance_client"),
        *("--scenario", scenario),
    ]
    if revision is not None:
        words += ["--spec-version", revision]
    code, checks = ask(words)
    if code:
        said = f"the suite itself ended with exit code {code}"
        checks.append({"id": "exit code", "status": "FAILURE", "errorMessage": said})
    return weigh(scenario, revision, checks)
