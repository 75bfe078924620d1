"""What an author still has to fill in before a run in Azure: names that stand for other names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lab.lint.finding import Finding, note
from lab.manifest import Manifest

_STANDS_FOR_ANOTHER = re.compile(
    r"""
      (?:^|[^a-z])(?:your|example|placeholder|change[-_]?me|replace[-_]?me|fill[-_]?in|todo|fixme)
      (?:$|[^a-z])
    | <[^<>]+>
    | 0{8}-0{4}-0{4}-0{4}-0{12}
    | x{3,}(?:-x{2,})+
    """,
    re.VERBOSE | re.IGNORECASE,
)


def is_placeholder(value: str) -> bool:
    """Return whether the value stands for one that only the author knows."""
    return _STANDS_FOR_ANOTHER.search(value) is not None


def check(manifest: Manifest) -> list[Finding]:
    """Return a note for each placeholder; ``submit`` refuses a manifest that has any."""
    return list(_placeholders(manifest))


def _placeholders(manifest: Manifest) -> Iterator[Finding]:
    for where, name, value, line in _values(manifest):
        if is_placeholder(value):
            what = f"a placeholder in {where}, {name}"
            yield note(manifest.path.name, line, what, value, "Fill it in before a run in Azure")


def _values(manifest: Manifest) -> Iterator[tuple[str, str, str, int]]:
    doc = manifest.document
    for entry in manifest.env:
        yield "env", entry.name, entry.value, entry.line
    for entry in manifest.secrets:
        yield "secrets", entry.name, entry.value, entry.line
    for identity in manifest.identities:
        yield "referenceIdentities", identity.kind, identity.value, identity.line
    for key in ("testId", "subnetId", "keyVaultReferenceIdentity"):
        value = doc.data.get(key)
        if isinstance(value, str):
            yield "the manifest", key, value, doc.line(key)
    certificates = doc.data.get("certificates")
    for index, item in enumerate(certificates if isinstance(certificates, list) else []):
        if isinstance(item, dict) and isinstance(item.get("value"), str):
            yield (
                "certificates",
                str(item.get("name")),
                item["value"],
                doc.line("certificates", index),
            )
