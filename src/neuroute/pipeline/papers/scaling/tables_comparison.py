"""Tables 5, 6 and 20 of paper `scaling`, the models beside others, and 13 to 16 and 19, on other instances."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from neuroute.datasets.benchmarks import study_instances
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.cells import model, of_grid, sets_of, solver, solver_notes
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.rendering.benchmark import Solved, measured_here, not_measured
from neuroute.pipeline.rendering.cells import gap_cell, model_here, number, printed_numbers, select
from neuroute.pipeline.rendering.columns import HERE, described
from neuroute.pipeline.rendering.grid import (
    GAP,
    GREEDY,
    PARAMETERS,
    SECONDS,
    Grid,
    Measure,
    Method,
    comparison,
    gaps,
    grid_table,
    needs_of,
    parameters,
)
from neuroute.pipeline.rendering.notes import draw_table
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, Value, fixed
from neuroute.specs.objects import Dataset, Decoding, Distribution, Labels, Test, beam_search


@dataclass(frozen=True)
class Model:
    """One of the models that the paper compares."""

    name: str
    run: str
    printed: Mapping[str, object]  # the columns of its printed numbers
    beam: int  # the paper's beam width for it


LEHD = Model("LEHD", scaling.run_id(scaling.GRID[0], "lehd"), {"method": "LEHD"}, 16)
BQ = Model("BQ", f"{scaling.KEY}/bq", {"method": "BQ"}, 16)
SIGD = Model("SIGD", f"{scaling.KEY}/sigd", {"method": "SIGD"}, 16)
OURS = [Model(shape.name, scaling.run_id(shape), shape._asdict(), 2) for shape in scaling.COMPARED]


def table5_grid(scale: Scale) -> Grid:
    tests, beams = sets_of(scale, (100, 1000)), scale[scaling.ScalingScale].beams
    methods = []
    for each in (LEHD, BQ, SIGD, *OURS):
        name, here = f"Ours {each.name}" if each in OURS else each.name, beams[each.beam]
        methods.append(Method(f"{name} greedy", {**each.printed, "decoding": "greedy"}, runs=each.run))
        methods.append(
            Method(
                f"{name} bs{each.beam}" + (f" ({here} here)" if here != each.beam else ""),
                {**each.printed, "decoding": "beam"},
                runs=each.run,
                decoding=beam_search(here),
                tests={100: scaling.searched(scale)},
            )
        )
    count = replace(parameters(tests[100]), measure=Measure("params_m", _parameters))
    return Grid(methods, [count, *comparison(tests, "TSP{}".format, GAP, SECONDS, key="tsp{}".format)])


def _parameters(study: Study, run: str, dataset: Dataset, _: Value, decoding: Decoding) -> Cell:
    """Show the parameters in the rows of greedy decoding, beside those that Tables 1 and 20 print."""
    if decoding != GREEDY:
        return Cell()
    model = next(each for each in (LEHD, BQ, SIGD, *OURS) if each.run == run)
    rows = printed_numbers(study, 20, **scaling.GRID[0]._asdict()) if model is LEHD else printed_numbers(study, 1)
    published = number(select(rows, **model.printed), None, "params_m") if model in (LEHD, *OURS) else None
    return PARAMETERS.of_model(study, run, dataset, published, decoding)


def _table5_needs(scale: Scale) -> list[Need]:
    """The rows; those of beams have no parameters, which are of the whole test set."""
    needs, whole = needs_of(table5_grid)(scale), scaling.reference(scale, 100)
    beams = [beam_search(beam) for beam in scale[scaling.ScalingScale].beams.values() if beam > 1]
    unread = [(whole, beam) for beam in beams] if whole != scaling.searched(scale) else []
    return [need for need in needs if not (isinstance(need, Test) and (need.labels, need.decoding) in unread)]


@artifact("Comparison with LEHD, BQ and SIGD", needs=_table5_needs, printed_files=("table1", "table5", "table20"))
def table5(study: Study) -> Table:
    grid = table5_grid(study.scale)
    at = scaling.searched(study.scale).dataset
    where = f"At TSP100 the beam searches were measured on {described(at)}."
    return grid_table(study, ("Method",), grid, searched=where if at != grid.tests[0].dataset else "")


COLUMNS = (BQ, SIGD, LEHD, *OURS)
GROUPS = {  # the paper's rows: its name for them in the printed numbers, nodes from, nodes below
    "< 500": ("<500", 0, 500),
    "> 500": (">500 (<5000)", 500, 5000),
    "All": ("<5000", 0, 5000),
}


@artifact("TSPLIB instances", needs=lambda scale: [scaling.on_tsplib(scale, m.run) for m in (*OURS, LEHD, BQ, SIGD)])
def table6(study: Study) -> Table:
    limit = study.scale[scaling.ScalingScale].tsplib_max_nodes
    solved = Solved.by_all(study, [f"{m.run}/tsplib" for m in COLUMNS])
    nodes = [k.nodes for k in study_instances()]

    def row(group: str, metric: str, distances: str) -> Row:
        name, least, below = GROUPS[group]
        inside, cells = (least, below - 1), []
        for m in COLUMNS:
            published = number(printed_numbers(study, 6, **m.printed), name, "gap_pct") if metric == "gap_pct" else None
            cells.append(solved.gap_cell(study, m.run, GREEDY.name, inside, published, metric))
        there = sum(least <= n < below for n in nodes)
        return Row((group, distances, f"{solved.count(inside)} of {there}"), tuple(cells))

    every, columns = solved.records.test.nunique(), []
    for m in COLUMNS:
        key = "{depth}x{width}".format_map(m.printed) if m in OURS else m.name.lower()
        group = "Ours (depth, width)" if m in OURS else "Baselines"
        columns.append(
            Column(f"gap_{key}_pct", m.name, "%", group=group, at=f"TSPLIB, {every} of {len(nodes)} instances")
        )
    return draw_table(
        study,
        ("TSPLIB", "Distances", "Instances here"),
        columns,
        (
            *(row(group, "gap_pct", "unrounded") for group in GROUPS),
            *(row(group, "gap_rounded_pct", "integer") for group in GROUPS),
        ),
        every=every,
        nodes=len(nodes),
        measured_here=measured_here(study, 0, limit),
        not_measured=not_measured(study, solved.records, limit, {m.name: m.run for m in COLUMNS}),
        models=", ".join(f"{m.name} {model_here(study, m.run)}" for m in COLUMNS),
    )


def table20_grid(scale: Scale) -> Grid:
    tests = sets_of(scale)
    methods = [model(shape, "LEHD (D={}, W={})", "lehd") for shape in scaling.LEHDS]
    return Grid(methods, [parameters(tests[100]), *gaps(tests, GAP)])


@artifact("LEHD before and after modification", needs=needs_of(table20_grid))
def table20(study: Study) -> Table:
    return grid_table(study, ("Model",), table20_grid(study.scale))


def _generalisation(scale: Scale, tests: dict[int, Labels]) -> Grid:
    """Show gap and time of the twelve models for each size, under the solver's row."""
    methods = [solver(scale), *of_grid(scale, "Ours greedy (Depth={}, Width={})")]
    return Grid(methods, comparison(tests, "TSP{}".format, GAP, SECONDS, key="tsp{}".format))


def uniform_grid(scale: Scale) -> Grid:
    return _generalisation(scale, sets_of(scale, scaling.SIZES[1:]))


def shifted_grid(distribution: Distribution, scale: Scale) -> Grid:
    tests = {size: scaling.reference(scale, size, distribution=distribution) for size in scaling.SIZES}
    return _generalisation(scale, tests)


explosion_grid, implosion_grid, cluster_grid = (partial(shifted_grid, distribution) for distribution in scaling.SHIFTED)


@artifact("Larger uniform instances", needs=needs_of(uniform_grid))
def table13(study: Study) -> Table:
    return _draw(study, uniform_grid(study.scale))


@artifact("Explosion: instances of four sizes", needs=needs_of(explosion_grid))
def table14(study: Study) -> Table:
    return _draw(study, explosion_grid(study.scale))


@artifact("Implosion: instances of four sizes", needs=needs_of(implosion_grid))
def table15(study: Study) -> Table:
    return _draw(study, implosion_grid(study.scale))


@artifact("Cluster: instances of four sizes", needs=needs_of(cluster_grid))
def table16(study: Study) -> Table:
    return _draw(study, cluster_grid(study.scale))


def _draw(study: Study, grid: Grid) -> Table:
    solvers, reference = solver_notes(study, grid.tests), study.scale.reference_solver
    return grid_table(study, ("Method",), grid, reference_solver=reference, solvers=solvers)


def _table19_needs(scale: Scale) -> Iterator[Need]:
    s = scale[scaling.ScalingScale]
    rrc = Decoding(method="rrc", iterations=max(s.rrc.values()), milestones=(0, *s.rrc.values()))
    tests = [scaling.reference(scale, size, count) for size, count in s.rrc_counts.items()]
    return tested(map(scaling.run_id, scaling.COMPARED), tests, rrc)


@artifact("Random re-construct with different budgets", needs=_table19_needs)
def table19(study: Study) -> Table:
    """Show gaps after more and more iterations, on the first instances of two test sets."""
    s = study.scale[scaling.ScalingScale]
    budgets = {0: 0, **s.rrc}  # the paper's iterations -> iterations here
    rows = []
    for size, count in s.rrc_counts.items():
        dataset = scaling.reference(study.scale, size, count).dataset
        for shape in scaling.COMPARED:
            cells = []
            for k, here in budgets.items():
                where = {"iters": k} if k else {"decoding": "greedy"}
                published = number(printed_numbers(study, 19, **shape._asdict(), **where), size, "gap_pct")
                rrc = Decoding(method="rrc", iterations=here)
                cells.append(
                    replace(gap_cell(study, scaling.run_id(shape), dataset, published, rrc), at=described(dataset))
                )
            at, name = f"TSP{size} ({described(dataset)} here)", "Ours (D={}, W={})".format(*shape)
            rows.append(Row((at, name, model_here(study, scaling.run_id(shape))), tuple(cells)))
    headings = {k: f"RRC {k}" + ("" if k == here else f" ({here} here)") for k, here in s.rrc.items()}
    return draw_table(
        study,
        ("Test set", "Model", HERE),
        [Column(f"gap_rrc{k}_pct", headings.get(k, "Greedy"), "%", fixed(4)) for k in budgets],
        rows,
    )
