"""Paper `scaling`: what it trains, labels and borrows; what is shown is declared beside each table and figure."""

from collections.abc import Iterator
from typing import Any

from neuroute.pipeline.papers.scaling import roles
from neuroute.pipeline.papers.scaling.roles import (
    DATA,
    DEEPEST,
    FEW,
    SHIFTED,
    SIX,
    SIZES,
    Shape,
    group,
    reference,
    run_id,
)
from neuroute.pipeline.papers.scaling.scale import ScalingScale, part_of
from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.claims import Protocol, on_benchmark
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.shapes import BaselineShape, DeepNarrow
from neuroute.specs.data import training_blocks
from neuroute.specs.decodings import Decoding, beam_search
from neuroute.specs.objects import Dataset, Distribution, Labels, Network, Run, SelfImprovement, Split, Supervised

COUNTS = {100: 10_000, 200: 128, 500: 128, 1000: 128}
SOLVER = "LKH3"
GREEDY, WITHOUT_LOG = Decoding(), Decoding(log_n=False)
LATENCY = tuple(Decoding(batch_size=size) for size in (50, 100, 1000))  # Table 17
BEAMS = tuple(beam_search(width) for width in (1, 2, 4, 8, 16, 32, 64))  # Table 18; Table 5 has some of them
LIMITED = tuple(beam_search(width) for width in (6, 8, 10, 32, 64, 128, 512))  # Table 4
RRC = Decoding(method="rrc", iterations=1000, milestones=(100, 200, 500, 800, 1000))
SEARCHED = ("figure4", "figure6", "table5", "table18")
GREEDILY = tuple(f"figure{i}" for i in (1, 2, 5)) + tuple(f"table{i}" for i in (2, 3, 7, 8, 11, 12, 17, 20))


def protocol(scale: Scale) -> Iterator[Protocol]:
    """The uniform test sets, those of other distributions, and TSPLIB."""
    s = scale[ScalingScale]
    greedy = (GREEDY, WITHOUT_LOG, *LATENCY)
    yield Protocol("TSP100", reference(scale, 100), COUNTS[100], SOLVER, greedy, only=GREEDILY)
    for labels in dict.fromkeys((roles.searched(scale), reference(scale, 100))):
        yield Protocol("TSP100", labels, COUNTS[100], SOLVER, BEAMS, only=SEARCHED)
    yield Protocol("TSP100", reference(scale, 100, s.budget_count), 1000, SOLVER, LIMITED, only=("table4",))
    for size in SIZES[1:]:
        ways = (GREEDY, WITHOUT_LOG, *((beam_search(2), beam_search(16)) if size == 1000 else ()))
        others = (*GREEDILY, "table5", "table13")
        yield Protocol(f"TSP{size}", reference(scale, size), COUNTS[size], SOLVER, ways, only=others)
    for size, count in {100: 1000, 1000: 16}.items():
        labels = reference(scale, size, s.rrc_counts[size])
        yield Protocol(f"TSP{size}", labels, count, SOLVER, (RRC,), only=("table19",))
    for distribution in SHIFTED:
        for size in SIZES:
            labels = reference(scale, size, distribution=distribution)
            yield Protocol(f"TSP{size} {distribution}", labels, COUNTS[size], SOLVER)
    yield on_benchmark("tsplib", None)


DECODER_ONLY = "neuroute.networks.decoder_only:DecoderOnly"
LEHD = "neuroute.networks.lehd:Lehd"
LEHD_CVRP = "neuroute.networks.lehd:LehdCvrp"
BQ = "neuroute.networks.bq:Bq"


def also_solved(scale: Scale) -> list[Labels]:
    """What LKH3's rows are of: the first test set, or all."""
    distributions: tuple[Distribution, ...] = ("uniform", *SHIFTED)
    tests = [reference(scale, size, distribution=d) for d in distributions for size in SIZES]
    s = scale[ScalingScale]
    return [
        test.model_copy(update={"solver": s.rival_solver})
        for test in tests
        if s.rival_on == "all" or test.dataset == tests[0].dataset
    ]


def runs(config: Config, scale: Scale) -> list[Run]:
    s = scale[ScalingScale]
    trained: dict[str, tuple[dict[str, Any], Network, Supervised | SelfImprovement]] = {}

    def train(name: str, role: dict[str, Any], kind: str, arguments: dict[str, Any], training: Any) -> None:
        network = Network(kind=kind, arguments=arguments | {"train_nodes": s.sizes[100]})
        trained[name] = role, network, training

    def train_decoder(prefix: str, shape: Shape, **without: bool) -> None:
        here = s.deep_narrow[str(shape)] if prefix == "deep" else s.model(*shape)  # type: ignore[index]
        name, training = f"{prefix}_{shape}", s.recipe(here)
        for key in (prefix, name):
            if change := s.changes.get(key):
                training = training.model_copy(update=change.model_dump(exclude_none=True))
        decoder(name, shape, here, training, **without)

    def decoder(name: str, shape: Shape, here: DeepNarrow, training: Supervised, **without: bool) -> None:
        arguments = here.model_dump() | {"gate": True, "rezero": True} | without
        train(name, shape._asdict(), DECODER_ONLY, arguments, training)

    deep = [shape for shape, run in roles.equal_sized(scale).items() if run == run_id(shape, "deep")]
    for prefix, shapes in {"base": roles.grid(scale), "deep": deep, "small01M": FEW}.items():
        for shape in shapes:
            train_decoder(prefix, shape)
    for part in s.parts:
        for shape in SIX:
            here = s.model(*shape)
            decoder(f"part{part}_{shape}", shape, here, part_of(s.recipe(here), part))
    for name, (shape, training) in roles.pilots(scale).items():
        decoder(name, shape, s.model(*shape), training)
    train_decoder("nogate", DEEPEST, gate=False)
    train_decoder("norezero", DEEPEST, rezero=False)
    train_decoder("data1M", DATA)
    train_decoder("data10M", DATA)
    for text, lehd in s.lehd.items():
        role = {"method": "LEHD"} | roles.parse_shapes(text)[0]._asdict()
        train(f"lehd_{text}", role, LEHD, lehd.model_dump(), s.lehd_training)
    train("bq", {"method": "BQ"}, BQ, s.bq.model_dump(), s.bq_training)
    train("sigd", {"method": "SIGD"}, BQ, s.sigd.model_dump(), s.sigd_training)

    learnt = s.lehd_cvrp
    arguments = learnt.model_dump(include=set(BaselineShape.model_fields)) | {"train_nodes": learnt.customers}
    lehd_cvrp = _run(
        config, scale, "lehd_cvrp", {"method": "LEHD"}, Network(kind=LEHD_CVRP, arguments=arguments), learnt.training
    )

    def labels(split: Split, count: int, solver: str) -> Labels:
        return Labels(dataset=Dataset(problem="cvrp", split=split, n=learnt.customers, count=count), solver=solver)

    of_cvrp = {
        "n": learnt.customers,
        "data": (labels("train", lehd_cvrp.training.samples, learnt.label_solver),),
        "validation": labels("val", learnt.validation_count, learnt.reference_solver),
    }
    return [*(_run(config, scale, name, *trained[name]) for name in trained), lehd_cvrp.model_copy(update=of_cvrp)]


def _run(
    config: Config,
    scale: Scale,
    name: str,
    role: dict[str, Any],
    network: Network,
    training: Supervised | SelfImprovement,
) -> Run:
    n = scale[ScalingScale].sizes[100]
    return declare_run(
        config,
        roles.PAPER,
        name,
        training,
        role=role,
        network=network,
        n=n,
        data=lambda t: training_blocks(n, t.samples, scale.label_solver) if isinstance(t, Supervised) else (),
        validation=roles.validation(scale),
    )


PAPER = Paper(
    key=roles.PAPER,
    title="Efficient Decoder Scaling Strategy for Neural Routing Solvers",
    scale=ScalingScale,
    runs=runs,
    also_solved=also_solved,
    group=group,
    headline=True,
    test_set=reference,
    protocol=protocol,
)
