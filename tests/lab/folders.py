"""Run folders made by hand, and a search for secrets in whatever a run has written."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from lab.rows import AZURE_COLUMNS, HEADER, Facts, Lines

BEGAN = 1_800_000_000.0


class Row(NamedTuple):
    """One request event, in the order in which a line is made of it."""

    at: float
    elapsed: float
    method: str
    name: str
    exception: object
    url: str | None
    facts: Facts


def row(
    label: str,
    at: float,
    elapsed: float = 100.0,
    failure: Exception | None = None,
    **facts: Any,
) -> Row:
    """One request, `at` seconds into the run; facts are the trace's, and a user's by default."""
    known = {"user_class": f"{label.partition(':')[0].title()}User", "session": 1, "status": 200}
    return Row(
        BEGAN + at,
        elapsed,
        "POST",
        label,
        failure,
        "http://127.0.0.1/mcp",
        Facts(**{**known, **facts}),
    )


def write_part(folder: Path, rows: Iterable[Row], number: int = 1) -> Path:
    """Write one process's results file as the recorder would."""
    path = folder / "results" / f"engine{number}_results.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = Lines([])
    path.write_text(HEADER + "".join(lines.line(*each) for each in rows), encoding="utf-8")
    return path


def write_tallies(folder: Path, rows: int, number: int = 1, **more: Any) -> None:
    """Write a process's tallies file; by default one that ended well."""
    facts = {"finished": True, "rows": rows, "lost": 0, "tallies": [], "servers": {}, **more}
    (folder / f"tallies-{number}.json").write_text(json.dumps(facts), encoding="utf-8")


def write_ticks(
    folder: Path,
    load: Sequence[tuple[float, float, float]] = (),
    users: Sequence[tuple[float, dict[str, int]]] = (),
    number: int = 1,
) -> None:
    """Write a process's ticks; instants are seconds into the run."""
    lines: list[dict[str, Any]] = [{"t": BEGAN + at, "users": by_class} for at, by_class in users]
    lines += [{"t": BEGAN + at, "lag_p99_ms": lag, "cpu_percent": cpu} for at, lag, cpu in load]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / f"ticks-{number}.jsonl").write_text(text, encoding="utf-8")


def write_azure(path: Path, rows: Iterable[Sequence[object]]) -> Path:
    """Write a results file as Azure gives it: its own columns and no other."""
    lines = [",".join(AZURE_COLUMNS), *(",".join(map(str, each)) for each in rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def files_with(secret: str, folder: Path) -> list[str]:
    """Return the files below the folder that hold the secret: plain, base64, or URL-encoded.

    Base64 of a longer text holds one of three renderings of it, by where it begins.
    """
    forms = {secret.encode(), quote(secret, safe="").encode()}
    for shift, mixed in enumerate((0, 2, 3)):
        encoded = b64encode(b"x" * shift + secret.encode()).rstrip(b"=")
        forms.add(encoded[mixed:-2])
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]
