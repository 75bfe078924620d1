"""The result as the README and the terminal show it."""

from __future__ import annotations

from collections.abc import Sequence

from lab.bench.row import Row
from lab.machine import Machine

HEADS = ("what", "measured", "bound", "aim", "")


def markdown(rows: Sequence[Row], machine: Machine, how: str) -> str:
    """Return the table with its machine; `how` is the command that made it."""
    lines = [f"By `{how}`, {machine}:", "", f"| {' | '.join(HEADS)} |"]
    lines.append("|---|---:|---:|---:|---|")
    for row in rows:
        sign = "≥" if row.least else "≤"
        bound = f"{sign} {row.shown(row.bound)}"
        aim = row.shown(row.aim) if row.aim is not None else ""
        said = row.verdict if not row.why else f"{row.verdict}: {row.why}"
        lines.append(f"| {row.name} | {row.shown(row.value)} | {bound} | {aim} | {said} |")
    return "\n".join(lines)


def line(row: Row) -> str:
    """Return one row for the terminal, as soon as it is known."""
    sign = ">=" if row.least else "<="
    bound = f"{sign} {row.shown(row.bound)}"
    figures = f"{row.shown(row.value):>10}  {bound:<12}{row.verdict:<12}"
    return f"{row.name:<62}{figures} {row.why or row.detail}".rstrip()
