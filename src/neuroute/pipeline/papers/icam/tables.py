"""Tables of paper `icam`, and the methods here that stand for the rows that they print."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from neuroute.datasets.benchmarks import study_instances
from neuroute.evaluation.flops import counts
from neuroute.pipeline.papers.icam import paper as icam
from neuroute.pipeline.papers.icam.paper import MULTI, OWN, PROBLEMS, IcamScale, run_id
from neuroute.pipeline.plan import systems
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.plan.paper import borrow_runs
from neuroute.pipeline.rendering.benchmark import Solved, measured_here, not_measured
from neuroute.pipeline.rendering.cells import (
    UNTRAINED,
    gap_cell,
    model_here,
    number,
    printed_numbers,
    references_by_problem,
    select,
    with_budget,
)
from neuroute.pipeline.rendering.grid import (
    GAP,
    LENGTH,
    SECONDS_EACH,
    Grid,
    Method,
    Tests,
    comparison,
    from_print,
    gaps,
    grid_table,
    lkh_budgets,
    needs_of,
    of_each,
)
from neuroute.pipeline.rendering.render import draw_table
from neuroute.pipeline.rendering.settings import (
    Setting,
    changes_note,
    drawn_instances,
    licence_table,
    printed_values,
    setting_rows,
)
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import (
    AS_TRAINED,
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
    plain,
)
from neuroute.specs.objects import Benchmark, Decoding, GivenRun, Labels, Network, Problem, Reinforced, Run, Stage

# The solvers of a table that has a row for each; and of one that has a single row.
SOLVERS: dict[Problem, dict[str, Method]] = {
    "tsp": {"Concorde": Method(solvers=("concorde",)), "LKH3": Method(solvers=("lkh", "lkh-long", "lkh3"))},
    "cvrp": {"LKH3": Method(solvers=("lkh3",)), "HGS": Method(solvers=("hgs", "hgs-short"))},
}
REFERENCE: dict[Problem, dict[str, Method]] = {
    "tsp": {
        "Concorde": Method(solvers=("concorde", "lkh", "lkh-long", "lkh3")),
        "LKH3": Method(solvers=("lkh3", "lkh", "lkh-long", "concorde")),
    },
    "cvrp": {"LKH3": Method(solvers=("lkh3", "hgs", "hgs-short"))},
}
WAYS = {"single trajec.": icam.SINGLE, "no augment.": icam.MULTI, "aug×8": icam.AUGMENTED}


def models(scale: Scale, problem: Problem) -> dict[str, Method]:
    """Models of Tables 1, 3, 6, 7 and 11, greedy and from many starts; searches are in Table 11."""
    partitions = dict.fromkeys(icam.TAM_SIZES, icam.GLOP_G_2K) | {1000: icam.GLOP_G}
    there = {run.id for run in borrow_runs(Config(), scale, [icam.ATT_GCN_LARGE, icam.DIMES_LARGE])}

    def maps(run: str, large: str, sizes: set[int]) -> Method:
        """Maps of edges, of two networks where the scale has two."""
        runs = {size: large if large in there and size in sizes else run for size in icam.SIZES}
        return Method(runs=runs, decoding=systems.TREE_SEARCH)

    return {
        **{f"{name} greedy": Method(runs=run) for name, run in icam.BASELINES[problem].items()},
        **ways({"POMO": icam.ORIGINAL, "POMO (original)": icam.ORIGINAL, "ICAM": icam.OWN}, problem),
        "GLOP (more revisions)": Method(runs=systems.GLOP, decoding=systems.REVISED),
        "GLOP-G (LKH3)": Method(runs=partitions, decoding=systems.PARTED),
        "MDAM bs50": Method(runs=icam.MDAM[problem], decoding=icam.decoder_beams(scale)),
        "ELG aug×8": Method(runs=systems.ELG[problem], decoding=icam.AUGMENTED),
        "ELG": Method(runs=systems.ELG[problem], decoding=icam.MULTI),
        "Att-GCN+MCTS": maps(icam.ATT_GCN, icam.ATT_GCN_LARGE, set(icam.SIZES) - {100}),
        "DIMES AS+MCTS": maps(icam.DIMES, icam.DIMES_LARGE, {1000}),
        "DIFUSCO greedy+2-opt": Method(runs=systems.DIFUSCO, decoding=icam.MERGED),
        "H-TSP": Method(runs=systems.HTSP, decoding=systems.GROWN),
        "Pointerformer aug×8": Method(runs=icam.POINTERFORMER, decoding=icam.AUGMENTED),
    }


def ways(names: Mapping[str, Mapping[Problem, str]], problem: Problem, label: str = "") -> dict[str, Method]:
    """Networks of many starts, decoded in three ways; names: printed name -> run; label: of_rows instead."""
    return {
        f"{name} {way}": Method(label and f"{label} {way}", runs=icam.run_id(runs[problem]), decoding=decoding)
        for name, runs in names.items()
        for way, decoding in WAYS.items()
    }


def searches(scale: Scale) -> dict[str, Method]:
    """Table 11's searches, at the sizes at which they are run here."""
    run, of_baselines = icam.run_id(icam.OWN["tsp"]), icam.BASELINES["tsp"]

    def at(run: str, decoding: Decoding) -> Method:
        sizes = icam.searched_sizes(scale, "beam" if decoding.method == "beam" else "rrc")
        return Method(runs=dict.fromkeys(sizes, run), decoding=decoding)

    return {
        "BQ bs16": at(of_baselines["BQ"], icam.beam(scale)),
        "LEHD RRC100": at(of_baselines["LEHD"], icam.rrc(scale)),
        "ICAM RRC100": at(run, icam.rrc(scale, "all")),
        "ICAM bs16": at(run, icam.beam(scale, "all")),
    }


def sets_of(scale: Scale, problem: Problem) -> dict[int, Labels]:
    """Return the test sets of Tables 1 and 7 to 11."""
    return {size: icam.reference(scale, problem, size) for size in icam.SIZES}


def reference_note(tests: Mapping[Problem, Tests], published: Mapping[Problem, str]) -> str:
    """Say against whose solutions the gaps on these test sets are, here and in print, and whose instances they are."""
    note = references_by_problem(tests, published)
    files = [labels.dataset.file for sets in tests.values() for labels in sets.values()]
    which = "Those of no file" if any(files) else "Test instances"
    anew = f" {which} are drawn anew, from the same distribution; the paper's are LEHD's."
    return note + ("" if all(files) else anew)


def _size(run: Run) -> str:
    blocks = run.network.arguments.get("blocks")  # of GLOP, whose revisers have a size each
    return f"in blocks of {', '.join(map(str, blocks))}" if blocks else f"at n={run.n}"


def baselines_note(study: Study, grids: Sequence[Grid]) -> str:
    """Which baselines of a table's rows are trained here, and on what, each once."""
    of_rows = {run for grid in grids for run in grid.runs} & study.runs.keys()
    names = {icam.run_id(run): f"POMO ({problem.upper()})" for problem, run in icam.ORIGINAL.items()}
    names |= {run: f"{name} ({problem.upper()})" for problem, of in icam.BASELINES.items() for name, run in of.items()}
    for run in (study.runs[name] for name in icam.RIVALS if name in of_rows):
        names[run.id] = f"{run.role['method']} ({run.validation.dataset.problem.upper()})"
    texts = dict.fromkeys(f"{name} {_size(study.runs[run])}" for run, name in names.items() if run in of_rows)
    return f"Baselines trained here, each by its own recipe: {', '.join(texts) or 'none'}. The others are as printed."


TSP: Problem = "tsp"
LARGEST = icam.SIZES[-1]
IN_PRINT = {icam.SINGLE: "single_greedy", MULTI: "multistart_greedy"}


@artifact(
    "After each stage of the training",
    needs=lambda scale: (
        test.model_copy(update={"stage": stage})
        for test in tested(run_id(OWN[TSP]), sets_of(scale, TSP).values(), MULTI)
        for stage in (*icam.STAGES, None)  # the model itself is of the last stage
    ),
)
def table8(study: Study) -> Table:
    tests = sets_of(study.scale, TSP)
    sets = {size: labels.dataset for size, labels in tests.items()}
    rows = []
    main = study.runs.get(run_id(OWN[TSP]))
    training = main.training if main and not isinstance(main, GivenRun) else None
    for i, stage in enumerate((*icam.STAGES, None), 1):
        published = printed_numbers(study, "table8", checkpoint=f"after_stage_{i}")
        run = run_id(OWN[TSP]) + (f"@{stage}" if stage else "")
        gaps = {size: number(published, size, "gap_pct") for size in sets}
        cells = [gap_cell(study, run, dataset, gaps[size], MULTI) for size, dataset in sets.items()]
        trained_on = UNTRAINED
        if isinstance(training, Reinforced):
            trained_on = f"n={' to '.join(map(str, dict.fromkeys(training.stages[i - 1].sizes)))}"
        rows.append(Row((f"After stage {i}", trained_on), tuple(cells)))
    reference = reference_note({TSP: tests}, {TSP: "Concorde"})
    return draw_table(study, ("Checkpoint", "Trained on, here"), gap_columns(sets), rows, reference=reference)


def table9_grid(scale: Scale) -> Grid:
    methods = [
        Method(variant, {"variant": variant}, runs=run_id(name), decoding=MULTI)
        for variant, name in icam.ABLATIONS.items()
    ]
    return Grid(methods, gaps(sets_of(scale, TSP)))


@artifact("Without the adaptation", needs=needs_of(table9_grid))
def table9(study: Study) -> Table:
    """Gaps with the adaptation function in the attention-free modules, in the compatibility, in both and in neither."""
    reference = reference_note({TSP: sets_of(study.scale, TSP)}, {TSP: "Concorde"})
    return grid_table(study, ("Variant",), table9_grid(study.scale), reference=reference)


@artifact(
    "Parameters of the third stage",
    needs=lambda scale: tested(
        (run_id(icam.fork(k, beta)) for k, beta in (icam.MAIN, *scale[IcamScale].forks)),
        icam.reference(scale, TSP, LARGEST),
        icam.SINGLE,
        MULTI,
    ),
)
def table10(study: Study) -> Table:
    """Gaps at the paper's TSP1000 with several k and beta of the last stage."""
    labels = icam.reference(study.scale, TSP, LARGEST)
    ways = {way: WAYS[way] for way in ("single trajec.", "no augment.")}
    columns = [
        Column(f"gap_{decoding.name}_b{beta:g}_pct", f"β = {beta:g}", "%", group=way, at=described(labels.dataset))
        for way, decoding in ways.items()
        for beta in icam.BETAS
    ]

    def cell(k: int, beta: float, decoding: Decoding) -> Cell:
        name, run = IN_PRINT[decoding], run_id(icam.fork(k, beta))
        published = number(printed_numbers(study, 10, k=k, beta=beta, decoding=name), LARGEST, "gap_pct")
        return gap_cell(study, run, labels.dataset, published, decoding) if run in study.runs else Cell(None, published)

    i, rows = study.scale[IcamScale], []
    for k in icam.KS:
        cells = tuple(cell(k, beta, way) for way in ways.values() for beta in icam.BETAS)
        rows.append(Row((with_budget(f"k = {k}", k, i.elites[k]),), cells))
    forks = [f"k = {k} with β = {beta:g}" for k, beta in i.forks if run_id(icam.fork(k, beta)) in study.runs]
    trained_here = f"Others trained here: {'; '.join(forks) or 'none'}."
    reference = reference_note({TSP: {LARGEST: labels}}, {TSP: "Concorde"})
    return draw_table(study, ("Best solutions",), columns, rows, reference=reference, forks=trained_here)


def table11_grid(scale: Scale) -> Grid:
    columns = comparison(sets_of(scale, TSP), "TSP{}".format, lengths=4, time="Total time")
    return Grid(from_print(icam.KEY, 11, models(scale, TSP) | searches(scale) | REFERENCE[TSP]), columns)


@artifact("Inference strategies", needs=needs_of(table11_grid))
def table11(study: Study) -> Table:
    """Mean length, gap and total time with beams, random re-construct and augmentation."""
    grid, iterations, beam = table11_grid(study.scale), icam.rrc(study.scale).iterations, icam.beam(study.scale).beam
    return grid_table(
        study,
        ("Method",),
        grid,
        reference=reference_note({TSP: sets_of(study.scale, TSP)}, {TSP: "Concorde"}),
        scale=study.scale[IcamScale],
        searches="" if (iterations, beam) == (100, 16) else f", with {iterations} iterations and beams of {beam}",
        baselines=baselines_note(study, [grid]),
    )


VARIANTS = ("Transformer", "AFT-full", "AFT-simple", "AFT-local", "AFT-conv")


@artifact("Time and space of attention and of AAFM")
def table4(study: Study) -> Table:
    """Complexity of attention and of its attention-free variants, and what is counted of those that are here."""
    published = dict(study.published(4)[["key", "value"]].astype(str).to_numpy())
    # FLOPs of one encoder layer for each pair of nodes: half the second difference in the number of nodes.
    of_icam, of_pomo = study.scale[IcamScale].network.model_dump(), study.scale[IcamScale].pomo.model_dump()
    layers = {
        "Transformer": Network(kind=f"{POMO_MODULE}:Pomo", arguments=of_pomo | {"depth": 1}),
        "AFT-full": Network(kind=f"{ICAM_MODULE}:Icam", arguments=of_icam | {"depth": 1}),
        "AFT-simple": Network(kind=f"{ICAM_MODULE}:Icam", arguments=of_icam | {"depth": 1, "adaptation": False}),
    }
    encoders = {name: counts(network).encoder for name, network in layers.items()}
    n = 100  # any will do: the counts are polynomials of degree two
    counted = {name: (count(n + 1) - 2 * count(n) + count(n - 1)) / 2 for name, count in encoders.items()}
    rows = []
    for name in VARIANTS:
        time, space = (published[f"{name}.{what}"] for what in ("time", "space"))
        rows.append(Row((name,), (Cell(None, time), Cell(None, space), Cell(counted.get(name)))))
    columns = (
        Column("time", "Time", format=str),
        Column("space", "Space", format=str),
        Column("operations_per_pair", "Operations per pair of nodes and layer", "FLOPs", WHOLE),
    )
    legend = "Counted here; the paper's entry in parentheses."
    return draw_table(study, ("Model",), columns, rows, legend, shapes=study.scale[IcamScale])


@artifact("Training settings")
def table5(study: Study) -> Table:
    """Hyper-parameters of ICAM as configured here and printed; besides, of the two trainings of POMO."""
    published, columns, subjects, prefixes = printed_values(study), [], [], list[str]()
    for names, label in ((OWN, "ICAM"), (icam.STAGED, "POMO, three stages"), (icam.ORIGINAL, "POMO (original)")):
        for problem in PROBLEMS:
            columns.append(Column(names[problem], problem.upper(), format=plain, group=label))
            subjects.append(ReinforcedRun.of(study.runs.get(run_id(names[problem]))))
            prefixes.append(problem.upper() if names is OWN else "")

    def print_value(i: int, key: str) -> Value:
        """What both problems share, or a problem's own."""
        names = (f"both.{key}", f"{prefixes[i]}.{key}", f"{prefixes[i]}.{key}_max_norm") if prefixes[i] else ()
        return next((published[name] for name in names if name in published), None)

    rows, changes = setting_rows(ROWS, subjects, print_value), changes_note(study, study.runs.values())
    return draw_table(study, ("Hyper-parameter",), columns, rows, AS_TRAINED, changes=changes)


@artifact("Licences of the codes")
def table12(study: Study) -> Table:
    return licence_table(study)


ICAM_MODULE, POMO_MODULE = "neuroute.networks.icam", "neuroute.networks.pomo"
CLIPPING = {ICAM_MODULE: 50.0, POMO_MODULE: 10.0}  # of a module's networks, where the plan says nothing else
RULE = "by N"  # capacity without a range: that of the number of customers


class ReinforcedRun(NamedTuple):
    """A run that is trained by reinforcement learning."""

    run: Run
    training: Reinforced

    @classmethod
    def of(cls, run: Run | None) -> "ReinforcedRun | None":
        """None without a run, or where it is trained in another way."""
        return cls(run, run.training) if run and isinstance(run.training, Reinforced) else None

    @property
    def module(self) -> str:
        """Where the class of its network is; one of the user's own may bear any name."""
        return self.run.network.kind.partition(":")[0]

    @property
    def arguments(self) -> dict[str, Any]:
        return self.run.network.arguments

    @property
    def is_cvrp(self) -> bool:
        return self.run.validation.dataset.problem == "cvrp"

    @property
    def first(self) -> Stage:
        return self.training.stages[0]

    @property
    def drops(self) -> list[int]:
        return sorted({drop for stage in self.training.stages for drop in stage.drops})

    def each(self, value: Callable[[Stage], Any], first: int = 0, last: int | None = None) -> Value:
        """Return the one value of these stages, or each of theirs; None without any."""
        values = [value(stage) for stage in self.training.stages[first:last]]
        return ", ".join(map(str, values)) if len(set(values)) > 1 else values[0] if values else None

    def last(self, value: Callable[[Stage], Any]) -> Value:
        """Return the value of the last stage; None of a training that has one alone."""
        return self.each(value, first=max(1, len(self.training.stages) - 1))


# Heading, key of the printed value, which is "both.", "TSP." or "CVRP." and this, and the value here.
ROWS: tuple[Setting[ReinforcedRun], ...] = (
    ("Optimizer", "optimizer", lambda t: "Adam"),
    ("Clipping parameter", "clipping_parameter_xi", lambda t: t.arguments.get("clipping", CLIPPING.get(t.module))),
    ("Initial learning rate", "initial_learning_rate", lambda t: t.first.learning_rate),
    ("Learning rate of stage 3", "learning_rate_stage3", lambda t: t.last(lambda stage: stage.learning_rate)),
    ("Weight decay", "weight_decay", lambda t: t.training.weight_decay),
    ("Initial α value", "initial_alpha", lambda t: 1 if t.module == ICAM_MODULE else None),
    ("Loss function of stages 1 & 2", "loss_stage1_2", lambda t: t.each(_loss, last=2)),
    ("Loss function of stage 3", "loss_stage3", lambda t: t.last(_loss)),
    ("β of stage 3", "beta_stage3", lambda t: t.last(lambda stage: stage.elite and stage.elite.beta)),
    ("k of stage 3", "k_stage3", lambda t: t.last(lambda stage: stage.elite and stage.elite.k)),
    ("Encoder layers", "encoder_layers", lambda t: t.arguments["depth"]),
    ("Embedding dimension", "embedding_dim", lambda t: t.arguments["width"]),
    ("Feed-forward dimension", "feed_forward_dim", lambda t: t.arguments["feed_forward"]),
    ("Scale of stage 1", "scale_stage1", lambda t: _range(t.first.sizes)),
    ("Scale of stages 2 & 3", "scale_stage2_3", lambda t: t.each(lambda stage: _range(stage.sizes), first=1)),
    ("Batches of each epoch", "batches_per_epoch", lambda t: t.each(lambda stage: stage.batches_per_epoch)),
    ("Epochs of stage 1", "epochs_stage1", lambda t: t.first.epochs),
    ("Epochs of stage 2", "epochs_stage2", lambda t: t.each(lambda stage: stage.epochs, first=1, last=2)),
    ("Epochs of stage 3", "epochs_stage3", lambda t: t.last(lambda stage: stage.epochs)),
    ("Capacity of stage 1", "capacity_stage1", lambda t: _capacity(t.first) if t.is_cvrp else None),
    ("Capacity of stages 2 & 3", "capacity_stage2_3", lambda t: t.each(_capacity, first=1) if t.is_cvrp else None),
    ("Gradient clipping, largest norm", "gradient_clipping", lambda t: t.training.clip or "no limit"),
    ("Batch size of stage 1", "batch_size_stage1", lambda t: _batch(t.first)),
    ("Batch size of stages 2 & 3", "batch_size_stage2_3", lambda t: t.each(_batch, first=1)),
    ("Total epochs", "total_epochs", lambda t: t.training.epochs),
    # Not in the paper's table.
    ("Solutions of an instance", None, lambda t: t.each(lambda stage: "N" if stage.starts is None else stage.starts)),
    ("Epochs after which the rate falls", None, lambda t: ", ".join(map(str, t.drops)) or "none"),
    ("Instances drawn, on average", None, lambda t: round(drawn_instances(t.run) or 0)),
    ("Precision", None, lambda t: t.training.precision),
)


def _loss(stage: Stage) -> str:
    return "L_Joint" if stage.elite else "L_POMO"


def _range(ends: tuple[int, int]) -> Value:
    low, high = ends
    return low if low == high else f"[{low},{high}]"


def _capacity(stage: Stage) -> Value:
    return RULE if stage.capacities is None else _range(stage.capacities)


def _batch(stage: Stage) -> Value:
    if stage.batch_nodes is None:
        return stage.batch_size
    return f"floor({stage.batch_size}*({stage.batch_nodes}/N)^2)"


def beyond_grid(scale: Scale, problem: Problem) -> Grid:
    """Show the printed rows of TAM's test sets (CVRP), or of the TSP's larger ones."""
    table, sizes, test = (3, icam.TAM_SIZES, icam.tam) if problem == "cvrp" else (6, icam.LARGE_SIZES, icam.large)
    methods = from_print(icam.KEY, table, models(scale, problem) | REFERENCE[problem])
    return Grid(methods, of_each(scale, problem, sizes, test, LENGTH, GAP, SECONDS_EACH))


@artifact("CVRP in TAM's capacities", needs=needs_of(partial(beyond_grid, problem="cvrp")))
def table3(study: Study) -> Table:
    return _draw_beyond(study, "cvrp", "LKH3, at 1K, 2K and 5K as TAM printed it")


@artifact("Larger TSP instances", needs=needs_of(partial(beyond_grid, problem="tsp")))
def table6(study: Study) -> Table:
    return _draw_beyond(study, "tsp", "LKH3")


def _draw_beyond(study: Study, problem: Problem, reference: str) -> Table:
    grid, run = beyond_grid(study.scale, problem), study.runs.get(run_id(OWN[problem]))
    tests, trained = {q.n or 0: q.test for q in grid.quantities}, "The paper trains on 100 to 500 nodes."
    if run and isinstance(run.training, Reinforced):
        low, high = (f(size for stage in run.training.stages for size in stage.sizes) for f in (min, max))
        trained = f"ICAM is trained on {low} to {high} nodes here, on 100 to 500 in the paper."
    return grid_table(
        study,
        ("Method",),
        grid,
        reference=references_by_problem({problem: tests}, {problem: reference}),
        trained=trained,
        baselines=baselines_note(study, [grid]),
    )


BENCHMARK: Benchmark = "cvrplib"
SET = "X"
# The paper's groups by their printed names, as nodes from and to, both counted in: its customers and the depot.
GROUPS = {"n<=200": (2, 201), "200<n<=500": (202, 501), "500<n<=1000": (502, 1001), "all": (2, 1001)}
HEADS = {"n<=200": "N ≤ 200", "200<n<=500": "200 < N ≤ 500", "500<n<=1000": "500 < N ≤ 1000", "all": "Total"}
KEYS = {"n<=200": "to_200", "200<n<=500": "to_500", "500<n<=1000": "to_1000", "all": "all"}
RUNS = icam.BASELINES["cvrp"] | {
    "POMO": run_id(icam.ORIGINAL["cvrp"]),
    "ELG": systems.ELG["cvrp"],
    "ICAM": run_id(OWN["cvrp"]),
}


METHODS = (
    Method("LEHD greedy", {"method": "LEHD"}, runs=RUNS["LEHD"]),
    Method("BQ* greedy", {"method": "BQ"}, runs=RUNS["BQ"]),
    Method("POMO no augment.", {"method": "POMO"}, runs=RUNS["POMO"], decoding=MULTI),
    Method("ELG no augment.", {"method": "ELG"}, runs=RUNS["ELG"], decoding=MULTI),
    Method("ICAM no augment.", {"method": "ICAM"}, runs=RUNS["ICAM"], decoding=MULTI),
)


@artifact("CVRPLIB's Set-X", needs=lambda scale: [icam.on_set_x(scale, run) for run in RUNS.values()])
def table2(study: Study) -> Table:
    """Mean gaps by size of the instances, and mean time."""
    records = Solved.by_all(study, (f"{run}/{BENCHMARK}" for run in RUNS.values()), BENCHMARK).records
    most, fewest = GROUPS["all"][1] + 1, GROUPS["all"][0]
    names = [f"{BENCHMARK}_{k.name}" for k in study_instances(most, fewest, BENCHMARK, (SET,))]
    solved = Solved(BENCHMARK, records[records.test.isin(names)])
    at = {name: solved.describe(nodes, (SET,)) for name, nodes in GROUPS.items()}
    columns = [Column(f"gap_x_{KEYS[name]}_pct", HEADS[name], "%", fixed(2), "Gap", at[name]) for name in GROUPS]
    columns.append(Column("time_x_s", "Avg. time", "", duration, "", at["all"]))
    in_print = printed_numbers(study, 2, method="BKS")
    best = [Cell(0.0 if solved.count(group) else None, number(in_print, n, "gap_pct")) for n, group in GROUPS.items()]
    rows = [Row(("BKS", UNTRAINED), (*best, Cell(None, number(in_print, "all", "time_s"))))]
    for method in METHODS:
        run, in_print = method.run(None), printed_numbers(study, 2, **(method.printed or {}))
        how = run, method.decoding.name
        cells = [solved.gap_cell(study, *how, group, number(in_print, n, "gap_pct")) for n, group in GROUPS.items()]
        cells.append(Cell(solved.mean("time_s", *how, GROUPS["all"]), number(in_print, "all", "time_s")))
        rows.append(Row((*method.labels, model_here(study, run)), tuple(cells)))
    least, below = study.scale[IcamScale].cvrp.benchmark_nodes
    trained = [f"{name} at n={study.runs[run].n}" for name, run in RUNS.items() if run in study.runs]
    expected = {name: run for name, run in RUNS.items() if run in study.runs or name != "ELG"}  # a scale may lack ELG
    return draw_table(
        study,
        ("Method", HERE),
        columns,
        rows,
        here=measured_here(study, least, below, BENCHMARK),
        not_measured=not_measured(study, solved.records, below, expected, BENCHMARK, least, (SET,)),
        trained=", ".join(trained) or "none",
    )


# What Table 7 compares: names of the runs, what is said of them, and their printed name.
TRAININGS = (
    (icam.ORIGINAL, "POMO trained at one size", "POMO (original)"),
    (icam.STAGED, "POMO in the three stages", "POMO"),
    (OWN, "ICAM", "ICAM"),
)


def _both_problems_grids(scale: Scale, table: int, more: Callable[[Problem], dict[str, Method]]) -> list[Grid]:
    """Show the printed rows of each problem at all four sizes; more: what else stands for them."""
    grids = []
    for problem in PROBLEMS:
        columns = comparison(sets_of(scale, problem), "TSP/CVRP{}".format, lengths=4, time="Total time")
        name = problem.upper()
        methods = from_print(icam.KEY, table, models(scale, problem) | more(problem), problem=name)
        grids.append(Grid(methods, columns, head=(name,), where={"problem": name}))
    return grids


def _both_problems(study: Study, grids: Sequence[Grid], **values: object) -> Table:
    """Draw mean length, gap and total time of the methods of each problem; values: of the notes besides."""
    tests = {problem: sets_of(study.scale, problem) for problem in PROBLEMS}
    values |= {"reference": reference_note(tests, {"tsp": "Concorde", "cvrp": "LKH3"})}
    return grid_table(study, ("Problem", "Method"), grids, varying_sizes=_varying_sizes(study), **values)


def _varying_sizes(study: Study) -> list[str]:
    """What training at varying sizes adds at the largest size, as far as it was measured."""
    parts, largest, apart = [], icam.SIZES[-1], False
    for problem in PROBLEMS:
        dataset = icam.reference(study.scale, problem, largest).dataset
        gaps = [study.gap(run_id(of[problem]), dataset, MULTI) for of, _, _ in TRAININGS]
        if gaps[0] is None or gaps[1:] == [None, None]:
            continue
        there = [(label, name, gap) for (_, label, name), gap in zip(TRAININGS, gaps, strict=True) if gap is not None]
        gaps_here = ", ".join(f"{label} {gap:.2f} %" for label, _, gap in there)
        in_print = printed_numbers(study, 7, problem=problem.upper(), decoding="multistart_greedy", aug=1)
        values = (number(select(in_print, method=name), largest, "gap_pct") for _, name, _ in there)
        gaps_in_print = ", ".join(f"{float(value or 0):.3f}" for value in values)
        parts.append(f"on {described(dataset)} {gaps_here} (in print {gaps_in_print} %)")
        apart |= gaps[1] is not None
    if not parts:
        return []
    what = "What training at varying sizes adds" if apart else "What ICAM and training at varying sizes add together"
    return [f"{what} at the largest size, in gaps without augmentation: {'; '.join(parts)}."]


def table1_grids(scale: Scale) -> list[Grid]:
    return _both_problems_grids(scale, 1, SOLVERS.__getitem__)


def _table1_needs(scale: Scale) -> Iterator[Need]:
    """The rows, and what training at varying sizes adds at the largest one."""
    yield from needs_of(table1_grids)(scale)
    for problem in PROBLEMS:
        runs = (run_id(names[problem]) for names, *_ in TRAININGS)
        yield from tested(runs, icam.reference(scale, problem, icam.SIZES[-1]), MULTI)


@artifact("TSP and CVRP at four sizes", needs=_table1_needs, printed_files=("table1", "table7"))
def table1(study: Study) -> Table:
    grids = table1_grids(study.scale)
    return _both_problems(
        study,
        grids,
        lkh_budgets=lkh_budgets(study, grids),
        beams=icam.decoder_beams(study.scale).beam,
        baselines=baselines_note(study, grids),
    )


def table7_grids(scale: Scale) -> list[Grid]:
    return _both_problems_grids(
        scale, 7, lambda problem: REFERENCE[problem] | ways({"POMO": icam.STAGED}, problem, "POMO, three stages,")
    )


@artifact("ICAM and POMO in the same training", needs=needs_of(table7_grids))
def table7(study: Study) -> Table:
    """Mean length, gap and total time of POMO as its authors train it, of POMO in the three stages, and of ICAM."""
    parts = []
    for problem in PROBLEMS:
        runs = [(label, study.runs.get(run_id(of[problem]))) for of, label, _ in TRAININGS]
        amounts = [(label, drawn_instances(run)) for label, run in runs if run]
        texts = [f"{label} {amount:,.0f}" for label, amount in amounts if amount is not None]
        parts += [f"{problem.upper()}: {', '.join(texts)}"] if texts else []
    amounts_note = [f"Instances that the trainings here draw, on average: {'; '.join(parts)}."] if parts else []
    return _both_problems(study, table7_grids(study.scale), amounts=amounts_note)
