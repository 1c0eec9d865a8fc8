"""The models and test sets of paper `pens`, by the paper's own numbers, whatever they are at a scale."""

from neuroute.papers.pens.scale import PensScale
from neuroute.plan.config import Scale
from neuroute.plan.objects import Dataset, Decoding, Labels

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
