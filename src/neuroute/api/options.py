"""From options of the command line to a decoding, and which instances can be decoded so."""

import math
import re
from typing import Any

from neuroute.core.errors import NeurouteError
from neuroute.core.yaml_files import validate
from neuroute.problems.longest import SHORTEST
from neuroute.specs.decodings import Revision, parse_decoding
from neuroute.specs.objects import Decoding


def choose_decoding(
    beam: int,
    rrc: int,
    rescale: float = 1.0,
    prc: int = 0,
    start: str | None = None,
    longest: int | None = None,
    starts: str | None = None,
    augment: bool = False,
    images: int = 1,
    revise: str | None = None,
    name: str | None = None,
) -> Decoding | None:
    """Return the decoding that options of the command line ask for; None: they ask for none.

    `name`: that of `--decoding`, which goes without the others.  Raises NeurouteError if they do not go together.
    That `longest` and `starts` are not above the stops of an instance is checked where the instances are known, and
    that a network has many starts where the network is.
    """
    others = (beam, rrc, prc, rescale, start, longest, starts, augment, images, revise)
    if others == (1, 0, 0, 1.0, None, None, None, False, 1, None):
        return None if name is None else parse_decoding(name)
    if name is not None:
        raise NeurouteError(f"--decoding {name}: says all; leave the other ways to build solutions out")
    if not (rescale > 0 and math.isfinite(rescale)):
        raise NeurouteError(
            f"--rescale {rescale:g}: coordinates are stretched by a number above 0; 1 leaves them as they are"
        )
    if (beam > 1) + (rrc > 0) + (prc > 0) > 1:
        raise NeurouteError(
            "--beam, --rrc and --prc exclude each other: --rrc starts from the greedy solution, --prc from --start"
        )
    if revise is not None:
        if others[:-1] != (1, 0, 0, 1.0, None, None, None, False, 1):
            raise NeurouteError("--revise starts from random insertion; leave the other ways to build solutions out")
        return Decoding(method="revise", start="insertion", revision=_parse_revision(revise))
    if not prc and (start, longest) != (None, None):
        raise NeurouteError("--start and --longest are for --prc; say how many iterations, as in --prc 100")
    if starts not in (None, "all") and not (starts.isascii() and starts.isdigit() and int(starts)):
        raise NeurouteError(f"--starts {starts}: a number from 1 on, or all, is expected")
    how: dict[str, Any] = {"method": "prc" if prc else "rrc" if rrc else "beam" if beam > 1 else "greedy"}
    how |= {
        "iterations": prc or rrc,
        "beam": beam,
        "start": start or "greedy",
        "longest": longest,
        "starts": 1 if starts is None else starts,
    }
    how |= {"rescale": rescale, "augment": augment, "images": images}
    return validate(Decoding, how, "ways to build solutions", see="`neuroute solve --help`")


def _parse_revision(text: str) -> Revision:
    """100x20,50x25,w10,noflips: blocks of 100 and then of 50 nodes, from ten insertions."""
    parts = text.split(",")
    blocks = [(int(m[1]), int(m[2])) for part in parts if (m := re.fullmatch(r"(\d+)x(\d+)", part, re.ASCII))]
    widths = [int(part[1:]) for part in parts if re.fullmatch(r"w\d+", part, re.ASCII)]
    flat = parts.count("noflips")
    well_formed = len(blocks) + len(widths) + flat == len(parts) and len(widths) <= 1
    if (
        not well_formed
        or not blocks
        or min(widths, default=1) < 1
        or any(nodes < 4 or often < 1 for nodes, often in blocks)
    ):
        raise NeurouteError(
            f"--revise {text}: give NODESxITERATIONS (4 nodes or more), as in 100x20,50x25; add ,w10 for the best of "
            "ten insertions, ,noflips to leave flips out"
        )
    return Revision(blocks=tuple(blocks), width=max(widths, default=1), flips="none" if flat else "blocks")


def check_decoding(problem: str, stops: int, decoding: Decoding, where: str) -> None:
    """Raises NeurouteError if instances with so many stops (with vehicles: customers) cannot be decoded so."""
    if problem != "tsp" and decoding.rescale != 1:
        raise NeurouteError(
            f"--rescale: stretches the coordinates of the TSP only; leave it out for the {problem.upper()}"
        )
    if decoding.starts != "all" and decoding.starts > stops:
        raise NeurouteError(
            f"{where}: --starts {decoding.starts} is more than its {stops} stops; give from 1 to {stops}, or all"
        )
    if decoding.longest is not None and decoding.longest > stops:
        raise NeurouteError(
            f"{where}: --longest {decoding.longest} is more than its {stops} stops; give {SHORTEST} to {stops}, or "
            "leave it out"
        )
