"""Rows of a CSV that others wrote: every one whole, every column there once."""

import csv
import io

from neuroute.core.errors import NeurouteError

Rows = list[tuple[str, dict[str, str]]]  # where it is, for messages, and its cells by column


def read_rows(text: str, where: str) -> tuple[list[str], Rows]:
    """Return the columns of a CSV and its rows, without blanks around cells; cells are apart by `,`, `;` or tabs.

    Raises NeurouteError, naming `where` and the line, for columns of one name, and a row of more or fewer cells.
    """
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=max(",;\t", key=text.partition("\n")[0].count), strict=True
    )
    rows: Rows = []
    try:
        columns = [name.strip() for name in next(reader, [])]
        if doubled := next((name for name in columns if columns.count(name) > 1), None):
            raise NeurouteError(f"{where}, line 1: two columns '{doubled[:60]}'; leave one")
        for cells in reader:
            if not any(map(str.strip, cells)):
                continue
            if len(cells) != len(columns):
                raise NeurouteError(
                    f"{where}, line {reader.line_num}: {len(cells)} cells where {len(columns)} columns are named; "
                    "correct the row"
                )
            rows.append((f"{where}, line {reader.line_num}", dict(zip(columns, map(str.strip, cells), strict=True))))
    except csv.Error as error:
        raise NeurouteError(f"{where}, line {reader.line_num}: cannot be read ({error})") from None
    return columns, rows


def real(text: str) -> float:
    """Return a number in ASCII digits, which may be infinite.  Raises ValueError for other text, such as `1_0`."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)
