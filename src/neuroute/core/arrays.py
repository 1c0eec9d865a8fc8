"""Arrays in .npz files and rows of CSV that others wrote, checked before they are used.

Nothing is unpacked before: a small file may claim to hold any amount.
"""

import csv
import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_regular

UNPACKED = 2**28  # bytes that any file may hold; others no more than
TIMES = 50  # times their own size: what is measured or drawn is packed by less


def read_arrays(path: Path, mend: str = "save it again", *keys: str) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz by name, these keys among them.

    Raises NeurouteError, with `mend`, if it is none, or damaged, or unpacks to far more than its size; nothing in it is
    executed.
    """
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as file:
            members = file.infolist()
            names = [member.filename.removesuffix(".npy") for member in members]
            if twice := {name for name in names if names.count(name) > 1}:
                raise ValueError(f"two arrays '{min(twice)[:40]}'")
            claimed = 0
            for member in members:
                with file.open(member) as opened:
                    version = np.lib.format.read_magic(opened)
                    if version not in HEADERS:
                        raise ValueError(f"an array of format {version}")
                    shape, _, dtype = HEADERS[version](opened)
                    lengths = (max(int(length), 1) for length in shape)  # one of 0 does not make the others harmless
                    claimed += max(member.file_size, int(dtype.itemsize) * math.prod(lengths))
            if claimed > max(UNPACKED, TIMES * path.stat().st_size):
                raise ValueError(f"{claimed:,} bytes once unpacked; write it by numpy.savez, not savez_compressed")
            arrays = {}
            for name, member in zip(names, members, strict=True):
                with file.open(member) as opened:
                    arrays[name] = np.lib.format.read_array(opened, allow_pickle=False)
            if missing := set(keys) - arrays.keys():
                raise ValueError(f"no array '{min(missing)}'")
            return arrays
    except Exception as error:  # a damaged file can end in nearly any
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise NeurouteError(f"{path}: not a readable npz of numbers ({reason}); {mend}") from None


def array_of(value: Any, what: str) -> np.ndarray:
    """Return what a user gives as an array.

    Raises NeurouteError, naming `what` it is, where its library makes none of it: of a tensor with gradients, say.
    """
    try:
        return np.asarray(value)
    except (RuntimeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:160]
        raise NeurouteError(f"{what}: not an array ({why}); convert a tensor by .detach().cpu().numpy()") from None


HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


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
