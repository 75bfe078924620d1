"""How many users: what is asked for against what the classes count, on all engines and on each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lab.lint.classes import Count, UserClass
from lab.lint.conf import Conf, seconds
from lab.lint.finding import Finding, error, warning
from lab.manifest import Manifest

MOST_PER_ENGINE = 500  # the service's recommendation for Locust

_SAME = {"LOCUST_USERS": "users", "LOCUST_SPAWN_RATE": "spawn-rate", "LOCUST_RUN_TIME": "run-time"}


@dataclass(frozen=True, slots=True)
class _Given:
    """A number and where it was said."""

    value: int
    shown: str
    file: str
    line: int


def check(
    manifest: Manifest, classes: list[UserClass], conf: Conf | None, *, has_shape: bool
) -> list[Finding]:
    """Return what does not add up or divide. A LoadTestShape rules the users by itself."""
    findings = list(_disagreements(manifest, conf))
    counted = [each for each in classes if each.count is not None]
    counts = [
        (each, _count(manifest, each.count, each, findings)) for each in counted if each.count
    ]
    present = [(each, given) for each, given in counts if given is not None and given.value > 0]
    findings += _engines(manifest, counted)
    asked = _asked(manifest, conf, findings)
    if has_shape:
        return findings
    if any(given is None for _, given in counts):
        return findings  # what is no number was said, and adds up to nothing
    findings += _division(manifest, [given for _, given in present], asked)
    everybody_counts = len(counted) == len(classes)
    if classes and counted and not present and everybody_counts:
        what, cure = "no users are left: every count is 0", "Set one above 0"
        findings.append(error(manifest.path.name, manifest.document.line("env"), what, "", cure))
    elif len(present) > 1 and everybody_counts:
        findings += _sum(present, asked)
    return findings


def _count(
    manifest: Manifest, count: Count, owner: UserClass, findings: list[Finding]
) -> _Given | None:
    entry = manifest.entry(count.variable) if count.variable else None
    name = count.variable or f"{owner.name}.fixed_count"
    if entry is None:
        return _Given(count.default, f"{name} {count.default}", owner.file, count.line)
    if not (entry.value.isascii() and entry.value.strip().isdigit()):
        what, cure = f"{name} is not a whole number, 0 or more", 'Write it as in value: "5"'
        findings.append(error(manifest.path.name, entry.line, what, entry.value, cure))
        return None
    value = int(entry.value)
    return _Given(value, f"{name} {value}", manifest.path.name, entry.line)


def _asked(manifest: Manifest, conf: Conf | None, findings: list[Finding]) -> _Given:
    entry = manifest.entry("LOCUST_USERS")
    setting = conf.get("users") if conf else None
    if entry is not None:
        text, file, line, name = entry.value, manifest.path.name, entry.line, "LOCUST_USERS"
    elif conf is not None and setting is not None:
        text, file, line, name = setting.value, conf.file, setting.line, "users"
    else:
        line = manifest.document.line("env")
        return _Given(1, "1, Locust's default,", manifest.path.name, line)
    if not (text.isascii() and text.strip().isdigit() and int(text) > 0):
        what, cure = f"{name} is not a whole number, 1 or more", 'Write it as in value: "17"'
        findings.append(error(file, line, what, text, cure))
        return _Given(0, name, file, line)
    return _Given(int(text), f"{name} {int(text)}", file, line)


def _sum(present: list[tuple[UserClass, _Given]], asked: _Given) -> Iterator[Finding]:
    total = sum(given.value for _, given in present)
    if asked.value and total != asked.value:
        counts = ", ".join(given.shown for _, given in present)
        what = f"{asked.shown} users against classes that count {total} ({counts})"
        cure = f"Set LOCUST_USERS to {total}, and users in locust.conf, or change the counts"
        yield error(asked.file, asked.line, what, str(asked.value), cure)


def _engines(manifest: Manifest, counted: list[UserClass]) -> Iterator[Finding]:
    engines, entry = manifest.engine_instances, manifest.entry("MCP_ENGINES")
    file, line = manifest.path.name, manifest.document.line("engineInstances")
    if entry is not None and entry.value.strip() != str(engines):
        what = (
            f"MCP_ENGINES differs from engineInstances, {engines}: the counts would not be shared"
        )
        cure = f'Write value: "{engines}", or change engineInstances'
        yield error(file, entry.line, what, entry.value, cure)
    elif entry is None and engines > 1 and counted:
        what = f"{engines} engines without MCP_ENGINES: each would spawn every class whole"
        cure = f'Add MCP_ENGINES with value: "{engines}" to env'
        yield error(file, line, what, str(engines), cure)


def _division(manifest: Manifest, counts: list[_Given], asked: _Given) -> Iterator[Finding]:
    engines = manifest.engine_instances
    for given in counts if engines > 1 else []:
        if given.value % engines:
            lower = given.value - given.value % engines
            what = f"a count that does not divide by {engines} engines: {given.shown}"
            cure = f"Use {lower} or {lower + engines}, or change engineInstances"
            yield error(given.file, given.line, what, str(given.value), cure)
    if asked.value % engines:
        what = f"users that do not divide by {engines} engines; how Azure rounds is not documented"
        lower = asked.value - asked.value % engines
        cure = f"Use {lower} or {lower + engines}" if lower else f"Use {engines}"
        level = error if counts else warning
        yield level(asked.file, asked.line, what, str(asked.value), cure)
    if asked.value > MOST_PER_ENGINE * engines:
        needed = -(-asked.value // MOST_PER_ENGINE)
        what = f"more than the {MOST_PER_ENGINE} users per engine that the service recommends"
        cure = f"Use {needed} engines"
        yield warning(asked.file, asked.line, what, str(asked.value), cure)


def _disagreements(manifest: Manifest, conf: Conf | None) -> Iterator[Finding]:
    for variable, key in _SAME.items():
        entry, setting = manifest.entry(variable), conf.get(key) if conf else None
        if entry is None or setting is None or conf is None:
            continue
        if seconds(entry.value) != seconds(setting.value):
            what = (
                f"{variable} differs from {key} in {conf.file} ({setting.value}); Locust takes the "
                "variable, what Azure takes is not documented"
            )
            cure = f'Write value: "{setting.value}", or change {conf.file}'
            yield warning(manifest.path.name, entry.line, what, entry.value, cure)
