"""The public benchmarks' libraries: what their files are like, where they come from, how models meet their instances.

Digests are of instances as parsed: line endings, headers and spellings of a number do not matter.  The addresses of
CVRPLIB and of Solomon's instances, which CVRPLIB has too, are those that CVRPLIB's pages link to; they and those of the
National and VLSI TSPs were never contacted from where this was written, so a first fetch may show that they have moved.
What comes back is checked all the same.
"""

import hashlib
from dataclasses import replace

import numpy as np

from neuroute.datasets.benchmarks import Library
from neuroute.datasets.dimacs import make_clustered
from neuroute.instances.instance import Instance
from neuroute.instances.solomon import parse_solomon
from neuroute.instances.tsplib import parse_tsplib, parse_vrplib

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
    archive="ALL_tsp.tar.gz",
    parse=parse_tsplib,
    sha256=lambda instance: _sha256(instance.distances, instance.coords),
)


def _of_the_survey(name: str, title: str, home: str) -> Library:
    return replace(
        TSPLIB, name=name, title=title, folders=(name,), home=home, path=lambda k: f"{k.name}.tsp", archive=None
    )


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
    archive=None,
    parse=parse_vrplib,
    sha256=lambda instance: _sha256(f"{instance.distances}\n{instance.capacity}", instance.coords, instance.demand),
)


def _solomon_sha256(instance: Instance) -> str:
    return _sha256(str(instance.capacity), instance.demand, instance.coords, instance.windows, instance.service)


SOLOMON = Library(
    name="solomon",
    title="Solomon's set",
    problems=("vrp",),
    suffix=".txt",
    folders=("solomon",),
    home=CVRPLIB_HOME,
    path=lambda instance: f"Solomon/{instance.name}.txt",
    archive=None,
    parse=parse_solomon,
    sha256=_solomon_sha256,
)
