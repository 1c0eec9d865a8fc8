"""The trained networks that come with the package, as a paper of its own: trained, measured and tabled by the DAG.

What they reach: Tables 1 (TSP), 2 (CVRP), 3 (sixteen VRPs), 4 (libraries), 5 (recipes).
"""

from collections.abc import Iterator
from statistics import fmean
from typing import Annotated

from pydantic import Field, model_validator

from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.shapes import BaselineShape, IcamShape, Nodes, Positive
from neuroute.pipeline.rendering.benchmark import Solved, not_measured
from neuroute.pipeline.rendering.cells import RANGES, gap_cell, summary_cell
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import WHOLE, Cell, Column, Row, Table, described, duration, fixed
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.data import Spec
from neuroute.specs.objects import (
    Benchmark,
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    Labels,
    Network,
    Problem,
    Reinforced,
    Run,
    Split,
    Start,
)

Pilots = Annotated[
    dict[Annotated[str, Field(pattern=r"^[\w.-]+$")], Reinforced],
    Field(description="short trainings that recipes are compared by, by name"),
]
Solver = Annotated[str, Field(description="solver of the reference solutions")]


class TestedBlock(Spec):
    """ICAM for one problem: what it is trained for and tested on."""

    nodes: Annotated[Nodes, Field(description="nodes, or customers, of the validation instances")]
    reference: Solver
    validation_count: Positive
    test_counts: Annotated[dict[int, Positive], Field(description="nodes, or customers -> test instances")]
    network: IcamShape
    training: Reinforced
    pilots: Pilots = {}


class VrpBlock(Spec):
    """POMO-MTL of `mvmoe`, on all 16 variants."""

    network: BaselineShape
    training: Reinforced
    pilots: Pilots = {}
    nodes: Annotated[Nodes, Field(description="customers of the validation and test instances")]
    validation_count: Positive
    test_count: Positive
    references: Annotated[dict[str, str], Field(description="variant, or `others` -> solver of the references")]

    @model_validator(mode="after")
    def _others_have_a_reference(self) -> "VrpBlock":
        if "others" not in self.references:
            raise ValueError("references: name a solver for `others`")
        return self

    def reference_of(self, variant: str) -> str:
        return self.references.get(variant, self.references["others"])


class ZooScale(Spec):
    """What the networks are trained and tested on."""

    tsp: TestedBlock
    prc: Annotated[int, Field(ge=1, description="iterations of parallel re-construction in the tables of `tsp`")]
    cvrp: TestedBlock
    vrp: VrpBlock
    largest_benchmark: Annotated[int, Field(ge=1, description="TSPLIB and CVRPLIB: instances below so many nodes")]


KEY = "zoo"
TSP, CVRP, VRP = (f"{KEY}/{name}" for name in ("tsp", "cvrp", "vrp"))
VARIANTS = tuple(SWITCHES)


def labels(scale: Scale, problem: Problem, split: Split, n: int, count: int) -> Labels:
    """Solved instances of the TSP or the CVRP to validate, or to test, on."""
    block: TestedBlock = scale[ZooScale].tsp if problem == "tsp" else scale[ZooScale].cvrp
    return Labels(dataset=Dataset(problem=problem, split=split, n=n, count=count), solver=block.reference)


def test_sets(scale: Scale, problem: Problem) -> dict[int, Labels]:
    """Nodes, or customers -> the test set of that size."""
    block: TestedBlock = scale[ZooScale].tsp if problem == "tsp" else scale[ZooScale].cvrp
    return {n: labels(scale, problem, "test", n, count) for n, count in block.test_counts.items()}


def vrp_labels(scale: Scale, split: Split, variant: str) -> Labels:
    """Solved instances of a VRP variant to validate, or to test, on."""
    v = scale[ZooScale].vrp
    count = v.validation_count if split == "val" else v.test_count
    dataset = Dataset(problem="vrp", variant=variant, split=split, n=v.nodes, count=count)
    return Labels(dataset=dataset, solver=v.reference_of(variant))


def runs(config: Config, scale: Scale) -> list[Run]:
    z = scale[ZooScale]
    vrp_validation = [vrp_labels(scale, "val", variant) for variant in VARIANTS]
    kinds: dict[str, tuple[str, TestedBlock | VrpBlock, list[Labels], dict[str, int]]] = {
        TSP: ("icam:Icam", z.tsp, [labels(scale, "tsp", "val", z.tsp.nodes, z.tsp.validation_count)], {}),
        CVRP: ("icam:IcamCvrp", z.cvrp, [labels(scale, "cvrp", "val", z.cvrp.nodes, z.cvrp.validation_count)], {}),
        VRP: ("mvmoe:MvMoe", z.vrp, vrp_validation, {"experts": 0}),
    }

    def declare(run: str, training: Reinforced, of: str) -> Run:
        kind, block, validation, more = kinds[of]
        if of == VRP:
            stages = tuple(stage.model_copy(update={"variants": VARIANTS}) for stage in training.stages)
            training = training.model_copy(update={"stages": stages})
        arguments = block.network.model_dump() | more | {"train_nodes": block.nodes}
        network, name = Network(kind=f"neuroute.networks.{kind}", arguments=arguments), run.partition("/")[2]
        return declare_run(
            config,
            KEY,
            name,
            training,
            network=network,
            n=block.nodes,
            validation=validation[0],
            also_validation=validation[1:],
        )

    pilots = (declare(pilot(of, name), each, of) for of in kinds for name, each in kinds[of][1].pilots.items())
    return [*(declare(of, kinds[of][1].training, of) for of in kinds), *pilots]


def pilot(run: str, name: str) -> str:
    """The run of a short training that a recipe for another one is tried by."""
    return f"{KEY}/pilot_{run.partition('/')[2]}_{name}"


PAPER = Paper(key=KEY, title="Networks that come with neuroute", scale=ZooScale, runs=runs)


GREEDY = Decoding()
IMAGES = Decoding(starts="all", augment=True)
STARTS = Decoding(starts="all")
LIBRARIES: dict[str, tuple[str, Benchmark]] = {"TSPLIB": (TSP, "tsplib"), "CVRPLIB": (CVRP, "cvrplib")}
ONE = "One training of each network, where no note names more."


def _decodings(scale: Scale, run: str) -> list[Decoding]:
    """How a network of the TSP or the CVRP is measured; only the TSP's is improved by re-construction."""
    starts: tuple[Start, ...] = ("greedy", "insertion") if run == TSP else ()
    improved = [Decoding(method="prc", iterations=scale[ZooScale].prc, start=start) for start in starts]
    return [GREEDY, STARTS, IMAGES, *improved]


def _sized_needs(run: str, scale: Scale) -> Iterator[Need]:
    return tested(run, test_sets(scale, "tsp" if run == TSP else "cvrp").values(), *_decodings(scale, run))


def _sized_table(study: Study, run: str, *notes: str) -> Table:
    """Gaps and seconds of an instance, by size and decoding."""
    name = "TSP" if run == TSP else "CVRP"
    sets: dict[int, Labels] = test_sets(study.scale, "tsp" if run == TSP else "cvrp")
    columns = []
    for n, test in sets.items():
        at, key = described(test.dataset), f"{name}{n}"
        columns.append(Column(f"gap_{n}_pct", "Gap", "%", fixed(2), key, at))
        columns.append(Column(f"time_{n}_s", "Time", "", duration, key, at))
    rows = []
    for decoding in _decodings(study.scale, run):
        cells: list[Cell] = []
        for test in sets.values():
            seconds = study.value("time_s", run, test.dataset, decoding)
            cells.append(gap_cell(study, run, test.dataset, None, decoding))
            cells.append(Cell(None if seconds is None else seconds / test.dataset.count))
        rows.append(Row((decoding.name,), tuple(cells)))
    return Table(study.artifact.title, ("Decoding",), tuple(columns), tuple(rows), (ONE, RANGES, *notes))


EACH = "Times are of one instance, in batches, on one thread."


@artifact("The network for the TSP", needs=lambda scale: _sized_needs(TSP, scale))
def table1(study: Study) -> Table:
    """Gaps to optimal tours by size and decoding."""
    return _sized_table(study, TSP, EACH)


@artifact("The network for the CVRP", needs=lambda scale: _sized_needs(CVRP, scale))
def table2(study: Study) -> Table:
    """Gaps to HGS by size and decoding."""
    return _sized_table(study, CVRP, "Gaps are to HGS, which is not proven optimal.", EACH)


@artifact(
    "The network for sixteen VRPs",
    needs=lambda scale: tested(VRP, [vrp_labels(scale, "test", variant) for variant in VARIANTS], STARTS, IMAGES),
)
def table3(study: Study) -> Table:
    """Gaps to the reference solver on each variant."""
    sets = {variant: vrp_labels(study.scale, "test", variant) for variant in VARIANTS}
    at = described(next(iter(sets.values())).dataset)
    columns = (
        Column("gap_pct", f"Gap, {STARTS.name}", "%", fixed(2), at=at),
        Column("gap_x8_pct", f"Gap, {IMAGES.name}", "%", fixed(2), at=at),
    )
    rows = [
        Row(
            (variant, test.solver),
            tuple(gap_cell(study, VRP, test.dataset, None, decoding) for decoding in (STARTS, IMAGES)),
        )
        for variant, test in sets.items()
    ]
    notes = (ONE, RANGES, "References are within a budget, not optimal: a gap may be negative.")
    return Table(study.artifact.title, ("Problem", "Reference"), columns, tuple(rows), notes)


def _on_library(scale: Scale, name: str) -> BenchmarkEvaluation:
    run, benchmark = LIBRARIES[name]
    nodes = 0, scale[ZooScale].largest_benchmark
    return scale.on_benchmark(run, benchmark, nodes, decodings=tuple(_decodings(scale, run)))


@artifact("TSPLIB and CVRPLIB", needs=lambda scale: [_on_library(scale, name) for name in LIBRARIES])
def table4(study: Study) -> Table:
    """Mean gaps to the best known costs of the libraries' small instances."""
    below, rows, notes = study.scale[ZooScale].largest_benchmark, list[Row](), list[str]()
    for name, (run, benchmark) in LIBRARIES.items():
        evaluation = _on_library(study.scale, name)
        solved = Solved.by_all(study, [evaluation.id], benchmark)
        for decoding in _decodings(study.scale, run):
            how = run, decoding.name
            cells = Cell(solved.mean("gap_pct", *how, (2, below))), Cell(solved.mean("time_s", *how, (2, below)))
            rows.append(Row((name, decoding.name, solved.count((2, below))), cells))
        notes += not_measured(study, solved.records, below, {name: run}, benchmark, 2)
    columns = Column("gap_pct", "Gap", "%", fixed(2)), Column("time_s", "Time", "", duration)
    notes = [ONE, f"Instances below {below} nodes. Means; times of one instance, one at a time, on one thread.", *notes]
    return Table(study.artifact.title, ("Library", "Decoding", "Instances"), columns, tuple(rows), tuple(notes))


def _pilots(scale: Scale) -> Iterator[tuple[str, str, Reinforced, str]]:
    """Network, recipe, training and run of each pilot."""
    z = scale[ZooScale]
    for run, block in ((TSP, z.tsp), (CVRP, z.cvrp), (VRP, z.vrp)):
        for name, training in block.pilots.items():
            yield run.partition("/")[2], name, training, pilot(run, name)


@artifact("Recipes tried", needs=lambda scale: [Log(run) for *_, run in _pilots(scale)])
def table5(study: Study) -> Table:
    """The last validation of short trainings, by recipe."""
    columns = (
        Column("rate", "Rate", "", str),
        Column("batch", "Batch", "", WHOLE),
        Column("starts", "Starts", "", str),
        Column("updates", "Updates", "", WHOLE),
        Column("training_s", "Training", "", duration),
        Column("gap_pct", "Gap", "%", fixed(2)),
    )
    rows = []
    for network, name, training, run in _pilots(study.scale):
        log, stage = study.log(run, "validation"), training.stages[0]
        cells = (
            Cell(f"{stage.learning_rate:g}"),
            Cell(stage.batch_size),
            Cell("all" if stage.starts is None else str(stage.starts)),
            Cell(training.batches),
            summary_cell(study, run, "processor_time_s"),
            Cell(fmean(log.gaps_pct.iloc[-1].values()) if len(log) else None),
        )
        rows.append(Row((network, name), cells))
    notes = (
        "One short training each, on one thread. Gaps: the last validation, from all starts, on instances of no test.",
        "Gaps of `vrp` are means over the sixteen problems.",
        "Batch: instances of 50 nodes; fewer of more nodes. Rates fall to a twentieth.",
    )
    return Table(study.artifact.title, ("Network", "Recipe"), columns, tuple(rows), notes)
