"""locust.conf as Locust 2.33.2 reads it: known keys, values of their type, nothing ignored."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.lint.finding import Finding, error, warning
from lab.manifest import Manifest

_OPTIONS = Path(__file__).parent.parent / "data" / "azure" / "locust-2.33.2-options.json"
_TABLE = ("tool", "locust")
# ConfigArgParse's own line: a key, then "=", ":" or a blank, then a value, then a comment.
_LINE = re.compile(
    r"(?P<key>[^:=;#\s]+)\s*(?:[:=\s]\s*(?P<quote>['\"]?)(?P<value>.+?)?(?P=quote))?"
    r"\s*(?:\s[;#].*)?"
)
_TIME = re.compile(r"\s*(?=\d)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?\s*", re.IGNORECASE)
_DISTRIBUTED = {"master", "worker", "slave", "processes", "expect-workers", "expect-slaves"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the file."""

    key: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class Conf:
    """The file's settings; file is its path as the manifest names it."""

    file: str
    settings: tuple[Setting, ...]

    def get(self, key: str) -> Setting | None:
        """Return the setting that counts, the last of its key."""
        return next((s for s in reversed(self.settings) if s.key == key), None)


@functools.cache
def options() -> dict[str, dict[str, str]]:
    """Return what Locust 2.33.2 knows: key -> takes, type, env."""
    known = json.loads(_OPTIONS.read_text(encoding="utf-8"))["options"]
    return {str(key): dict(value) for key, value in known.items()}


def seconds(text: str) -> float | None:
    """Return a time such as 15m, 1h30m or 900, or a plain number; None for what is neither."""
    try:
        return float(text)
    except ValueError:
        match = _TIME.fullmatch(text)
    if not match:
        return None
    hours, minutes, rest = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + rest


def read(manifest: Manifest, extra_options: frozenset[str]) -> tuple[Conf | None, list[Finding]]:
    """Return the user property file, and what is wrong with it.

    extra_options are those that the test plan itself adds to Locust's parser.
    """
    file = manifest.user_property_file
    if file is None or not (manifest.folder / file.path).is_file():
        return None, []
    try:
        text = (manifest.folder / file.path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None, [error(file.path, 0, "a file that is not UTF-8 text", "", "Save it as UTF-8")]
    settings, findings = _settings(text, file.path)
    conf = Conf(file.path, tuple(settings))
    return conf, [*findings, *_keys(conf, extra_options), *_plan(conf, manifest)]


def _settings(text: str, file: str) -> tuple[list[Setting], list[Finding]]:
    try:
        table: object = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        if file.endswith(".toml"):
            return [], [error(file, 0, f"no valid TOML, {problem}", "", "Correct it")]
        return _lines(text, file)
    for step in _TABLE:
        table = table.get(step) if isinstance(table, dict) else None
    if not isinstance(table, dict):
        if not text.strip() or all(line.lstrip()[:1] in ("", "#") for line in text.splitlines()):
            return [], []
        # Locust tries TOML first, and takes no [tool.locust] for an empty configuration.
        what = "valid TOML without [tool.locust], of which Locust silently reads nothing"
        cure = "Name the locustfile unquoted (locustfile = multi.py), or begin with [tool.locust]"
        return [], [error(file, 1, what, "", cure)]
    lines = text.splitlines()
    found = []
    for key, value in table.items():
        pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
        at = next((n for n, line in enumerate(lines, 1) if pattern.match(line)), 1)
        found.append(Setting(key, str(value), at))
    return found, []


def _lines(text: str, file: str) -> tuple[list[Setting], list[Finding]]:
    found: list[Setting] = []
    findings: list[Finding] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;[" or line.startswith("---"):
            continue
        match = _LINE.fullmatch(line)
        if match:
            value = match["value"]
            bare = value is None and not re.search(r"[:=]", line)
            found.append(Setting(match["key"].lstrip("-"), "true" if bare else value or "", number))
        else:
            what = "a line that Locust cannot read"
            findings.append(error(file, number, what, line, "Write key = value"))
    return found, findings


def _keys(conf: Conf, extra: frozenset[str]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for setting in conf.settings:
        key, known = setting.key, options().get(setting.key)
        if key in seen:
            what = f"a key set twice, first on line {seen[key]}: the last one counts"
            yield warning(conf.file, setting.line, what, key, "Keep one of the two")
        seen[key] = setting.line
        if known is None and key not in extra:
            dashed = key.replace("_", "-").lower()
            cure = f"Write {dashed}" if dashed in options() else "Remove the line"
            what = "a key that Locust 2.33.2 does not know: it ends with exit code 2"
            yield error(conf.file, setting.line, what, key, cure)
        elif key in _DISTRIBUTED:
            what = "a key for distributed runs: on Azure every engine runs alone"
            yield error(conf.file, setting.line, what, key, "Remove the line; use engineInstances")
        elif key == "host":
            what = "a host for every class: each class would send its token to this one"
            yield error(
                conf.file, setting.line, what, setting.value, "Remove it; set <LABEL>_MCP_URL"
            )
        elif known is not None:
            yield from _value(conf, setting, known)


def _value(conf: Conf, setting: Setting, known: dict[str, str]) -> Iterator[Finding]:
    text, expected = setting.value, ""
    if known["takes"] == "flag" and text.lower() not in {"true", "false", "yes", "no", "1", "0"}:
        expected = "true or false"
    elif known["type"] in {"int", "positive_integer"} and not re.fullmatch(r"-?\d+", text):
        expected = "a whole number"
    elif known["type"] == "float" and not re.fullmatch(r"\d+(?:\.\d*)?", text):
        expected = "a number"
    elif known["type"] == "timespan" and seconds(text) is None:
        expected = "a time such as 900, 15m or 1h30m"
    if expected:
        what = f"{setting.key} with a value that Locust does not take"
        yield error(conf.file, setting.line, what, text or "nothing", f"Write {expected}")


def _plan(conf: Conf, manifest: Manifest) -> Iterator[Finding]:
    setting, plan = conf.get("locustfile"), manifest.test_plan
    if setting is not None and plan is not None and setting.value != plan.basename:
        what = f"a locustfile that is not the testPlan, {plan.basename}"
        yield warning(conf.file, setting.line, what, setting.value, f"Write {plan.basename}")
