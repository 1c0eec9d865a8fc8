"""The models and test sets of paper `pens`, by the paper's own numbers, whatever they are at a scale."""

from typing import Literal

from neuroute.papers.pens.evaluations import AttentionEvaluation
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, group_of
from neuroute.plan.objects import BenchmarkEvaluation, Dataset, Decoding, Labels, RescalingEvaluation, Sweep

PAPER = "pens"
SIZES = (100, 250, 500, 1000, 10_000)
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
BQ, LEHD = "scaling/bq", "scaling/lehd_6x128"  # the same trainings as there
ESF = Decoding(esf=True)


def run_id(name: str) -> str:
    return f"{PAPER}/{name}"


def reference(scale: Scale, size: int, count: int | None = None) -> Labels:
    """The labelled test set that stands for the paper's TSP`size`, or its first instances."""
    p = scale[PensScale]
    dataset = Dataset(split="test", n=p.sizes[size], count=count or p.test_counts[size])
    return Labels(dataset=dataset, solver=p.largest_solver if size == max(SIZES) else scale.reference_solver)


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


TIMED = Decoding(batch_size=1)  # one instance at a time, as the paper times (Section 5.1)


# -- what is measured besides gaps -----------------------------------------------------------------------------------


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
    decodings = {BQ: (Decoding(), ESF), LEHD: (Decoding(),)}.get(run, (repeated(scale), rescaled(scale)))
    return BenchmarkEvaluation(
        run=run,
        group=group_of(PAPER, run, "tsplib"),
        max_nodes=scale[PensScale].tsplib_max_nodes,
        decodings=decodings,
    )
