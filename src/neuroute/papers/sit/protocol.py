"""How paper `sit` tests (Section 5, Appendices F to H), beside what stands for it here."""

from collections.abc import Iterator

from neuroute.papers.sit.roles import INITIAL, LONGEST, PROBLEMS, SIZES, SMALL_SIZES, TAM_SIZES, reference, small, tam
from neuroute.plan.claims import Protocol, on_benchmark
from neuroute.plan.config import Scale
from neuroute.plan.decodings import Decoding, beam_search
from neuroute.plan.objects import Problem

COUNTS = {1000: 128, 5000: 16, 10_000: 16, 50_000: 16, 100_000: 16}
SOLVERS: dict[Problem, str] = {"tsp": "LKH3", "cvrp": "HGS"}
SMALL_SOLVERS: dict[Problem, str] = {"tsp": "Concorde", "cvrp": "HGS"}
SOURCES: dict[Problem, dict[int, str]] = {"tsp": {1000: "files of Fu et al.", 10_000: "files of Fu et al."}, "cvrp": {}}
GREEDY, RRC, BEAM = Decoding(), Decoding(method="rrc", iterations=1000, longest=1000), beam_search(16)
POMO = Decoding(starts="all", augment=True)
BUDGETS = (10, 50, 100, 500, 1000)


def protocol(scale: Scale) -> Iterator[Protocol]:
    """Five sizes of both problems, TAM's and small instances, TSPLIB and CVRPLIB."""
    for problem in PROBLEMS:
        start = INITIAL[problem]
        name = problem.upper()
        budgets = Decoding(method="prc", start=start, iterations=1000, milestones=BUDGETS)
        from_others = tuple(Decoding(method="prc", start=other, iterations=100) for other in ("greedy", "nearest"))
        lengths = tuple(Decoding(method="prc", start=start, iterations=100, longest=most) for most in LONGEST)
        for size in SIZES:
            # Beams and POMO end, by memory, at 5K; random re-construct by time at 10K.
            searches = (RRC, BEAM, POMO) if size <= 5000 else (RRC,) if size == 10_000 else ()
            ways = (GREEDY, *searches, budgets, *from_others, *(lengths if (problem, size) == ("tsp", 10_000) else ()))
            yield Protocol(
                f"{name}{size}", reference(scale, problem, size), COUNTS[size], SOLVERS[problem], ways,
                source=SOURCES[problem].get(size, "drawn"),
            )  # fmt: skip
        for size in SMALL_SIZES:
            capacity = " C=100" if problem == "cvrp" else ""
            searched = (GREEDY, POMO, Decoding(method="prc", start=start, iterations=10))
            yield Protocol(
                f"{name}{size}{capacity}", small(scale, problem, size), None, SMALL_SOLVERS[problem], searched
            )
    for size in TAM_SIZES:
        name = f"CVRP{size} C={200 if size == 1000 else 300}"
        yield Protocol(name, tam(scale, size), None, "none", shown=None, averaging="no gaps", source="files of TAM")
    for problem in PROBLEMS:
        prc = Decoding(method="prc", start=INITIAL[problem], iterations=1000)
        ways = (GREEDY, RRC, BEAM, prc)
        yield on_benchmark("tsplib", 33, *ways) if problem == "tsp" else on_benchmark("cvrplib", 14, *ways)
