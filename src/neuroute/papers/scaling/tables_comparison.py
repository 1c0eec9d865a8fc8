"""Tables 5, 6 and 20 of paper `scaling`: the models beside LEHD, BQ and SIGD, and LEHD made deep and narrow."""

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from neuroute.datasets.benchmarks import studied
from neuroute.papers.scaling import grid
from neuroute.papers.scaling.cells import gap_cell, gap_cells, parameters_cell, printed_gaps, range_notes
from neuroute.papers.scaling.grid import GRID, SIZES, Shape
from neuroute.papers.scaling.roles import COMPARED, PAPER, run_id
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.rendering.benchmark import not_measured, solved_by_all
from neuroute.rendering.columns import HERE, described, gap_columns, millions, model_here
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, duration


@dataclass(frozen=True)
class Method:
    """One of the methods that the paper compares."""

    name: str
    run: str
    printed: dict[str, Any]  # the columns of the printed numbers that single it out
    beam: int  # the paper's beam width for it


OURS: list[Shape] = [shape for shape in GRID if f"{shape[0]}x{shape[1]}" in COMPARED]
LEHD = Method("LEHD", run_id("6x128", "lehd"), {"method": "LEHD"}, 16)
BQ = Method("BQ", f"{PAPER}/bq", {"method": "BQ"}, 16)
SIGD = Method("SIGD", f"{PAPER}/sigd", {"method": "SIGD"}, 16)
MODELS = [Method(f"({d}, {w})", grid.run_id((d, w)), {"depth": d, "width": w}, 2) for d, w in OURS]


def table5(study: Study) -> Table:
    """Comparison with LEHD, BQ and SIGD."""
    beams = study.scale[ScalingScale].beams
    first, thousand = grid.labelled_set(study, 100), grid.labelled_set(study, 1000)
    searched = grid.searched_set(study)
    published = study.published(5)
    params = grid.printed(study, 1, "params_m", OURS)
    lehd_params = grid.printed(study, 20, "params_m", [(6, 128)])

    def row(method: Method, role: int) -> Row:
        """`role`: the paper's beam width, 1 for greedy."""
        decoding = grid.decoding_id(beams[role])
        rows = published[published.decoding == ("greedy" if role == 1 else "beam")]
        for key, value in method.printed.items():
            rows = rows[rows[key] == value]
        printed = {(int(n), str(m)): float(v) for n, m, v in rows[["n", "metric", "value"]].to_numpy()}
        shape = (method.printed.get("depth"), method.printed.get("width"))
        count = lehd_params[6, 128] if method is LEHD else next((v for s, v in params.items() if s == shape), None)
        cells = [parameters_cell(study, method.run, first, count)] if role == 1 else [Cell()]
        for size, dataset in ((100, first if role == 1 else searched), (1000, thousand)):
            at = described(dataset)
            gap = gap_cell(study, method.run, dataset, printed[size, "gap_pct"], decoding)
            time = Cell(study.value("time_s", method.run, dataset, decoding), printed[size, "time_s"])
            cells += [replace(gap, at=at), replace(time, at=at)]
        name = method.name if method in (LEHD, BQ, SIGD) else f"Ours {method.name}"
        how = "greedy" if role == 1 else f"bs{role}" + (f" ({beams[role]} here)" if beams[role] != role else "")
        return Row((f"{name} {how}", model_here(study, method.run)), tuple(cells))

    columns = [Column("parameters_millions", "Parameters", "M", millions)]
    for size, dataset in ((100, first), (1000, thousand)):
        at, group = described(dataset), f"TSP{size}"
        columns.append(Column(f"gap_tsp{size}_pct", "Gap", "%", group=group, at=at))
        columns.append(Column(f"time_tsp{size}_s", "Time", "", duration, group, at))
    methods = [LEHD, BQ, SIGD, *MODELS]
    notes = [
        *range_notes(study, [m.run for m in methods]),
        "LEHD, BQ and SIGD are trained here too, each by its own recipe at this scale; the paper does not say whether "
        "it trained them or took their authors' weights.",
        "Times are totals over the test set. Printed parameter counts are those of Tables 1 and 20; the paper gives "
        "none for BQ and SIGD.",
        "The paper prints the same 1.18m for BQ greedy on 10,000 TSP100 and on 128 TSP1000.",
    ]
    if searched != first:
        notes.insert(1, f"At TSP100 the beam searches were measured on {described(searched)}.")
    return Table(
        study.artifact.title,
        ("Method", HERE),
        tuple(columns),
        tuple(row(method, role) for method in methods for role in (1, method.beam)),
        tuple(notes),
    )


def table6(study: Study) -> Table:
    """TSPLIB instances below 5,000 nodes."""
    methods = [BQ, SIGD, LEHD, *MODELS]
    limit = study.scale[ScalingScale].tsplib_max_nodes
    published = study.published(6)
    measured = solved_by_all(study, [f"{m.run}/tsplib" for m in methods])
    nodes = [k.nodes for k in studied()]
    groups = {  # the paper's rows: its name for them in the printed numbers, nodes from, nodes below
        "< 500": ("<500", 0, 500),
        "> 500": (">500 (<5000)", 500, 5000),
        "All": ("<5000", 0, 5000),
    }

    def row(group: str, metric: str, distances: str) -> Row:
        name, least, below = groups[group]
        nodes_here = measured.n.astype(float)
        inside = measured[(nodes_here >= least) & (nodes_here < below)]
        means = inside[inside.metric == metric].astype({"value": float}).groupby("run").value.mean()
        cells = []
        for method in methods:
            rows = published[published.n == name]
            for key, value in method.printed.items():
                rows = rows[rows[key] == value]
            here = float(means[method.run]) if method.run in means.index else None
            cells.append(Cell(here, float(rows.value.iloc[0]) if metric == "gap_pct" else None))
        there = sum(least <= n < below for n in nodes)
        return Row((group, distances, f"{inside.test.nunique()} of {there}"), tuple(cells))

    return Table(
        study.artifact.title,
        ("TSPLIB", "Distances", "Instances here"),
        tuple(
            Column(
                f"gap_{_key(m)}_pct",
                m.name,
                "%",
                group="Baselines" if m in (BQ, SIGD, LEHD) else "Ours (depth, width)",
                at=f"TSPLIB below {limit:,} nodes",
            )
            for m in methods
        ),
        (
            *(row(group, "gap_pct", "unrounded") for group in groups),
            *(row(group, "gap_rounded_pct", "integer") for group in groups),
        ),
        (
            f"Means of the instances' gaps to the published optima, greedy. Measured on {measured.test.nunique()} of "
            f"the {sum(n < limit for n in nodes)} EUC_2D instances below {limit:,} nodes, this scale's limit; of "
            f"{len(nodes)} below 5,000, which is the paper's.",
            *not_measured(measured, limit, {m.name: m.run for m in methods}),
            "Unrounded lengths against optima in TSPLIB's integer distances, as learned solvers report them: an "
            "optimal tour then shows a gap of its own. Integer: the library's distances, in which it is 0.",
            f"Here: {', '.join(f'{m.name} {model_here(study, m.run)}' for m in methods)}.",
            _weights(study),
        ),
    )


def _weights(study: Study) -> str:
    """What the paper's "All" row says of its instances: the weight of the small ones that each column implies."""
    rows = study.published(6)
    model = rows.method.where(rows.method != "Ours", rows.depth.astype("Int64").astype(str) + ", " + _text(rows.width))
    means = rows.assign(model=model).pivot(index="model", columns="n", values="value")
    small, large, every = means["<500"], means[">500 (<5000)"], means["<5000"]
    implied = 100 * (large - every) / (large - small)
    names = [f"{d}, {w}" for d, w in OURS]
    expected = 0.6 * small + 0.4 * large
    return (
        "The printed row All of BQ, SIGD and LEHD is that of 60 % of the instances below 500 nodes, which is 42 of the "
        f"70 EUC_2D ones; those of the paper's own models imply {', '.join(f'{implied[n]:.0f}' for n in names)} %. At "
        f"60 % they would be {', '.join(f'{expected[n]:.3f}' for n in names)} %, better than printed."
    )


def _text(column: pd.Series) -> pd.Series:
    return column.astype("Int64").astype(str)


def _key(method: Method) -> str:
    if method in MODELS:
        return "{depth}x{width}".format_map(method.printed)
    return method.name.lower()


def table20(study: Study) -> Table:
    """LEHD before and after modification."""
    shapes: list[Shape] = [(6, 128), (24, 64)]
    sets = {size: grid.labelled_set(study, size) for size in SIZES}
    params = grid.printed(study, 20, "params_m", shapes)
    runs = {shape: run_id(f"{shape[0]}x{shape[1]}", "lehd") for shape in shapes}
    rows = [
        Row(
            (f"LEHD (D={shape[0]}, W={shape[1]})", model_here(study, run)),
            (
                parameters_cell(study, run, sets[100], params.get(shape)),
                *gap_cells(study, run, sets, printed_gaps(study, 20, depth=shape[0], width=shape[1])),
            ),
        )
        for shape, run in runs.items()
    ]
    return Table(
        study.artifact.title,
        ("Model", HERE),
        (Column("parameters_millions", "Parameters", "M", millions), *gap_columns(sets)),
        tuple(rows),
        (
            *range_notes(study, runs.values()),
            f"The printed counts differ by {100 * (1 - params[24, 64] / params[6, 128]):.1f} %, as the text says. They "
            "count a linear layer that LEHD's released network holds but does not use.",
        ),
    )
