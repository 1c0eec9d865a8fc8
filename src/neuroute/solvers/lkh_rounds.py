"""LKH on large instances: in rounds, each a process of its own, so that it is bounded and goes on after a kill.

The first round finds candidate edges by POPMUSIC, in memory that grows with the nodes, and a tour; the others begin
with the best tour so far.  Rounds are of so many trials, not seconds, so that equal seeds give equal tours; the limit
in seconds is for a machine that is too slow for them.
"""

import importlib
import json
import logging
import time
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import name_aside, write_json, write_whole
from neuroute.core.private import scratch_folder
from neuroute.problems.tsp import tour_length
from neuroute.solvers.base import positive_seed, tsplib_text
from neuroute.solvers.limited import call

log = logging.getLogger(__name__)
NODES = 5_000  # from which LKH works this way
ROUNDS = 10  # after the first
NODE_TRIALS = 200_000  # of a round: 20 trials of 10,000 nodes, 2 of 100,000
SECONDS = 6 * 3600.0  # of an instance, at most: as long as pens lets Concorde search


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
            before = np.load(folder / f"{number - 1}.npy")
            tour = min(before, tour, key=lambda each: float(tour_length(coords[None], each[None])[0]))
        spent += time.monotonic() - began
        write_json(folder / "spent.json", {"seconds": spent})
        write_whole(folder / f"{number}.npy", lambda file, rows=tour: np.save(file, rows))  # type: ignore[misc]
    return np.asarray(np.load(folder / f"{max(int(path.stem) for path in folder.glob('[0-9]*.npy'))}.npy"))


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
        before = np.load(folder / f"{number - 1}.npy")
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
    tour: np.ndarray = call(f"{__name__}:solve_text", seconds, lines, text)
    if number == 0:
        new_candidates.replace(candidates)
    return tour


def solve_text(parameters: str, text: str) -> np.ndarray:
    """Return LKH's tour (n,) of the text of a TSPLIB file.  Raises NeurouteError if it gives up."""
    elkai = importlib.import_module("elkai._elkai")
    try:
        return np.array(elkai.solve_problem(parameters, text), dtype=np.int64) - 1
    except SystemError:
        raise NeurouteError("LKH gave up on a large instance") from None
