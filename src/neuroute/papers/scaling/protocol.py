"""How paper `scaling` tests (Sections 3 and 5, Appendices B to G), beside what stands for it here."""

from collections.abc import Iterator

from neuroute.papers.scaling import steps
from neuroute.papers.scaling.cvrp import grid_tests
from neuroute.papers.scaling.roles import SHIFTED, SIZES, reference, searched
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.claims import NOT_STATED, Protocol, on_benchmark
from neuroute.plan.config import Scale
from neuroute.plan.decodings import Decoding, beam_search

COUNTS = {100: 10_000, 200: 128, 500: 128, 1000: 128}
SOLVER = "LKH3"
GREEDY, WITHOUT_LOG = Decoding(), Decoding(log_n=False)
LATENCY = tuple(Decoding(batch_size=size) for size in (50, 100, 1000))  # Table 17
BEAMS = tuple(beam_search(width) for width in (1, 2, 4, 8, 16, 32, 64))  # Table 18; Table 5 has some of them
LIMITED = tuple(beam_search(width) for width in (6, 8, 10, 32, 64, 128, 512))  # Table 4
RRC = Decoding(method="rrc", iterations=1000, milestones=(100, 200, 500, 800, 1000))
SEARCHED = ("figure4", "figure6", "table5", "table18")
GREEDILY = tuple(f"figure{i}" for i in (1, 2, 5, 16)) + tuple(f"table{i}" for i in (2, 3, 7, 8, 11, 12, 17, 20))


def protocol(scale: Scale) -> Iterator[Protocol]:
    """The uniform test sets, those of other distributions, those of our own figures, and TSPLIB."""
    s = scale[ScalingScale]
    greedy = (GREEDY, WITHOUT_LOG, *LATENCY)
    yield Protocol("TSP100", reference(scale, 100), COUNTS[100], SOLVER, greedy, only=GREEDILY)
    for labels in dict.fromkeys((searched(scale), reference(scale, 100))):
        yield Protocol("TSP100", labels, COUNTS[100], SOLVER, BEAMS, only=SEARCHED)
    yield Protocol("TSP100", reference(scale, 100, s.budget_count), 1000, SOLVER, LIMITED, only=("table4",))
    for size in SIZES[1:]:
        ways = (GREEDY, WITHOUT_LOG, *((beam_search(2), beam_search(16)) if size == 1000 else ()))
        others = tuple(name for name in (*GREEDILY, "table5", "table13"))
        yield Protocol(f"TSP{size}", reference(scale, size), COUNTS[size], SOLVER, ways, only=others)
    for size, count in {100: 1000, 1000: 16}.items():
        labels = reference(scale, size, s.rrc_counts[size])
        yield Protocol(f"TSP{size}", labels, count, SOLVER, (RRC,), only=("table19",))
    for distribution in SHIFTED:
        for size in SIZES:
            labels = reference(scale, size, distribution=distribution)
            yield Protocol(f"TSP{size} {distribution}", labels, COUNTS[size], SOLVER)
    for labels in grid_tests(scale):
        yield Protocol("none, our own", labels, None, NOT_STATED, averaging=NOT_STATED)
    for labels in steps.tests(scale):
        yield Protocol("none, our own", labels, None, NOT_STATED, averaging=NOT_STATED, only=("table21", "figure17"))
    yield on_benchmark("tsplib", None)
