"""Tables 3 and 6 of paper `icam`: instances larger than those of training."""

from neuroute.papers.icam import roles
from neuroute.papers.icam.cells import baselines_note, reference_note
from neuroute.papers.icam.methods import REFERENCE, models
from neuroute.papers.icam.roles import LARGE_SIZES, OWN, TAM_SIZES, run_id
from neuroute.plan.config import Scale
from neuroute.plan.needs import artifact
from neuroute.plan.objects import Problem, Reinforced
from neuroute.rendering.grid import GAP, LENGTH, SECONDS_EACH, Grid, from_print, grid_table, needs_of, of_each
from neuroute.rendering.study import Study
from neuroute.rendering.table import Table


def table3_grid(scale: Scale) -> Grid:
    columns = of_each(scale, "cvrp", TAM_SIZES, roles.tam, LENGTH, GAP, SECONDS_EACH)
    return Grid(from_print(roles.PAPER, 3, models(scale, "cvrp") | REFERENCE["cvrp"]), columns)


@artifact("CVRP in TAM's capacities", needs=needs_of(table3_grid))
def table3(study: Study) -> Table:
    """Mean length, gap and time on instances like those of TAM."""
    tests = {size: roles.tam(study.scale, size) for size in TAM_SIZES}
    return grid_table(
        study,
        ("Method",),
        table3_grid(study.scale),
        reference=reference_note({"cvrp": tests}, {"cvrp": "LKH3, at 1K, 2K and 5K as TAM printed it"}),
        trained=_trained(study, "cvrp"),
        baselines=baselines_note(study, ["cvrp"]),
    )


def table6_grid(scale: Scale) -> Grid:
    columns = of_each(scale, "tsp", LARGE_SIZES, roles.large, LENGTH, GAP, SECONDS_EACH)
    return Grid(from_print(roles.PAPER, 6, models(scale, "tsp") | REFERENCE["tsp"]), columns)


@artifact("Larger TSP instances", needs=needs_of(table6_grid))
def table6(study: Study) -> Table:
    """Mean length, gap and time on large instances of the TSP."""
    tests = {size: roles.large(study.scale, size) for size in LARGE_SIZES}
    return grid_table(
        study,
        ("Method",),
        table6_grid(study.scale),
        reference=reference_note({"tsp": tests}, {"tsp": "LKH3"}),
        trained=_trained(study, "tsp"),
        baselines=baselines_note(study, ["tsp"]),
    )


def _trained(study: Study, problem: Problem) -> str:
    """How far the test sets lie beyond the sizes of training."""
    run = study.runs.get(run_id(OWN[problem]))
    if run is None or not isinstance(run.training, Reinforced):
        return "The paper trains on 100 to 500 nodes."
    low, high = (f(size for stage in run.training.stages for size in stage.sizes) for f in (min, max))
    return f"ICAM is trained on {low} to {high} nodes here, on 100 to 500 in the paper."
