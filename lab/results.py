"""Results files in Azure's format, of ours or downloaded: rows in, requests out."""

from __future__ import annotations

import csv
import io
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.rows import AZURE_COLUMNS
from lab.stats import Sample

_NEEDED = ("timeStamp", "elapsed", "label", "success")


class RunError(ValueError):
    """What was named is no run, or has no results; the text is one line with the cure."""


@dataclass(frozen=True, slots=True)
class Request(Sample):
    """One attempted request, as a results file has it. Instants in ms after its start, or None.

    code          the HTTP status, "0" or "" where there was none
    failure_kind  the class of the failure; "" where success, and in Azure's own files
    process       the N of its engineN_results.csv
    session       the user's ordinal in its process; 0 where it is not known
    all_users     users that ran in its process at the time
    revision      of MCP; "" before one was agreed upon, and in Azure's own files
    """

    code: str = ""
    failure_kind: str = ""
    process: int = 1
    user_class: str = ""
    session: int = 0
    request_id: int | None = None
    all_users: int = 0
    connect_ms: float | None = None
    headers_ms: float | None = None
    first_event_ms: float | None = None
    revision: str = ""
    sent_bytes: int = 0
    received_bytes: int = 0

    @property
    def user(self) -> tuple[int, str, int]:
        """Whose it is: one user of one process."""
        return self.process, self.user_class, self.session


def find(place: Path) -> Iterator[tuple[str, io.TextIOBase]]:
    """Yield the name and the open text of each results file in a folder or zip, or of the one.

    A run folder of ours has them in ``results/``; Azure's lie side by side, or in results.zip.
    """
    if place.is_file() and zipfile.is_zipfile(place):
        yield from _zipped(place)
        return
    if place.is_file():
        yield place.name, place.open(encoding="utf-8", newline="")
        return
    for pattern in ("results/*_results*.csv", "*_results*.csv"):
        found = sorted(place.glob(pattern), key=lambda each: (len(each.name), each.name))
        for path in found:
            yield path.name, path.open(encoding="utf-8", newline="")
        if found:
            return
    for path in sorted(place.glob("*.zip")):
        yield from _zipped(path)


def _zipped(path: Path) -> Iterator[tuple[str, io.TextIOBase]]:
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist(), key=lambda each: (len(each), each)):
            if name.endswith(".csv") and "_results" in name.rpartition("/")[2]:
                text = archive.read(name).decode("utf-8", "replace")
                yield f"{path.name}:{name}", io.StringIO(text, newline="")


def requests(text: Iterable[str], process: int, name: str, notes: list[str]) -> Iterator[Request]:
    """Yield the requests of one results file; say in notes which lines are none.

    Raises RunError where the columns are not Azure's.
    """
    reader = csv.reader(text)
    header = next(reader, [])
    missing = [column for column in _NEEDED if column not in header]
    if missing:
        raise RunError(
            f"{name}: no column {', '.join(missing)}; a results file begins with the line"
            f" {','.join(AZURE_COLUMNS)}"
        )
    place = {column: index for index, column in enumerate(header)}
    bad: list[int] = []
    for row in reader:
        try:
            if len(row) != len(header):
                raise ValueError(row)
            yield _request(row, place, process)
        except ValueError:
            bad.append(reader.line_num)
    if bad and bad == [reader.line_num]:
        notes.append(f"{name}: its last line is cut short and was left out")
    elif bad:
        notes.append(f"{name}: {len(bad)} lines are no rows and were left out, first: {bad[0]}")


def _request(row: list[str], place: Mapping[str, int], process: int) -> Request:
    def text(column: str) -> str:
        index = place.get(column)
        return "" if index is None else row[index]

    def number(column: str) -> float | None:
        value = text(column)
        return float(value) if value else None

    def whole(column: str) -> int:
        value = text(column)
        return int(value) if value.isdecimal() else 0

    success = text("success").lower()
    if success not in {"true", "false"}:
        raise ValueError(success)
    request_id = text("request_id")
    exact = number("elapsed_ms")
    return Request(
        label=sys.intern(text("label")),
        start=float(text("timeStamp")) / 1000.0,
        elapsed_ms=float(text("elapsed")) if exact is None else exact,
        success=success == "true",
        failure="" if success == "true" else text("failureMessage") or text("responseMessage"),
        code=sys.intern(text("responseCode")),
        failure_kind=sys.intern(text("failure_kind")),
        process=process,
        user_class=sys.intern(text("user_class")),
        session=int(text("session") or 0),
        request_id=int(request_id) if request_id else None,
        all_users=int(text("allThreads") or 0),
        connect_ms=number("connect_ms"),
        headers_ms=number("headers_ms"),
        first_event_ms=number("first_event_ms"),
        revision=sys.intern(text("revision")),
        sent_bytes=whole("sentBytes"),
        received_bytes=whole("bytes"),
    )
