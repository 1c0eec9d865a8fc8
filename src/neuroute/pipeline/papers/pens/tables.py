"""Tables of paper `pens`: other solvers, scaling factors, encodings, initial embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from neuroute.core.lazy import pd
from neuroute.datasets.benchmarks import study_instances
from neuroute.pipeline.papers.pens import paper as pens
from neuroute.pipeline.papers.pens.paper import NAMES, SIZES, gap_notes, reference_notes, repeated, run_id
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.rendering.benchmark import Nodes, Solved, measured_here, not_measured
from neuroute.pipeline.rendering.cells import MEAN_OF_GAPS, mean_of_gaps_cell, model_here, number, printed_numbers
from neuroute.pipeline.rendering.grid import (
    MEAN_GAP,
    Grid,
    Measure,
    Method,
    Quantity,
    gaps,
    grid_table,
    needs_of,
    record,
)
from neuroute.pipeline.rendering.render import draw_table
from neuroute.pipeline.rendering.settings import parse
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import HERE, Cell, Column, Row, Table, described, duration, fixed
from neuroute.specs.objects import Dataset, Decoding

GROUPS: dict[str, Nodes] = {  # of TSPLIB, by nodes, as the printed numbers name them
    "1-100": (1, 100), "101-1000": (101, 1000), "1001-10000": (1001, 10_000)
}  # fmt: skip
MAX_NODES = 10_001  # the paper's instances of TSPLIB have fewer nodes: 72
DECODING = "original_decoding"


@artifact("Comparison with neural solvers on uniform TSPs and TSPLIB", needs=pens.compared_needs)
def table2(study: Study) -> Table:
    """Gap and time of all solvers, PENS rescaled where the paper has it so."""
    view = _View.of(study)
    rows = [_row(view, m, m.name, printed_numbers(study, "table2", method=m.name)) for m in pens.methods(study.scale)]
    return _comparison(view, rows)


@artifact("All results, with and without rescaling", needs=pens.compared_needs)
def table3(study: Study) -> Table:
    view = _View.of(study)
    rows = []
    for m in pens.methods(study.scale):
        if m.rescaled is None:
            rows.append(_row(view, m, m.name, printed_numbers(study, "table3", method=m.name)))
            continue
        for scaled, label in (("no", m.name), ("yes", f"{m.name} (scaled)")):
            rows.append(_row(view, m, label, printed_numbers(study, "table3", method=m.name, scaled=scaled)))
    return _comparison(view, rows)


@dataclass(frozen=True)
class _View:
    """What the rows of both tables read."""

    study: Study
    sets: dict[int, Dataset]
    timed: dict[int, Dataset]  # their first instances
    tsplib: Solved

    @classmethod
    def of(cls, study: Study) -> _View:
        counts = study.scale[pens.PensScale].timed_counts
        sets, timed = (
            {size: pens.reference(study.scale, size, count).dataset for size, count in of.items()}
            for of in (dict.fromkeys(SIZES), {size: counts[size] for size in SIZES})
        )
        evaluations = dict.fromkeys(f"{m.run}/tsplib" for m in pens.methods(study.scale) if m.run)
        return cls(study, sets, timed, Solved.by_all(study, evaluations))


def _row(view: _View, method: pens.Method, label: str, rows: pd.DataFrame) -> Row:
    """Gap and time for every size and every group of TSPLIB; `rows` holds the printed numbers."""
    study, cells = view.study, list[Cell]()

    def decoded(n: object) -> Decoding:
        """As the paper's number for a size or a group: with rescaled coordinates or without."""
        is_scaled = "scaled" in rows and (rows.loc[rows.n.astype(str) == str(n), "scaled"] == "yes").any()
        return method.decoded(bool(is_scaled))

    for size, dataset in view.sets.items():
        gap, time = number(rows, size, "gap_pct"), number(rows, size, "time_s")
        if method.run is None:
            cells += [Cell(None, gap), Cell(None, time)]
            continue
        cells.append(mean_of_gaps_cell(study, method.run, dataset, gap, decoded(size)))
        cells.append(Cell(study.value("time_s", method.run, view.timed[size], method.timed), time))
    for name, nodes in GROUPS.items():
        how = method.run, decoded(name).name, nodes
        times = view.tsplib.values("time_s", *how)
        cells.append(view.tsplib.gap_cell(study, *how, number(rows, name, "gap_pct")))
        cells.append(Cell(float(times.sum()) if len(times) else None, number(rows, name, "time_s")))
    return Row((label, model_here(study, method.run)), tuple(cells))


def _comparison(view: _View, rows: list[Row]) -> Table:
    study, columns = view.study, []
    for size, dataset in view.sets.items():
        group, paper = f"TSP{dataset.n}", f"TSP{size}"
        columns.append(Column(f"gap_tsp{size}_pct", "Gap", "%", fixed(2), group, described(dataset), paper))
        columns.append(Column(f"time_tsp{size}_s", "Time", "", duration, group, described(view.timed[size]), paper))
    for name, nodes in GROUPS.items():
        there = sum(nodes[0] <= k.nodes <= nodes[1] for k in study_instances(MAX_NODES))
        at = f"{view.tsplib.count(nodes)} of {there} instances"
        group, key = f"TSPLIB {name}", name.replace("-", "_")
        columns.append(Column(f"gap_tsplib_{key}_pct", "Gap", "%", fixed(2), group, at))
        columns.append(Column(f"time_tsplib_{key}_s", "Time", "", duration, group, at))
    methods_here = [m for m in pens.methods(study.scale) if m.run in study.runs]
    decodings = dict.fromkeys(how for m in methods_here for how in (m.decoding, m.rescaled) if how)
    limit = study.scale[pens.PensScale].tsplib_max_nodes
    return draw_table(
        study,
        ("Method", HERE),
        columns,
        rows,
        gaps=pens.gap_notes(study, dict.fromkeys(m.run for m in methods_here if m.run), view.sets.values(), *decodings),
        references=pens.reference_notes(study, view.sets[max(SIZES)]),
        here=measured_here(study, 0, limit),
        not_measured=not_measured(study, view.tsplib.records, limit, {m.name: m.run for m in methods_here if m.run}),
        not_trained=pens.not_trained(study),
    )


def _table4_needs(scale: Scale) -> Iterator[Need]:
    test = pens.reference(scale, SIZES[0])
    yield from tested([*map(pens.run_id, pens.NAMES), *pens.INVIT.values()], test, pens.repeated(scale))
    yield from tested((pens.BQ, pens.LEHD, pens.DGL), test)


@artifact("Overview of the solvers", needs=_table4_needs)
def table4(study: Study) -> Table:
    """Graph type, parameters, venue and original decoding of the solvers."""
    frame = study.published(4)
    facts = dict(zip(frame.key, frame.value, strict=True))
    runs = {"LEHD": pens.LEHD, "BQ-NCO": pens.BQ, "BQ-NCO+ESF": pens.BQ, "DGL": pens.DGL, "PENS": pens.run_id("pens_a")}
    dataset = pens.reference(study.scale, SIZES[0]).dataset

    def row(name: str) -> Row:
        run = runs.get(name)
        count = study.value("parameters", run, dataset, _counted(study, run)) if run else None
        cells = (
            Cell(None, facts[f"{name}.graph_type"]),
            Cell(count / 1e6 if count is not None else None, parse(facts[f"{name}.params_m"])),
            *(Cell(None, fact if (fact := facts[f"{name}.{key}"]) != "-" else None) for key in ("venue", DECODING)),
        )
        both = tuple(pens.INVIT.values()) if name == "INViT-2V/3V" else (run,)
        return Row((name, model_here(study, *both)), cells)

    # The parameters of the other models trained here.
    texts = []
    for name, run in ({pens.NAMES[name]: pens.run_id(name) for name in pens.NAMES} | pens.INVIT).items():
        count = study.value("parameters", run, dataset, _counted(study, run)) if run in study.runs else None
        texts += [f"{name} {count:,.0f}"] if count is not None else []
    columns = (
        Column("graph_type", "Graph type", format=str),
        Column("parameters_millions", "Parameters", "M", lambda v: v if isinstance(v, str) else f"{v:.3g}"),
        Column("venue", "Venue", format=str),
        Column("original_decoding", "Original decoding", format=str),
    )
    rows = [row(name) for name in dict.fromkeys(key.split(".")[0] for key in facts)]
    counted = [f"Here: {', '.join(texts)}."] if texts else []
    return draw_table(study, ("Method", HERE), columns, rows, counts=counted)


def _counted(study: Study, run: str) -> str:
    is_ours = run.startswith(f"{pens.KEY}/") or run in pens.INVIT.values()
    return pens.repeated(study.scale).name if is_ours else "greedy"


ENCODED = ("coordns", "pens_a", "pens_r")
MODEL_OF = {"alibi": "PENS-A", "rope": "PENS-R"}


def table_figure4_grid(scale: Scale) -> Grid:
    methods = [
        Method(NAMES[name], {"method": NAMES[name]}, runs=run_id(name), decoding=repeated(scale)) for name in ENCODED
    ]
    return Grid(methods, gaps(pens.sets_of(scale, SIZES), MEAN_GAP, decimals=2), table="figure4_table")


@artifact(
    "Figure 4's table: ALiBi, RoPE and coordinates",
    needs=needs_of(table_figure4_grid),
    printed_files=("figure4_table",),
)
def table_figure4(study: Study) -> Table:
    grid = table_figure4_grid(study.scale)
    sets = [labels.dataset for labels in grid.tests]
    texts, references = gap_notes(study, grid.runs, sets, repeated(study.scale)), reference_notes(study, sets[-1])
    return grid_table(study, ("Model",), grid, gap_notes=texts, reference_notes=references)


def table_figure5_grid(scale: Scale) -> Grid:
    methods, decoding = [], repeated(scale)
    for name, (positions, initial) in pens.SMALL.items():
        model, label = MODEL_OF[positions], f"{initial.capitalize()} init"
        method = Method((model, label), {"method": model, "init": initial}, runs=run_id(name), decoding=decoding)
        methods.append(method)
    return Grid(methods, gaps(pens.sets_of(scale, pens.SMALL_SIZES), MEAN_GAP), table="figure5a_table")


@artifact(
    "Figure 5a: zero and Gaussian initial embeddings",
    needs=needs_of(table_figure5_grid),
    printed_files=("figure5a_table",),
)
def table_figure5(study: Study) -> Table:
    grid = table_figure5_grid(study.scale)
    trained = study.runs[run_id(next(iter(pens.SMALL)))]
    return grid_table(
        study,
        ("Model", "Embeddings"),
        grid,
        gap_notes=gap_notes(study, grid.runs, [labels.dataset for labels in grid.tests], repeated(study.scale)),
        reference_notes=reference_notes(study),
        trained=trained,
    )


MODELS = ("pens_a", "pens_r")


def table1_grid(scale: Scale) -> Grid:
    quantities, factor = [], Measure("scale_factor", record("rescale_factor"))
    for size, test in pens.sets_of(scale, SIZES).items():
        where = f"TSP{test.dataset.n}", described(test.dataset), f"TSP{size}"
        gap = Column(f"gap_tsp{size}_pct", "Gap", "%", fixed(2), *where)
        quantities.append(Quantity(gap, MEAN_GAP, test, size))
        quantities.append(Quantity(Column(f"factor_tsp{size}", "Factor", "", fixed(2), *where), factor, test, size))
    methods = [
        Method((NAMES[name], label), {"method": NAMES[name], "scaled": scaled}, runs=run_id(name), decoding=decoding)
        for name in MODELS
        for label, scaled, decoding in (("original", "no", repeated(scale)), ("rescaled", "yes", pens.rescaled(scale)))
    ]
    return Grid(methods, quantities)


@artifact(
    "The best scaling factors and what they change",
    needs=lambda scale: [*needs_of(table1_grid)(scale), *(pens.rescaling(scale, name) for name in MODELS)],
)
def table1(study: Study) -> Table:
    grid = table1_grid(study.scale)
    sets = {size: labels.dataset for size, labels in pens.sets_of(study.scale, SIZES).items()}
    largest = sets[max(SIZES)]
    here = []
    for name in MODELS:
        before = study.value(MEAN_OF_GAPS, run_id(name), largest, repeated(study.scale))
        after = study.value(MEAN_OF_GAPS, run_id(name), largest, pens.rescaled(study.scale))
        if before is not None and after is not None:
            here.append(f"{NAMES[name]} from {before:.2f} to {after:.2f} %")
    gain = [f"At TSP{max(SIZES)} (TSP{largest.n} here) rescaling takes {', '.join(here)} here."] if here else []
    return grid_table(
        study,
        ("Model", "Coordinates"),
        grid,
        gap_notes=gap_notes(study, grid.runs, sets.values(), repeated(study.scale), pens.rescaled(study.scale)),
        reference_notes=reference_notes(study, sets[max(SIZES)]),
        without_minimum=_without_minimum(study, sets),
        gain=gain,
    )


def _without_minimum(study: Study, sets: dict[int, Dataset]) -> list[str]:
    """Where a sweep's parabola has no minimum between its ends."""
    paper_size = {dataset.n: size for size, dataset in sets.items()}
    models = []
    for name in MODELS:
        arrays = study.arrays(f"{run_id(name)}/rescaling")
        if "interior" not in arrays:
            continue
        inside = dict(zip(arrays["sizes"].tolist(), arrays["interior"].tolist(), strict=True))
        where = [f"TSP{paper_size[n]} (TSP{n} here)" for n, interior in inside.items() if not interior]
        models += [f"{NAMES[name]} at {', '.join(where)}"] if where else []
    return [
        f"The parabola has no minimum between the factors that it is fitted to for {'; '.join(models)}: the factor "
        "there is the best of those tried, and a wider or finer sweep may find a better one."
    ] * bool(models)
