"""How paper `pens` tests (Section 5.1, Tables 2 and 3), beside what stands for it here."""

from collections.abc import Iterator

from neuroute.papers.pens.roles import ESF, GREEDY, SIZES, SMALL_SIZES, TIMED, reference
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.claims import AVERAGING, Protocol, on_benchmark
from neuroute.plan.config import Scale
from neuroute.plan.decodings import Decoding
from neuroute.rendering.cells import MEAN_OF_GAPS

COUNTS = {100: 128, 250: 128, 500: 128, 1000: 128, 10_000: 10}
FIVE = Decoding(repeats=5)
RESCALED = Decoding(repeats=5, rescale="best")
TIMES = (TIMED, TIMED.model_copy(update={"esf": True}))
SOLVERS = dict.fromkeys(SIZES[:-1], "Concorde") | {SIZES[-1]: "Concorde, at most 6 h"}
SMALL = ("figure5", "table_figure5")
MEAN = AVERAGING[MEAN_OF_GAPS]


def protocol(scale: Scale) -> Iterator[Protocol]:
    """The uniform test sets, those of the models trained on TSP20, and TSPLIB."""
    p = scale[PensScale]
    ways = (GREEDY, ESF, FIVE, RESCALED)
    large = (*(f"table{i}" for i in (1, 2, 3, 4)), "figure1", "figure4", "table_figure4")
    for size in SIZES:
        for count in dict.fromkeys((p.test_counts[size], p.timed_counts[size])):
            labels = reference(scale, size, count)
            solver = SOLVERS[size]
            yield Protocol(
                f"TSP{size}",
                labels,
                COUNTS[size],
                solver,
                (*ways, *TIMES),
                averaging=MEAN,
                shown=MEAN_OF_GAPS,
                only=large,
            )
    for size in SMALL_SIZES:
        labels = reference(scale, size)
        yield Protocol(f"TSP{size}", labels, None, "Concorde", (FIVE,), averaging=MEAN, shown=MEAN_OF_GAPS, only=SMALL)
    yield on_benchmark("tsplib", 72, *ways)
