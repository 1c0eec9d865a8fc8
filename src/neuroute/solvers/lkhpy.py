"""LKHpy: an extension module that carries LKH-3.0.12 whole, run in a process of its own.

It exports LKH's functions and variables, which `lkhpy_main` calls in the order of LKH's `main`.  Its Python functions
are of no use here: they write no tour, and fail where LKH doubles the nodes, as it does for the OVRP and the VRPTW.
"""

import hashlib
import importlib.util
import sys
from functools import cache
from pathlib import Path

from neuroute.core.errors import NeurouteError
from neuroute.solvers.lkhpy_main import run

VERSION = "0.0.9"
# SHA-256 of its builds for CPython 3.11 and 3.12: in another one LKH's variables may be others.
BUILDS = (
    "bf57aa312f0935bb30f4dc1f2f417e0ab677d65889949fb4e1a95fc9725642b6",
    "7e03f66c73d0e751565d75afe2494b84ed49e9a2b360585ec6bc32a440870f47",
)
MOST_NODES = 4_000  # tried; from 4,400 on, vehicles counted, this build ends in the middle of its memory's bookkeeping
HOW_TO_GET = f"run `pip install --no-deps --only-binary LKHpy LKHpy=={VERSION}`"


def command() -> list[str] | None:
    """Return what runs a parameter file, its last argument, as LKH's program does; None where LKHpy is not installed.

    Raises NeurouteError if it is none of the builds.
    """
    spec = importlib.util.find_spec("LKHpy")  # without running it
    if spec is None or spec.origin is None:
        return None
    if _digest(spec.origin) not in BUILDS:
        raise NeurouteError(
            f"{spec.origin}: not the published build of LKHpy {VERSION}; {HOW_TO_GET} --force-reinstall"
        )
    return [sys.executable, "-I", "-S", run.__code__.co_filename, spec.origin]


@cache
def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()
