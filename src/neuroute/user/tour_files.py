"""TSPLIB's .tour files, and the writing of VRPLIB's .sol files (`vrplib` reads those)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_text
from neuroute.datasets.sections import read_text, split
from neuroute.datasets.tsplib import TsplibInstance
from neuroute.datasets.vrplib import VrplibInstance


def read_tour(path: Path, instance: TsplibInstance) -> np.ndarray:
    """The tour (n,) int64 of a TSPLIB .tour file, as rows of the instance's coordinates.

    Raises NeurouteError for a file that cannot be read, and for a tour that misses or repeats a node or belongs to
    another instance.
    """
    parts = split(read_text(path, "a TSPLIB .tour file"), str(path))
    n = len(instance.coords)
    if "TOUR_SECTION" not in parts.rows:
        raise NeurouteError(f"{path}: no TOUR_SECTION; a TSPLIB .tour file is expected")
    stated = parts.header.get("DIMENSION", str(n))
    if stated != str(n):
        raise NeurouteError(f"{path}: DIMENSION says {stated}, but {instance.name} has {n} nodes; it is of another one")
    numbers = np.arange(1, n + 1) if instance.numbers is None else instance.numbers
    row = {int(number): i for i, number in enumerate(numbers)}
    tour: list[int] = []
    for line, word in ((line, word) for line, text in parts.rows["TOUR_SECTION"] for word in text.split()):
        if word == "-1":
            break
        if not word.isdecimal() or int(word) not in row:
            raise NeurouteError(f"{path}, line {line}: there is no node {word[:20]} in {instance.name}")
        tour.append(row[int(word)])
    visits = np.bincount(np.array(tour, dtype=np.int64), minlength=n)
    if (visits != 1).any():
        node = int(np.flatnonzero(visits != 1)[0])
        raise NeurouteError(f"{path}: node {numbers[node]} is visited {visits[node]} times; once is meant")
    return np.array(tour, dtype=np.int64)


def write_tour(path: Path, instance: TsplibInstance, tour: np.ndarray) -> None:
    """Write a tour (n,) as a TSPLIB .tour file, whole or not at all."""
    numbers = tour + 1 if instance.numbers is None else instance.numbers[tour]
    lines = "\n".join(map(str, numbers.tolist()))
    write_text(
        path,
        f"NAME : {path.name}\nCOMMENT : {instance.name}, length {instance.length(tour):.10g} ({instance.edge_type})\n"
        f"TYPE : TOUR\nDIMENSION : {len(tour)}\nTOUR_SECTION\n{lines}\n-1\nEOF\n",
    )


def write_solution(path: Path, instance: VrplibInstance, routes: Sequence[Sequence[int]]) -> None:
    """Write routes of customers 1..n as a VRPLIB .sol file, with their cost in the library's distances."""
    lines = (f"Route #{number}: {' '.join(map(str, route))}\n" for number, route in enumerate(routes, 1))
    write_text(path, "".join(lines) + f"Cost {instance.cost(routes):.10g}\n")
