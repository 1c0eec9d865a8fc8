"""The models and test sets of paper `pens`, by the paper's own numbers, whatever they are at a scale."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal

from neuroute.pipeline.papers.pens.scale import SIZES as SIZES
from neuroute.pipeline.papers.pens.scale import PensScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, tested
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import BOOTSTRAP, ONE_SEED, printed_numbers, solver_name
from neuroute.pipeline.rendering.columns import described
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.evaluations import Measurement
from neuroute.specs.objects import BenchmarkEvaluation, Dataset, Decoding, Labels, RescalingEvaluation, Sweep

PAPER = "pens"

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
MAPPED = ("coordns", "pens_a", "pens_r")  # Figure 6
DGL = "rivals/dgl"
INVIT = {"INViT-2V": "rivals/invit_2v", "INViT-3V": "rivals/invit_3v"}
RIVALS: tuple[str, ...] = (DGL, *INVIT.values())  # of `rivals`, where the scale has them
BQ, LEHD = "scaling/bq", "scaling/lehd_6x128"  # the same trainings as there
GREEDY, ESF = Decoding(), Decoding(esf=True)
TIMED = Decoding(batch_size=1)  # one instance at a time, as the paper times (Section 5.1)


run_id = f"{PAPER}/{{}}".format  # name -> id


def reference(scale: Scale, size: int, count: int | None = None) -> Labels:
    """The labelled test set that stands for the paper's TSP`size`, or its first instances."""
    p = scale[PensScale]
    dataset = Dataset(split="test", n=p.sizes[size], count=count or p.test_counts[size])
    return scale.reference(dataset, p.largest_solver if size == max(SIZES) else scale.reference_solver)


def validation(scale: Scale, size: int) -> Labels:
    dataset = Dataset(split="val", n=scale[PensScale].sizes[size], count=scale[PensScale].validation_count)
    return Labels(dataset=dataset, solver=scale.reference_solver)


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
    limit, names = scale[PensScale].tsplib_max_nodes, scale.instances_of("tsplib")
    return BenchmarkEvaluation(run=run, max_nodes=limit, names=names, decodings=decodings)


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
    training = study.runs[next(run for run in runs if run.startswith(f"{PAPER}/"))].training
    random = "embeddings" + (" (INViT: starts)" if set(runs) & set(INVIT.values()) else "")
    spreads = [study.value("gap_spread_pct", run, d, how) for run in runs for d in sets for how in decodings]
    spreads_here = [spread for spread in spreads if spread is not None]
    repeats = study.scale[PensScale].repeats
    notes = [
        f"{ONE_SEED} {BOOTSTRAP}",
        f"The paper's models learn here from {training.samples:,} labelled instances in {training.batches:,} batches; "
        "the paper does not say how many it had.",
    ]
    if repeats > 1:
        apart = f"; their gaps' standard deviation is {max(spreads_here):.3f} points at most" if spreads_here else ""
        notes.append(
            f"Gaps are means of the instances' gaps, over {repeats} solutions of each instance with different random "
            f"{random}{apart}. Models without random {random} would give the same tour each time, so they "
            "solve each instance once."
        )
    else:
        notes.append(
            "Gaps are means of the instances' gaps. Each instance is solved once here, five times in the paper."
        )
    return notes


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


def small_name(name: str) -> str:
    """What a small model of Figure 5 is called: PENS-A from zeros."""
    positions, initial = SMALL[name]
    key = next(key for key, value in POSITIONS.items() if value == positions)
    return f"{NAMES[key]} from {'zeros' if initial == 'zero' else 'Gaussian embeddings'}"


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
    where = f"{NAMES.get(name) or small_name(name)}, TSP{dataset.n:,}"
    return [f"Between repeats the gap's standard deviation is at most {value:.2g} percentage points ({where})."]
