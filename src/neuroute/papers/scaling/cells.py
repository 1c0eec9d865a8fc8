"""What the tables of paper `scaling` share: its models and test sets as rows and columns, means over training seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from neuroute.papers.scaling import roles
from neuroute.papers.scaling.roles import SIZES, depth_and_width, run_id
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, Tested
from neuroute.plan.objects import Dataset, Decoding, Labels
from neuroute.rendering import cells
from neuroute.rendering.cells import BOOTSTRAP
from neuroute.rendering.grid import GREEDY, Measure, Method
from neuroute.rendering.solver_cells import Solvers
from neuroute.rendering.table import Cell, Value

if TYPE_CHECKING:
    from neuroute.rendering.study import Study

SOLVER_NAMES = {"lkh": "LKH", "concorde": "Concorde"}


def model(shape: str, label: str, prefix: str = "base", decoding: Decoding = GREEDY, **where: object) -> Method:
    """Show the model of a shape, as "6x128"; `label` is filled with its depth and width, as are its printed columns."""
    depth, width = depth_and_width(shape)
    printed = {"depth": depth, "width": width} | where
    return Method(label.format(depth, width), printed, runs=run_id(shape, prefix), decoding=decoding)


def sets_of(scale: Scale, sizes: Iterable[int] = SIZES) -> dict[int, Labels]:
    """Return the uniform test sets that stand for the paper's sizes."""
    return {size: roles.reference(scale, size) for size in sizes}


def searched(scale: Scale) -> Labels:
    """Return the test set of the beam searches: at the paper's scale the same as the greedy one."""
    return roles.reference(scale, 100, scale[ScalingScale].beam_count)


# -- training seeds ---------------------------------------------------------------------------------------------------


def trainings(study: Study, run: str) -> list[str]:
    """List the ids of a run's trainings, which differ in their seed only."""
    return [f"{roles.PAPER}/{name}" for name in roles.seeds(study.scale, run.removeprefix(f"{roles.PAPER}/"))]


def gap_cell(
    study: Study, run: str, dataset: Dataset, published: Value = None, decoding: Decoding | str = "greedy"
) -> Cell:
    """Show the gap in %, as ratio of means: the mean over a run's trainings between the least and the largest.

    Of the only training measured, with its bootstrap interval.
    """
    gaps = {each: gap for each in trainings(study, run) if (gap := study.gap(each, dataset, decoding)) is not None}
    if len(gaps) > 1:
        return Cell(sum(gaps.values()) / len(gaps), published, min(gaps.values()), max(gaps.values()))
    return cells.gap_cell(study, next(iter(gaps), run), dataset, published, decoding)


def _mean_of_ratios(
    study: Study, run: str, dataset: Dataset, published: Value = None, decoding: Decoding | str = "greedy"
) -> Cell:
    values = [study.value("gap_mean_of_ratios_pct", each, dataset, decoding) for each in trainings(study, run)]
    measured = [value for value in values if value is not None]
    return Cell(sum(measured) / len(measured) if measured else None, published)


GAP = Measure("gap_pct", gap_cell, Solvers.gap)
MEAN_OF_RATIOS = Measure("gap_mean_of_ratios_pct", _mean_of_ratios)


def first_seed_note(study: Study) -> list[str]:
    """Say which training artifacts of the grid show that show one of each model."""
    several = [
        name for name, count in study.scale[ScalingScale].seeds.items() if count > 1 and name.startswith("base_")
    ]
    return [f"Of models trained with several seeds ({', '.join(several)}) this is the first."] if several else []


def range_notes(study: Study, runs: Iterable[str]) -> list[str]:
    """Say what the ranges of these runs' cells mean."""
    measured = {evaluation.rpartition("/")[0] for evaluation in study.artifact.evaluations}
    counts = {run.rpartition("/")[2]: len(measured.intersection(trainings(study, run))) for run in runs}
    several = {name: count for name, count in counts.items() if count > 1}
    notes = [BOOTSTRAP]
    if several:
        named = ", ".join(f"{name} ({count})" for name, count in several.items())
        notes.append(
            f"Trained with several seeds: {named}. Their greedy gaps are means over the seeds, their ranges the least "
            "and the largest; times and searches are those of the first seed."
        )
    return notes


def seeded(needs: Callable[[Scale], Iterable[Need]]) -> Callable[[Scale], Iterator[Need]]:
    """Need the greedy gaps of all trainings of each run, not of the first one alone."""

    def of_all(scale: Scale) -> Iterator[Need]:
        for need in needs(scale):
            yield need
            if isinstance(need, Tested) and roles.group(scale, need) in ("greedy", "larger"):
                others = roles.seeds(scale, need.run.removeprefix(f"{roles.PAPER}/"))[1:]
                yield from (Tested(f"{roles.PAPER}/{other}", need.test) for other in others)

    return of_all


# -- solvers ----------------------------------------------------------------------------------------------------------


def solver(scale: Scale) -> Method:
    """Show LKH, or the reference solver where LKH was not run, in the row of LKH3 (Tables 12 to 16)."""
    return Method("LKH3", {"method": "LKH3"}, solvers=tuple(dict.fromkeys(("lkh", scale.reference_solver))))


def solver_notes(study: Study, tests: Sequence[Labels]) -> list[str]:
    """Say which solver stands in the row of LKH3, and what its gap and time are."""
    solvers, reference = Solvers.of(study), study.scale.reference_solver
    name = "lkh" if all(solvers.entry(test.dataset, "lkh") for test in tests) else reference
    words = SOLVER_NAMES.get(name, name)
    entries = [entry for test in tests if (entry := solvers.entry(test.dataset, name)) is not None]
    if len(entries) < len(tests):
        lacking = len(tests) - len(entries)
        return [f"The label manifests lack {words}'s solutions of {lacking} of {len(tests)} test sets."]
    notes = []
    if name == reference:
        other = "" if name == "lkh" else " LKH was not run on these test sets; LKH3's printed numbers stand beside it."
        notes.append(f"{words} is the reference here, so its gap is 0 by construction.{other}")
    untimed = sum(entry.get("seconds") is None for entry in entries)
    if untimed:
        which = "" if untimed == len(tests) else f" of {untimed} of {len(tests)} test sets"
        notes.append(f"{words}'s solutions{which} came from a label cache that keeps no times.")
    if untimed < len(tests):
        notes.append(
            f"{words}'s time is that of its solver calls on one core each, added up; the paper's cores are unknown."
        )
    return notes
