"""The same bytes, cut as a network may cut them: no parser may tell the difference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

WIRE = Path(__file__).parent / "wire"


def ways(data: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Yield (how, pieces): whole, byte by byte, and cut in two at each place."""
    yield "whole", [data]
    yield "byte by byte", [data[n : n + 1] for n in range(len(data))]
    for place in range(1, len(data)):
        yield f"cut at {place}", [data[:place], data[place:]]


def body(name: str) -> bytes:
    """Return a body of `tests/wire`, such as "2025-06-18/crlf.sse"."""
    return (WIRE / name).read_bytes()


def names(pattern: str) -> list[str]:
    """Return the names of the bodies that match, such as "*/*.sse"."""
    return sorted(path.relative_to(WIRE).as_posix() for path in WIRE.glob(pattern))
