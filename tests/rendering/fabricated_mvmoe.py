"""A fabricated work folder of paper `mvmoe`, at the micro scale with solvers of its own, or another.

The laws are the paper's in outline: a model of one problem is best on it and poor on others, experts help, problems
that were not trained are harder.
"""

from collections.abc import Mapping
from functools import partial

from fabricated import MICRO, Fabric, Made, about, drawn_table, records
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.paper import PAPER, MvmoeScale
from neuroute.pipeline.plan.config import Scale
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.objects import ConstructionEvaluation, Dataset, Decoding, Run


def realistic(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    """Positive, less with experts, images and re-construction, more for what a model was not trained on."""
    variant = str(dataset.variant or "CVRP")
    start = {"POMO": 1.0, "POMO-MTL": 2.0, "MVMoE/4E": 1.7, "MVMoE/4E-L": 1.8}.get(str(run.role.get("method")), 2.5)
    start += sum(map(ord, run.name + variant)) % 11 / 100
    start *= 10 if run.role.get("problem") not in (None, variant) else 1
    start *= 3 if variant in mvmoe.UNSEEN else 1
    return float(
        start * (dataset.n / 8) ** 0.5 * (0.8 if decoding.augment else 1.0) * (1 + decoding.iterations) ** -0.3
    )


def feasible(dataset: Dataset) -> float:
    """Share in % of the reference solutions that networks could drive."""
    return 100.0 - 7 * len(str(dataset.variant)) if SWITCHES[str(dataset.variant)].backhaul else 100.0


def more(run: Run, dataset: Dataset, decoding: Decoding) -> Mapping[str, float]:
    return {"reference_feasible_pct": feasible(dataset)} if dataset.variant else {}


def write_construction(fabric: Fabric, evaluation: ConstructionEvaluation, run: Run) -> Made:
    rows: list[dict[str, object]] = []
    for dataset in evaluation.datasets:
        measured = {"time_s": (len(run.name) + len(str(dataset.variant))) / 10, "peak_memory_mb": 300.0}
        measured["parameters"] = 4e5 if "moe" in run.name else 1e5
        rows += records(evaluation.name, run, about(dataset), evaluation.decoding, measured, fabric.scale)
    return rows, {}


def _changed(scale: Scale, update: dict[str, object]) -> Scale:
    return scale.with_block(scale[MvmoeScale].model_copy(update=update))


SOLVERS = {"ortools-x10": -1.5, "ortools-network": 4.0, "lkh3": 0.4}  # gaps in %
OWN_SOLVERS: dict[str, object] = {"references": {"CVRP": "hgs-short", "others": "ortools-short"}, "other_solvers": {}}
SCALE = _changed(MICRO, OWN_SOLVERS)
FABRIC = Fabric(PAPER, SCALE, realistic, more, SOLVERS, {ConstructionEvaluation: write_construction})
study = FABRIC.study
draw = partial(drawn_table, study)


def changed(**update: object) -> Scale:
    """The scale with other settings of this paper."""
    return _changed(SCALE, update)


def set_of(variant: str, size: int) -> Dataset:
    return mvmoe.reference(SCALE, variant, size).dataset
