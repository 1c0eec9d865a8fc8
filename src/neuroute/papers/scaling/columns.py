"""What the tables of paper `scaling` have in common."""

from typing import Any

from neuroute.rendering.table import fixed

WHOLE = fixed(0)
HERE = "Here"  # heading of the column that says which model plays the paper's role


def millions(value: Any) -> str:
    """Two decimals as the paper prints, three digits for the small models of small scales."""
    return f"{value:,.2f}" if value >= 0.995 else f"{value:.3g}"
