"""Concorde (Applegate, Bixby, Chvátal and Cook): optimal tours on the 1e-6 grid, with proof.

Any build of pyconcorde's extension module serves: the user's own package, or the one in the wheel of ml4co-kit.  Only
that extension is loaded; the package around it is never imported.
"""

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import scratch_folder
from neuroute.core.limited import call
from neuroute.solvers.base import Solver, missing, positive_seed, tsplib_text

HOW_TO_GET = (
    "run `pip install --no-deps ml4co-kit` (a prebuilt Concorde for Linux x86-64) or build pyconcorde; "
    "free for academic use only"
)
LIMIT_S = 6 * 3600.0  # of an instance (pens, Section 5.1)
MOST = 2**30  # of a tour's length: it counts to 2**31, and beyond crashes
# (package, its distribution, folder of the extension inside the package)
PLACES = (
    ("concorde", "pyconcorde", "."),
    ("pyconcorde", "pyconcorde", "concorde"),
    ("ml4co_kit", "ml4co-kit", "solver/routing/lib/concorde/pyconcorde/concorde"),
)


@cache
def _find() -> tuple[Path, str]:
    """Return the extension file and the distribution that it is part of."""
    for package, distribution, inside in PLACES:
        spec = importlib.util.find_spec(package)  # looks for a top-level package without running it
        for root in (spec.submodule_search_locations or []) if spec else []:
            for suffix in EXTENSION_SUFFIXES:
                file = Path(root, inside, f"_concorde{suffix}")
                if file.exists():
                    return file, distribution
    raise missing("concorde", HOW_TO_GET)


@cache
def _extension() -> Any:
    file, _ = _find()
    spec = importlib.util.spec_from_file_location("_concorde", file)
    if spec is None or spec.loader is None:
        raise NeurouteError(f"{file}: is no extension module of this Python; {HOW_TO_GET}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise NeurouteError(f"{file}: cannot be loaded ({error}); {HOW_TO_GET}") from None
    return module


def version() -> str:
    _, distribution = _find()
    try:
        return f"Concorde ({distribution} {package_version(distribution)})"
    except PackageNotFoundError:
        return "Concorde (own build)"


def solve(coords: np.ndarray, seed: int, seconds: float | None = None) -> np.ndarray:
    """Return an optimal tour (n,) of coords (n, 2); or, after so many seconds, the best one that was found.

    Raises NeurouteError if Concorde ends without a tour; without `seconds`, also if it ends without a proof.
    """
    return solve_text(tsplib_text(coords), len(coords), seed, seconds)


def check_length(length: float) -> None:
    """Raises NeurouteError if Concorde cannot count as far as a tour is long."""
    if length > MOST:
        raise NeurouteError(
            f"concorde: a tour's length of {length:,.0f} is more than it counts to, {MOST:,}; scale the instance down"
        )


def solve_text(text: str, nodes: int, seed: int, seconds: float | None = None) -> np.ndarray:
    """Return what `solve` does, of the text of a TSPLIB file of so many nodes."""
    concorde = _extension()
    bound = -1.0 if seconds is None else seconds
    with _work_aside(), _silence():
        Path("instance.tsp").write_text(text)
        n, data = concorde._CCutil_gettsplib("instance.tsp")
        if data is None:
            raise NeurouteError("Concorde could not read the instance; is the temporary folder full?")
        tour, _, success, has_tour, _ = concorde._CCtsp_solve_dat(n, data, "instance", bound, 1, positive_seed(seed))
    if not (has_tour and (success or seconds is not None)):
        raise NeurouteError(f"Concorde ended without an optimal tour of {nodes} nodes; try another seed or more time")
    return np.asarray(tour, dtype=np.int64)


@contextmanager
def _work_aside() -> Iterator[None]:
    """Work in a temporary folder: Concorde leaves restart files where it runs."""
    home = os.open(".", os.O_RDONLY)
    with scratch_folder("concorde-") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.fchdir(home)
            os.close(home)


@contextmanager
def _silence() -> Iterator[None]:
    """Discard what C code prints.  C's own buffers are emptied on the way in and out."""
    flush = ctypes.CDLL(None).fflush
    sys.stdout.flush()
    sys.stderr.flush()
    flush(None)
    copies = [(fd, os.dup(fd)) for fd in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for fd, _ in copies:
            os.dup2(nowhere, fd)
        yield
    finally:
        flush(None)
        for fd, copy in copies:
            os.dup2(copy, fd)
            os.close(copy)
        os.close(nowhere)


def solve_limited(coords: np.ndarray, seed: int, seconds: float | None = None) -> np.ndarray:
    """Return the best tour (n,) that Concorde finds in LIMIT_S seconds, in a process of its own; or in so many, here.

    It looks at the clock between steps only: of 2,000 nodes, 10 seconds became 44.  Raises NeurouteError if it has not
    looked in twice LIMIT_S.
    """
    if seconds is not None:  # a user's, whose searches are in a process that can be ended
        return solve(coords, seed, seconds)
    try:
        tour: np.ndarray = call(f"{__name__}:solve", 2 * LIMIT_S, coords, seed, LIMIT_S)
    except TimeoutError:
        raise NeurouteError(
            f"concorde: no tour of {len(coords):,} nodes in twice its {LIMIT_S / 3600:g} hours; take the solver 'lkh'"
        ) from None
    return tour


SOLVER = Solver("concorde", True, HOW_TO_GET, version, solve)
# As pens has it: what it found when the time was over may not be optimal.
SIX_HOURS = Solver("concorde-6h", False, HOW_TO_GET, version, solve_limited, limit=lambda _: LIMIT_S)
