"""LKH (Helsgaun) inside this process, through elkai; large instances in rounds, each a process of its own.

So these are bounded, and go on after a kill.  The first round finds candidate edges by POPMUSIC, in memory that grows
with the nodes, and a tour; the others begin with the best tour so far.  Rounds are of so many trials, not seconds, so
that equal seeds give equal tours; the limit in seconds is for a machine that is too slow for them.
"""

import importlib
import json
import logging
import math
import time
from pathlib import Path

import numpy as np

from neuroute.core import limited
from neuroute.core.errors import NeurouteError
from neuroute.core.files import name_aside, scratch_folder, write_json, write_whole
from neuroute.core.limited import call
from neuroute.problems.tsp import tour_length
from neuroute.solvers.base import GRID, Solver, installed_version, positive_seed, tsplib_text

log = logging.getLogger(__name__)
ELKAI = "run `pip install elkai`"
RUNS = 1
PRECISION = 100  # LKH's own: it counts in hundredths
MOST = 2**30  # in which it counts; beyond, an assertion of it ends the whole process
BEST = "best.tour"  # in the folder of a limited process: the best tour so far
NODES = 5_000  # from which LKH works in rounds
ROUNDS = 10  # after the first
NODE_TRIALS = 200_000  # of a round: 20 trials of 10,000 nodes, 2 of 100,000
SECONDS = 6 * 3600.0  # of an instance, at most: as long as pens lets Concorde search


def limit_s(nodes: int) -> float:
    """Seconds for an instance: rounds have a limit, a run has none."""
    return SECONDS if nodes >= NODES else math.inf


def solve_by_elkai(
    coords: np.ndarray, seed: int, seconds: float | None = None, runs: int = RUNS, folder: Path | None = None
) -> np.ndarray:
    """Return the best tour (n,) of so many runs over coords (n, 2); after so many seconds no further trial begins.

    Of a large instance, without `seconds`: of the rounds, whatever the runs, kept in the folder.
    """
    if len(coords) >= NODES and seconds is None:
        return solve_in_rounds(coords, seed, folder)
    return solve_text(tsplib_text(coords), len(coords), seed, seconds, runs=runs)


def solve_text(
    text: str, nodes: int, seed: int, seconds: float | None = None, largest: float = GRID, runs: int = RUNS
) -> np.ndarray:
    """Return what `solve_by_elkai` does, of the text of a TSPLIB file of so many nodes and that largest distance."""
    precision = min(PRECISION, int(MOST // max(largest, 1)))
    parameters = f"RUNS = {runs}\nSEED = {positive_seed(seed)}\nTRACE_LEVEL = 0\nPROBLEM_FILE = :stdin:\n"
    parameters += "" if precision == PRECISION else f"PRECISION = {precision}\n"
    parameters += "" if seconds is None else f"TIME_LIMIT = {seconds}\n"
    if (folder := limited.folder()) is not None:
        parameters += f"OUTPUT_TOUR_FILE = {folder / BEST}\n"
    return run_elkai(parameters, text, f"LKH gave up on an instance of {nodes} nodes; try the solver 'lkh3'")


def countable(ways: np.ndarray) -> np.ndarray:
    """Return whole distances (n, n) in which LKH can count: where some are too large, all are scaled down alike."""
    return ways if ways.max() <= MOST else np.rint(ways * (MOST / ways.max())).astype(np.int64)


def run_elkai(parameters: str, text: str, refusal: str) -> np.ndarray:
    """Return LKH's tour (n,) of the text of a TSPLIB file.  Raises NeurouteError, a `refusal`, if it gives up."""
    elkai = importlib.import_module("elkai._elkai")  # the public functions do not take a seed
    try:
        return np.array(elkai.solve_problem(parameters, text), dtype=np.int64) - 1
    except SystemError:
        raise NeurouteError(refusal) from None


def read_tour(path: Path) -> list[int] | None:
    """Return the nodes of a tour that LKH wrote, which count from 1; None if there is none that is whole."""
    words = path.read_text().partition("TOUR_SECTION")[2].split() if path.exists() else []
    return [int(word) for word in words[: words.index("-1")]] if "-1" in words else None


def solve_in_rounds(
    coords: np.ndarray, seed: int, folder: Path | None = None, rounds: int = ROUNDS, seconds: float = SECONDS
) -> np.ndarray:
    """Return the best tour (n,) of all rounds over coords (n, 2); what they leave is kept in `folder`, if it is given.

    Raises NeurouteError if the time is over before there is a tour.
    """
    if folder is None:
        with scratch_folder("lkh-") as temporary:
            return solve_in_rounds(coords, seed, temporary, rounds, seconds)
    folder.mkdir(parents=True, exist_ok=True)
    text, trials, spent = tsplib_text(coords), max(1, NODE_TRIALS // len(coords)), spent_in(folder)
    for number in range(rounds + 1):
        if (folder / f"{number}.npy").exists():
            continue
        began = time.monotonic()
        try:
            tour = _round(folder, text, positive_seed(seed + number), number, trials, seconds - spent)
        except TimeoutError:
            if not number:
                raise NeurouteError(
                    f"lkh: no tour of {len(coords):,} nodes within {seconds / 3600:g} hours; take a faster machine"
                ) from None
            log.warning("lkh: %d nodes: the time is over after %d of %d rounds", len(coords), number, rounds + 1)
            break
        if number:
            before = _kept(folder, number - 1)
            tour = min(before, tour, key=lambda each: float(tour_length(coords[None], each[None])[0]))
        spent += time.monotonic() - began
        write_json(folder / "spent.json", {"seconds": spent})
        write_whole(folder / f"{number}.npy", lambda file, rows=tour: np.save(file, rows))  # type: ignore[misc]
    return _kept(folder, max(int(path.stem) for path in folder.glob("[0-9]*.npy")))


def _kept(folder: Path, number: int) -> np.ndarray:
    """Return the tour that a round left.  Raises NeurouteError if its file is damaged."""
    try:
        return np.asarray(np.load(folder / f"{number}.npy"))
    except (ValueError, EOFError):
        raise NeurouteError(
            f"{folder}: the tour of round {number} is damaged; delete the folder and run again"
        ) from None


def spent_in(folder: Path) -> float:
    """Return the seconds that rounds in this folder took."""
    path = folder / "spent.json"
    return float(json.loads(path.read_text())["seconds"]) if path.exists() else 0.0


def _round(folder: Path, text: str, seed: int, number: int, trials: int, seconds: float) -> np.ndarray:
    """Return the tour (n,) of a round.  Raises TimeoutError."""
    candidates, parameters = folder / "candidates", ["RUNS = 1", f"SEED = {seed}", "TRACE_LEVEL = 0"]
    new_candidates = name_aside(candidates)
    if number == 0:
        parameters += ["CANDIDATE_SET_TYPE = POPMUSIC", "INITIAL_PERIOD = 1000", "MAX_TRIALS = 1"]
        parameters.append(f"CANDIDATE_FILE = {new_candidates}")
    else:
        before = _kept(folder, number - 1)
        nodes = "\n".join(map(str, before + 1))
        write_whole(
            folder / "tour",
            lambda file: file.write(f"DIMENSION : {len(before)}\nTOUR_SECTION\n{nodes}\n-1\nEOF\n".encode()),
        )
        parameters += [f"MAX_TRIALS = {trials}", f"CANDIDATE_FILE = {candidates}"]
        parameters.append(f"INITIAL_TOUR_FILE = {folder / 'tour'}")
    if seconds <= 0:
        raise TimeoutError
    lines = "\n".join([*parameters, "PROBLEM_FILE = :stdin:", ""])
    refusal = "LKH gave up on a large instance"
    tour: np.ndarray = call(f"{__name__}:run_elkai", seconds, lines, text, refusal)
    if number == 0:
        new_candidates.replace(candidates)
    return tour


LKH = Solver("lkh", False, ELKAI, installed_version("elkai", "lkh", ELKAI), solve_by_elkai, large=NODES, limit=limit_s)
# For references: one run is 0.0044 % above the optimum on 1,500 instances of 100 nodes, of which it misses 3.9 %.
LONG = LKH.variant("lkh-long", "solve", runs=10)
