"""Tables of README.md that a command writes, so that they cannot drift."""

from __future__ import annotations

from pathlib import Path

from lab.cli import CannotRun


def replace_between(path: Path, marker: str, text: str) -> None:
    """Put a text between the lines `<!-- marker:begin -->` and `<!-- marker:end -->` of a file.

    Raises CannotRun where the file has no such lines; nothing is written then.
    """
    begin, end = f"<!-- {marker}:begin -->", f"<!-- {marker}:end -->"
    whole = path.read_text(encoding="utf-8")
    before, found, rest = whole.partition(begin)
    _, ends, after = rest.partition(end)
    if not found or not ends:
        raise CannotRun(f"{path.name} has no lines {begin} and {end}: add them where it belongs")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
