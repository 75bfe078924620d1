"""An engine's variables: those that the YAML gives, what a program needs to start, and no other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values

from lab.cli import CannotRun
from lab.demo import NO_BURSTS, PACES
from lab.lint import conf
from lab.lint.placeholders import is_placeholder
from lab.manifest import Manifest

# Of this machine's: what any program needs to start, and what it needs to reach the world.
_MACHINE = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PAUSES = ("MCP_INTRA_MIN", "MCP_INTRA_MAX", "MCP_TURN_MIN", "MCP_TURN_MAX")


def of_the_machine(python: Path, home: Path) -> dict[str, str]:
    """Return what an engine's process needs of this machine; its Python goes first on the PATH."""
    kept = {name: os.environ[name] for name in _MACHINE if name in os.environ}
    path = os.pathsep.join([str(python.parent), kept.get("PATH", os.defpath)])
    return {**kept, "PATH": path, "HOME": str(home), "PYTHONUNBUFFERED": "1"}


def for_real_servers(manifest: Manifest) -> dict[str, str]:
    """Return the YAML's env, its secrets by name from this environment or .env, and our proxies.

    Raises CannotRun for a placeholder, and for a secret without a value here.
    """
    file = manifest.path.name
    for entry in manifest.env:
        if is_placeholder(entry.value):
            raise CannotRun(
                f"{file}:{entry.line}: {entry.name} is still the placeholder {entry.value}: fill it"
                " in, or leave --real out for the stand-ins"
            )
    here = {**dotenv_values(manifest.folder / ".env"), **os.environ}
    secrets = {entry.name: (here.get(entry.name) or "").strip() for entry in manifest.secrets}
    missing = [name for name, value in secrets.items() if not value]
    if missing:
        raise CannotRun(
            f"no value here for {', '.join(missing)}, which {file} lists under secrets: set the"
            " variable or put it into .env (an engine is given it by Key Vault)"
        )
    names = (*_NETWORK, *map(str.lower, _NETWORK))
    network = {name: os.environ[name] for name in names if name in os.environ}
    return {**network, **manifest.environment, **secrets}


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
