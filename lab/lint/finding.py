"""What a rule says: where, how bad, what is wrong, its value, and the cure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

HIDDEN = "(not shown)"

# Shapes of credentials that are told by their look alone. Prefixes are the vendors' own.
_TOKEN_SHAPES = re.compile(
    r"""
      \bgh[opusr]_[A-Za-z0-9]{20,}                          # GitHub
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bctx7sk-[A-Za-z0-9-]{8,}                             # Context7
    | \bsk-[A-Za-z0-9_-]{20,}
    | \bxox[abprs]-[A-Za-z0-9-]{10,}                        # Slack
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                         # AWS
    | \bglpat-[A-Za-z0-9_-]{20,}                            # GitLab
    | \bAIza[A-Za-z0-9_-]{35}                               # Google
    | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}           # a JSON web token
    | \b[A-Za-z0-9]{3}8Q~[A-Za-z0-9._~-]{31,}               # Entra client secret
    | \b[a-z0-9]{52}\b(?=["'\s]|$)                          # Azure DevOps personal token, old form
    | \b[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}\b                 # and new
    | -----BEGIN\ (?:[A-Z]+\ )?PRIVATE\ KEY-----
    | \b(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/=]{20,}
    | [?&]sig=[A-Za-z0-9%]{20,}
    | \b(?i:bearer|basic)\ [A-Za-z0-9._~+/=-]{20,}
    """,
    re.VERBOSE,
)

_SECRETIVE = re.compile(
    r"(?:^|_)(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PAT|CREDENTIALS?)(?:_|$)", re.IGNORECASE
)


class Level(Enum):
    """How bad: an error fails the check, a warning may spoil a run, a note is only said."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence of the report.

    line   counted from 1; 0 where the whole file is meant
    value  the offending text, already fit to be shown: pass it through ``shown`` or leave HIDDEN
    cure   what to write instead
    """

    level: Level
    file: str
    line: int
    what: str
    value: str
    cure: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        value = f": {self.value}" if self.value else ""
        return f"{where}: {self.level.value}: {self.what}{value}. {self.cure}"


def error(file: str, line: int, what: str, value: str, cure: str) -> Finding:
    """Return a finding that fails the check."""
    return Finding(Level.ERROR, file, line, what, shown(value), cure)


def warning(file: str, line: int, what: str, value: str, cure: str) -> Finding:
    """Return a finding that may spoil a run."""
    return Finding(Level.WARNING, file, line, what, shown(value), cure)


def note(file: str, line: int, what: str, value: str, cure: str) -> Finding:
    """Return a finding that is only said."""
    return Finding(Level.NOTE, file, line, what, shown(value), cure)


def shown(value: object) -> str:
    """Return the value as a report may print it: one line, short, and never a credential."""
    text = " ".join(str(value).split())
    if looks_like_a_token(text):
        return HIDDEN
    return text if len(text) <= 100 else f"{text[:80]}… ({len(text)} characters)"


def looks_like_a_token(text: str) -> bool:
    """Return whether the text holds something that only a credential looks like."""
    return _TOKEN_SHAPES.search(text) is not None


def is_secretive(name: str) -> bool:
    """Return whether a variable of this name holds a secret, by the habit of naming."""
    return _SECRETIVE.search(name) is not None
