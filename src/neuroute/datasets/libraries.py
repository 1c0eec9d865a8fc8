"""The public benchmarks' libraries: what their files are like, where they come from, how models meet their instances.

Digests are of instances as parsed: line endings, headers and spellings of a number do not matter.  The addresses of
CVRPLIB and of Solomon's instances, which CVRPLIB has too, are those that CVRPLIB's pages link to; they and those of the
National and VLSI TSPs were never contacted from where this was written, so a first fetch may show that they have moved.
What comes back is checked all the same.
"""

import hashlib
import math
from dataclasses import replace

import numpy as np

from neuroute.datasets.benchmarks import Library, PublishedInstance
from neuroute.problems.instances.tsplib import parse

# -- the random clustered instances of the 8th DIMACS challenge, as its generator `portcgen` makes them --------------
# No server has these files, but each follows from its name: C3k.1 is that of 3,162 nodes with the seed 31621
# (C3k.0: 3162). Nearest-neighbour tours of what is made here have the lengths that a survey's logs state of the
# originals (Ba et al., arXiv 2602.21761), which hang on every node.

RANGE = 10**9  # of the random numbers
SIDE = 10**6  # of the square in which clusters have their centres
OF_A_CLUSTER = 100  # nodes, on average


class _Numbers:
    """The subtractive generator of Knuth (The Art of Computer Programming 2, 3.6), and normal numbers of it."""

    def __init__(self, seed: int) -> None:
        self._values, self._first, self._second = [0] * 55, 0, 24
        last, following = seed, 1
        self._values[0] = last
        for i in range(1, 55):
            place = 21 * i % 55
            self._values[place] = following
            following = (last - following) % RANGE
            last = self._values[place]
        self._spare: float | None = None
        for _ in range(165):
            self.draw()

    def draw(self) -> int:
        """Return a number from 0 to below `RANGE`."""
        self._first, self._second = (self._first - 1) % 55, (self._second - 1) % 55
        value = (self._values[self._first] - self._values[self._second]) % RANGE
        self._values[self._first] = value
        return value

    def normal(self) -> float:
        """Return a standard normal number (polar method: every second one is left from the pair before)."""
        if self._spare is not None:
            value, self._spare = self._spare, None
            return value
        square = 1.0
        while not 0 < square < 1:
            u, v = (2 * self.draw() / RANGE - 1 for _ in range(2))
            square = u * u + v * v
        stretch = math.sqrt(-2 * math.log(square) / square)
        self._spare = u * stretch
        return v * stretch


def make_clustered(about: PublishedInstance) -> str:
    """Return the file of an instance (C1k.0, ..., C100k.1), in TSPLIB's format."""
    number, n = int(about.name.partition(".")[2]), about.nodes
    numbers = _Numbers(10 * n + number if number else n)
    centres = [(numbers.draw() * SIDE // RANGE, numbers.draw() * SIDE // RANGE) for _ in range(n // OF_A_CLUSTER)]
    lines, spread = list[str](), SIDE / math.sqrt(n)
    for node in range(1, n + 1):
        x, y = centres[numbers.draw() * len(centres) // RANGE]
        lines.append(f"{node} {x + int(numbers.normal() * spread)} {y + int(numbers.normal() * spread)}")
    head = f"NAME: {about.name}\nTYPE: TSP\nDIMENSION: {n}\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
    return head + "\n".join(lines) + "\nEOF\n"


CVRPLIB_HOME = "http://vrp.galgos.inf.puc-rio.br/media/com_vrp/instances"


def _sha256(head: str, *arrays: np.ndarray | None) -> str:
    """Return the digest of a line of text and of arrays, whole numbers as int64, others as float64."""
    digest = hashlib.sha256(f"{head}\n".encode())
    for array in arrays:
        assert array is not None
        kind = "<i8" if array.dtype.kind in "iu" else "<f8"
        digest.update((np.ascontiguousarray(array, dtype=kind) + 0).tobytes())  # -0.0 is 0.0
    return digest.hexdigest()


TSPLIB = Library(
    name="tsplib",
    title="TSPLIB",
    problems=("tsp",),
    suffix=".tsp",
    folders=("tsplib",),
    home="http://comopt.ifi.uni-heidelberg.de/software/TSPLIB95/tsp",
    path=lambda instance: f"{instance.name}.tsp.gz",
    parse=parse,
    sha256=lambda instance: _sha256(instance.distances, instance.coords),
)


def _of_the_survey(name: str, title: str, home: str) -> Library:
    return replace(TSPLIB, name=name, title=title, folders=(name,), home=home, path=lambda k: f"{k.name}.tsp")


NATIONAL = _of_the_survey("national", "the National TSPs", "https://www.math.uwaterloo.ca/tsp/world")
VLSI = _of_the_survey("vlsi", "the VLSI TSPs", "https://www.math.uwaterloo.ca/tsp/vlsi")
DIMACS = replace(_of_the_survey("dimacs", "the DIMACS challenge", ""), make=make_clustered)
CVRPLIB = Library(
    name="cvrplib",
    title="CVRPLIB",
    problems=("cvrp", "vrp"),
    suffix=".vrp",
    folders=("cvrplib", "cvrplib_x", "cvrplib_xxl", "cvrplib_li"),
    home=CVRPLIB_HOME,
    path=lambda instance: f"{instance.set}/{instance.name}.vrp",
    parse=parse,
    sha256=lambda instance: _sha256(f"{instance.distances}\n{instance.capacity}", instance.coords, instance.demand),
)
SOLOMON = Library(
    name="solomon",
    title="Solomon's set",
    problems=("vrp",),
    suffix=".txt",
    folders=("solomon",),
    home=CVRPLIB_HOME,
    path=lambda instance: f"Solomon/{instance.name}.txt",
    parse=parse,
    sha256=lambda k: _sha256(str(k.capacity), k.demand, k.coords, k.windows, k.service),
)
