"""What the tables of paper `scaling` share: its models and test sets as rows and columns, means over training seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from neuroute.accounting.cost import counts
from neuroute.accounting.counts import Counts, DecoderOnly
from neuroute.papers.scaling import roles
from neuroute.papers.scaling.roles import SIZES, Shape, run_id
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, Tested
from neuroute.plan.objects import Dataset, Decoding, Labels, Network
from neuroute.rendering.cells import BOOTSTRAP, solver_name
from neuroute.rendering.grid import Grid, Measure, Method, grid_table
from neuroute.rendering.seeds import gap_over_seeds
from neuroute.rendering.solver_cells import Solvers
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Table, Value


def model(shape: Shape, label: str, prefix: str = "", **where: object) -> Method:
    """Show the model of a shape; `label` is filled with its depth and width, as are its printed columns."""
    return Method(label.format(*shape), shape._asdict() | where, runs=run_id(shape, prefix))


def sets_of(scale: Scale, sizes: Iterable[int] = SIZES) -> dict[int, Labels]:
    """Return the uniform test sets that stand for the paper's sizes."""
    return {size: roles.reference(scale, size) for size in sizes}


def draw(study: Study, labels: tuple[str, ...], grid: Grid, *notes: str) -> Table:
    """Draw a grid; before its notes stand those of its ranges."""
    return grid_table(study, labels, grid, *range_notes(study, grid.runs), *notes)


def counts_here(network: Network) -> Counts:
    """Count by the formulas of the paper's model, or whatever network config.yaml puts in its place."""
    is_own = network.kind.rpartition(":")[2] == DecoderOnly.__name__
    return DecoderOnly(**network.arguments) if is_own else counts(network)


# -- training seeds ---------------------------------------------------------------------------------------------------


def _gap_cell(study: Study, run: str, dataset: Dataset, published: Value, decoding: Decoding) -> Cell:
    return gap_over_seeds(study, roles.trainings(study.scale, run), dataset, published, decoding)


def _mean_of_ratios(study: Study, run: str, dataset: Dataset, published: Value, decoding: Decoding) -> Cell:
    runs = roles.trainings(study.scale, run)
    values = [study.value("gap_mean_of_ratios_pct", each, dataset, decoding) for each in runs]
    numbers = [value for value in values if value is not None]
    return Cell(sum(numbers) / len(numbers) if numbers else None, published)


GAP = Measure("gap_pct", _gap_cell, Solvers.gap)
MEAN_OF_RATIOS = Measure("gap_mean_of_ratios_pct", _mean_of_ratios)


def first_seed_note(study: Study, prefix: str = "") -> list[str]:
    """Say which training artifacts of the grid show that show one of each model."""
    seeds = study.scale[ScalingScale].seeds
    several = [name for name, count in seeds.items() if count > 1 and name.startswith(f"{prefix or 'base'}_")]
    return [f"Of models trained with several seeds ({', '.join(several)}) this is the first."] if several else []


def range_notes(study: Study, runs: Iterable[str]) -> list[str]:
    """Say what the ranges of these runs' cells mean."""
    runs_measured = {evaluation.rpartition("/")[0] for evaluation in study.artifact.evaluations}
    counts = {
        run.rpartition("/")[2]: len(runs_measured.intersection(roles.trainings(study.scale, run))) for run in runs
    }
    several = {name: count for name, count in counts.items() if count > 1}
    notes = [BOOTSTRAP]
    if several:
        texts = ", ".join(f"{name} ({count})" for name, count in several.items())
        notes.append(
            f"Trained with several seeds: {texts}. Their greedy gaps are means over the seeds, their ranges the least "
            "and the largest; times and searches are those of the first seed."
        )
    return notes


def seeded(needs: Callable[[Scale], Iterable[Need]]) -> Callable[[Scale], Iterator[Need]]:
    """Need the greedy gaps of all trainings of each run, not of the first one alone."""

    def of_all(scale: Scale) -> Iterator[Need]:
        for need in needs(scale):
            yield need
            if isinstance(need, Tested) and roles.group(scale, need) in ("greedy", "larger"):
                yield from (Tested(run, need.test) for run in roles.trainings(scale, need.run)[1:])

    return of_all


# -- solvers ----------------------------------------------------------------------------------------------------------


def solver(scale: Scale) -> Method:
    """Show the rival solver, or the reference solver where it was not run, in the row of LKH3 (Tables 12 to 16)."""
    names = (scale[ScalingScale].rival_solver, scale.reference_solver)
    return Method("LKH3", {"method": "LKH3"}, solvers=tuple(dict.fromkeys(names)))


def solver_notes(study: Study, tests: Sequence[Labels]) -> list[str]:
    """Say which solver stands in the row of LKH3, and what its gap and time are."""
    solvers, reference = Solvers.of(study), study.scale.reference_solver
    rival = study.scale[ScalingScale].rival_solver
    name = rival if all(solvers.entry(test.dataset, rival) for test in tests) else reference
    words = solver_name(name)
    entries = [entry for test in tests if (entry := solvers.entry(test.dataset, name)) is not None]
    if len(entries) < len(tests):
        lacking = len(tests) - len(entries)
        return [f"The label manifests lack {words}'s solutions of {lacking} of {len(tests)} test sets."]
    notes = []
    if name == reference:
        other = (
            ""
            if name == rival
            else f" {solver_name(rival)} was not run on these test sets; LKH3's printed numbers stand beside it."
        )
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
