"""How paper `mvmoe` tests (Section 5, Appendix C), beside what stands for it here."""

from collections.abc import Iterator

from neuroute.papers.mvmoe.roles import CONSTRUCTED, FEW, SIZES, VARIANTS, X8, adapted, constructed, reference
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.plan.claims import AVERAGING, Protocol, on_benchmark
from neuroute.plan.config import Scale
from neuroute.plan.decodings import Decoding
from neuroute.rendering.cells import MEAN_OF_GAPS

SOURCE = "files of its authors"
MEAN = AVERAGING[MEAN_OF_GAPS]
BY_LKH = ("OVRP", "VRPL")  # at n = 100


def solver(variant: str, size: int) -> str:
    """The solver with the best mean, which the paper marks with a star."""
    if variant in ("CVRP", "VRPTW"):
        return "HGS"
    return "LKH3" if size == SIZES[-1] and variant in BY_LKH else "OR-Tools (x10)"


def protocol(scale: Scale) -> Iterator[Protocol]:
    """The sixteen problems at two sizes, timed instances, Set-X and Solomon's."""
    for size in SIZES:
        for variant in VARIANTS:
            labels, name = reference(scale, variant, size), f"{variant}{size}"
            yield Protocol(name, labels, 1000, solver(variant, size), (X8,), SOURCE, MEAN, shown=MEAN_OF_GAPS)
    for variant in FEW if scale[MvmoeScale].few_shot_count else ():
        labels, name = adapted(scale, variant), f"{variant}{SIZES[0]}, few-shot"
        yield Protocol(name, labels, 1000, solver(variant, SIZES[0]), (X8,), SOURCE, MEAN, shown=MEAN_OF_GAPS)
    for variant in VARIANTS:
        name = f"{variant}{CONSTRUCTED}"
        yield Protocol(name, constructed(scale, variant), None, "no gaps", (X8,), averaging="no gaps", shown=None)
    searched = (Decoding(), X8, Decoding(method="rrc", iterations=100))
    yield on_benchmark("cvrplib", 28, X8, only=("table7",))
    yield on_benchmark("solomon", 28, X8, only=("table7",))
    yield on_benchmark("cvrplib", 32, *searched, only=("table8",))
