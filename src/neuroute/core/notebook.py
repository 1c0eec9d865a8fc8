"""How objects look in a notebook."""

from __future__ import annotations

from html import escape

from neuroute.core.lazy import pd


def html_table(title: str, frame: pd.DataFrame, digits: int = 2) -> str:
    """Return a title and a table below it; floats have so many digits, and what is unknown is empty."""
    rows = frame.to_html(index=False, border=0, na_rep="", float_format=f"{{:,.{digits}f}}".format)
    return f"<p><b>{escape(title)}</b></p>{rows}"
