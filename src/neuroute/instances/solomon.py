"""Solomon's instances with time windows (.txt), as the published code of MVMoE takes them (Zhou et al., 2024, Table 7).

A file has a name, a section VEHICLE (number and capacity) and a section CUSTOMER with a row of seven numbers per node,
the depot first.  The number of vehicles is not followed: neither the environments nor Table 7 keep to it.
"""

import math
import re
from collections.abc import Collection
from typing import cast

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.instances.instance import Instance
from neuroute.instances.sections import real, whole
from neuroute.instances.unit_square import HORIZON
from neuroute.problems.vrp import Vrp
from neuroute.problems.vrp_checker import LARGEST_LOAD, check_instances

SIZES = (25, 50, 100, 200, 400, 600, 800, 1000)  # customers of Solomon's and of Gehring and Homberger's instances
COLUMNS = ("number", "x", "y", "demand", "ready time", "due date", "service time")


def parse_solomon(text: str, where: str, name: str, sizes: Collection[int] | None = SIZES) -> Instance:
    """Return the instance of a file's text; `name` is for a file that states none, `where` for messages.

    sizes: numbers of customers that are expected, as no file states its own; None: any.  Raises NeurouteError, naming
    file, line and mend, if it is no whole instance that can be served.
    """
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    words = [line[0].upper() if len(line) == 1 else "" for _, line in lines]
    if "VEHICLE" not in words or "CUSTOMER" not in words:
        raise NeurouteError(f"{where}: no sections VEHICLE and CUSTOMER; one of Solomon's .txt files is expected")
    vehicle, customer = words.index("VEHICLE"), words.index("CUSTOMER")
    vehicles, capacity = _fleet(lines[vehicle + 1 : customer], where)
    table = _table(lines[customer + 1 :], where)
    if sizes is not None and len(table) - 1 not in sizes:
        expected = ", ".join(map(str, sizes))
        raise NeurouteError(f"{where}: {len(table) - 1} customers, not one of {expected}; is the file cut short?")
    if not text.endswith("\n"):
        raise NeurouteError(f"{where}: its last line does not end; is the file cut short?  If not, end the line")
    name, closes = lines[0][1][0] if vehicle else name, float(table[0, 5])
    demand, windows, service = table[:, 3].astype(np.int64), table[:, 4:6], table[:, 6]
    scale = max(float(table[:, 1:3].max()), closes / HORIZON)  # coordinates come into [0, 1], times into [0, 3]
    instance = Instance(
        name, table[:, 1:3], demand, capacity, windows=windows, service=service, library="solomon", scale=scale,
        is_vrp=True, vehicles=vehicles,
    )  # fmt: skip
    check_instances(instance.vrp, where)
    check_instances(cast(Vrp, instance.inputs()), f"{where}, as networks take it (in the unit square, float32)")
    return instance


def is_solomon(text: str) -> bool:
    """Whether a line is the heading of a section of Solomon's files."""
    return any(line.strip().upper() in ("VEHICLE", "CUSTOMER") for line in text.splitlines())


def stated_customers(text: str) -> int | None:
    """Return how many customers the title of a file says it has, as `format_solomon` writes it; Solomon's do not."""
    match = re.match(r"\s*\S+ of (\d+) customers *\n", text)
    return whole(match[1]) if match else None


def format_solomon(instance: Instance) -> str:
    """Return the text of a file, with a vehicle for each customer; numbers read back as they are."""
    n, vrp = instance.n, instance.vrp
    service = np.zeros(n + 1) if vrp.service is None else vrp.service[0]
    assert vrp.windows is not None
    table = np.column_stack([vrp.coords[0], vrp.demand[0], vrp.windows[0], service])
    rows = "\n".join(
        f"{i:5} {' '.join(f'{int(v) if v % 1 == 0 else v!r:>10}' for v in row)}" for i, row in enumerate(table.tolist())
    )
    return (
        f"{instance.name} of {n} customers\n\nVEHICLE\nNUMBER     CAPACITY\n{n:4} {instance.capacity:12}\n\nCUSTOMER\n"
        f"CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE   TIME\n\n{rows}\n"
    )


Lines = list[tuple[int, list[str]]]  # number, and words


def _fleet(lines: Lines, file: str) -> tuple[int, int]:
    """Read the one row of two whole numbers under the headings: vehicles, and their capacity."""
    rows = [(number, words) for number, words in lines if not words[0][0].isalpha()]
    if not rows:
        raise NeurouteError(f"{file}: section VEHICLE has no row `vehicles capacity`; give one")
    number, words = rows[0]
    vehicles, capacity = map(whole, words) if len(words) == 2 else (None, None)
    if vehicles is None or capacity is None:
        raise NeurouteError(f"{file}, line {number}: expected `vehicles capacity`, got `{' '.join(words)[:60]}`")
    if len(rows) > 1:
        raise NeurouteError(f"{file}, line {rows[1][0]}: a second row of vehicles; instances of one kind are read")
    return vehicles, capacity


def _table(lines: Lines, file: str) -> np.ndarray:
    """Rows of COLUMNS, numbered from 0: (n + 1, 7) float64."""
    first = next((i for i, (_, words) in enumerate(lines) if not words[0][0].isalpha()), len(lines))
    rows = lines[first:]  # below headings
    if len(rows) < 2:
        raise NeurouteError(f"{file}: {len(rows)} rows in section CUSTOMER; the depot and its customers are expected")
    table = []
    for place, (number, words) in enumerate(rows):
        where = f"{file}, line {number}"
        if len(words) != len(COLUMNS):
            last = "; is the file cut short?" if place == len(rows) - 1 else ""
            raise NeurouteError(
                f"{where}: {len(words)} numbers; {len(COLUMNS)} are expected, {', '.join(COLUMNS)}{last}"
            )
        try:
            row = [real(word) for word in words]
        except ValueError:
            row = [math.nan]
        if not all(map(math.isfinite, row)):
            raise NeurouteError(f"{where}: `{' '.join(words)[:60]}` are not seven numbers; correct the row")
        if row[0] != place or row[3] % 1 or abs(row[3]) > LARGEST_LOAD:
            what = f"node {words[0]} where {place} is expected" if row[0] != place else f"a demand of {words[3]}"
            raise NeurouteError(
                f"{where}: {what}; nodes are numbered from 0 on, and demands are whole numbers up to {LARGEST_LOAD:,}"
            )
        table.append(row)
    return np.array(table)
