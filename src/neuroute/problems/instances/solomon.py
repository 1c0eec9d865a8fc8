"""Instances with time windows: Solomon's files (.txt), as the published code of MVMoE takes them (Zhou et al., 2024).

A file has a name, a section VEHICLE (number and capacity) and a section CUSTOMER with a row of seven numbers per node,
the depot first.  The number of vehicles is not followed: neither the environments nor MVMoE's Table 7 keep to it.
"""

import re
from dataclasses import replace
from itertools import dropwhile
from typing import Any, cast

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.distances import HORIZON
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.sections import Parts, whole
from neuroute.problems.vrp import LARGEST_LOAD, Vrp, check_instances

HEADINGS = ("VEHICLE", "CUSTOMER")


def parse_solomon(text: str, where: str, name: str) -> Instance:
    """Return the instance of a file's text; `name` is for a file that states none, `where` for messages.

    Raises NeurouteError, naming file, line and mend, if it is no whole instance that can be served.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    headings = {line.upper(): place for place, (_, line) in enumerate(lines) if line.upper() in HEADINGS}
    if len(headings) < 2:
        raise NeurouteError(f"{where}: no sections VEHICLE and CUSTOMER; one of Solomon's .txt files is expected")
    vehicle, customer = (headings[each] for each in HEADINGS)
    sections = (lines[vehicle + 1 : customer], lines[customer + 1 :])
    rows = [list(dropwhile(lambda line: line[1][0].isalpha(), section)) for section in sections]  # names of columns
    parts = Parts(where, {}, dict(zip(HEADINGS, rows, strict=True)))
    fleet, table = (parts.table(each) for each in HEADINGS)
    if len(fleet) != 1 or (fleet % 1 != 0).any() or not 0 < fleet[0, 1] <= LARGEST_LOAD:
        raise NeurouteError(f"{where}: section VEHICLE needs one row `vehicles capacity`, in whole numbers")
    vehicles, capacity = fleet[0].astype(np.int64).tolist()
    if len(table) < 2:
        raise NeurouteError(f"{where}: {len(table)} rows in section CUSTOMER; the depot and its customers are expected")
    wrong = (table[:, 0] != np.arange(len(table))) | (table[:, 3] % 1 != 0) | ~(np.abs(table[:, 3]) <= LARGEST_LOAD)
    if wrong.any() or not np.isfinite(table).all():
        row = int(np.argmax(wrong | ~np.isfinite(table).all(1)))
        raise NeurouteError(
            f"{parts.line('CUSTOMER', row)}: row {row} is `{parts.rows['CUSTOMER'][row][1][:60]}`; nodes are numbered "
            f"from 0 on, and demands are whole numbers up to {LARGEST_LOAD:,}"
        )
    title = re.match(r"\s*\S+ of (\d+) customers *\n", text)  # of our own files; Solomon's say no number
    if title and whole(title[1]) != len(table) - 1:
        raise NeurouteError(
            f"{where}: {len(table) - 1} customers, not {title[1][:20]} as stated; is the file cut short?"
        )
    if not text.endswith("\n"):
        raise NeurouteError(f"{where}: its last line does not end: cut short?  If not, end the line")
    name = lines[0][1].split()[0] if vehicle else name
    windows = Instance(
        name, table[:, 1:3], table[:, 3].astype(np.int64), capacity, windows=table[:, 4:6], service=table[:, 6],
        vehicles=vehicles, is_vrp=True,
    )  # fmt: skip
    return as_solomon(windows, where)


def as_solomon(instance: Instance, where: str) -> Instance:
    """Return an instance with time windows by Solomon's rules.  Raises NeurouteError if it cannot be served."""
    coords, windows = instance.coords, instance.windows
    assert windows is not None
    scale = max(float(coords.max()), float(windows[0, 1]) / HORIZON)  # coordinates come into [0, 1], times into [0, 3]
    fills = np.ptp(coords) >= np.abs(coords).max() / 10  # others are moved, too
    instance = replace(instance, library="solomon", scale=scale if fills else None)
    check_instances(instance.vrp, where)
    check_instances(cast(Vrp, instance.inputs()), f"{where}, as networks take it (in the unit square, float32)")
    return instance


def format_solomon(instance: Instance) -> str:
    """Return the text of a file, with a vehicle for each customer; numbers read back as they are."""
    n, vrp = instance.n, instance.vrp
    columns: list[Any] = [vrp.coords[0], vrp.demand[0], instance.windows, instance.service]
    table = np.column_stack(columns)
    rows = "\n".join(
        f"{i:5} {' '.join(f'{int(v) if v % 1 == 0 else v!r:>10}' for v in row)}" for i, row in enumerate(table.tolist())
    )
    return (
        f"{instance.name} of {n} customers\n\nVEHICLE\nNUMBER     CAPACITY\n{n:4} {instance.capacity:12}\n\nCUSTOMER\n"
        f"CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE   TIME\n\n{rows}\n"
    )
