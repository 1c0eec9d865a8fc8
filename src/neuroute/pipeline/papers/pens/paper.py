"""Paper `pens`: its block in a scale file, models and test sets by the paper's numbers, and trainings."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.claims import AVERAGING, Protocol, on_benchmark
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Need, group_of, tested
from neuroute.pipeline.plan.paper import Paper, borrow_runs
from neuroute.pipeline.plan.shapes import BaselineShape, Nodes, Positive, names_each
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import BOOTSTRAP, MEAN_OF_GAPS, ONE_SEED, printed_numbers, solver_name
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import described
from neuroute.specs.data import training_blocks
from neuroute.specs.objects import (
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    Labels,
    Measurement,
    Network,
    RescalingEvaluation,
    Run,
    Spec,
    Supervised,
    Sweep,
    Test,
)

SIZES = (100, 250, 500, 1000, 10_000)


class PensShape(BaselineShape):
    """A shape whose heads axial RoPE can split: pairs of channels for x and for y (pens, Section 4.1)."""

    @model_validator(mode="after")
    def _heads_split(self) -> "PensShape":
        if self.width // self.heads % 4:
            raise ValueError(
                f"RoPE cannot split heads of {self.width // self.heads} channels: width / heads must be a multiple of 4"
            )
        return self


Factor = Annotated[float, Field(gt=0, allow_inf_nan=False, description="of the coordinates")]


class PensScale(Spec):
    """What the roles of paper `pens` stand for at this scale.  Keys are the paper's numbers.

    BQ and LEHD are those of `scaling`, so its TSP100 must be this paper's.
    """

    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> nodes here")]
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances here")]
    timed_counts: Annotated[
        dict[int, Positive], Field(description="the paper's n -> instances that are timed, one at a time")
    ]
    repeats: Annotated[int, Field(ge=1, description="solutions of each instance, with different embeddings")] = 5
    validation_count: Positive = 1000
    largest_solver: Annotated[str, Field(description="solver of the largest test set's reference solutions")]
    network: PensShape
    training: Supervised
    small_network: Annotated[PensShape, Field(description="Figure 5: the models that are trained on TSP20")]
    small_training: Supervised
    sweep_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> held-out instances of a sweep")]
    factors: Annotated[
        dict[int, list[Factor]], Field(description="the paper's n -> scaling factors of its sweep, at least three")
    ]
    attention_factors: Annotated[list[Factor], Field(min_length=1, description="Figure 6: before the best one")]
    tsplib_max_nodes: Annotated[int, Field(ge=51, description="TSPLIB: instances below this many nodes")] = 10_001

    _named = names_each(
        sizes={20, 50, *SIZES}, test_counts={20, 50, *SIZES}, timed_counts=SIZES, sweep_counts=SIZES, factors=SIZES
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> "PensScale":
        for size, count in self.timed_counts.items():
            if count > self.test_counts[size]:
                raise ValueError(f"timed_counts.{size} is {count}, but test_counts has only {self.test_counts[size]}")
        for name, training in (("training", self.training), ("small_training", self.small_training)):
            if (training.sub_paths, training.step) != ("pairs", "decision"):
                raise ValueError(f"{name}: PENS is trained on path-TSPs: `sub_paths: pairs` and `step: decision`")
        if len({self.sizes[role] for role in SIZES}) < len(SIZES):
            raise ValueError(f"sizes {self.sizes}: those of the paper's {list(SIZES)} must all differ")
        for size, factors in self.factors.items():
            if len(set(factors)) < 3 or max(factors) < 1.2 * min(factors):
                raise ValueError(
                    f"factors.{size} {factors}: too narrow for a minimum; give three or more, the largest >= 1.2 times "
                    "the smallest"
                )
        return self


KEY = "pens"

SMALL_SIZES = (20, 50, 100)  # Figure 5
POSITIONS = {"coordns": "coordinates", "pens_a": "alibi", "pens_r": "rope", "pens_ar": "both"}
NAMES = {"coordns": "CoordNS", "pens_a": "PENS-A", "pens_r": "PENS-R", "pens_ar": "PENS-AR"}
RESCALED = ("pens_a", "pens_r", "pens_ar")  # Tables 1 to 3
SMALL = {  # Figure 5: name -> (positions, initial embeddings)
    "small_a_zero": ("alibi", "zero"),
    "small_a_gauss": ("alibi", "gaussian"),
    "small_r_zero": ("rope", "zero"),
    "small_r_gauss": ("rope", "gaussian"),
}
SMALL_NAMES = {
    "small_a_zero": "PENS-A from zeros",
    "small_a_gauss": "PENS-A from Gaussian embeddings",
    "small_r_zero": "PENS-R from zeros",
    "small_r_gauss": "PENS-R from Gaussian embeddings",
}
MAPPED = ("coordns", "pens_a", "pens_r")  # Figure 6
DGL = "rivals/dgl"
INVIT = {"INViT-2V": "rivals/invit_2v", "INViT-3V": "rivals/invit_3v"}
RIVALS: tuple[str, ...] = (DGL, *INVIT.values())  # of `rivals`, where the scale has them
BQ, LEHD = "scaling/bq", "scaling/lehd_6x128"  # the same trainings as there
GREEDY, ESF = Decoding(), Decoding(esf=True)
TIMED = Decoding(batch_size=1)  # one instance at a time, as the paper times (Section 5.1)


run_id = f"{KEY}/{{}}".format  # name -> id


def reference(scale: Scale, size: int, count: int | None = None) -> Labels:
    """The labelled test set that stands for the paper's TSP`size`, or its first instances."""
    p = scale[PensScale]
    dataset = Dataset(n=p.sizes[size], count=count or p.test_counts[size])
    return scale.reference(dataset, p.largest_solver if size == max(SIZES) else scale.reference_solver)


def validation(scale: Scale, size: int) -> Labels:
    return scale.validation(lambda s: reference(s, size), scale[PensScale].validation_count)


def held_out(scale: Scale, size: int) -> Dataset:
    """Instances of a sweep over scaling factors: of the validation stream, never of the test sets."""
    return Dataset(split="val", n=scale[PensScale].sizes[size], count=scale[PensScale].sweep_counts[size])


def repeated(scale: Scale) -> Decoding:
    """Greedy, each instance with several draws of its embeddings (pens, Section 5.1)."""
    return Decoding(repeats=scale[PensScale].repeats)


def rescaled(scale: Scale) -> Decoding:
    """The same at the best scaling factor found on held-out instances."""
    return repeated(scale).model_copy(update={"rescale": "best"})


class AttentionEvaluation(Measurement):
    """Where the origin of a path looks: its attention logits on all nodes, by scaling factor (pens, Figure 6).

    Besides, what a drawing of the model needs: its modules, and its decisions on one small instance (Figure 2).
    """

    entry: ClassVar[str] = "neuroute.pipeline.papers.pens.probe:measure"
    kind: Literal["attention"] = "attention"
    name: str = "attention"
    dataset: Dataset
    instance: int = 0
    factors: tuple[float | Literal["best"], ...]
    small: Dataset = Dataset(split="val", n=6, first=9, count=1)  # whose instance is walked: its cities lie apart

    def reads_best_factor(self) -> bool:
        return "best" in self.factors


def rescaling(scale: Scale, name: str) -> RescalingEvaluation:
    """Sweeps over scaling factors: at all sizes, or at the largest for a model that no table shows rescaled."""
    sizes, factors = SIZES if name in RESCALED else SIZES[-1:], scale[PensScale].factors
    sweeps = tuple(Sweep(dataset=held_out(scale, n), factors=tuple(sorted(set(factors[n])))) for n in sizes)
    return RescalingEvaluation(run=run_id(name), sweeps=sweeps)


def attention(scale: Scale, name: str) -> list[Need]:
    """Where the origin looks at the largest size, up to the best factor."""
    factors: tuple[float | Literal["best"], ...] = (*sorted(set(scale[PensScale].attention_factors)), "best")
    maps = AttentionEvaluation(run=run_id(name), dataset=held_out(scale, SIZES[-1]), factors=factors)
    return [rescaling(scale, name), maps]


def on_tsplib(scale: Scale, run: str) -> BenchmarkEvaluation:
    alone = {BQ: (GREEDY, ESF), LEHD: (GREEDY,), DGL: (GREEDY,)} | dict.fromkeys(INVIT.values(), (repeated(scale),))
    decodings = alone.get(run, (repeated(scale), rescaled(scale)))
    return scale.on_benchmark(run, "tsplib", (0, scale[PensScale].tsplib_max_nodes), decodings=decodings)


@dataclass(frozen=True)
class Method:
    """One of the solvers, by its printed name; without a run it is not measured here."""

    name: str
    run: str | None = None
    decoding: Decoding = GREEDY
    rescaled: Decoding | None = None  # at the best scaling factor

    def decoded(self, scaled: bool) -> Decoding:
        """How it is decoded in a cell that the paper prints as rescaled, or not."""
        return self.rescaled if scaled and self.rescaled else self.decoding

    @property
    def timed(self) -> Decoding:
        """How it is timed: one instance at a time, once.  Rescaling is one product, so it is not timed anew."""
        return TIMED.model_copy(update={"esf": self.decoding.esf})


def methods(scale: Scale) -> tuple[Method, ...]:
    """In the order of Tables 2 and 3."""
    baselines = (
        Method("BQ-NCO", BQ),
        Method("BQ-NCO + ESF", BQ, ESF),
        Method("LEHD", LEHD),
        *(Method(name, run, repeated(scale)) for name, run in INVIT.items()),
        Method("DGL", DGL),
    )
    pens = (Method(NAMES[name], run_id(name), repeated(scale), rescaled(scale)) for name in RESCALED)
    return (*baselines, *pens)


def compared_needs(scale: Scale) -> Iterator[Need]:
    """The methods on all sizes, timed and not, and on TSPLIB."""
    for m in methods(scale):
        if m.run is None:
            continue
        yield on_tsplib(scale, m.run)
        for size, count in scale[PensScale].timed_counts.items():
            yield from tested(m.run, reference(scale, size), m.decoding, *([m.rescaled] if m.rescaled else []))
            yield from tested(m.run, reference(scale, size, count), m.timed)
    yield from (rescaling(scale, name) for name in RESCALED)


def sets_of(scale: Scale, sizes: Iterable[int]) -> dict[int, Labels]:
    """Return the test sets that stand for the paper's sizes."""
    return {size: reference(scale, size) for size in sizes}


def not_trained(study: Study) -> str:
    """Name the solvers of Tables 2 and 3 that this artifact has no run of; nothing if it has all."""
    others = [m.name for m in methods(study.scale) if m.run not in study.runs]
    return f" Not trained here: {', '.join(others)}." if others else ""


def gap_notes(study: Study, runs: Iterable[str], sets: Collection[Dataset], *decodings: Decoding) -> list[str]:
    """What a gap is here, over these cells: the training, several solutions of an instance, how far these are apart."""
    runs = list(runs)
    training = study.runs[next(run for run in runs if run.startswith(f"{KEY}/"))].training
    random = "embeddings" + (" (INViT: starts)" if set(runs) & set(INVIT.values()) else "")
    spreads = [study.value("gap_spread_pct", run, d, how) for run in runs for d in sets for how in decodings]
    spreads_here = [spread for spread in spreads if spread is not None]
    repeats = study.scale[PensScale].repeats
    notes = [
        f"{ONE_SEED} {BOOTSTRAP}",
        f"The paper's models learn here from {training.samples:,} labelled instances in {training.batches:,} batches; "
        "the paper does not say how many it had.",
    ]
    if repeats == 1:
        once = "Each instance is solved once here, five times in the paper."
        return [*notes, f"Gaps are means of the instances' gaps. {once}"]
    apart = f"; their gaps' standard deviation is {max(spreads_here):.3f} points at most" if spreads_here else ""
    return [
        *notes,
        f"Gaps are means of the instances' gaps, over {repeats} solutions of each instance with different random "
        f"{random}{apart}. Models without random {random} would give the same tour each time, so they solve each "
        "instance once.",
    ]


def reference_notes(study: Study, largest: Dataset | None = None) -> list[str]:
    """Say which solver's tours the gaps are against, here and in the paper; largest: a table's set of that size."""
    usual, solver = (solver_name(s) for s in (study.scale.reference_solver, study.scale[PensScale].largest_solver))
    if largest is None:
        return [f"Gaps are against {usual}'s tours here, against Concorde's optima in the paper."]
    size = max(SIZES)
    here = usual if usual == solver else f"{usual}'s tours, at TSP{size} ({described(largest)}) {solver}"
    return [
        f"Gaps are against {here}'s tours. The paper's are against Concorde's, at TSP{size} after at most six hours an "
        "instance, so that its references there need not be optimal."
    ]


COLOUR = {
    "coordns": style.GREEN,
    "pens_a": style.RAMPS["blue"][2],
    "pens_r": style.RAMPS["orange"][1],
    "pens_ar": style.RAMPS["cool-warm"][2],
}
MARKER = {"coordns": "s", "pens_a": "o", "pens_r": "D", "pens_ar": "^"}


def printed_gaps(study: Study, table: str, **where: object) -> dict[int, float]:
    """The paper's n -> its printed gap in % on uniform instances, of the rows whose columns hold `where`."""
    rows = printed_numbers(study, table, metric="gap_pct", distribution="uniform", **where)
    return {int(n): float(value) for n, value in zip(rows.n, rows.value, strict=True)}


def size_label(study: Study, size: int) -> str:
    """The nodes here that stand for the paper's size, with that size where it differs: 50 (500)."""
    here = study.scale[PensScale].sizes[size]
    return f"{here:,}" if here == size else f"{here:,} ({size:,})"


def several(study: Study) -> str:
    """How often instances are solved, where that is more than once."""
    repeats = study.scale[PensScale].repeats
    return f", models with random embeddings {repeats} times with different ones" if repeats > 1 else ""


def spread_note(study: Study, names: Iterable[str], datasets: Iterable[Dataset], *decodings: Decoding) -> list[str]:
    """How far apart the repeats of these cells are, at most; nothing where each was solved once."""
    spreads = [
        (value, name, dataset)
        for name, dataset, decoding in product(names, datasets, decodings)
        if (value := study.value("gap_spread_pct", run_id(name), dataset, decoding)) is not None
    ]
    if not spreads:
        return []
    value, name, dataset = max(spreads, key=lambda each: each[0])
    where = f"{(NAMES | SMALL_NAMES)[name]}, TSP{dataset.n:,}"
    return [f"Between repeats the gap's standard deviation is at most {value:.2g} percentage points ({where})."]


COUNTS = {100: 128, 250: 128, 500: 128, 1000: 128, 10_000: 10}
FIVE = Decoding(repeats=5)
FIVE_RESCALED = Decoding(repeats=5, rescale="best")
TIMES = (TIMED, TIMED.model_copy(update={"esf": True}))
SOLVERS = dict.fromkeys(SIZES[:-1], "Concorde") | {SIZES[-1]: "Concorde (six hours)"}
ON_SMALL = ("figure5", "table_figure5")
of_means = partial(Protocol, averaging=AVERAGING[MEAN_OF_GAPS], shown=MEAN_OF_GAPS)


def protocol(scale: Scale) -> Iterator[Protocol]:
    """The uniform test sets, those of the models trained on TSP20, and TSPLIB."""
    p = scale[PensScale]
    ways = (GREEDY, ESF, FIVE, FIVE_RESCALED)
    large = (*(f"table{i}" for i in (1, 2, 3, 4)), "figure1", "figure4", "table_figure4")
    for size in SIZES:
        for count in dict.fromkeys((p.test_counts[size], p.timed_counts[size])):
            labels = reference(scale, size, count)
            yield of_means(f"TSP{size}", labels, COUNTS[size], SOLVERS[size], (*ways, *TIMES), only=large)
    for size in SMALL_SIZES:
        yield of_means(f"TSP{size}", reference(scale, size), None, "Concorde", (FIVE,), only=ON_SMALL)
    yield on_benchmark("tsplib", 72, *ways)


def group(scale: Scale, test: Test) -> str:
    """Which of a run's tests are measured by one job: those at its best factor wait for the sweep of factors."""
    return group_of(KEY, test.run, "rescaled" if test.decoding.rescale == "best" else "uniform")


PENS = "neuroute.networks.pens:Pens"


def runs(config: Config, scale: Scale) -> list[Run]:
    p = scale[PensScale]
    positioned = [
        _run(config, scale, name, 100, {"positions": positions}, p.network, p.training)
        for name, positions in POSITIONS.items()
    ]
    small = [
        _run(config, scale, name, 20, {"positions": positions, "initial": initial}, p.small_network, p.small_training)
        for name, (positions, initial) in SMALL.items()
    ]
    baselines = borrow_runs(config, scale, (BQ, LEHD, *RIVALS))
    if (here := p.sizes[100]) != (there := baselines[0].n):
        raise NeurouteError(
            f"scale {scale.name}: pens.sizes.100 is {here}, but {BQ} and {LEHD} are trained at {there} nodes: "
            "make them equal"
        )
    return [*positioned, *small, *baselines]


def _run(
    config: Config, scale: Scale, name: str, size: int, role: dict[str, str], shape: PensShape, training: Supervised
) -> Run:
    """The training of a model on the paper's TSP`size`, with what config.yaml changes of it."""
    n = scale[PensScale].sizes[size]
    network = Network(kind=PENS, arguments=shape.model_dump() | role | {"train_nodes": n})
    run = declare_run(
        config,
        KEY,
        name,
        training,
        role=role,
        network=network,
        n=n,
        data=lambda training: training_blocks(n, training.samples, scale.label_solver),
        validation=validation(scale, size),
        also_validation=(validation(scale, 100),) if size != 100 else (),  # Figure 5b
    )
    if getattr(run.training, "sub_paths", None) != "pairs":
        raise NeurouteError(f"{config.where}: runs.{run.id}.training.sub_paths: PENS is trained on `pairs` only")
    return run


PAPER = Paper(
    key=KEY,
    title="Solving the Traveling Salesman Problem with Positional Encoding",
    scale=PensScale,
    runs=runs,
    group=group,
    borrows=("scaling", "rivals"),
    protocol=protocol,
)
