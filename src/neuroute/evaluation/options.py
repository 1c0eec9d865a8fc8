"""From the options of a command line to a decoding, and which instances can be decoded so."""

from typing import get_args

import numpy as np

from neuroute.errors import NeurouteError
from neuroute.plan.objects import Decoding
from neuroute.problems.longest import SHORTEST

STARTS: tuple[str, ...] = get_args(Decoding.model_fields["start"].annotation)


def choose_decoding(
    beam: int, rrc: int, rescale: float = 1.0, prc: int = 0, start: str | None = None, longest: int | None = None
) -> Decoding:
    """The decoding that options of the command line ask for.  Raises NeurouteError for those that do not go together.

    That `longest` is not above the stops of an instance is checked where the instances are known.
    """
    if not (rescale > 0 and np.isfinite(rescale)):
        raise NeurouteError(
            f"--rescale {rescale:g}: coordinates are stretched by a number above 0; 1 leaves them as they are"
        )
    if (beam > 1) + (rrc > 0) + (prc > 0) > 1:
        raise NeurouteError(
            "--beam, --rrc and --prc exclude each other: --rrc starts from the greedy solution, --prc from --start"
        )
    if not prc and (start, longest) != (None, None):
        raise NeurouteError("--start and --longest are for --prc; say how many iterations, as in --prc 100")
    if start is not None and start not in STARTS:
        raise NeurouteError(f"--start {start}: unknown; take {', '.join(STARTS)}")
    if longest is not None and longest < SHORTEST:
        raise NeurouteError(f"--longest {longest}: a sub-path has at least {SHORTEST} stops; give {SHORTEST} or more")
    if prc:
        how = {"iterations": prc, "start": start or "greedy", "longest": longest, "rescale": rescale}
        return Decoding.model_validate({"method": "prc", **how})
    if rrc:
        return Decoding(method="rrc", iterations=rrc, rescale=rescale)
    return Decoding(method="beam" if beam > 1 else "greedy", beam=beam, rescale=rescale)


def check_decoding(problem: str, stops: int, decoding: Decoding, where: str) -> None:
    """Raises NeurouteError when instances with so many stops (CVRP: customers) cannot be decoded so."""
    if problem == "cvrp" and decoding.rescale != 1:
        raise NeurouteError("--rescale: stretches the coordinates of the TSP only; leave it out for the CVRP")
    if decoding.longest is not None and decoding.longest > stops:
        raise NeurouteError(
            f"{where}: --longest {decoding.longest} is more than its {stops} stops; give a number from {SHORTEST} to "
            f"{stops}, or leave it out"
        )
