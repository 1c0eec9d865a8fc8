"""Paper `pens`: what it trains, labels and borrows; what is shown is declared beside each table and figure."""

from collections.abc import Iterator
from functools import partial

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.papers.pens import roles
from neuroute.pipeline.papers.pens.roles import (
    BQ,
    ESF,
    GREEDY,
    LEHD,
    SIZES,
    SMALL,
    SMALL_SIZES,
    TIMED,
    reference,
    validation,
)
from neuroute.pipeline.papers.pens.scale import PensScale, PensShape
from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.claims import AVERAGING, Protocol, on_benchmark
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.papers import borrow_runs
from neuroute.pipeline.rendering.cells import MEAN_OF_GAPS
from neuroute.specs.data import training_blocks
from neuroute.specs.decodings import Decoding
from neuroute.specs.objects import Network, Run, Supervised

COUNTS = {100: 128, 250: 128, 500: 128, 1000: 128, 10_000: 10}
FIVE = Decoding(repeats=5)
RESCALED = Decoding(repeats=5, rescale="best")
TIMES = (TIMED, TIMED.model_copy(update={"esf": True}))
SOLVERS = dict.fromkeys(SIZES[:-1], "Concorde") | {SIZES[-1]: "Concorde (six hours)"}
ON_SMALL = ("figure5", "table_figure5")
of_means = partial(Protocol, averaging=AVERAGING[MEAN_OF_GAPS], shown=MEAN_OF_GAPS)


def protocol(scale: Scale) -> Iterator[Protocol]:
    """The uniform test sets, those of the models trained on TSP20, and TSPLIB."""
    p = scale[PensScale]
    ways = (GREEDY, ESF, FIVE, RESCALED)
    large = (*(f"table{i}" for i in (1, 2, 3, 4)), "figure1", "figure4", "table_figure4")
    for size in SIZES:
        for count in dict.fromkeys((p.test_counts[size], p.timed_counts[size])):
            labels = reference(scale, size, count)
            yield of_means(f"TSP{size}", labels, COUNTS[size], SOLVERS[size], (*ways, *TIMES), only=large)
    for size in SMALL_SIZES:
        yield of_means(f"TSP{size}", reference(scale, size), None, "Concorde", (FIVE,), only=ON_SMALL)
    yield on_benchmark("tsplib", 72, *ways)


PENS = "neuroute.networks.pens:Pens"


def runs(config: Config, scale: Scale) -> list[Run]:
    p = scale[PensScale]
    positioned = [
        _run(config, scale, name, 100, {"positions": positions}, p.network, p.training)
        for name, positions in roles.POSITIONS.items()
    ]
    small = [
        _run(config, scale, name, 20, {"positions": positions, "initial": initial}, p.small_network, p.small_training)
        for name, (positions, initial) in SMALL.items()
    ]
    baselines = borrow_runs(config, scale, (BQ, LEHD, *roles.RIVALS))
    if (here := p.sizes[100]) != (there := baselines[0].n):
        raise NeurouteError(
            f"scale {scale.name}: pens.sizes.100 is {here}, but {BQ} and {LEHD} are trained at {there} nodes: "
            "make them equal"
        )
    return [*positioned, *small, *baselines]


def _run(
    config: Config, scale: Scale, name: str, size: int, role: dict[str, str], shape: PensShape, training: Supervised
) -> Run:
    """The training of a model on the paper's TSP`size`, with what config.yaml changes of it."""
    n = scale[PensScale].sizes[size]
    run = declare_run(
        config,
        roles.PAPER,
        name,
        training,
        role=role,
        network=Network(kind=PENS, arguments=shape.model_dump() | role | {"train_nodes": n}),
        n=n,
        data=lambda training: training_blocks(n, training.samples, scale.label_solver),
        validation=validation(scale, size),
        also_validation=(validation(scale, 100),) if size != 100 else (),  # Figure 5b
    )
    if getattr(run.training, "sub_paths", None) != "pairs":
        raise NeurouteError(f"{config.where}: runs.{run.id}.training.sub_paths: PENS is trained on `pairs` only")
    return run


PAPER = Paper(
    key=roles.PAPER,
    title="Solving the Traveling Salesman Problem with Positional Encoding",
    scale=PensScale,
    runs=runs,
    group="uniform",
    borrows=("scaling", "rivals"),
    protocol=protocol,
)
