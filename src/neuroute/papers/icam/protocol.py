"""How paper `icam` tests (Section 5, Appendix D), beside what stands for it here."""

from collections.abc import Iterator

from neuroute.papers.icam.roles import (
    AUGMENTED,
    LARGE_SIZES,
    MULTI,
    PROBLEMS,
    SINGLE,
    SIZES,
    TAM_SIZES,
    large,
    reference,
)
from neuroute.papers.icam.roles import tam as tam_set
from neuroute.plan.claims import Protocol, on_benchmark
from neuroute.plan.config import Scale
from neuroute.plan.decodings import Decoding, beam_search
from neuroute.plan.objects import Problem

COUNTS = {100: 10_000, 200: 128, 500: 128, 1000: 128}
SOLVERS: dict[Problem, str] = {"tsp": "Concorde", "cvrp": "LKH3"}
GREEDILY = (SINGLE, MULTI, AUGMENTED)
RRC, BEAM = Decoding(method="rrc", iterations=100), beam_search(16)
SEARCHES = tuple(way.model_copy(update={"starts": starts}) for way in (RRC, BEAM) for starts in (1, "all"))


def protocol(scale: Scale) -> Iterator[Protocol]:
    """Four sizes of both problems, larger ones, TAM's, and Set-X."""
    for problem in PROBLEMS:
        ways = GREEDILY + (SEARCHES if problem == "tsp" else ())
        for size in SIZES:
            labels = reference(scale, problem, size)
            yield Protocol(f"{problem.upper()}{size}", labels, COUNTS[size], SOLVERS[problem], ways, "files of LEHD")
    for size in LARGE_SIZES:
        yield Protocol(f"TSP{size}", large(scale, size), None, "LKH3", (SINGLE, MULTI))
    for size in TAM_SIZES:
        name, by_lkh3 = f"CVRP{size} C={200 if size == 1000 else 300}", size in (3000, 4000)
        yield Protocol(
            name, tam_set(scale, size), None, "LKH3" if by_lkh3 else "LKH3, as TAM printed it", (SINGLE, MULTI)
        )
    yield on_benchmark("cvrplib", 100, SINGLE, MULTI)
