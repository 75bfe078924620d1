"""The HTML of which the report's sections are made; every text that comes in is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def section(name: str, lead: str, *parts: str) -> str:
    """Return a section; lead and parts are HTML."""
    return f"<section><h2>{escape(name)}</h2><p class=lead>{lead}</p>{''.join(parts)}</section>"


def grid(
    heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1, total: bool = False
) -> str:
    """A table: columns after the first so many are numbers, the last row may be a total.

    A row with a cell that begins with "! " stands out.
    """

    def row(tag: str, texts: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if index >= words else ''}>{escape(each)}</{tag}>"
            for index, each in enumerate(texts)
        )

    kinds = [" class=bad" if any(cell.startswith("! ") for cell in each) else "" for each in rows]
    if total:
        kinds[-1] = " class=last"
    pairs = zip(kinds, rows, strict=True)
    body = "".join(f"<tr{kind}>{row('td', each)}</tr>" for kind, each in pairs)
    return (
        f"<div class=wide><table><thead><tr>{row('th', heads)}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
