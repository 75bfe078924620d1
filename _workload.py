"""What this run is told: lines of `queries/X`, counts, addresses and pauses, from the environment.

A `.env` beside this file is read once, when this module is imported; what the environment
already holds wins. Azure puts every file into one folder, so a query file is looked for in
`queries/` and then beside us. Nothing here falls back silently: a value that cannot be used
stops the run with one line that names the variable, the value and the cure.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

from dotenv import load_dotenv

HERE = Path(__file__).resolve().parent

_PLACEHOLDER = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")
_EMPTY_BUT_FOR_COMMENT = re.compile(r"^([ \t]*(?:export[ \t]+)?\w+[ \t]*=)[ \t]+#.*$", re.MULTILINE)
# Parameter names by which a credential travels; Azure's results file prints whole URLs.
_CREDENTIALS = re.compile(
    r"(?:x-)?(?:access_?|auth_?|bearer_?|id_?)?token|(?:client_?)?secret|(?:api|access)?[-_]?key"
    r"|password|pwd|sig|signature|code|authorization",
    re.IGNORECASE,
)


class WorkloadError(SystemExit):
    """A setting that no run can start with: one line on stderr, and exit code 2.

    A SystemExit, because Locust imports our files unprotected: anything else would end in a
    traceback. Python prints nothing for an exit with a number, so the line is written here.
    """

    def __init__(self, line: str) -> None:
        super().__init__(2)
        self.line = " ".join(line.split())
        sys.stderr.write(f"{self.line}\n")

    def __str__(self) -> str:
        return self.line


def read_env_file(path: Path) -> None:
    """Add what a `.env` file says to the environment, except what is already there.

    `PYTHON_DOTENV_DISABLED=1` leaves it unread. Editors on Windows write a byte order mark,
    which would hide the first variable.
    """
    if os.environ.get("PYTHON_DOTENV_DISABLED", "").strip().lower() in ("1", "true", "t", "yes"):
        return
    if not path.is_file():
        return
    try:
        # Before 1.2.2, python-dotenv takes the comment of `KEY= # comment` for the value.
        content = _EMPTY_BUT_FOR_COMMENT.sub(r"\1", path.read_text(encoding="utf-8-sig"))
        load_dotenv(stream=StringIO(content), override=False)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        why = type(error).__name__
        raise WorkloadError(f"{path} cannot be read ({why}): save it as UTF-8 text") from None


read_env_file(HERE / ".env")


# --- single values ---------------------------------------------------------------------------


def text(variable: str, default: str = "") -> str:
    """Return the variable's value without its outer blanks; `default` where it is not set."""
    return os.environ.get(variable, default).strip()


def secret(variable: str) -> str:
    """Return a token as a header can carry it, or "" where the variable is unset or blank.

    A vault's or a file's trailing newline is dropped. What would break or forge a header stops
    the run; the value is never printed.
    """
    value = os.environ.get(variable, "").strip()
    if "\n" in value or "\r" in value:
        raise WorkloadError(f"{variable} has a line break inside: set it to the bare token")
    if value.lower().startswith("bearer "):
        raise WorkloadError(f"{variable} starts with the word Bearer: set it to the bare token")
    if not all("!" <= character <= "~" for character in value):
        raise WorkloadError(
            f"{variable} holds a blank or a character that no HTTP header can carry:"
            " set it to the bare token"
        )
    return value


def number(variable: str, default: float, minimum: float = 0.0, maximum: float = math.inf) -> float:
    """Return the variable as a finite number between the two bounds, both included."""
    raw = os.environ.get(variable)
    if raw is None:
        return float(default)
    try:
        value = float(raw)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and minimum <= value <= maximum):
        upper = f" to {maximum:g}" if math.isfinite(maximum) else " or more"
        raise WorkloadError(
            f"{variable}={_shown(raw)}: set it to a number, {minimum:g}{upper},"
            f" or remove it for the default {default:g}"
        )
    return value


def whole(variable: str, default: int, minimum: int = 0) -> int:
    """Return the variable as a whole number of at least `minimum`."""
    raw = os.environ.get(variable)
    if raw is None:
        return default
    if not re.fullmatch(r"\s*\d{1,7}\s*", raw, re.ASCII) or int(raw) < minimum:
        raise WorkloadError(
            f"{variable}={_shown(raw)}: set it to a whole number, {minimum} or more,"
            f" or remove it for the default {default}"
        )
    return int(raw)


def missing(names: Iterable[str]) -> list[str]:
    """Return those of the variables that are unset or blank."""
    return [name for name in names if not os.environ.get(name, "").strip()]


def _shown(raw: str) -> str:
    if "@" in raw:  # perhaps user:password@host, mistyped
        return "(not shown)"
    return repr(raw if len(raw) <= 40 else raw[:40] + "…")


# --- who takes part, and where it goes -------------------------------------------------------


def engines() -> int:
    """Return how many processes share this run (Azure's engines): `MCP_ENGINES`, 1 by default."""
    return whole("MCP_ENGINES", 1, minimum=1)


def count(variable: str, default: int) -> int:
    """Return how many users of a class this engine runs: the variable divided by the engines.

    0 leaves the class out. A count that does not divide would be a different test on every
    engine, so it stops the run.
    """
    declared, share = whole(variable, default), engines()
    if declared % share:
        lower, upper = declared - declared % share, declared - declared % share + share
        raise WorkloadError(
            f"{variable}={declared} does not divide by MCP_ENGINES={share}:"
            f" set {variable} to {lower} or {upper}, or change MCP_ENGINES"
        )
    return declared // share


def endpoint(variable: str, default: str | None = None) -> tuple[str, str]:
    """Return `(host, path)` of the server: the variable's URL, else the default one.

    `https://h:8/a?b=1` is `("https://h:8", "/a?b=1")`. A placeholder such as `{ADO_ORG}` is
    filled from that variable; where it is not set it stays, because whether a class needs it
    (`needs`) is asked only when a run starts. Without a default, an unset variable is `("", "/")`.
    """
    raw = os.environ.get(variable, default)
    if raw is None:
        return "", "/"
    url = _PLACEHOLDER.sub(_fill, raw.strip())
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        raise WorkloadError(f"{variable} is no URL: {_URL_CURE}") from None
    if parts.username is not None or parts.password is not None:
        raise WorkloadError(f"{variable} has a user or password in it: set it to the bare URL")
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        if _CREDENTIALS.fullmatch(name):
            raise WorkloadError(
                f"{variable} has a credential in its query ({name}=…), and URLs are printed in"
                " results: send it as a header"
            )
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_valid:
        raise WorkloadError(f"{variable}={_shown(raw)} is no URL: {_URL_CURE}")
    if parts.fragment or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise WorkloadError(f"{variable}={_shown(raw)} has a blank or a # in it: {_URL_CURE}")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~{}-._")
    return f"{parts.scheme}://{parts.netloc}", f"{path}?{parts.query}" if parts.query else path


_URL_CURE = "set it to the server's whole address, such as https://example.com/mcp"


def _fill(placeholder: re.Match[str]) -> str:
    value = os.environ.get(placeholder[1], "").strip()
    return quote(value, safe="") if value else placeholder[0]


# --- query files -----------------------------------------------------------------------------


@cache
def load_lines(filename: str) -> tuple[str, ...]:
    """Return the lines of `queries/<filename>`, or of `<filename>` beside us.

    Blank lines and lines that start with `#` are left out, the rest is stripped. A file that is
    missing, unreadable or empty stops the run.
    """
    places = (HERE / "queries" / filename, HERE / filename)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        where = " and ".join(str(place) for place in places)
        raise WorkloadError(
            f"{filename} is missing, looked for {where}: put it there,"
            " and list it in azure-loadtest.yaml"
        )
    try:
        lines = found.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = type(error).__name__
        raise WorkloadError(f"{found} cannot be read ({why}): save it as UTF-8 text") from None
    kept = tuple(
        line.strip() for line in lines if line.strip() and not line.strip().startswith("#")
    )
    if not kept:
        raise WorkloadError(f"{found} has no lines to choose from: write one query a line")
    return kept


# --- pauses ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ThinkTime:
    """The pauses between two calls, in seconds: within a turn, between turns, and how often.

    Each pause is drawn evenly from its range; `turn_prob` is the share of the long ones.
    """

    intra_min: float = 0.1
    intra_max: float = 0.5
    turn_min: float = 5.0
    turn_max: float = 30.0
    turn_prob: float = 0.2


@cache
def think_time() -> ThinkTime:
    """Return this run's pauses, read from the five `MCP_*` variables at the first call."""
    usual = ThinkTime()
    pauses = ThinkTime(
        intra_min=number("MCP_INTRA_MIN", usual.intra_min),
        intra_max=number("MCP_INTRA_MAX", usual.intra_max),
        turn_min=number("MCP_TURN_MIN", usual.turn_min),
        turn_max=number("MCP_TURN_MAX", usual.turn_max),
        turn_prob=number("MCP_TURN_PROB", usual.turn_prob, maximum=1.0),
    )
    for kind in ("INTRA", "TURN"):
        shortest = getattr(pauses, f"{kind.lower()}_min")
        longest = getattr(pauses, f"{kind.lower()}_max")
        if shortest > longest:
            raise WorkloadError(
                f"MCP_{kind}_MIN={shortest:g} is above MCP_{kind}_MAX={longest:g}:"
                " swap them, or set both"
            )
    return pauses
