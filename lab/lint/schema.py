"""The manifest against the strict schema, and the rules that a schema cannot say.

The schema is the intersection of what the GitHub action, the CLI and the documents take: what
it accepts, all accept, and read alike. Duplicate keys are refused where the YAML is read
(document.py), client criteria by their own grammar (failure_criteria.py).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from lab.lint.document import Document
from lab.lint.finding import HIDDEN, Finding, error, is_secretive, warning
from lab.manifest import Manifest

_DATA = Path(__file__).parent.parent / "data" / "azure"
_Path: TypeAlias = tuple[str | int, ...]

# What to write instead, by the path without its indexes; the longest that fits is taken.
_CURES: dict[tuple[str, ...], str] = {
    ("version",): "Write version: v0.1",
    ("testId",): "Use 2 to 50 of a-z, 0-9, _ and -",
    ("displayName",): "Use 2 to 50 characters",
    ("description",): "Use at most 100 characters",
    ("testType",): "Write testType: Locust, in this spelling",
    ("testPlan",): "Name the Locust file, relative to this one; it ends in .py, in small letters",
    ("engineInstances",): "Write a whole number from 1 to 400, without quotes",
    ("configurationFiles",): "List each file once, by its path: no wildcard, no #, no mapping",
    ("zipArtifacts",): "List at most five .zip files",
    ("splitAllCSVs",): "Write true or false, without quotes",
    ("properties",): "Write only userPropertyFile below properties",
    ("properties", "userPropertyFile"): "Name a .conf, .ini or .toml file",
    ("env",): 'Write a list of "- name: NAME" and "value: "text"" pairs',
    ("env", "value"): 'Quote it, as in value: "17": a variable is text',
    ("env", "name"): "Use a name of letters, digits and _",
    ("secrets",): 'Write a list of "- name: NAME" and "value: https://…" pairs',
    ("secrets", "value"): "Write the secret's Key Vault address: "
    "https://NAME.vault.azure.net/secrets/SECRET, with or without a version, no slash at the end",
    ("certificates",): "List one certificate, by name and its Key Vault address",
    ("keyVaultReferenceIdentity",): "Write the resource id of a user-assigned identity",
    ("referenceIdentities",): "Write kind (KeyVault, Metrics or Engine), type (SystemAssigned or "
    "UserAssigned), and value with UserAssigned alone",
    ("regionalLoadTestConfig",): "List two to five regions, each with its engineInstances",
    ("autoStop",): "Write autoStop: disable, or both errorPercentage (0 to 100) and timeWindow "
    "(whole seconds, 1 or more)",
    ("publicIPDisabled",): "Give the subnetId as well, or remove publicIPDisabled",
    ("subnetId",): "Write the subnet's whole resource id",
    ("failureCriteria", "serverMetrics"): "Give resourceId, metricName, aggregation, condition "
    "(GreaterThan or LessThan) and a value without quotes",
}


@functools.cache
def _validator() -> Draft202012Validator:
    text = (_DATA / "azure-loadtest.strict.schema.json").read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))


def check(manifest: Manifest) -> list[Finding]:
    """Return what the schema and the rules beside it say of the manifest."""
    file, doc = manifest.path.name, manifest.document
    return [
        *_by_schema(doc, file),
        *_key_vault_identity_given_twice(doc, file),
        *_identity_combinations(manifest),
        *_regional_sum(doc, file),
        *_given_twice(manifest),
    ]


def _by_schema(doc: Document, file: str) -> Iterator[Finding]:
    for problem in sorted(_validator().iter_errors(_without_client_criteria(doc.data)), key=_order):
        yield from _findings(doc, problem, file)


def _without_client_criteria(data: dict[str, object]) -> dict[str, object]:
    criteria = data.get("failureCriteria")
    server = criteria.get("serverMetrics") if isinstance(criteria, dict) else None
    rest = {key: value for key, value in data.items() if key != "failureCriteria"}
    return rest if server is None else {**rest, "failureCriteria": {"serverMetrics": server}}


def _order(problem: ValidationError) -> str:
    return problem.json_path


def _findings(doc: Document, problem: ValidationError, file: str) -> Iterator[Finding]:
    path: _Path = tuple(problem.absolute_path)
    if problem.validator == "oneOf":
        # Two forms are allowed; the deepest complaint is about the one that was meant.
        branches = problem.context or []
        deep = [b for b in branches if len(b.absolute_path) > len(path) or b.validator != "const"]
        for inner in deep if isinstance(problem.instance, dict) else []:
            if inner.validator != "type":
                yield from _findings(doc, inner, file)
                return
    line = doc.line(*path)
    match problem.validator:
        case "additionalProperties":
            known = problem.schema.get("properties", {}) if isinstance(problem.schema, dict) else {}
            for key in _mapping(problem):
                if key not in known:
                    yield _unknown_key(doc, file, (*path, key), sorted(known))
        case "required":
            missing = [
                key for key in _listed(problem.validator_value) if key not in _mapping(problem)
            ]
            for key in missing:
                if f"'{key}'" in problem.message:
                    what = f"{_name(path)} without {key}" if path else f"no {key}"
                    yield error(file, line, what, "", _cure((*path, key)))
        case _:
            yield error(
                file, line, f"{_name(path)} {_why(problem)}", _value(doc, path), _cure(path)
            )


def _unknown_key(doc: Document, file: str, path: _Path, known: list[str]) -> Finding:
    key = str(path[-1])
    same = next((each for each in known if each.lower() == key.lower()), None)
    cure = f"Write {same}" if same else f"Remove it, or use one of {', '.join(known)}"
    if key.lower() == "keyvaultreferenceidentitytype":
        cure = "Remove it, and write referenceIdentities: [{kind: KeyVault, type: SystemAssigned}]"
    what = "an unknown key, which the action refuses and the CLI ignores"
    return error(file, doc.line(*path), what, key, cure)


def _why(problem: ValidationError) -> str:
    match problem.validator:
        case "type":
            return f"is not a{'n' if str(problem.validator_value)[0] in 'aeio' else ''} " + str(
                problem.validator_value
            )
        case "maxLength" | "maxItems":
            return f"is longer than {problem.validator_value}"
        case "minLength" | "minItems":
            return f"is shorter than {problem.validator_value}"
        case "uniqueItems":
            return "names something twice"
        case "maximum" | "minimum":
            return f"is beyond its {problem.validator} of {problem.validator_value}"
        case "dependentRequired":
            return "needs a key that is not there"
    return "is not of the form that all tools take"


def _value(doc: Document, path: _Path) -> str:
    """Return the offending value as it may be printed: nothing of a secret."""
    value: object = doc.data
    around: object = None
    for step in path:
        around = value
        value = value[step] if isinstance(value, (dict, list)) else ""  # type: ignore[index]
    if path and path[0] == "secrets" and path[-1] != "name":
        return HIDDEN
    if isinstance(around, dict) and is_secretive(str(around.get("name", ""))):
        return HIDDEN
    if isinstance(value, (dict, list)):
        return "" if path and path[0] == "env" else json.dumps(value)
    return json.dumps(value) if not isinstance(value, str) else value


def _cure(path: _Path) -> str:
    names = tuple(step for step in path if isinstance(step, str))
    for length in range(len(names), 0, -1):
        if names[:length] in _CURES:
            return _CURES[names[:length]]
    return "See the file's reference at learn.microsoft.com/azure/load-testing"


def _name(path: _Path) -> str:
    names = [str(step) for step in path if isinstance(step, str)]
    return ".".join(names) or "the file"


def _mapping(problem: ValidationError) -> dict[str, object]:
    return problem.instance if isinstance(problem.instance, dict) else {}


def _listed(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _key_vault_identity_given_twice(doc: Document, file: str) -> Iterator[Finding]:
    listed = doc.data.get("referenceIdentities")
    inside = any(isinstance(i, dict) and i.get("kind") == "KeyVault" for i in _items(listed))
    for key in ("keyVaultReferenceIdentity", "keyVaultReferenceIdentityType"):
        if key in doc.data and inside:
            what = "a second Key Vault identity beside the one in referenceIdentities"
            yield error(file, doc.line(key), what, key, f"Remove {key}")


def _identity_combinations(manifest: Manifest) -> Iterator[Finding]:
    file, kinds = manifest.path.name, manifest.identities
    for kind in ("KeyVault", "Metrics"):
        for extra in [i for i in kinds if i.kind == kind][1:]:
            what = f"a second {kind} identity: the action takes one"
            yield error(file, extra.line, what, extra.type, "Remove one of the two")
    engine = [i for i in kinds if i.kind == "Engine"]
    system = [i for i in engine if i.type == "SystemAssigned"]
    if system and len(engine) > 1:
        what = "an engine identity beside a system-assigned one: it is one of those, or user ones"
        yield error(file, engine[1].line, what, engine[1].type, "Keep one kind")


def _regional_sum(doc: Document, file: str) -> Iterator[Finding]:
    regions, total = _items(doc.data.get("regionalLoadTestConfig")), doc.data.get("engineInstances")
    counts = [r.get("engineInstances") for r in regions if isinstance(r, dict)]
    numbers = [c for c in counts if isinstance(c, int)]
    if regions and len(numbers) == len(regions) and sum(numbers) != total:
        what = f"the regions' engineInstances do not add up to engineInstances, {total}"
        line = doc.line("regionalLoadTestConfig")
        cure = f"Write engineInstances: {sum(numbers)}, or change the regions"
        yield error(file, line, what, str(sum(numbers)), cure)


def _given_twice(manifest: Manifest) -> Iterator[Finding]:
    file = manifest.path.name
    seen: dict[str, int] = {}
    for entry in sorted((*manifest.env, *manifest.secrets), key=lambda e: e.line):
        if entry.name in seen:
            what = f"a variable given twice, first on line {seen[entry.name]}: the last one counts"
            yield warning(file, entry.line, what, entry.name, "Keep one of the two")
        seen[entry.name] = entry.line


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []
