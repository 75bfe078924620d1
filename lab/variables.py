"""An engine's variables: those that the YAML gives, what a program needs to start, and no other."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dotenv import dotenv_values

import _vault
from _expiry import jwt_end
from lab.cli import CannotRun
from lab.demo import NO_BURSTS, PACES
from lab.lint import conf
from lab.lint.classes import participants
from lab.lint.environment import takes_part
from lab.lint.placeholders import is_placeholder
from lab.lint.sources import read_project
from lab.manifest import Entry, Manifest

# Of this machine's: what any program needs to start, and what it needs to reach the world.
_MACHINE = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PAUSES = ("MCP_INTRA_MIN", "MCP_INTRA_MAX", "MCP_TURN_MIN", "MCP_TURN_MAX")


def of_the_machine(python: Path, home: Path) -> dict[str, str]:
    """Return what an engine's process needs of this machine; its Python goes first on the PATH."""
    kept = {name: os.environ[name] for name in _MACHINE if name in os.environ}
    path = os.pathsep.join([str(python.parent), kept.get("PATH", os.defpath)])
    return {**kept, "PATH": path, "HOME": str(home), "PYTHONUNBUFFERED": "1"}


def for_real_servers(manifest: Manifest) -> tuple[dict[str, str], dict[str, float]]:
    """Return the YAML's env, its secrets by name, and our proxies; and the ends of secrets.

    A secret is taken from this environment, .env or Key Vault, in this order; those of classes
    without users may be absent. Ends are in seconds since the epoch, by name, where one is known.
    Raises CannotRun for a placeholder, and for a secret without a value.
    """
    file = manifest.path.name
    for entry in manifest.env:
        if is_placeholder(entry.value):
            raise CannotRun(
                f"{file}:{entry.line}: {entry.name} is still the placeholder {entry.value}: fill it"
                " in, or leave --real out for the stand-ins"
            )
    here = {**dotenv_values(manifest.folder / ".env"), **os.environ}
    values = {entry.name: (here.get(entry.name) or "").strip() for entry in manifest.secrets}
    fetched = _from_vault(manifest, [e for e in used(manifest) if not values[e.name]])
    values |= fetched.values
    secrets = {name: value for name, value in values.items() if value}
    names = (*_NETWORK, *map(str.lower, _NETWORK))
    network = {name: os.environ[name] for name in names if name in os.environ}
    return {**network, **manifest.environment, **secrets}, ends_of(values, fetched.ends)


def ends_of(values: Mapping[str, str], ends: Mapping[str, float]) -> dict[str, float]:
    """Return when secrets end: as their own text says, else as the vault does, by name."""
    told = {name: jwt_end(value) for name, value in values.items()}
    return {**ends, **{name: end for name, end in told.items() if end is not None}}


def used(manifest: Manifest) -> list[Entry]:
    """Return the secrets without those that only classes without users would use."""
    classes = participants(read_project(manifest)[0])
    users = {
        entry.name: [c for c in classes if _vault.belongs(entry.name, c.label, c.needs)]
        for entry in manifest.secrets
    }
    return [
        entry
        for entry in manifest.secrets
        if not users[entry.name] or any(takes_part(manifest, each) for each in users[entry.name])
    ]


def _from_vault(manifest: Manifest, absent: Sequence[Entry]) -> _vault.Fetched:
    """Return what Key Vault holds; CannotRun names all that cannot be had."""
    asks = os.environ.get("MCP_VAULT", "").strip() != "0"
    uris = {each.name: each.value for each in absent if asks and not is_placeholder(each.value)}
    fetched = _vault.fetch(uris)
    failures = {
        each.name: fetched.failures.get(
            each.name, "its address is a placeholder" if asks else "MCP_VAULT=0"
        )
        for each in absent
        if each.name not in fetched.values
    }
    if failures:
        raise CannotRun(
            f"no value here for {', '.join(failures)}, which {manifest.path.name} lists under"
            " secrets: set the variable or put it into .env (an engine is given it by Key Vault;"
            f" here it gave none for {_vault.told(failures)})"
        )
    return fetched


def for_standins(manifest: Manifest, announced: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the YAML's env, a dummy for each of its secrets, and the stand-ins' own values.

    A stand-in's token or setting is given only where the YAML has that name: an engine would have
    nothing else. Its address is given always.
    """
    secrets = {entry.name: f"dummy-{entry.name.lower()}" for entry in manifest.secrets}
    given = {**manifest.environment, **secrets}
    told = {**announced["tokens"], **announced["env"]}
    return {
        **given,
        **{name: value for name, value in told.items() if name in given},
        **announced["urls"],
    }


def changes(
    given: Mapping[str, str], *, minutes: float | None, pace: str, engines: int | None
) -> dict[str, str]:
    """Return what the command's arguments change of the YAML's: run time, pauses, engines."""
    changed = {}
    if minutes is not None:
        changed["LOCUST_RUN_TIME"] = str(max(1, round(minutes * 60)))
    if pace != "yaml":
        changed |= dict(zip(_PAUSES, PACES[pace], strict=True))
        changed["MCP_BURST_PROB"] = "0" if pace in NO_BURSTS else "0.2"
    if engines is not None and (engines > 1 or "MCP_ENGINES" in given):
        changed["MCP_ENGINES"] = str(engines)
    return changed


def run_seconds(given: Mapping[str, str], manifest: Manifest) -> float | None:
    """Return the run time that Locust will take, by the variable or locust.conf."""
    text = given.get("LOCUST_RUN_TIME") or _in_conf(manifest, "run-time")
    return conf.seconds(text) if text else None


def shared_out(given: Mapping[str, str], manifest: Manifest, engines: int) -> list[dict[str, str]]:
    """Return each engine's variables: with its share of the users and of the spawn rate.

    One engine gets what is given. Of users that do not divide, the first engines get one more.
    """
    if engines == 1:
        return [dict(given)]
    try:
        users = int(given.get("LOCUST_USERS") or _in_conf(manifest, "users") or "1")
        rate = float(given.get("LOCUST_SPAWN_RATE") or _in_conf(manifest, "spawn-rate") or "1")
    except ValueError as wrong:
        raise CannotRun(f"LOCUST_USERS or LOCUST_SPAWN_RATE: {wrong}; write a number") from wrong
    if users < engines:
        raise CannotRun(f"LOCUST_USERS {users} for {engines} engines: each needs one user at least")
    return [
        {
            **given,
            "LOCUST_USERS": str(users // engines + int(number < users % engines)),
            "LOCUST_SPAWN_RATE": f"{rate / engines:g}",
        }
        for number in range(engines)
    ]


def _in_conf(manifest: Manifest, key: str) -> str:
    settings = conf.read(manifest, frozenset())[0]
    found = settings.get(key) if settings else None
    return found.value if found else ""
