"""Made-up but plausible text and code: the same arguments always give the same words."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from typing import Any, Final

_SUBJECTS: Final = (
    "The client library", "A managed identity", "Each worker process", "The default policy",
    "This configuration", "The request pipeline", "A background service", "The storage account",
    "Your application", "The hosting model", "A deployment slot", "The connection pool",
)  # fmt: skip
_VERBS: Final = (
    "retries transient failures with exponential backoff", "validates the token before each call",
    "keeps a connection open for later requests", "reads its settings from the environment",
    "must be registered before the first use", "scales out when the queue grows",
    "is disposed at the end of the scope", "writes structured events to the log",
    "caches the result for the configured time", "falls back to the regional endpoint",
)  # fmt: skip
_TAILS: Final = (
    "so that callers see a consistent result", "unless the feature is turned off",
    "which avoids an extra round trip", "as described in the previous section",
    "and raises an error that names the setting", "before any traffic is routed to it",
    "to stay within the published limits", "when more than one instance is running",
)  # fmt: skip
_NAMES: Final = (
    "router", "pipeline", "scheduler", "gateway", "toolkit", "runner", "catalog", "bridge",
    "monitor", "harness", "registry", "adapter", "planner", "worker", "studio", "engine",
)  # fmt: skip
_PEOPLE: Final = ("amara", "benoit", "chiara", "devi", "emil", "farah", "goran", "hana")


class Prose(random.Random):
    """A generator of text that is seeded by a tool and its arguments."""

    @classmethod
    def about(cls, tool: str, arguments: Mapping[str, Any]) -> Prose:
        """Make the generator for one call."""
        canonical = json.dumps([tool, arguments], sort_keys=True, default=str)
        return cls(canonical)

    def sentence(self) -> str:
        """Give one sentence of about 100 characters."""
        return f"{self.choice(_SUBJECTS)} {self.choice(_VERBS)}, {self.choice(_TAILS)}."

    def paragraph(self, sentences: int = 4) -> str:
        """Give some sentences in one line."""
        return " ".join(self.sentence() for _ in range(sentences))

    def name(self) -> str:
        """Give a name of the kind that repositories have."""
        return f"{self.choice(_NAMES)}-{self.choice(_NAMES)}"

    def person(self) -> str:
        """Give a login."""
        return f"{self.choice(_PEOPLE)}{self.randrange(10, 99)}"

    def sha(self) -> str:
        """Give a commit's or blob's hash, 40 hex digits."""
        return hashlib.sha256(self.randbytes(16)).hexdigest()[:40]

    def uuid(self) -> str:
        """Give a UUID's text."""
        h = self.sha()
        return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}"

    def day(self) -> str:
        """Give an instant of 2025 or 2026 in ISO 8601."""
        return (
            f"202{self.randint(5, 6)}-{self.randint(1, 12):02}-{self.randint(1, 28):02}"
            f"T{self.randrange(24):02}:{self.randrange(60):02}:{self.randrange(60):02}Z"
        )

    def code(self, language: str, about: str, steps: int = 6) -> str:
        """Give a snippet; `about` becomes part of its names."""
        word = "".join(c for c in about.title() if c.isalnum())[:24] or "Sample"
        lines = [f"{_COMMENT.get(language, '//')} {about}"]
        for step in range(1, steps + 1):
            noun, limit = self.choice(_NAMES), self.randrange(2, 60)
            if language == "csharp":
                lines.append(
                    f"var {noun}{step} = await client.Get{word}Async(new {word}Options "
                    f'{{ Retries = {limit}, Name = "{noun}" }});'
                )
            elif language in ("python", "py"):
                call = f'client.{word.lower()}(retries={limit}, name="{noun}")'
                lines.append(f"{noun}_{step} = {call}")
            else:
                call = f"client.{word}({{ retries: {limit}, name: '{noun}' }})"
                lines.append(f"const {noun}{step} = await {call};")
        return "\n".join(lines)


_COMMENT: Final = {"python": "#", "py": "#", "azurecli": "#", "bash": "#"}
