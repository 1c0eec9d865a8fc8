"""Tables 13 to 16 and 19 of paper `scaling`: larger instances, other distributions, random re-construct."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from neuroute.papers.scaling import roles
from neuroute.papers.scaling.cells import of_grid, sets_of, solver, solver_notes
from neuroute.papers.scaling.roles import COMPARED, SHIFTED, SIZES, run_id
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, artifact, tested
from neuroute.plan.objects import Decoding, Distribution, Labels
from neuroute.rendering.cells import gap_cell, model_here, number, printed_numbers
from neuroute.rendering.columns import HERE, described
from neuroute.rendering.grid import GAP, SECONDS, Grid, comparison, grid_table, needs_of
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.table import Column, Row, Table, fixed


def _generalisation(scale: Scale, tests: dict[int, Labels]) -> Grid:
    """Show gap and time of the twelve models for each size, under the solver's row."""
    methods = [solver(scale), *of_grid(scale, "Ours greedy (Depth={}, Width={})")]
    return Grid(methods, comparison(tests, "TSP{}".format, GAP, SECONDS, key="tsp{}".format))


def uniform_grid(scale: Scale) -> Grid:
    return _generalisation(scale, sets_of(scale, SIZES[1:]))


def shifted_grid(distribution: Distribution, scale: Scale) -> Grid:
    tests = {size: roles.reference(scale, size, distribution=distribution) for size in SIZES}
    return _generalisation(scale, tests)


explosion_grid, implosion_grid, cluster_grid = (partial(shifted_grid, distribution) for distribution in SHIFTED)


@artifact("Larger uniform instances", needs=needs_of(uniform_grid))
def table13(study: Study) -> Table:
    """Show gaps and times on larger instances than those of training."""
    return _draw(study, uniform_grid(study.scale))


@artifact("Explosion: instances of four sizes", needs=needs_of(explosion_grid))
def table14(study: Study) -> Table:
    """Show gaps and times on instances of another distribution: explosion."""
    return _draw(study, explosion_grid(study.scale))


@artifact("Implosion: instances of four sizes", needs=needs_of(implosion_grid))
def table15(study: Study) -> Table:
    """Show gaps and times on instances of another distribution: implosion."""
    return _draw(study, implosion_grid(study.scale))


@artifact("Cluster: instances of four sizes", needs=needs_of(cluster_grid))
def table16(study: Study) -> Table:
    """Show gaps and times on instances of another distribution: cluster."""
    return _draw(study, cluster_grid(study.scale))


def _draw(study: Study, grid: Grid) -> Table:
    solvers, reference = solver_notes(study, grid.tests), study.scale.reference_solver
    return grid_table(study, ("Method",), grid, reference_solver=reference, solvers=solvers)


def _table19_needs(scale: Scale) -> Iterator[Need]:
    s = scale[ScalingScale]
    rrc = Decoding(method="rrc", iterations=max(s.rrc.values()), milestones=(0, *s.rrc.values()))
    for shape in COMPARED:
        for size, count in s.rrc_counts.items():
            yield from tested(run_id(shape), roles.reference(scale, size, count), rrc)


@artifact("Random re-construct with different budgets", needs=_table19_needs)
def table19(study: Study) -> Table:
    """Show gaps after more and more iterations, on the first instances of two test sets."""
    s = study.scale[ScalingScale]
    budgets = {0: 0, **s.rrc}  # the paper's iterations -> iterations here
    rows = []
    for size, count in s.rrc_counts.items():
        dataset = roles.reference(study.scale, size, count).dataset
        for shape in COMPARED:
            cells = []
            for k, here in budgets.items():
                where = {"iters": k} if k else {"decoding": "greedy"}
                published = number(printed_numbers(study, 19, **shape._asdict(), **where), size, "gap_pct")
                rrc = Decoding(method="rrc", iterations=here)
                cells.append(replace(gap_cell(study, run_id(shape), dataset, published, rrc), at=described(dataset)))
            at, name = f"TSP{size} ({described(dataset)} here)", "Ours (D={}, W={})".format(*shape)
            rows.append(Row((at, name, model_here(study, run_id(shape))), tuple(cells)))
    headings = {k: f"RRC {k}" + ("" if k == here else f" ({here} here)") for k, here in s.rrc.items()}
    return Table(
        study.artifact.title,
        ("Test set", "Model", HERE),
        tuple(Column(f"gap_rrc{k}_pct", headings.get(k, "Greedy"), "%", fixed(4)) for k in budgets),
        tuple(rows),
        notes(study),
    )
