"""Paper `scaling`: its block in a scale file, models and test sets by the paper's numbers, and trainings."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.claims import Protocol, on_benchmark
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Need
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.shapes import BaselineShape, DeepNarrow, Nodes, Positive, TrainingChange, names_each
from neuroute.pipeline.plan.shapes import Shape as DecoderShape
from neuroute.specs.data import training_blocks
from neuroute.specs.objects import (
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    Distribution,
    Labels,
    Measurement,
    Network,
    Run,
    SelfImprovement,
    Spec,
    Split,
    Supervised,
    Test,
    Training,
    beam_search,
)

SIZES = (100, 200, 500, 1000)
DEEP_NARROW = {"24x64", "96x32"}  # Table 2's models that are not the paper's twelve
CHANGED = {"small01M", "norezero", "data1M", "data10M"}
FEW_RUNS = {f"small01M_{model}" for model in ("6x128", "6x512", "42x128")}  # Table 3's, each by itself


class CvrpBaseline(BaselineShape):
    """LEHD for the CVRP, which no table of this paper shows: others borrow it."""

    customers: Nodes
    test_count: Positive
    validation_count: Positive
    label_solver: str = "hgs-short"
    reference_solver: str = "hgs"
    training: Supervised


Model = Annotated[str, Field(pattern=r"^[1-9]\d*x[1-9]\d*$")]  # "18x192"


class Rates(Spec):
    """Learning rates by shape, our own: the best of short trainings at the grid's corners, interpolated between them.

    Beyond the corners the nearest one counts.  Table 22 shows the validation gaps that chose.
    """

    tried: Annotated[
        dict[Model, Annotated[list[float], Field(min_length=2)]],
        Field(description="corner of the grid, by the paper's numbers -> rates that short trainings compare"),
    ]
    best: Annotated[dict[Model, float], Field(description="corner of the grid -> the rate with the lowest gap")]
    part: Annotated[int, Field(ge=2, description="a short training has this part of the samples")]

    @model_validator(mode="after")
    def _best_are_tried(self) -> "Rates":
        for corner, rate in self.best.items():
            if rate not in self.tried.get(corner, ()):
                raise ValueError(f"best: {corner} has {rate:g}, which is not tried there; add it to tried.{corner}")
        return self

    def of(self, model: DeepNarrow, corners: dict[str, DeepNarrow]) -> float:
        """Interpolate the logarithms of the corners' rates in those of depth and width, to three digits."""
        depths, widths = (sorted({getattr(c, key) for c in corners.values()}) for key in ("depth", "width"))
        at_depth, at_width = _place(model.depth, *depths), _place(model.width, *widths)
        rate = 0.0
        for name, corner in corners.items():
            share = (at_depth if corner.depth == depths[1] else 1 - at_depth) * (
                at_width if corner.width == widths[1] else 1 - at_width
            )
            rate += share * math.log(self.best[name])
        return float(f"{math.exp(rate):.3g}")


def _place(value: int, low: int, high: int) -> float:
    """Where a number lies between two others by its logarithm, from 0 to 1."""
    return min(max(math.log(value / low) / math.log(high / low), 0.0), 1.0)


def at_rate(training: Supervised, rate: float) -> Supervised:
    """Return a training at another rate, which falls to the same share of it."""
    final = training.final_learning_rate
    scaled = final and float(f"{final * rate / training.learning_rate:.3g}")
    return training.model_copy(update={"learning_rate": rate, "final_learning_rate": scaled})


def part_of(training: Supervised, part: int) -> Supervised:
    """Return a training on so small a part of the samples, with a whole schedule of its own."""
    t = training
    small = {"samples": t.samples // part, "warmup_batches": t.warmup_batches // part}
    return t.model_copy(update=small | {"validations": max(1, t.validations // part)})


class ScalingScale(Spec):
    """What the roles of paper `scaling` stand for at this scale.  Keys are the paper's numbers."""

    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> nodes here")]
    rival_solver: Annotated[str, Field(description="Tables 12 to 16: solver of LKH3's row")] = "lkh"
    rival_on: Annotated[
        Literal["in-domain", "all"], Field(description="the test sets that it is run on: Table 12's, or all")
    ] = "in-domain"
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances here")]
    shifted_counts: Annotated[
        dict[int, Positive], Field(description="Tables 14-16: the paper's n -> test instances here; default: as above")
    ] = {}
    validation_count: Annotated[int, Field(ge=1, description="validation instances")] = 1000
    depths: Annotated[
        dict[Positive, Positive], Field(description="depth -> layers here: the paper's, and others that join the grid")
    ]
    widths: Annotated[
        dict[Positive, DecoderShape],
        Field(description="width -> shape here: the paper's, and others that join the grid"),
    ]
    more_models: Annotated[
        dict[Model, DeepNarrow], Field(description="single models that join the grid: '18x192'")
    ] = {}
    deep_narrow: Annotated[
        dict[Literal["6x128", "24x64", "96x32"], DeepNarrow],
        Field(description="Table 2's shapes: '24x64', '96x32', and '6x128' where it is not the grid's"),
    ]
    beams: Annotated[dict[int, Positive], Field(description="Table 18's beam widths -> beam widths here")]
    beam_count: Annotated[int, Field(ge=1, description="Table 18, Figures 4 and 6: test instances")]
    budgets: Annotated[
        dict[str, dict[Literal["limited", "sufficient"], Positive]],
        Field(description="Table 4: model -> beam width of each budget"),
    ]
    budget_count: Annotated[int, Field(ge=1, description="Table 4: test instances")]
    latency_batches: Annotated[dict[int, Positive], Field(description="Table 17: batch size -> here")]
    rrc: Annotated[dict[int, Positive], Field(description="Table 19: iterations of random re-construct -> here")]
    rrc_counts: Annotated[dict[int, Positive], Field(description="Table 19: the paper's n -> test instances here")]
    tsplib_max_nodes: Annotated[int, Field(ge=51, description="Table 6: instances below this many nodes")] = 5000
    probe_count: Annotated[int, Field(ge=1, description="Figure 12: test instances with optimal tours")] = 1000
    training: Supervised
    rates: Annotated[
        Rates | None, Field(description="learning rates by shape instead of training's; null: one for all models")
    ] = None
    parts: Annotated[
        list[Annotated[int, Field(ge=2)]],
        Field(description="Figure 3: parts of the samples, each with a training of its own; none: gaps while training"),
    ] = []
    changes: Annotated[
        dict[str, TrainingChange],
        Field(description="Tables 3 and 11, Figure 8: what runs change of `training`; one run: deep_24x64"),
    ]
    lehd: Annotated[dict[str, BaselineShape], Field(description="Table 20's shapes of LEHD: '6x128', '24x64'")]
    lehd_training: Supervised
    lehd_cvrp: CvrpBaseline
    bq: BaselineShape
    bq_training: Supervised
    sigd: BaselineShape
    sigd_training: SelfImprovement

    _named = names_each(
        sizes=SIZES,
        test_counts=SIZES,
        beams={1, 2, 4, 8, 16, 32, 64},
        budgets={"6x128", "6x512", "24x128", "42x128"},
        latency_batches={50, 100, 1000},
        rrc={100, 200, 500, 800, 1000},
        rrc_counts={100, 1000},
        lehd={"6x128", "24x64"},
    )

    def model(self, depth: int, width: int) -> DeepNarrow:
        """What a model of the grid is here."""
        if single := self.more_models.get(f"{depth}x{width}"):
            return single
        here = self.widths[width]
        return DeepNarrow(depth=self.depths[depth], width=here.width, heads=here.heads)

    @property
    def corners(self) -> dict[str, DeepNarrow]:
        """The least and the most of the paper's depths and widths."""
        return {f"{depth}x{width}": self.model(depth, width) for depth in (6, 42) for width in (128, 512)}

    def recipe(self, model: DeepNarrow) -> Supervised:
        """How a model of the grid is trained: at the rate of its shape, where the scale has such."""
        return self.training if self.rates is None else at_rate(self.training, self.rates.of(model, self.corners))

    @model_validator(mode="after")
    def _grid_holds_the_papers(self) -> "ScalingScale":
        for name, numbers in {"depths": {6, 12, 24, 42}, "widths": {128, 256, 512}}.items():
            if missing := numbers - set(getattr(self, name)):
                raise ValueError(
                    f"{name} must name the paper's {sorted(numbers)}, and may name more; add {min(missing)}"
                )
        crossed = {f"{depth}x{width}" for depth in self.depths for width in self.widths}
        if twice := sorted(crossed & set(self.more_models)):
            raise ValueError(f"more_models: depths and widths have {twice[0]} already; leave it out")
        if missing_deep := sorted(DEEP_NARROW - set(self.deep_narrow)):
            raise ValueError(f"deep_narrow must name '24x64' and '96x32'; add {missing_deep[0]}")
        if deep := sorted((crossed | set(self.more_models)) & DEEP_NARROW):
            raise ValueError(
                f"{deep[0]} is a model of Table 2; change it in deep_narrow, or name another depth or width"
            )
        return self

    @model_validator(mode="after")
    def _rates_are_of_the_corners(self) -> "ScalingScale":
        if self.rates is not None:
            for key in ("tried", "best"):
                if missing := sorted(set(self.corners) ^ set(getattr(self.rates, key))):
                    raise ValueError(
                        f"rates.{key} must name exactly the grid's corners {sorted(self.corners)}; "
                        f"{missing[0]} is {'no corner' if missing[0] not in self.corners else 'missing'}"
                    )
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> "ScalingScale":
        single = {f"deep_{shape}" for shape in self.deep_narrow} | FEW_RUNS
        if set(self.changes) - single != CHANGED:
            may = ", ".join(sorted(single))
            raise ValueError(f"changes must name {sorted(CHANGED)}, and may name {may}; got {sorted(self.changes)}")
        for name, count, limit in (
            ("beam_count", self.beam_count, self.test_counts[100]),
            ("budget_count", self.budget_count, self.test_counts[100]),
            ("probe_count", self.probe_count, self.test_counts[100]),
            ("rrc_counts.100", self.rrc_counts[100], self.test_counts[100]),
            ("rrc_counts.1000", self.rrc_counts[1000], self.test_counts[1000]),
        ):
            if count > limit:
                raise ValueError(f"{name} is {count}, but test_counts has only {limit} instances")
        return self


KEY = "scaling"


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
TIMED = parse_shapes("12x512 24x256")  # Table 17
LEHDS = parse_shapes("6x128 24x64")  # Table 20
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
    return f"{KEY}/{prefix}_{shape}"


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
    dataset = Dataset(distribution=distribution, n=s.sizes[size], count=count or usual)
    return scale.reference(dataset, scale.reference_solver)


def beam_test(scale: Scale) -> Labels:
    """The test set of the beam searches: at the paper's scale the same as the greedy one."""
    return reference(scale, 100, scale[ScalingScale].beam_count)


def probe_test(scale: Scale) -> Labels:
    """The test set whose optimal tours models are led along."""
    return reference(scale, 100, scale[ScalingScale].probe_count)


def validation(scale: Scale) -> Labels:
    return scale.validation(lambda s: reference(s, 100), scale[ScalingScale].validation_count)


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
    is_base, in_domain = test.run.startswith(f"{KEY}/base_"), d.n == s.sizes[100]
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
    return scale.on_benchmark(run, "tsplib", (0, scale[ScalingScale].tsplib_max_nodes))


def probe_needs(scale: Scale) -> list[Need]:
    """Of Figures 10 to 12.

    The first decision of a tour has two right answers; the paper does not say which one it draws.
    """
    nodes = scale[ScalingScale].sizes[100]
    decision = min(max(1, nodes // 10), nodes - 4)
    return [ProbeEvaluation(run=run_id(shape), optimal=probe_test(scale), decision=decision) for shape in PROBED]


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


COUNTS = {100: 10_000, 200: 128, 500: 128, 1000: 128}
SOLVER = "LKH3"
GREEDY, WITHOUT_LOG = Decoding(), Decoding(log_n=False)
BEAMS = tuple(beam_search(width) for width in (1, 2, 4, 8, 16, 32, 64))  # Table 18; Table 5 has some of them
LIMITED = tuple(beam_search(width) for width in (6, 8, 10, 32, 64, 128, 512))  # Table 4
RRC = Decoding(method="rrc", iterations=1000, milestones=(100, 200, 500, 800, 1000))
SEARCHED = ("figure4", "figure6", "table5", "table18")
GREEDILY = tuple(f"figure{i}" for i in (1, 2, 5)) + tuple(f"table{i}" for i in (2, 3, 7, 8, 11, 12, 17, 20))


def protocol(scale: Scale) -> Iterator[Protocol]:
    """The uniform test sets, those of other distributions, and TSPLIB."""
    s = scale[ScalingScale]
    greedy = (GREEDY, WITHOUT_LOG, *(Decoding(batch_size=size) for size in (50, 100, 1000)))  # Table 17
    yield Protocol("TSP100", reference(scale, 100), COUNTS[100], SOLVER, greedy, only=GREEDILY)
    for labels in dict.fromkeys((beam_test(scale), reference(scale, 100))):
        yield Protocol("TSP100", labels, COUNTS[100], SOLVER, BEAMS, only=SEARCHED)
    yield Protocol("TSP100", reference(scale, 100, s.budget_count), 1000, SOLVER, LIMITED, only=("table4",))
    for size in SIZES[1:]:
        ways = (GREEDY, WITHOUT_LOG, *((beam_search(2), beam_search(16)) if size == 1000 else ()))
        others = (*GREEDILY, "table5", "table13")
        yield Protocol(f"TSP{size}", reference(scale, size), COUNTS[size], SOLVER, ways, only=others)
    for size, count in {100: 1000, 1000: 16}.items():
        labels = reference(scale, size, s.rrc_counts[size])
        yield Protocol(f"TSP{size}", labels, count, SOLVER, (RRC,), only=("table19",))
    for distribution in SHIFTED:
        for size in SIZES:
            labels = reference(scale, size, distribution=distribution)
            yield Protocol(f"TSP{size} {distribution}", labels, COUNTS[size], SOLVER)
    yield on_benchmark("tsplib", None)


DECODER_ONLY = "neuroute.networks.decoder_only:DecoderOnly"
LEHD = "neuroute.networks.lehd:Lehd"
LEHD_CVRP = "neuroute.networks.lehd:LehdCvrp"
BQ = "neuroute.networks.bq:Bq"


def also_solved(scale: Scale) -> list[Labels]:
    """What LKH3's rows are of: the first test set, or all."""
    distributions: tuple[Distribution, ...] = ("uniform", *SHIFTED)
    tests = [reference(scale, size, distribution=d) for d in distributions for size in SIZES]
    s = scale[ScalingScale]
    return [
        test.model_copy(update={"solver": s.rival_solver})
        for test in tests
        if s.rival_on == "all" or test.dataset == tests[0].dataset
    ]


def runs(config: Config, scale: Scale) -> list[Run]:
    s = scale[ScalingScale]
    trained: dict[str, tuple[dict[str, Any], Network, Supervised | SelfImprovement]] = {}

    def train(name: str, role: dict[str, Any], kind: str, arguments: dict[str, Any], training: Any) -> None:
        network = Network(kind=kind, arguments=arguments | {"train_nodes": s.sizes[100]})
        trained[name] = role, network, training

    def train_decoder(prefix: str, shape: Shape, **without: bool) -> None:
        here = s.deep_narrow[str(shape)] if prefix == "deep" else s.model(*shape)  # type: ignore[index]
        name, training = f"{prefix}_{shape}", s.recipe(here)
        for key in (prefix, name):
            if change := s.changes.get(key):
                training = training.model_copy(update=change.model_dump(exclude_none=True))
        decoder(name, shape, here, training, **without)

    def decoder(name: str, shape: Shape, here: DeepNarrow, training: Supervised, **without: bool) -> None:
        arguments = here.model_dump() | {"gate": True, "rezero": True} | without
        train(name, shape._asdict(), DECODER_ONLY, arguments, training)

    deep = [shape for shape, run in equal_sized(scale).items() if run == run_id(shape, "deep")]
    for prefix, shapes in {"base": grid(scale), "deep": deep, "small01M": FEW}.items():
        for shape in shapes:
            train_decoder(prefix, shape)
    for part in s.parts:
        for shape in SIX:
            here = s.model(*shape)
            decoder(f"part{part}_{shape}", shape, here, part_of(s.recipe(here), part))
    for name, (shape, training) in pilots(scale).items():
        decoder(name, shape, s.model(*shape), training)
    train_decoder("nogate", DEEPEST, gate=False)
    train_decoder("norezero", DEEPEST, rezero=False)
    train_decoder("data1M", DATA)
    train_decoder("data10M", DATA)
    for text, lehd in s.lehd.items():
        role = {"method": "LEHD"} | parse_shapes(text)[0]._asdict()
        train(f"lehd_{text}", role, LEHD, lehd.model_dump(), s.lehd_training)
    train("bq", {"method": "BQ"}, BQ, s.bq.model_dump(), s.bq_training)
    train("sigd", {"method": "SIGD"}, BQ, s.sigd.model_dump(), s.sigd_training)

    learnt = s.lehd_cvrp
    arguments = learnt.model_dump(include=set(BaselineShape.model_fields)) | {"train_nodes": learnt.customers}
    network = Network(kind=LEHD_CVRP, arguments=arguments)
    lehd_cvrp = _run(config, scale, "lehd_cvrp", {"method": "LEHD"}, network, learnt.training)

    def labels(split: Split, count: int, solver: str) -> Labels:
        return Labels(dataset=Dataset(problem="cvrp", split=split, n=learnt.customers, count=count), solver=solver)

    of_cvrp = {
        "n": learnt.customers,
        "data": (labels("train", lehd_cvrp.training.samples, learnt.label_solver),),
        "validation": labels("val", learnt.validation_count, learnt.reference_solver),
    }
    return [*(_run(config, scale, name, *trained[name]) for name in trained), lehd_cvrp.model_copy(update=of_cvrp)]


def _run(
    config: Config,
    scale: Scale,
    name: str,
    role: dict[str, Any],
    network: Network,
    training: Supervised | SelfImprovement,
) -> Run:
    n = scale[ScalingScale].sizes[100]

    def data(t: Training) -> tuple[Labels, ...]:
        return training_blocks(n, t.samples, scale.label_solver) if isinstance(t, Supervised) else ()

    return declare_run(
        config, KEY, name, training, role=role, network=network, n=n, data=data, validation=validation(scale)
    )


PAPER = Paper(
    key=KEY,
    title="Efficient Decoder Scaling Strategy for Neural Routing Solvers",
    scale=ScalingScale,
    runs=runs,
    also_solved=also_solved,
    group=group,
    headline=True,
    test_set=reference,
    protocol=protocol,
)
