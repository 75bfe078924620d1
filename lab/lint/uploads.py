"""What is uploaded: every file that is needed, and no other, under a name that arrives."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator

from lab.lint.finding import Finding, error, warning
from lab.lint.sources import Project, Source, locate, relative
from lab.manifest import File, Manifest

MOST_BYTES = 50 * 1024 * 1024  # 52428800, the CLI's own figure; the documents say 50 MB
MOST_FILES = 1000
MOST_IN_A_ZIP = 1000
MOST_UNPACKED_BYTES = 1024**3
NEVER = {
    "pyproject.toml": "Locust reads its [tool.locust], which beats locust.conf",
    ".env": "it holds this machine's secrets",
    "uv.lock": "it is not needed on the engine",
}
_REQUIREMENTS = "requirements.txt"


def check(project: Project) -> list[Finding]:
    """Return what is wrong with the list of files, and with the files."""
    manifest = project.manifest
    return [
        *_names(manifest),
        *_clashes(manifest),
        *_on_disk(manifest),
        *_never(manifest),
        *_unlisted_modules(project),
        *_unlisted_data(project),
        *_not_needed(project),
    ]


def _names(manifest: Manifest) -> Iterator[Finding]:
    for file in manifest.files:
        if any(sign in file.path for sign in "*[]") or "?" in file.path:
            what = "a wildcard: the action takes it literally and fails at the upload"
            yield _error(manifest, file, what, "List the files one by one")
        elif any(sign in file.path for sign in "#%\\"):
            what = "a name with #, % or \\, which the action puts into a URL as it is"
            yield _error(manifest, file, what, "Rename the file to letters, digits, _, - and .")


def _clashes(manifest: Manifest) -> Iterator[Finding]:
    first: dict[str, File] = {}
    for file in sorted(manifest.files, key=lambda each: each.line):
        # Engines run Linux, but the service's storage is not promised to tell a from A.
        other = first.setdefault(file.basename.lower(), file)
        if other is file:
            continue
        if other.path == file.path:
            what = f"a file named twice, first on line {other.line}: it is uploaded twice"
            yield warning(manifest.path.name, file.line, what, file.path, "Name it once")
        else:
            what = (
                f"a second file of this name, beside {other.path} on line {other.line}: Azure "
                "puts all into one folder, and one overwrites the other"
            )
            yield _error(manifest, file, what, "Rename one of the two")


def _on_disk(manifest: Manifest) -> Iterator[Finding]:
    if len(manifest.files) > MOST_FILES:
        what = f"more than {MOST_FILES} files"
        yield error(manifest.path.name, 0, what, str(len(manifest.files)), "List fewer")
    for file in manifest.files:
        path = manifest.folder / file.path
        if any(sign in file.path for sign in "*?[]"):
            continue
        if not path.is_file():
            is_folder = " (it is a folder: list its files one by one)" if path.is_dir() else ""
            what = f"a listed file that is not there{is_folder}: it fails only at the upload"
            yield _error(manifest, file, what, "Add the file, or remove this line")
        elif path.stat().st_size > MOST_BYTES:
            what = f"a file of {path.stat().st_size} bytes, above the limit of {MOST_BYTES}"
            yield _error(manifest, file, what, "Make it smaller")
        elif file.role == "zipArtifacts":
            yield from _zip(manifest, file)
        elif file.basename.endswith(".zip"):
            what = "a zip among configurationFiles, where it is not unpacked"
            yield warning(manifest.path.name, file.line, what, file.path, "Use zipArtifacts")


def _zip(manifest: Manifest, file: File) -> Iterator[Finding]:
    try:
        with zipfile.ZipFile(manifest.folder / file.path) as archive:
            inside = archive.infolist()
    except (OSError, zipfile.BadZipFile):
        yield _error(manifest, file, "a zip that cannot be opened", "Make it again")
        return
    unpacked = sum(each.file_size for each in inside)
    if len(inside) > MOST_IN_A_ZIP or unpacked > MOST_UNPACKED_BYTES:
        what = (
            f"a zip of {len(inside)} files and {unpacked} bytes unpacked, above the limit of "
            f"{MOST_IN_A_ZIP} files or {MOST_UNPACKED_BYTES} bytes"
        )
        yield _error(manifest, file, what, "Split it")


def _never(manifest: Manifest) -> Iterator[Finding]:
    for file in manifest.files:
        why = NEVER.get(file.basename.lower())
        if file.basename.lower() == "pyproject.toml" or (why and file.basename.startswith(".env")):
            yield _error(manifest, file, f"a file never to upload: {why}", "Remove this line")
        elif why:
            what = f"a file that should not be uploaded: {why}"
            yield warning(manifest.path.name, file.line, what, file.path, "Remove this line")


def _unlisted_modules(project: Project) -> Iterator[Finding]:
    manifest, listed = project.manifest, {file.basename for file in project.manifest.files}
    said: set[str] = set()
    for source in project.sources.values():
        for each in source.imports:
            path = locate(manifest, each.module)
            if each.module in said or each.module in sys.stdlib_module_names or path is None:
                continue
            shown = relative(manifest, path)
            if path.name == "__init__.py" and path.parent.name == each.module:
                said.add(each.module)
                what = "a package of this folder: Azure puts every file into one folder"
                cure = "Import single modules that lie beside the test plan"
                yield error(source.path, each.line, what, each.module, cure)
            elif path.name not in listed:
                said.add(each.module)
                what = "an imported module that is not listed: the engine would not have it"
                cure = f'Add "- {shown}" below configurationFiles in {manifest.path.name}'
                yield error(source.path, each.line, what, each.module, cure)


def _unlisted_data(project: Project) -> Iterator[Finding]:
    manifest, listed = project.manifest, {file.basename for file in project.manifest.files}
    said: set[str] = set()
    for source in project.sources.values():
        for read in source.reads:
            name = read.name.rpartition("/")[2]
            places = (f"queries/{name}", name, read.name)
            here = next((p for p in places if (manifest.folder / p).is_file()), None)
            ours = {manifest.path.name, *NEVER}  # read where they are; the engine goes without
            if name in listed | said | ours or not (read.always or here):
                continue
            said.add(name)
            if here is None:
                what = "a query file that is nowhere: the run stops before its first request"
                cure = f"Write queries/{name}, and list it in {manifest.path.name}"
            else:
                what = "a file that is read here and not listed: the engine would not have it"
                cure = f'Add "- {here}" below configurationFiles in {manifest.path.name}'
            yield error(source.path, read.line, what, name, cure)


def _not_needed(project: Project) -> Iterator[Finding]:
    manifest = project.manifest
    if project.plan is None:
        return
    texts = {word for source in project.all_sources for word in _words(source)}
    for file in manifest.configuration_files:
        name = file.basename
        module = name.removesuffix(".py")
        known = name in texts or name in NEVER or name.endswith((".whl", ".zip"))
        if name.endswith(".py"):
            known = module in project.sources
        if known or name == _REQUIREMENTS or not (manifest.folder / file.path).is_file():
            continue
        what = "a listed file that nothing imports or reads"
        yield warning(manifest.path.name, file.line, what, file.path, "Remove this line")


def _words(source: Source) -> Iterator[str]:
    yield from (read.name.rpartition("/")[2] for read in source.reads)
    yield from source.constants.values()


def _error(manifest: Manifest, file: File, what: str, cure: str) -> Finding:
    return error(manifest.path.name, file.line, what, file.path, cure)
