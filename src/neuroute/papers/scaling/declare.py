"""What paper `scaling` trains and measures.  Declarations only; what is shown is in `artifacts`."""

from __future__ import annotations

from collections.abc import Iterator

from neuroute.core.errors import NeurouteError
from neuroute.papers.scaling.roles import (
    DEEP,
    DEPTHS,
    FEW,
    PAPER,
    SHIFTED,
    SIZES,
    WIDTHS,
    depth_and_width,
    reference,
    validation,
    with_seed,
)
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.changes import apply_changes, seed_of
from neuroute.plan.config import Config, Scale
from neuroute.plan.label_blocks import training_blocks
from neuroute.plan.needs import Need, tested
from neuroute.plan.objects import (
    Dataset,
    LabelJob,
    Labels,
    Network,
    Run,
    SelfImprovement,
    Split,
    Supervised,
)
from neuroute.plan.shapes import BaselineShape, Shape

DECODER_ONLY = "neuroute.networks.decoder_only:DecoderOnly"
LEHD = "neuroute.networks.lehd:Lehd"
LEHD_CVRP = "neuroute.networks.lehd:LehdCvrp"
BQ = "neuroute.networks.bq:Bq"


# -- labels ---------------------------------------------------------------------------------------------------------


def training_data(scale: Scale, samples: int) -> tuple[Labels, ...]:
    """The first instances of the training stream in blocks, each a label job of its own."""
    return training_blocks(scale[ScalingScale].sizes[100], samples, scale.label_solver)


def cvrp_labels(scale: Scale, split: Split, count: int) -> Labels:
    c = scale[ScalingScale].lehd_cvrp
    dataset = Dataset(problem="cvrp", split=split, n=c.customers, count=count)
    return Labels(dataset=dataset, solver=c.label_solver if split == "train" else c.reference_solver)


def label_jobs(scale: Scale, runs: list[Run]) -> list[LabelJob]:
    c = scale[ScalingScale].lehd_cvrp

    def most(problem: str) -> int:
        """The largest training set of that problem; the others are its first instances."""
        own = [r.training.samples for r in runs if r.validation.dataset.problem == problem and r.data]
        return max(own, default=0)

    first = reference(scale, 100)
    in_domain = [validation(scale), first]
    if scale.reference_solver != "lkh":  # Table 12 has a row for LKH
        in_domain.append(Labels(dataset=first.dataset, solver="lkh"))
    shifted = tuple(reference(scale, size, distribution=d) for d in SHIFTED for size in SIZES)
    return [
        *(
            LabelJob(paper=PAPER, name=f"train-{i:03d}", labels=(block,))
            for i, block in enumerate(training_data(scale, most("tsp")))
        ),
        LabelJob(paper=PAPER, name="in_domain", labels=tuple(in_domain)),
        LabelJob(paper=PAPER, name="larger", labels=tuple(reference(scale, s) for s in SIZES[1:])),
        LabelJob(paper=PAPER, name="shifted", labels=shifted),
        LabelJob(
            paper=PAPER,
            name="cvrp",
            labels=(
                cvrp_labels(scale, "train", most("cvrp")),
                cvrp_labels(scale, "val", c.validation_count),
                cvrp_labels(scale, "test", c.test_count),
            ),
        ),
    ]


# -- runs -----------------------------------------------------------------------------------------------------------


def runs(config: Config, scale: Scale) -> list[Run]:
    s = scale[ScalingScale]
    trained: dict[str, tuple[dict[str, object], Network, Supervised | SelfImprovement]] = {}

    def own(name: str, shape: str, depth: int, wide: Shape, *, gate: bool = True, rezero: bool = True) -> None:
        role = _depth_and_width(shape)
        arguments = {"depth": depth, "width": wide.width, "heads": wide.heads, "gate": gate, "rezero": rezero}
        network = Network(kind=DECODER_ONLY, arguments=arguments | {"train_nodes": s.sizes[100]})
        change = s.changes.get(name.partition("_")[0])
        changed = change.model_dump(exclude_none=True) if change else {}
        trained[name] = role, network, s.training.model_copy(update=changed)

    def baseline(name: str, role: dict[str, object], kind: str, shape: BaselineShape, training: object) -> None:
        network = Network(kind=kind, arguments=shape.model_dump() | {"train_nodes": s.sizes[100]})
        trained[name] = role, network, training  # type: ignore[assignment]

    def grid(prefix: str, shape: str, **without: bool) -> None:
        depth, width = depth_and_width(shape)
        own(f"{prefix}_{shape}", shape, s.depths[depth], s.widths[width], **without)

    for depth in DEPTHS:
        for width in WIDTHS:
            grid("base", f"{depth}x{width}")
    for shape in DEEP:
        own(f"deep_{shape}", shape, s.deep_narrow[shape].depth, s.deep_narrow[shape])
    for shape in FEW:
        grid("small01M", shape)
    grid("nogate", "42x128", gate=False)
    grid("norezero", "42x128", rezero=False)
    grid("data1M", "12x128")
    grid("data10M", "12x128")
    for shape, lehd in s.lehd.items():
        baseline(f"lehd_{shape}", {"method": "LEHD", **_depth_and_width(shape)}, LEHD, lehd, s.lehd_training)
    baseline("bq", {"method": "BQ"}, BQ, s.bq, s.bq_training)
    baseline("sigd", {"method": "SIGD"}, BQ, s.sigd, s.sigd_training)

    return [
        *(_run(config, scale, name, seed, *trained[name]) for name in trained for seed in range(s.seeds.get(name, 1))),
        _lehd_cvrp(config, scale),
    ]


def _lehd_cvrp(config: Config, scale: Scale) -> Run:
    """LEHD on the CVRP.  No artifact shows it: `snakemake work/<scale>/runs/scaling/lehd_cvrp/model.safetensors`."""
    c = scale[ScalingScale].lehd_cvrp
    shape = {"depth": c.depth, "width": c.width, "heads": c.heads, "feed_forward": c.feed_forward}
    network = Network(kind=LEHD_CVRP, arguments=shape | {"train_nodes": c.customers})
    run = _run(config, scale, "lehd_cvrp", 0, {"method": "LEHD"}, network, c.training)
    data = (cvrp_labels(scale, "train", run.training.samples),)
    own = {"n": c.customers, "data": data, "validation": cvrp_labels(scale, "val", c.validation_count)}
    return run.model_copy(update=own)


def _depth_and_width(shape: str) -> dict[str, object]:
    return dict(zip(("depth", "width"), depth_and_width(shape), strict=True))


def _run(
    config: Config,
    scale: Scale,
    name: str,
    seed: int,
    role: dict[str, object],
    network: Network,
    training: Supervised | SelfImprovement,
) -> Run:
    """The training of a run with one seed; what config.yaml changes of the run holds for all its seeds."""
    change = config.runs.get(f"{PAPER}/{name}")
    if seed and f"{PAPER}/{with_seed(name, seed)}" in config.runs:
        raise NeurouteError(
            f"config.yaml: runs.{PAPER}/{with_seed(name, seed)}: changes hold for all seeds; make them to {name}"
        )
    if seed and change and change.seed is not None:
        raise NeurouteError(
            f"config.yaml: runs.{PAPER}/{name}.seed: scale {scale.name} trains it with several seeds; set the scale's "
            "`seeds` to 1 first"
        )
    kind: type[Supervised | SelfImprovement] = SelfImprovement if isinstance(training, SelfImprovement) else Supervised
    own = apply_changes(config, f"{PAPER}/{name}", kind, training)
    return Run(
        paper=PAPER,
        name=with_seed(name, seed),
        role=role,
        network=network,
        training=own,
        n=scale[ScalingScale].sizes[100],
        data=training_data(scale, own.samples) if isinstance(own, Supervised) else (),
        validation=validation(scale),
        seed=seed_of(config, f"{PAPER}/{name}", seed),
    )


def on_demand(scale: Scale) -> Iterator[Need]:
    """Measure LEHD on the CVRP, which no artifact shows."""
    labels = cvrp_labels(scale, "test", scale[ScalingScale].lehd_cvrp.test_count)
    yield from tested(f"{PAPER}/lehd_cvrp", labels)
