"""Concorde (Applegate, Bixby, Chvátal and Cook): optimal tours on the 1e-6 grid, with proof.

Any build of pyconcorde's extension module serves: the user's own package, or the one in the wheel of ml4co-kit.  Only
that extension is loaded; the package around it is never imported.
"""

import ctypes
import importlib.util
import os
import sys
import tempfile
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
from neuroute.solvers.base import Solver, missing, positive_seed, tsplib_text

HOW_TO_GET = (
    "run `pip install --no-deps ml4co-kit` (a prebuilt Concorde for Linux x86-64) or build pyconcorde; "
    "free for academic use only"
)
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


def solve(coords: np.ndarray, seed: int) -> np.ndarray:
    """Return an optimal tour (n,) of coords (n, 2).  Raises NeurouteError if Concorde stops without a proof."""
    concorde = _extension()
    with _scratch_folder(), _silence():
        Path("instance.tsp").write_text(tsplib_text(coords))
        n, data = concorde._CCutil_gettsplib("instance.tsp")
        if data is None:
            raise NeurouteError("Concorde could not read the instance; is the temporary folder full?")
        tour, _, success, found, _ = concorde._CCtsp_solve_dat(n, data, "instance", -1.0, 1, positive_seed(seed))
    if not (success and found):
        raise NeurouteError(f"Concorde ended without an optimal tour of {len(coords)} nodes; try another seed")
    return np.asarray(tour, dtype=np.int64)


@contextmanager
def _scratch_folder() -> Iterator[None]:
    """Work in a temporary folder: Concorde leaves restart files where it runs."""
    home = os.open(".", os.O_RDONLY)
    with tempfile.TemporaryDirectory(prefix="neuroute-concorde-") as folder:
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
    kept = [(fd, os.dup(fd)) for fd in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for fd, _ in kept:
            os.dup2(nowhere, fd)
        yield
    finally:
        flush(None)
        for fd, copy in kept:
            os.dup2(copy, fd)
            os.close(copy)
        os.close(nowhere)


SOLVER = Solver("concorde", True, HOW_TO_GET, version, solve)
