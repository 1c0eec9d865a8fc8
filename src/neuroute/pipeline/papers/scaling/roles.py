"""The models and test sets of paper `scaling`, by the paper's own numbers, whatever they are at a scale."""

from collections.abc import Iterator
from typing import ClassVar, Literal, NamedTuple

from neuroute.pipeline.papers.scaling.scale import SIZES as SIZES
from neuroute.pipeline.papers.scaling.scale import ScalingScale, at_rate, part_of
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need
from neuroute.specs.evaluations import Measurement, Test
from neuroute.specs.objects import BenchmarkEvaluation, Dataset, Decoding, Distribution, Labels, Supervised

PAPER = "scaling"


class Shape(NamedTuple):
    """The paper's depth and width of a model: its role, whatever its size here."""

    depth: int
    width: int

    def __str__(self) -> str:
        return f"{self.depth}x{self.width}"

    @property
    def name(self) -> str:
        return f"({self.depth}, {self.width})"


def parse_shapes(texts: str) -> tuple[Shape, ...]:
    """Read "6x128 24x64"."""
    return tuple(Shape(*map(int, text.split("x"))) for text in texts.split())


DEPTHS, WIDTHS = (6, 12, 24, 42), (128, 256, 512)

SHIFTED: tuple[Distribution, ...] = ("explosion", "implosion", "cluster")  # Tables 14-16
GRID = [Shape(depth, width) for depth in DEPTHS for width in WIDTHS]
DEEP = parse_shapes("24x64 96x32")  # Table 2
FEW = PROBED = parse_shapes("6x128 6x512 42x128")  # Table 3, Figures 10-12
BUDGETED = parse_shapes("6x128 6x512 24x128 42x128")  # Table 4
COMPARED = parse_shapes("6x128 6x512 42x128 42x512")  # Tables 5, 6 and 19
LOG_N = parse_shapes("6x128 6x256 6x512 42x128")  # Table 8: its wide row has two models mixed up, so both
LATENCY = parse_shapes("12x512 24x256")  # Table 17
LEHD = parse_shapes("6x128 24x64")  # Table 20
SIX = parse_shapes("6x128 12x128 24x128 42x128 6x256 6x512")  # Figures 3 and 4
DEEPEST, DATA = Shape(42, 128), Shape(12, 128)  # of the ablations: Tables 7 and 11, Figures 7 to 9


def grid(scale: Scale) -> list[Shape]:
    """List the models of the grid, shallow and narrow first: the paper's twelve, and those that the scale adds."""
    s = scale[ScalingScale]
    crossed = {Shape(depth, width) for depth in s.depths for width in s.widths}
    return sorted(crossed.union(parse_shapes(" ".join(s.more_models))))


def is_added(shape: Shape) -> bool:
    """Whether a model of the grid is not the paper's."""
    return shape not in GRID


def equal_sized(scale: Scale) -> dict[Shape, str]:
    """Return the runs of Table 2's three models, which have about as many parameters.

    A shape that a model of the grid has here is that model; so may be the shallow one, which is (6, 128) otherwise.
    """
    s = scale[ScalingScale]
    of_grid = {s.model(*shape): run_id(shape) for shape in reversed(grid(scale))}
    here = {str(GRID[0]): s.model(*GRID[0])} | s.deep_narrow
    return {shape: of_grid.get(here[str(shape)], run_id(shape, "deep")) for shape in (GRID[0], *DEEP)}


def run_id(shape: Shape, prefix: str = "base") -> str:
    """Name the run of a shape: of the grid, or of what `prefix` says."""
    return f"{PAPER}/{prefix}_{shape}"


def learning_curve(scale: Scale, shape: Shape) -> list[str]:
    """Return the runs whose ends are the points of Figure 3, the smallest part of the samples first.

    The grid's alone where the scale trains no parts: then gaps while training are the points.
    """
    parts = sorted(scale[ScalingScale].parts, reverse=True)
    return [*(run_id(shape, f"part{part}") for part in parts), run_id(shape)]


def reference(scale: Scale, size: int, count: int | None = None, distribution: Distribution = "uniform") -> Labels:
    """The labelled test set that stands for the paper's TSP`size`."""
    s = scale[ScalingScale]
    usual = s.test_counts[size] if distribution == "uniform" else s.shifted_counts.get(size, s.test_counts[size])
    dataset = Dataset(distribution=distribution, split="test", n=s.sizes[size], count=count or usual)
    return scale.reference(dataset, scale.reference_solver)


def searched(scale: Scale) -> Labels:
    """The test set of the beam searches: at the paper's scale the same as the greedy one."""
    return reference(scale, 100, scale[ScalingScale].beam_count)


def probed(scale: Scale) -> Labels:
    """The test set whose optimal tours models are led along."""
    return reference(scale, 100, scale[ScalingScale].probe_count)


def validation(scale: Scale) -> Labels:
    s = scale[ScalingScale]
    dataset = Dataset(split="val", n=s.sizes[100], count=s.validation_count)
    return Labels(dataset=dataset, solver=scale.reference_solver)


class ProbeEvaluation(Measurement):
    """How a model chooses when it is led along optimal tours (scaling, Appendix H).

    Success by neighbour rank over all of `optimal`; last-layer states at decision `decision` of instance `instance`.
    """

    entry: ClassVar[str] = "neuroute.pipeline.papers.scaling.probe:measure"
    kind: Literal["probe"] = "probe"
    name: str = "probes"
    optimal: Labels
    instance: int = 0
    decision: int = 0

    @property
    def reads(self) -> tuple[Labels, ...]:
        return (self.optimal,)

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        yield self.optimal.dataset, Decoding()


def group(scale: Scale, test: Test) -> str:
    """Which of a run's tests are measured by one job: the largest models take long."""
    s, d, decoding = scale[ScalingScale], test.labels.dataset, test.decoding
    is_base, in_domain = test.run.startswith(f"{PAPER}/base_"), d.n == s.sizes[100]
    if decoding.method == "rrc":
        return "rrc"
    if not decoding.log_n:
        return "without_log"
    if d.distribution != "uniform":
        return "shifted"
    if decoding.method == "beam" or (is_base and in_domain and d.count != s.test_counts[100]):
        return "beam_larger" if is_base and not in_domain else "beam"
    small = test.run.rpartition("/")[2].startswith(("small01M", "bq", "sigd"))
    return "greedy" if in_domain or small or d.problem == "cvrp" else "larger"


def on_tsplib(scale: Scale, run: str) -> BenchmarkEvaluation:
    names = scale.instances_of("tsplib")
    return BenchmarkEvaluation(run=run, max_nodes=scale[ScalingScale].tsplib_max_nodes, names=names)


def probe_needs(scale: Scale) -> list[Need]:
    """Of Figures 10 to 12.

    The first decision of a tour has two right answers; the paper does not say which one it draws.
    """
    nodes = scale[ScalingScale].sizes[100]
    decision = min(max(1, nodes // 10), nodes - 4)
    return [ProbeEvaluation(run=run_id(shape), optimal=probed(scale), decision=decision) for shape in PROBED]


# -- Learning rates by shape: short trainings at the grid's corners, and all that one rate for all costs (our own)


def pilots(scale: Scale) -> dict[str, tuple[Shape, Supervised]]:
    """Return the short trainings that compare rates, and whole ones at the one rate, by name."""
    s = scale[ScalingScale]
    if s.rates is None:
        return {}
    runs = dict[str, tuple[Shape, Supervised]]()
    for shape, rates in ((parse_shapes(text)[0], rates) for text, rates in s.rates.tried.items()):
        for rate in rates:
            runs[pilot(shape, rate)] = shape, part_of(at_rate(s.training, rate), s.rates.part)
        runs[run_id(shape, "single").partition("/")[2]] = shape, s.training
    return runs


def pilot(shape: Shape, rate: float) -> str:
    """Name the short training of a corner at a rate."""
    return f"pilot_{shape}_{rate:g}"
