"""The secrets of a run: what azure-loadtest.yaml has in Key Vault, and how long each lasts.

On Azure's engine the service has put them into the environment, the YAML is not there, and nothing
is looked up. Elsewhere a variable that is unset is looked for once, in every process before its
first user, by the reference beside our files: only for classes that take part, to which belong the
variables that they need and those that begin with their label. What a file reads while it is being
imported was read before.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import _vault
from _expiry import RENEWAL, clock, early, jwt_end
from _workload import HERE, WorkloadError, missing, secret, text

logger = logging.getLogger(__name__)

MANIFEST = "azure-loadtest.yaml"
PLACEHOLDER = "YOUR-"
ROLE = "Key Vault Secrets User"

_ends: dict[str, float] = {}  # of tokens in variables, in seconds since the epoch


def references(path: Path) -> dict[str, str]:
    """Return {variable: URI} of the YAML's secrets, without its placeholders.

    Nothing where there is no such file or no PyYAML, as on the engine. What is wrong with the
    file, `python -m lab check` says.
    """
    if not path.is_file():
        return {}
    try:
        import yaml  # the lab's, not the engine's
    except ImportError:
        return {}
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    listed = document.get("secrets") if isinstance(document, dict) else None
    return {
        str(each["name"]): str(each["value"])
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and {"name", "value"} <= each.keys()
        if PLACEHOLDER not in str(each["value"]).upper()
    }


def provide(classes: Sequence[Any], path: Path = HERE / MANIFEST, **bounds: Any) -> None:
    """Set what the classes use and is unset, from the vault; end the run if it lasts no longer.

    WorkloadError for a variable that a class needs and the vault does not give, and for a token
    that has expired. A class can do without its other variables, so it does, and that is logged.
    `bounds` are those of `_vault.fetch`.
    """
    _ends.clear()
    if text("MCP_VAULT", "1") != "0":
        _from_vault(classes, path, bounds)
    for user_class in classes:
        for variable, ends in _jwts(user_class):
            if ends <= time.time():
                raise WorkloadError(
                    f"{variable} expired at {clock(ends)}: {RENEWAL}, or leave the class out with"
                    f" {user_class.server_label.upper()}_USERS=0"
                )
            _ends[variable] = min(ends, _ends.get(variable, ends))


def early_ends(run_time_s: float) -> list[str]:
    """Return a line for each token that ends before a run that begins now."""
    return early(_ends, run_time_s, time.time())


def _from_vault(classes: Sequence[Any], path: Path, bounds: Mapping[str, Any]) -> None:
    listed = references(path)
    unset = {
        variable: listed[variable]
        for variable in missing(listed)
        if any(_vault.belongs(variable, each.server_label, each.needs) for each in classes)
    }
    if not unset:
        return
    fetched = _vault.fetch(unset, **bounds)
    os.environ.update(fetched.values)
    _ends.update(fetched.ends)
    needed = {variable for each in classes for variable in each.needs}
    if needed & fetched.failures.keys():
        raise WorkloadError(
            f"no value from Key Vault for {_vault.told(fetched.failures)}: set the variable or put"
            f" it into .env, or sign in (az login) as somebody with the role {ROLE}"
        )
    if fetched.failures:
        logger.warning(
            "no value from Key Vault for %s: the run goes on without, as its class can",
            _vault.told(fetched.failures),
        )


def _jwts(user_class: Any) -> Iterator[tuple[str, float]]:
    """Yield (variable, end) of the class's variables that hold a JSON Web Token."""
    token = f"{user_class.server_label.upper()}_MCP_TOKEN"
    secret(token)  # what no header can carry ends the run here
    for variable in dict.fromkeys((*user_class.needs, token)):
        ends = jwt_end(text(variable))
        if ends is not None:
            yield variable, ends
