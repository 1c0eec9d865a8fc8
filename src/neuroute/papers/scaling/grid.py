"""The models of the study as the paper has them and as they are here; shared by its tables and figures."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from neuroute.accounting.cost import counts
from neuroute.accounting.counts import Counts, DecoderOnly
from neuroute.analysis import power_laws as laws
from neuroute.papers.scaling import roles
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.objects import Dataset, Network, Run, Supervised
from neuroute.rendering.cells import model_here
from neuroute.rendering.study import Study

Shape = tuple[int, int]  # the paper's (depth, width): the role of a model, whatever its size here
DEPTHS, WIDTHS, SIZES = roles.DEPTHS, roles.WIDTHS, roles.SIZES
GRID: list[Shape] = [(d, w) for d in DEPTHS for w in WIDTHS]
DEEP_NARROW: list[Shape] = [(24, 64), (96, 32)]
SIX: list[Shape] = [roles.depth_and_width(shape) for shape in roles.SIX]


def run_id(shape: Shape) -> str:
    return roles.run_id(f"{shape[0]}x{shape[1]}", "deep" if shape in DEEP_NARROW else "base")


def run_of(study: Study, shape: Shape) -> Run:
    return study.runs[run_id(shape)]


def labelled_training(run: Run) -> Supervised:
    """How one of the paper's own models is trained: all of them with labels."""
    if not isinstance(run.training, Supervised):
        raise TypeError(f"{run.id} is not trained with labels")
    return run.training


def size_here(study: Study, shape: Shape) -> tuple[int, int] | None:
    """(depth, width) of the model that plays this role at the study's scale; None if its network has none."""
    arguments = run_of(study, shape).network.arguments
    return (arguments["depth"], arguments["width"]) if arguments.keys() >= {"depth", "width"} else None


def counts_here(network: Network) -> Counts:
    """Count by the formulas of the paper's model, or whatever network config.yaml puts in its place."""
    own = network.kind.rpartition(":")[2] == DecoderOnly.__name__
    return DecoderOnly(**network.arguments) if own else counts(network)


def name_here(study: Study, shape: Shape) -> str:
    return model_here(study, run_id(shape))


def labelled_set(study: Study, size: int, count: int | None = None) -> Dataset:
    """The test set that stands for the paper's TSP`size`."""
    return roles.reference(study.scale, size, count).dataset


def searched_set(study: Study) -> Dataset:
    """The test set of the beam searches: at the paper's scale the same as the greedy one."""
    return labelled_set(study, 100, study.scale[ScalingScale].beam_count)


def decoding_id(beam: int) -> str:
    return "greedy" if beam == 1 else f"beam{beam}"


def resampled_gaps(study: Study, cells: Iterable[tuple[Shape, int]], dataset: Dataset) -> NDArray[np.float64] | None:
    """Paired bootstrap gaps (resamples, cells) of (model, beam) cells; None when a cell has no lengths."""
    found = [study.lengths(run_id(shape), dataset, decoding_id(beam)) for shape, beam in cells]
    measured = [pair for pair in found if pair is not None]
    if not measured or len(measured) < len(found):
        return None
    return laws.resampled_gaps(np.stack([own for own, _ in measured]), measured[0][1])


def printed(study: Study, table: int, metric: str, shapes: Sequence[Shape], **where: object) -> dict[Shape, float]:
    """The paper's value for each model; models without one are left out."""
    rows = study.published(table)
    rows = rows[rows.metric == metric]
    for key, value in where.items():
        rows = rows[rows[key] == value]
    values = {(int(d), int(w)): float(v) for d, w, v in zip(rows.depth, rows.width, rows.value, strict=True) if d > 0}
    return {shape: values[shape] for shape in shapes if shape in values}


def quoted(study: Study, quantity: str) -> dict[Shape | None, float]:
    """Numbers from the paper's text and captions: model -> value, or None -> value for the whole study."""
    rows = study.published("quoted")
    rows = rows[rows.quantity == quantity]
    return {
        (int(d), int(w)) if d > 0 else None: float(v)
        for d, w, v in zip(rows.depth, rows.width, rows.value, strict=True)
    }
