"""What others wrote (names, rows, messages), made harmless where it is shown: terminal, spreadsheet, notebook."""

from __future__ import annotations

import re
from html import escape

from neuroute.core.lazy import pd

FORMULA = re.compile(r"[=+@\n-].", re.DOTALL)  # how a cell begins that a spreadsheet would compute (OWASP)
MOST_ROWS = 60  # of a table in a notebook


def printable(text: str) -> str:
    """The text without control characters, such as a terminal's escape sequences; lines stay lines."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV; text that a spreadsheet would take for a formula has ' in front, numbers stay as they are."""
    texts = {
        str(name): pd.Series([inert(cell) for cell in column], table.index, dtype=object)
        for name, column in table.select_dtypes(exclude=["number", "bool"]).items()
    }
    return table.assign(**texts).rename(columns=inert).to_csv(index=False, lineterminator="\n")


def inert(cell: object) -> object:
    """A cell that no spreadsheet computes; without control characters, as a carriage return would begin a row."""
    if not isinstance(cell, str):
        return cell
    try:
        float(cell)
    except ValueError:
        text = printable(cell)
        return f"'{text}" if FORMULA.match(text) else text
    return cell


def html_table(title: str, frame: pd.DataFrame) -> str:
    """Return a title and a table below it, without its middle rows if it is long; what is unknown is empty."""
    rows = frame.to_html(
        index=False,
        border=0,
        na_rep="",
        float_format=lambda value: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}",
        max_rows=MOST_ROWS,
    )
    return f"<p><b>{escape(title)}</b></p>{rows}"
