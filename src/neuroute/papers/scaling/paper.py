"""Paper `scaling`: what it trains, labels and borrows; what is shown is declared beside each table and figure."""

from __future__ import annotations

from typing import Any

from neuroute.papers.scaling import cvrp, roles, steps
from neuroute.papers.scaling.protocol import protocol
from neuroute.papers.scaling.roles import DATA, DEEP, DEEPEST, FEW, GRID, SHIFTED, SIZES, Shape, group, reference
from neuroute.papers.scaling.scale import Cvrp, ScalingScale
from neuroute.plan.changes import declare_run
from neuroute.plan.config import Config, Scale
from neuroute.plan.label_blocks import training_blocks
from neuroute.plan.objects import Distribution, Labels, Network, Run, SelfImprovement, Supervised
from neuroute.plan.paper import Paper
from neuroute.plan.shapes import BaselineShape

DECODER_ONLY = "neuroute.networks.decoder_only:DecoderOnly"
LEHD = "neuroute.networks.lehd:Lehd"
LEHD_CVRP = "neuroute.networks.lehd:LehdCvrp"
BQ = "neuroute.networks.bq:Bq"


# -- labels ---------------------------------------------------------------------------------------------------------


def training_data(scale: Scale, samples: int) -> tuple[Labels, ...]:
    """The first instances of the training stream in blocks, each a label job of its own."""
    return training_blocks(scale[ScalingScale].sizes[100], samples, scale.label_solver)


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


# -- runs -----------------------------------------------------------------------------------------------------------


def runs(config: Config, scale: Scale) -> list[Run]:
    s = scale[ScalingScale]
    trained: dict[str, tuple[dict[str, Any], Network, Supervised | SelfImprovement]] = {}

    def train(name: str, role: dict[str, Any], kind: str, arguments: dict[str, Any], training: Any) -> None:
        network = Network(kind=kind, arguments=arguments | {"train_nodes": s.sizes[100]})
        trained[name] = role, network, training

    def train_decoder(prefix: str, shape: Shape, **without: bool) -> None:
        here = s.deep_narrow[str(shape)] if shape in DEEP else s.model(*shape)
        arguments = here.model_dump() | {"gate": True, "rezero": True} | without
        change = s.changes.get(prefix if prefix != "deep" else f"deep_{shape}")
        changed = change.model_dump(exclude_none=True) if change else {}
        training = s.training.model_copy(update=changed)
        train(f"{prefix}_{shape}", shape._asdict(), DECODER_ONLY, arguments, training)

    for prefix, shapes in {"base": roles.grid(scale), "deep": DEEP, "small01M": FEW}.items():
        for shape in shapes:
            train_decoder(prefix, shape)
    train_decoder("nogate", DEEPEST, gate=False)
    train_decoder("norezero", DEEPEST, rezero=False)
    train_decoder("data1M", DATA)
    train_decoder("data10M", DATA)
    smallest = trained[f"base_{GRID[0]}"][1]
    for each, training in steps.readings(scale).items():
        trained[each.name] = each._asdict(), smallest, training
    for text, lehd in s.lehd.items():
        role = {"method": "LEHD"} | roles.parse_shapes(text)[0]._asdict()
        train(f"lehd_{text}", role, LEHD, lehd.model_dump(), s.lehd_training)
    train("bq", {"method": "BQ"}, BQ, s.bq.model_dump(), s.bq_training)
    train("sigd", {"method": "SIGD"}, BQ, s.sigd.model_dump(), s.sigd_training)

    def of_cvrp(name: str, learnt: Cvrp, role: dict[str, Any], shape: BaselineShape) -> Run:
        """LEHD on the CVRP."""
        arguments = shape.model_dump(include=set(BaselineShape.model_fields)) | {"train_nodes": learnt.customers}
        network = Network(kind=LEHD_CVRP, arguments=arguments)
        run = _run(config, scale, name, {"method": "LEHD"} | role, network, learnt.training)
        data = (cvrp.labels(scale, learnt, "train", run.training.samples),)
        validation = cvrp.labels(scale, learnt, "val", learnt.validation_count)
        return run.model_copy(update={"n": learnt.customers, "data": data, "validation": validation})

    return [
        *(_run(config, scale, name, *trained[name]) for name in trained),
        of_cvrp("lehd_cvrp", s.lehd_cvrp, {}, s.lehd_cvrp),
        *(
            of_cvrp(f"cvrp_{shape}", s.cvrp_grid, shape._asdict(), s.cvrp_grid.shape(*shape))
            for shape in cvrp.grid_shapes(scale)
            if s.cvrp_grid is not None
        ),
    ]


def _run(
    config: Config,
    scale: Scale,
    name: str,
    role: dict[str, Any],
    network: Network,
    training: Supervised | SelfImprovement,
) -> Run:
    return declare_run(
        config,
        roles.PAPER,
        name,
        training,
        role=role,
        network=network,
        n=scale[ScalingScale].sizes[100],
        data=lambda changed: training_data(scale, changed.samples) if isinstance(changed, Supervised) else (),
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
