"""What paper `icam` claims, and how it is looked at here."""

from __future__ import annotations

from neuroute.papers.icam import roles
from neuroute.papers.icam.roles import ABLATIONS, MULTI, OWN, SIZES, STAGED, STAGES, run_id
from neuroute.plan.claims import claim
from neuroute.plan.objects import Dataset
from neuroute.rendering.cells import number, printed_numbers
from neuroute.rendering.claims import Finding, Side, gap_side, less
from neuroute.rendering.study import Study

FIGURES = ("figure1", "figure2", "figure4", "figure5")
LARGEST = SIZES[-1]


def _largest(study: Study) -> Dataset:
    return roles.reference(study.scale, "tsp", LARGEST).dataset


def _side(study: Study, table: int, label: str, name: str, **where: object) -> Side:
    """A model at the largest size, the best of one solution from each node."""
    gap = number(printed_numbers(study, table, **where), LARGEST, "gap_pct")
    return gap_side(study, label, run_id(name), _largest(study), gap, MULTI)


@claim(
    "Adapting the model to distances and size makes it generalise to large instances.",
    where="abstract; Section 5, Table 9",
    artifact="table9",
)
def adaptation_helps(study: Study) -> Finding:
    """Compare the model with and without the adaptation bias, in attention-free modules and compatibility."""
    adapted, without = (_side(study, 9, name, ABLATIONS[name], variant=name) for name in ("AAFM+CAB", "AFM"))
    return less(adapted, without, _largest(study))


@claim(
    "Training at varying sizes, in stages after the first, makes the model good at all scales.",
    where="abstract; Section 5, Table 8",
    artifact="table8",
)
def stages_help(study: Study) -> Finding:
    """Compare the ends of the first and of the last stage at the largest size."""
    dataset = _largest(study)
    last = _side(study, 8, "after stage 3", OWN["tsp"], checkpoint="after_stage_3")
    published = number(printed_numbers(study, 8, checkpoint="after_stage_1"), LARGEST, "gap_pct")
    stage = roles.at_stage(OWN["tsp"], STAGES[0])
    return less(last, gap_side(study, "after stage 1", stage, dataset, published, MULTI), dataset)


@claim(
    "At large sizes ICAM is ahead of POMO trained in the same three stages.",
    where="Appendix, Table 7",
    artifact="table7",
)
def ahead_of_pomo(study: Study) -> Finding:
    """Compare ICAM with POMO in the same training at the largest size, without augmentation."""
    where = {"problem": "TSP", "decoding": "multistart_greedy", "aug": 1}
    icam = _side(study, 7, "ICAM", OWN["tsp"], method="ICAM", **where)
    return less(icam, _side(study, 7, "POMO", STAGED["tsp"], method="POMO", **where), _largest(study))
