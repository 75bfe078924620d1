"""How figures are written."""

from __future__ import annotations


def ms(value: float) -> str:
    """Return milliseconds with as many digits as they deserve."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"
