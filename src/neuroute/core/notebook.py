"""How objects look in a notebook."""

from __future__ import annotations

from html import escape

from neuroute.core.lazy import pd

MOST_ROWS = 60


def html_table(title: str, frame: pd.DataFrame) -> str:
    """Return a title and a table below it, without its middle rows if it is long; what is unknown is empty."""
    rows = frame.to_html(index=False, border=0, na_rep="", float_format=_short, max_rows=MOST_ROWS)
    return f"<p><b>{escape(title)}</b></p>{rows}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
