"""Tables of paper `scaling`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

from neuroute.datasets.benchmarks import study_instances
from neuroute.evaluation.flops import counts, solution, solution_paper, training_per_sample
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.paper import grid, run_id
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.rendering.benchmark import Solved, measured_here, not_measured
from neuroute.pipeline.rendering.cells import (
    MEAN_OF_GAPS,
    Solvers,
    gap_cell,
    mean_cell,
    model_here,
    number,
    printed_numbers,
    select,
    solver_name,
    summary_cell,
)
from neuroute.pipeline.rendering.grid import (
    GAP,
    GREEDY,
    PARAMETERS,
    SECONDS,
    Grid,
    Measure,
    Method,
    Quantity,
    comparison,
    gaps,
    grid_table,
    needs_of,
    parameters,
    record,
)
from neuroute.pipeline.rendering.render import draw_table
from neuroute.pipeline.rendering.settings import printed_values
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import (
    AS_CONFIGURED,
    HERE,
    WHOLE,
    Cell,
    Column,
    Row,
    Table,
    Value,
    described,
    duration,
    fixed,
    gap_columns,
    millions,
    plain,
)
from neuroute.specs.objects import Dataset, Decoding, Distribution, Labels, Supervised, Test, beam_search


@dataclass(frozen=True)
class DecoderOnly:
    """D layers of width W with H heads, an FFN of 4 W and, as published, ReZero."""

    depth: int
    width: int
    heads: int

    @property
    def parameters(self) -> int:
        """D (13 W^2 + 7 W + 2) + 2 W^2 + 6 W + 1 (Table 1); D (W^2 + W) of them the gates'."""
        w = self.width
        return self.depth * (13 * w**2 + 7 * w + 2) + 2 * w**2 + 6 * w + 1

    def decision(self, tokens: int) -> int:
        """FLOPs of a decision on k tokens: D (26 W^2 k + 4 W k^2 + H k^2 + 4 W k) + 4 W^2 + 6 W k.

        So printed FLOPs come out (`flops.solution_paper`): one for each entry of a softmax and each output
        of a ReLU, and the head is of all tokens, not of the candidates alone.
        """
        w, k = self.width, tokens
        return self.depth * (26 * w**2 * k + (4 * w + self.heads) * k**2 + 4 * w * k) + 4 * w**2 + 6 * w * k


ADDED = "not the paper's"


def model(shape: scaling.Shape, label: str, prefix: str = "base", **where: object) -> Method:
    """Show the model of a shape; `label` is filled with its depth and width, as are its printed columns."""
    return Method(label.format(*shape), shape._asdict() | where, runs=run_id(shape, prefix))


def of_grid(scale: Scale, label: str) -> list[Method]:
    """Show all models of the grid; of those that the scale adds the label says so."""
    return [
        replace(model(shape, f"{label}, {ADDED}"), printed=None) if scaling.is_added(shape) else model(shape, label)
        for shape in scaling.grid(scale)
    ]


def sets_of(scale: Scale, sizes: Iterable[int] = scaling.SIZES) -> dict[int, Labels]:
    """Return the uniform test sets that stand for the paper's sizes."""
    return {size: scaling.reference(scale, size) for size in sizes}


MEAN_OF_RATIOS = Measure(MEAN_OF_GAPS, record(MEAN_OF_GAPS))


def solver(scale: Scale) -> Method:
    """Show the rival solver, or the reference solver where it was not run, in the row of LKH3 (Tables 12 to 16)."""
    names = (scale[scaling.ScalingScale].rival_solver, scale.reference_solver)
    return Method("LKH3", {"method": "LKH3"}, solvers=tuple(dict.fromkeys(names)))


def solver_notes(study: Study, tests: Sequence[Labels]) -> list[str]:
    """Say which solver stands in the row of LKH3, and what its gap and time are."""
    solvers, reference = Solvers.of(study), study.scale.reference_solver
    rival = study.scale[scaling.ScalingScale].rival_solver
    name = rival if all(solvers.entry(test.dataset, rival) for test in tests) else reference
    words = solver_name(name)
    entries = [entry for test in tests if (entry := solvers.entry(test.dataset, name)) is not None]
    notes = []
    if name == reference:
        other = f" {solver_name(rival)} was not run on these test sets; LKH3's printed numbers stand beside it."
        notes.append(f"{words} is the reference here, so its gap is 0 by construction.{other if name != rival else ''}")
    untimed = sum(entry.get("seconds") is None for entry in entries)
    if untimed:
        which = "" if untimed == len(tests) else f" of {untimed} of {len(tests)} test sets"
        notes.append(f"{words}'s solutions{which} came from a label cache that keeps no times.")
    if untimed < len(tests):
        notes.append(
            f"{words}'s time is that of its solver calls on one core each, added up; the paper's cores are unknown."
        )
    return notes


def table2_grid(scale: Scale) -> Grid:
    tests = sets_of(scale)
    sized = scaling.equal_sized(scale)
    methods = [replace(model(shape, "D={}, W={}"), runs=run) for shape, run in sized.items()]
    return Grid(methods, [parameters(tests[100]), *gaps(tests, GAP)])


@artifact(
    "Deep and narrow against wide at equal parameters", needs=needs_of(table2_grid), printed_files=("table2", "table5")
)
def table2(study: Study) -> Table:
    grid = table2_grid(study.scale)
    n = grid.tests[0].dataset.n
    first, *deep = (solution_paper(counts(study.runs[run].network).decision, n) for run in grid.runs)
    ratios = ", ".join(f"{cost / first:.2f}× for {m.label}" for m, cost in zip(grid.methods[1:], deep, strict=True))
    return grid_table(study, ("Model",), grid, ratios=ratios)


def _table4_needs(scale: Scale) -> Iterator[Need]:
    s = scale[scaling.ScalingScale]
    for shape in scaling.BUDGETED:
        labels = scaling.reference(scale, 100, s.budget_count)
        yield from tested(run_id(shape), labels, *map(beam_search, s.budgets[str(shape)].values()))


@artifact("Optimality gap under limited and sufficient inference budgets", needs=_table4_needs)
def table4(study: Study) -> Table:
    s = study.scale[scaling.ScalingScale]
    dataset = scaling.reference(study.scale, 100, s.budget_count).dataset
    at, columns = described(dataset), []
    for budget, paper in (("limited", ""), ("sufficient", "> 1 h")):
        heads = f"{budget.capitalize()} budget", at, paper
        columns.append(Column(f"{budget}_beam", "Beam", "", WHOLE, *heads))
        columns.append(Column(f"{budget}_gap_pct", "Gap", "%", fixed(4), *heads))
        columns.append(Column(f"{budget}_time_s", "Time", "", duration, *heads))

    def row(shape: scaling.Shape) -> Row:
        run, rows = run_id(shape), printed_numbers(study, 4, **shape._asdict())
        cells = []
        for budget, beam in s.budgets[str(shape)].items():
            numbers, decoding = select(rows, budget=budget), Decoding(method="beam", beam=beam)
            size, gap, time = (number(numbers, None, metric) for metric in ("beam_size", "gap_pct", "time_s"))
            cells.append(Cell(beam, size))
            cells.append(gap_cell(study, run, dataset, gap, decoding))
            cells.append(Cell(study.value("time_s", run, dataset, decoding), time))
        label = f"({shape.depth}, {shape.width}, {number(rows, None, 'params_m'):.1f}M)"
        return Row((label, model_here(study, run)), tuple(cells))

    return draw_table(study, ("Depth, width, parameters", HERE), columns, [row(shape) for shape in scaling.BUDGETED])


def table12_grid(scale: Scale) -> Grid:
    test = scaling.reference(scale, 100)
    at = described(test.dataset)
    return Grid(
        [solver(scale), *of_grid(scale, "Greedy, depth={}, width={}")],
        [
            Quantity(Column("gap_pct", "Gap", "%", at=at), GAP, test, 100),
            Quantity(Column("gap_mean_of_ratios_pct", "Mean of ratios", "%", at=at), MEAN_OF_RATIOS, test, 100),
            Quantity(Column("time_s", "Time", format=duration, at=at), SECONDS, test, 100),
        ],
    )


@artifact("In-domain greedy results of the twelve models", needs=needs_of(table12_grid))
def table12(study: Study) -> Table:
    grid, reference = table12_grid(study.scale), study.scale.reference_solver
    texts = solver_notes(study, grid.tests)
    return grid_table(study, ("Method",), grid, reference_solver=reference, solver_notes=texts)


def _batched(scale: Scale) -> dict[int, Decoding]:
    """Return greedy decoding in each of the paper's batch sizes, as large as they are here."""
    count = scaling.reference(scale, 100).dataset.count
    return {role: Decoding(batch_size=min(n, count)) for role, n in scale[scaling.ScalingScale].latency_batches.items()}


@artifact(
    "FLOPs and latency by batch size",
    needs=lambda s: tested(map(run_id, scaling.TIMED), scaling.reference(s, 100), Decoding(), *_batched(s).values()),
    printed_files=("table1", "table17"),
)
def table17(study: Study) -> Table:
    dataset = scaling.reference(study.scale, 100).dataset
    sizes, decodings = study.scale[scaling.ScalingScale].latency_batches, _batched(study.scale)

    def row(shape: scaling.Shape) -> Row:
        run, rows = run_id(shape), printed_numbers(study, 17, **shape._asdict())
        heads = printed_numbers(study, 1, **shape._asdict(), metric="heads").value.item()
        decision = DecoderOnly(*shape, int(heads)).decision
        cells = [
            Cell(study.value("gflops_paper", run, dataset), number(rows, None, "gflops")),
            Cell(study.value("gflops_shrinking", run, dataset)),
            Cell(solution_paper(decision, 100) / 1e9),
            Cell(solution(decision, 100) / 1e9),
        ]
        for role, decoding in decodings.items():
            seconds = number(select(rows, batch_size=role), None, "time_s")
            cells.append(Cell(study.value("time_s", run, dataset, decoding), seconds))
        return Row(("Greedy, depth={}, width={}".format(*shape), model_here(study, run)), tuple(cells))

    per_solution, recomputed = "Compute per solution", "Recomputed at the paper's size"
    columns = [
        Column("gflops_paper", "Paper's count", "GFLOPs", _significant, per_solution),
        Column("gflops_shrinking", "Real count", "GFLOPs", _significant, per_solution),
        Column("gflops_paper_at_paper_shape", "Paper's count", "GFLOPs", fixed(1), recomputed),
        Column("gflops_shrinking_at_paper_shape", "Real count", "GFLOPs", fixed(1), recomputed),
    ]
    for role, decoding in decodings.items():
        label = f"Batch {role}" + ("" if sizes[role] == role else f" ({decoding.batch_size} here)")
        columns.append(Column(f"time_batch{role}_s", label, "", duration, "Time", described(dataset)))
    return draw_table(study, ("Method", HERE), columns, [row(shape) for shape in scaling.TIMED])


def _gap_alone(study: Study, run: str, dataset: Dataset, published: Value, decoding: Decoding) -> Cell:
    """Show a gap without its interval; claims are judged by it all the same."""
    of = study, run, dataset, published, decoding
    return replace(record("gap_pct")(*of), behind=gap_cell(*of).behind)


def table18_grid(scale: Scale) -> Grid:
    test, gap_alone = scaling.beam_test(scale), Measure("gap_pct", _gap_alone)
    quantities = []
    for role, beam in scale[scaling.ScalingScale].beams.items():
        name = "Greedy" if role == 1 else f"Beam {role}"
        heading = name if role == beam else f"{name} ({beam} here)"
        column = Column(f"gap_beam{role}_pct", heading, "%", fixed(4), at=described(test.dataset))
        quantities.append(Quantity(column, gap_alone, test, 100, beam_search(beam), {"beam": role}))
    return Grid(of_grid(scale, "D={}, W={}"), quantities)


@artifact("Beam search with growing widths", needs=needs_of(table18_grid))
def table18(study: Study) -> Table:
    grid = table18_grid(study.scale)
    gaps = [[cell.measured for cell in row.cells] for row in grid.rows(study)]
    steps = [step for row in gaps for step in pairwise(row)]
    worse = sum(isinstance(a, float) and isinstance(b, float) and b > a for a, b in steps)
    return grid_table(study, ("Model",), grid, steps=len(steps), worse=worse)


def _significant(value: Any) -> str:
    """Format with four significant digits."""
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


@dataclass(frozen=True)
class Model:
    """One of the models that the paper compares."""

    name: str
    run: str
    printed: Mapping[str, object]  # the columns of its printed numbers
    beam: int  # the paper's beam width for it


LEHD = Model("LEHD", run_id(scaling.GRID[0], "lehd"), {"method": "LEHD"}, 16)
BQ = Model("BQ", f"{scaling.KEY}/bq", {"method": "BQ"}, 16)
SIGD = Model("SIGD", f"{scaling.KEY}/sigd", {"method": "SIGD"}, 16)
OURS = [Model(shape.name, run_id(shape), shape._asdict(), 2) for shape in scaling.COMPARED]


def table5_grid(scale: Scale) -> Grid:
    tests, beams = sets_of(scale, (100, 1000)), scale[scaling.ScalingScale].beams
    methods = []
    for each in (LEHD, BQ, SIGD, *OURS):
        name, here = f"Ours {each.name}" if each in OURS else each.name, beams[each.beam]
        methods.append(Method(f"{name} greedy", {**each.printed, "decoding": "greedy"}, runs=each.run))
        label = f"{name} bs{each.beam}" + (f" ({here} here)" if here != each.beam else "")
        printed, searched = {**each.printed, "decoding": "beam"}, {100: scaling.beam_test(scale)}
        methods.append(Method(label, printed, runs=each.run, decoding=beam_search(here), tests=searched))
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
    unread = [(whole, beam) for beam in beams] if whole != scaling.beam_test(scale) else []
    return [need for need in needs if not (isinstance(need, Test) and (need.labels, need.decoding) in unread)]


@artifact("Comparison with LEHD, BQ and SIGD", needs=_table5_needs, printed_files=("table1", "table5", "table20"))
def table5(study: Study) -> Table:
    grid = table5_grid(study.scale)
    at = scaling.beam_test(study.scale).dataset
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
    at = f"TSPLIB, {every} of {len(nodes)} instances"
    for m in COLUMNS:
        key = "{depth}x{width}".format_map(m.printed) if m in OURS else m.name.lower()
        group = "Ours (depth, width)" if m in OURS else "Baselines"
        columns.append(Column(f"gap_{key}_pct", m.name, "%", group=group, at=at))
    ways = (("gap_pct", "unrounded"), ("gap_rounded_pct", "integer"))
    return draw_table(
        study,
        ("TSPLIB", "Distances", "Instances here"),
        columns,
        [row(group, *way) for way in ways for group in GROUPS],
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


def beyond_training_grid(scale: Scale, distribution: Distribution) -> Grid:
    """Show gap and time of the twelve models for each size that they are not trained on, under the solver's row."""
    sizes = scaling.SIZES[1:] if distribution == "uniform" else scaling.SIZES
    tests = {size: scaling.reference(scale, size, distribution=distribution) for size in sizes}
    methods = [solver(scale), *of_grid(scale, "Ours greedy (Depth={}, Width={})")]
    return Grid(methods, comparison(tests, "TSP{}".format, GAP, SECONDS, key="tsp{}".format))


def _beyond_training(study: Study, distribution: Distribution) -> Table:
    grid, reference = beyond_training_grid(study.scale, distribution), study.scale.reference_solver
    solvers = solver_notes(study, grid.tests)
    return grid_table(study, ("Method",), grid, reference_solver=reference, solvers=solvers)


@artifact("Larger uniform instances", needs=needs_of(partial(beyond_training_grid, distribution="uniform")))
def table13(study: Study) -> Table:
    return _beyond_training(study, "uniform")


@artifact("Explosion: instances of four sizes", needs=needs_of(partial(beyond_training_grid, distribution="explosion")))
def table14(study: Study) -> Table:
    return _beyond_training(study, "explosion")


@artifact("Implosion: instances of four sizes", needs=needs_of(partial(beyond_training_grid, distribution="implosion")))
def table15(study: Study) -> Table:
    return _beyond_training(study, "implosion")


@artifact("Cluster: instances of four sizes", needs=needs_of(partial(beyond_training_grid, distribution="cluster")))
def table16(study: Study) -> Table:
    return _beyond_training(study, "cluster")


def _table19_needs(scale: Scale) -> Iterator[Need]:
    s = scale[scaling.ScalingScale]
    rrc = Decoding(method="rrc", iterations=max(s.rrc.values()), milestones=(0, *s.rrc.values()))
    tests = [scaling.reference(scale, size, count) for size, count in s.rrc_counts.items()]
    return tested(map(run_id, scaling.COMPARED), tests, rrc)


@artifact("Random re-construct with different budgets", needs=_table19_needs)
def table19(study: Study) -> Table:
    """Show gaps after more and more iterations, on the first instances of two test sets."""
    s = study.scale[scaling.ScalingScale]
    budgets = {0: 0, **s.rrc}  # the paper's iterations -> iterations here
    rows = []
    for size, count in s.rrc_counts.items():
        dataset = scaling.reference(study.scale, size, count).dataset
        for shape in scaling.COMPARED:
            run, cells = run_id(shape), []
            for k, here in budgets.items():
                where = {"iters": k} if k else {"decoding": "greedy"}
                published = number(printed_numbers(study, 19, **shape._asdict(), **where), size, "gap_pct")
                cell = gap_cell(study, run, dataset, published, Decoding(method="rrc", iterations=here))
                cells.append(replace(cell, at=described(dataset)))
            at, name = f"TSP{size} ({described(dataset)} here)", "Ours (D={}, W={})".format(*shape)
            rows.append(Row((at, name, model_here(study, run)), tuple(cells)))
    headings = {k: f"RRC {k}" + ("" if k == here else f" ({here} here)") for k, here in s.rrc.items()}
    columns = [Column(f"gap_rrc{k}_pct", headings.get(k, "Greedy"), "%", fixed(4)) for k in budgets]
    return draw_table(study, ("Test set", "Model", HERE), columns, rows)


SAMPLES = Measure(
    "train_size", lambda study, run, _, published, how: Cell(study.runs[run].training.samples / 1e6, published)
)
EPOCHS = Measure("epochs", lambda study, run, _, published, how: Cell(study.runs[run].training.epochs, published))


def _budget(test: Labels) -> list[Quantity]:
    """Head the columns of what a model is trained on."""
    samples = Column("samples_millions", "Training samples", "M", millions)
    return [Quantity(samples, SAMPLES, test), Quantity(Column("epochs", "Epochs", format=WHOLE), EPOCHS, test)]


def table3_grid(scale: Scale) -> Grid:
    tests = sets_of(scale, (100, 1000))
    models = [model(shape, "D={}, W={}", "small01M") for shape in scaling.FEW]
    methods = [replace(each, also_printed={"epochs": 60.0}) for each in models]  # by the caption
    return Grid(methods, [parameters(tests[100]), *_budget(tests[100]), *gaps(tests, GAP)])


@artifact("Few samples, seen many times", needs=needs_of(table3_grid))
def table3(study: Study) -> Table:
    return grid_table(study, ("Model",), table3_grid(study.scale))


def table7_grid(scale: Scale) -> Grid:
    label = "Ours greedy (Depth={}, Width={})"
    methods = [
        model(scaling.DEEPEST, f"{label} w/ gated attention", gated_attention="yes"),
        model(scaling.DEEPEST, f"{label} w/o gated attention", "nogate", gated_attention="no"),
    ]
    return Grid(methods, gaps(sets_of(scale), GAP))


@artifact("With and without gated attention", needs=needs_of(table7_grid))
def table7(study: Study) -> Table:
    return grid_table(study, ("Model",), table7_grid(study.scale))


LOG_SETTINGS = {"no": ("w/o log(n)", Decoding(log_n=False)), "yes": ("w/ log(n)", Decoding())}


@artifact(
    "With and without log(n)",
    needs=lambda scale: tested(map(run_id, scaling.LOG_N), sets_of(scale).values(), Decoding(), Decoding(log_n=False)),
    printed_files=("table8", "table12", "table13"),
)
def table8(study: Study) -> Table:
    sets = {n: test.dataset for n, test in sets_of(study.scale).items()}

    def row(shape: scaling.Shape, log_n: str) -> Row:
        setting, decoding = LOG_SETTINGS[log_n]
        gaps = {n: _printed_gap(study, shape, log_n, n) for n in sets}
        cells = (gap_cell(study, run_id(shape), sets[n], gap, decoding) for n, gap in gaps.items())
        labels = (setting, "Ours (D={}, W={})".format(*shape), model_here(study, run_id(shape)))
        return Row(labels, tuple(cells))

    rows = [row(shape, log_n) for log_n in LOG_SETTINGS for shape in scaling.LOG_N]
    return draw_table(study, ("Setting", "Model", HERE), gap_columns(sets), rows)


def _printed_gap(study: Study, shape: scaling.Shape, log_n: str, n: int) -> Value:
    """The printed gap where it belongs: (6, 256) without log(n) is (6, 512), whose row with it is missing."""
    if (shape, log_n) == ((6, 256), "no"):
        return None
    if (shape, log_n) == ((6, 512), "yes"):
        return number(printed_numbers(study, 12 if n == 100 else 13, **shape._asdict()), n, "gap_pct")
    row_in_print = scaling.Shape(6, 256) if shape == (6, 512) else shape
    return number(printed_numbers(study, 8, **row_in_print._asdict(), log_n=log_n), n, "gap_pct")


def table11_grid(scale: Scale) -> Grid:
    tests = sets_of(scale)
    methods = []
    for amount in (1, 10):  # million
        label, run = ("Ours greedy (Depth=12, Width=128)", f"{amount}M"), run_id(scaling.DATA, f"data{amount}M")
        printed, besides = {"train_size": amount * 1_000_000}, {"train_size": float(amount)}
        methods.append(Method(label, printed, runs=run, also_printed=besides))
    return Grid(methods, [*_budget(tests[100]), *gaps(tests, GAP)])


@artifact("Few and many training samples", needs=needs_of(table11_grid))
def table11(study: Study) -> Table:
    grid = table11_grid(study.scale)
    samples = {t.samples * t.epochs for t in (study.runs[run].training for run in grid.runs)}
    amounts = f"both see {samples.pop():,} in all" if len(samples) == 1 else "the epochs are in the table"
    return grid_table(study, ("Model", "Training set"), grid, amounts=amounts)


@artifact("Configurations of the twelve models", printed_files=("table1", "table18"))
def table1(study: Study) -> Table:

    def row(shape: scaling.Shape) -> Row:
        network = study.runs[run_id(shape)].network
        heads, width, count = network.arguments.get("heads"), network.arguments.get("width"), counts(network)
        values = {
            "heads": heads,
            "qkv_dim": width // heads if heads and width else None,
            "ffn_dim": 4 * width if width and network.kind.endswith(":DecoderOnly") else None,
            "params_m": count.parameters / 1e6,
        }
        rows = printed_numbers(study, 1, **shape._asdict())
        cells = (Cell(value, number(rows, None, metric)) for metric, value in values.items())
        here = model_here(study, run_id(shape))
        if scaling.is_added(shape):
            return Row((*shape, f"{here}; {ADDED}"), (*cells, Cell()))
        return Row((*shape, here), (*cells, Cell(DecoderOnly(*shape, heads=8).parameters)))

    columns = (
        Column("heads", "Heads", format=WHOLE),
        Column("qkv_dim", "QKV dim", format=WHOLE),
        Column("ffn_dim", "FFN dim", format=WHOLE),
        Column("parameters_millions", "Parameters", "M", millions),
        Column("parameters_at_paper_shape", "Exact count at the paper's shape", format=WHOLE),
    )
    rows = [row(shape) for shape in grid(study.scale)]
    return draw_table(study, ("Depth", "Width", HERE), columns, rows, AS_CONFIGURED)


@artifact("Training hyper-parameters")
def table9(study: Study) -> Table:
    published = printed_values(study)
    s, run = study.scale[scaling.ScalingScale], study.runs[run_id(scaling.GRID[0])]
    t = run.training
    assert isinstance(t, Supervised)  # declared so
    trainings = {shape: study.runs[run_id(shape)].training for shape in scaling.GRID}
    changed = [shape.name for shape, training in trainings.items() if training != s.recipe(s.model(*shape))]
    rates = sorted({s.recipe(s.model(*shape)).learning_rate for shape in scaling.GRID})
    rate = t.learning_rate if len(rates) == 1 else f"{rates[0]:g} to {rates[-1]:g}, by shape"
    falls = t.final_learning_rate is None  # by a factor, again and again
    end = None if t.final_learning_rate is None else float(f"{t.final_learning_rate / t.learning_rate:.2g}")
    update = {"sub-path": "one per decision"}.get(t.step, f"one ({t.step})")
    rows: list[tuple[str, Any, str | None]] = [
        ("Batch size", t.batch_size, "batch_size"),
        ("Total training steps", t.batches, "total_training_steps"),
        ("Optimizer", "AdamW", "optimizer"),
        ("Weight decay", t.weight_decay, "weight_decay"),
        ("Learning rate", rate, "learning_rate"),
        ("Scheduler", "Exponential" if falls else "Cosine", "scheduler"),
        ("Decay gamma", t.decay_gamma if falls else None, "decay_gamma"),
        ("Decay step", t.decay_every if falls else None, "decay_step"),
        *([] if falls else [("Share of the rate at the end", end, None)]),
        ("Training instances", t.samples, None),
        ("Passes over them", t.epochs, None),
        ("Nodes of a training instance", run.n, None),
        ("Updates in a step", update, None),
        ("Warm-up batches", t.warmup_batches, None),
        ("Precision", t.precision, None),
    ]
    names, first = ", ".join(changed), scaling.GRID[0].name
    change = f"config.yaml changes the training of {names}; the values shown are those of {first}."
    columns = (Column("value", "Value", format=plain),)
    of_settings = [Row((name,), (Cell(value, published[key] if key else None),)) for name, value, key in rows]
    return draw_table(study, ("Parameter",), columns, of_settings, AS_CONFIGURED, changed=change if changed else "")


@artifact("Training hardware", needs=lambda scale: [Log(run_id(shape), all_seeds=True) for shape in grid(scale)])
def table10(study: Study) -> Table:
    published = study.published(10).set_index("key")

    def row(shape: scaling.Shape) -> Row:
        run = study.runs[run_id(shape)]
        summary = study.summary(run.id)
        count = summary.get("threads") if summary.get("device") == "cpu" else None
        threads = f", {count} thread{'s' if count != 1 else ''}" if count else ""
        device: str | None = None
        if summary.get("device"):  # weights of a file have none
            device = f"{summary.get('device_name') or summary['device']}{threads} × {summary.get('world_size') or 1}"
        cards = published.value.get("depth={};width={}".format(*shape))
        cells = (
            Cell(device, None if cards is None else f"4090 × {int(cards)}"),
            summary_cell(study, run.id, "wall_time_s"),
            summary_cell(study, run.id, "updates"),
            Cell(training_per_sample(run) * summary["samples"] / 1e15 if "samples" in summary else None),
        )
        label = "D={}, W={}".format(*shape) + (f", {ADDED}" if scaling.is_added(shape) else "")
        return Row((label, model_here(study, run.id)), cells)

    columns = (
        Column("device", "Device"),
        Column("wall_time_s", "Training time", format=duration),
        Column("updates", "Updates", format=WHOLE),
        Column("train_pflop", "Training compute", "PFLOP", format=lambda v: f"{v:.3g}"),
    )
    return draw_table(study, ("Configuration", HERE), columns, [row(shape) for shape in grid(study.scale)])


@artifact(
    "Our own: learning rates by shape",
    needs=lambda scale: (
        Log(run, all_seeds=True)
        for name, (shape, _) in scaling.pilots(scale).items()
        for run in (f"{scaling.KEY}/{name}", run_id(shape))
    ),
    printed_files=(),
)
def table22(study: Study) -> Table:
    """Show what the rule of the rates is made of, and the rate that each model of the grid has by it."""
    s = study.scale[scaling.ScalingScale]
    assert s.rates is not None  # else no scale's plan has this table
    tried = sorted({rate for rates in s.rates.tried.values() for rate in rates})
    rows, others = [], []
    for shape in scaling.GRID:
        pilots = {rate: f"{scaling.KEY}/{scaling.pilot(shape, rate)}" for rate in s.rates.tried.get(str(shape), ())}
        short = {rate: _last_gap(study, run) for rate, run in pilots.items()}
        gaps = {rate: cell.measured for rate, cell in short.items() if isinstance(cell.measured, float)}
        best = min(gaps, key=gaps.__getitem__) if gaps else None
        if gaps and best != s.rates.best[str(shape)]:
            others.append(shape.name)
        whole = [_last_gap(study, run) if pilots else Cell() for run in (run_id(shape), run_id(shape, "single"))]
        rate_here = s.recipe(s.model(*shape)).learning_rate
        cells = (*(short.get(rate, Cell()) for rate in tried), Cell(best), Cell(rate_here), *whole)
        rows.append(Row((shape.name, model_here(study, run_id(shape))), cells))
    at = described(scaling.validation(study.scale).dataset)
    columns = [
        *(Column(f"gap_{rate:g}_pct", f"{rate:g}", "%", group="Short trainings", at=at) for rate in tried),
        Column("best", "Best tried", format="{:g}".format),
        Column("rate", "Rate by the rule", format="{:g}".format),
        Column("gap_pct", "At this rate", "%", group="Whole trainings", at=at),
        Column("gap_single_pct", f"At {s.training.learning_rate:g}", "%", group="Whole trainings", at=at),
    ]
    said = "The scale's rates are the best tried at each corner."
    if others:
        said = f"The scale has another rate than the best tried at {', '.join(others)}: correct `rates.best`."
    return draw_table(study, ("Model", HERE), columns, rows, part=s.rates.part, others=said)


def _last_gap(study: Study, run: str) -> Cell:
    """Mean the last validation gaps of a run's trainings."""
    logs = [study.log(training, "validation") for training in study.trainings(run)]
    return mean_cell([float(log.gap_pct.iloc[-1]) for log in logs if len(log)])
