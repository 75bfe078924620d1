"""azure-loadtest.yaml as data, with its lines. It is read here and nowhere else.

``read`` never raises for what the file says: what is wrong becomes findings (``lab.lint``), and
whatever could be understood becomes the Manifest. ``load`` is for those who need a sound one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.criteria import Criterion
from lab.lint import document, failure_criteria
from lab.lint.document import Document
from lab.lint.finding import Finding, Level, error

FILE_NAME = "azure-loadtest.yaml"


class ManifestError(ValueError):
    """The manifest cannot be used; the text is one line with file, line, value and cure."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One of env (its value) or secrets (its Key Vault address)."""

    name: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class File:
    """A file to upload, as the manifest names it: relative to the manifest's folder.

    role  testPlan, configurationFiles, zipArtifacts or userPropertyFile
    """

    path: str
    role: str
    line: int

    @property
    def basename(self) -> str:
        """The name that it has on the engine, where all files lie in one folder."""
        return self.path.replace("\\", "/").rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Identity:
    """One of referenceIdentities; value is the resource id of a user-assigned one, or ""."""

    kind: str
    type: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class AutoStop:
    """When the service stops a run by itself: above a percentage, for so many seconds."""

    error_percentage: float
    time_window: float
    maximum_users_per_engine: int | None
    line: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The file's content. A part that is absent, or not of its type, is empty or None.

    auto_stop       None where it is absent or "disable"; auto_stop_disabled tells which
    server_metrics  how many criteria only the service can judge
    """

    path: Path
    document: Document
    test_id: str
    test_plan: File | None
    engine_instances: int
    configuration_files: tuple[File, ...]
    zip_artifacts: tuple[File, ...]
    user_property_file: File | None
    env: tuple[Entry, ...]
    secrets: tuple[Entry, ...]
    criteria: tuple[Criterion, ...]
    server_metrics: int
    auto_stop: AutoStop | None
    auto_stop_disabled: bool
    identities: tuple[Identity, ...]

    @property
    def folder(self) -> Path:
        """The folder that its paths are relative to."""
        return self.path.parent

    @property
    def files(self) -> tuple[File, ...]:
        """Everything that is uploaded, in the order of the roles."""
        single = (self.test_plan, self.user_property_file)
        return (
            *(f for f in single if f is not None),
            *self.configuration_files,
            *self.zip_artifacts,
        )

    @property
    def environment(self) -> dict[str, str]:
        """The variables that env gives an engine; of a name given twice the last wins."""
        return {entry.name: entry.value for entry in self.env}

    def entry(self, name: str) -> Entry | None:
        """Return the env entry that counts for the variable, or None."""
        return next((e for e in reversed(self.env) if e.name == name), None)


def load(path: Path) -> Manifest:
    """Return the manifest at the path, or in the folder at the path.

    Raises ManifestError, in one line, for a file that is missing, is not the YAML both tools
    read, or has a criterion with two meanings. ``python -m lab check`` says everything else.
    """
    manifest, findings = read(path)
    wrong = [finding for finding in findings if finding.level is Level.ERROR]
    if manifest is None or wrong:
        raise ManifestError(str(wrong[0]))
    return manifest


def read(path: Path) -> tuple[Manifest | None, list[Finding]]:
    """Return the manifest and what is wrong with it as YAML and in its criteria.

    None where there is nothing to go on with. path is the file, or the folder it is in.
    """
    path = path / FILE_NAME if path.is_dir() else path
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        what = f"the manifest cannot be read ({problem.strerror})"
        cure = f"Name the folder that has {FILE_NAME}, or the file itself"
        return None, [error(path.name, 0, what, str(path), cure)]
    except UnicodeDecodeError:
        return None, [error(path.name, 0, "the manifest is not UTF-8", "", "Save it as UTF-8")]
    parsed, findings = document.parse(text, path.name)
    if parsed is None:
        return None, findings
    criteria, wrong = failure_criteria.read(parsed, path.name)
    return _manifest(path, parsed, criteria), [*findings, *wrong]


def _manifest(path: Path, doc: Document, criteria: list[Criterion]) -> Manifest:
    data = doc.data
    plan, engines, auto_stop = (
        data.get(key) for key in ("testPlan", "engineInstances", "autoStop")
    )
    properties = data.get("properties")
    conf = properties.get("userPropertyFile") if isinstance(properties, dict) else None
    failure = data.get("failureCriteria")
    server = failure.get("serverMetrics") if isinstance(failure, dict) else None
    return Manifest(
        path=path,
        document=doc,
        test_id=_text(data.get("testId")),
        test_plan=_file(doc, "testPlan", plan, "testPlan"),
        engine_instances=engines if type(engines) is int and engines > 0 else 1,
        configuration_files=tuple(_files(doc, "configurationFiles")),
        zip_artifacts=tuple(_files(doc, "zipArtifacts")),
        user_property_file=_file(doc, "userPropertyFile", conf, "properties", "userPropertyFile"),
        env=tuple(_entries(doc, "env")),
        secrets=tuple(_entries(doc, "secrets")),
        criteria=tuple(criteria),
        server_metrics=len(server) if isinstance(server, list) else 0,
        auto_stop=_auto_stop(auto_stop, doc.line("autoStop")),
        auto_stop_disabled=auto_stop == "disable",
        identities=tuple(_identities(doc)),
    )


def _file(doc: Document, role: str, value: object, *path: str | int) -> File | None:
    return File(value, role, doc.line(*path)) if isinstance(value, str) and value else None


def _files(doc: Document, role: str) -> Iterator[File]:
    for index, value in enumerate(_list(doc.data.get(role))):
        listed = _file(doc, role, value, role, index)
        if listed is not None:
            yield listed


def _entries(doc: Document, key: str) -> Iterator[Entry]:
    for index, item in enumerate(_list(doc.data.get(key))):
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            yield Entry(item["name"], _text(item.get("value")), doc.line(key, index))


def _identities(doc: Document) -> Iterator[Identity]:
    key = "referenceIdentities"
    for index, item in enumerate(_list(doc.data.get(key))):
        if isinstance(item, dict):
            kind, type_, value = (_text(item.get(each)) for each in ("kind", "type", "value"))
            yield Identity(kind, type_, value, doc.line(key, index))


def _auto_stop(value: object, line: int) -> AutoStop | None:
    if not isinstance(value, dict):
        return None
    share, window = value.get("errorPercentage"), value.get("timeWindow")
    most = value.get("maximumVirtualUsersPerEngine")
    if isinstance(share, (int, float)) and isinstance(window, (int, float)):
        return AutoStop(float(share), float(window), most if type(most) is int else None, line)
    return None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
