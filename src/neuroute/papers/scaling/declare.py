"""What paper `scaling` trains, measures and shows.  Declarations only; roles are the paper's numbers."""

from collections.abc import Iterable

from neuroute.plan.config import Config, DeepNarrow, Scale, Shape
from neuroute.plan.objects import (
    Artifact,
    Dataset,
    Decoding,
    Evaluation,
    LabelBundle,
    Labels,
    Network,
    Run,
    Supervised,
    Test,
)

PAPER = "scaling"
TITLE = "Efficient Decoder Scaling Strategy for Neural Routing Solvers"
DEPTHS, WIDTHS = (6, 12, 24, 42), (128, 256, 512)
GRID = [f"{d}x{w}" for d in DEPTHS for w in WIDTHS]
SIZES = (100, 200, 500, 1000)
BLOCK = 1_000_000  # labels that one job makes at most
LATENCY = ("12x512", "24x256")  # Table 17
DECODER_ONLY = "neuroute.networks.decoder_only:DecoderOnly"
ARTIFACTS = "neuroute.papers.scaling"


def run_id(shape: str, prefix: str = "base") -> str:
    return f"{PAPER}/{prefix}_{shape}"


def training_data(scale: Scale, samples: int) -> list[Labels]:
    """The training set in blocks, each a label job of its own."""
    n = scale.scaling.sizes[100]
    return [
        Labels(
            dataset=Dataset(split="train", n=n, first=first, count=min(BLOCK, samples - first)),
            solver=scale.label_solver,
        )
        for first in range(0, samples, BLOCK)
    ]


def reference(scale: Scale, size: int, count: int | None = None) -> Labels:
    s = scale.scaling
    dataset = Dataset(split="test", n=s.sizes[size], count=count or s.test_counts[size])
    return Labels(dataset=dataset, solver=scale.reference_solver)


def bundles(scale: Scale, runs: Iterable[Run]) -> list[LabelBundle]:
    blocks = {block.id: block for run in runs for block in run.data}
    first = reference(scale, 100)
    in_domain = [validation(scale), first]
    if scale.reference_solver != "lkh":  # Table 12 has a row for LKH
        in_domain.append(Labels(dataset=first.dataset, solver="lkh"))
    return [
        *(LabelBundle(paper=PAPER, name=f"train-{i:03d}", labels=(b,)) for i, b in enumerate(blocks.values())),
        LabelBundle(paper=PAPER, name="in_domain", labels=tuple(in_domain)),
        LabelBundle(paper=PAPER, name="larger", labels=tuple(reference(scale, s) for s in SIZES[1:])),
    ]


def validation(scale: Scale) -> Labels:
    s = scale.scaling
    dataset = Dataset(split="val", n=s.sizes[100], count=s.validation_count)
    return Labels(dataset=dataset, solver=scale.reference_solver)


def _run(config: Config, scale: Scale, shape: str, prefix: str, depth: int, s: Shape) -> Run:
    role_depth, role_width = map(int, shape.split("x"))
    name = f"{prefix}_{shape}"
    change = config.runs.get(f"{PAPER}/{name}")
    changed = change.training.model_dump(exclude_none=True) if change else {}
    training = Supervised(**(scale.scaling.training.model_dump() | changed))
    return Run(
        paper=PAPER,
        name=name,
        role={"depth": role_depth, "width": role_width},
        network=Network(
            kind=DECODER_ONLY,
            arguments={
                "depth": depth,
                "width": s.width,
                "heads": s.heads,
                "gate": True,
                "rezero": True,
                "train_nodes": scale.scaling.sizes[100],
            },
        ),
        training=training,
        n=scale.scaling.sizes[100],
        data=tuple(training_data(scale, training.samples)),
        validation=validation(scale),
        seed=change.seed if change and change.seed is not None else 0,
    )


def runs(config: Config, scale: Scale) -> list[Run]:
    s = scale.scaling
    grid = [_run(config, scale, f"{d}x{w}", "base", s.depths[d], s.widths[w]) for d in DEPTHS for w in WIDTHS]
    narrow: dict[str, DeepNarrow] = s.deep_narrow
    return grid + [_run(config, scale, k, "deep", narrow[k].depth, narrow[k]) for k in ("24x64", "96x32")]


def evaluations(scale: Scale) -> list[Evaluation]:
    s = scale.scaling
    first = reference(scale, 100)
    larger = tuple(Test(labels=reference(scale, size)) for size in SIZES[1:])
    out = []
    for shape in GRID:
        greedy = [Test(labels=first)]
        if shape in LATENCY:
            greedy += [
                Test(labels=first, decoding=Decoding(batch_size=min(b, first.dataset.count)))
                for b in s.latency_batches.values()
            ]
        out.append(Evaluation(run=run_id(shape), group="greedy", tests=tuple(dict.fromkeys(greedy))))
        searched = reference(scale, 100, s.beam_count)
        widths = [w for w in s.beams.values() if w > 1 or searched != first]
        few = reference(scale, 100, s.budget_count)
        beams = [Test(labels=searched, decoding=_beam(w)) for w in widths]
        beams += [Test(labels=few, decoding=_beam(w)) for w in s.budgets.get(shape, {}).values()]
        out.append(Evaluation(run=run_id(shape), group="beam", tests=tuple(dict.fromkeys(beams))))
    out.append(Evaluation(run=run_id("6x128"), group="larger", tests=larger))
    for shape in ("24x64", "96x32"):
        out.append(Evaluation(run=run_id(shape, "deep"), group="greedy", tests=(Test(labels=first), *larger)))
    return out


def _beam(width: int) -> Decoding:
    return Decoding(method="beam", beam=width) if width > 1 else Decoding()


def artifacts() -> list[Artifact]:
    grid = [run_id(s) for s in GRID]
    greedy = [f"{r}/greedy" for r in grid]
    beam = [f"{r}/beam" for r in grid]
    six = [run_id(s) for s in ("6x128", "6x256", "6x512", "12x128", "24x128", "42x128")]
    deep = [f"{run_id(s, 'deep')}/greedy" for s in ("24x64", "96x32")]
    budget = [f"{run_id(s)}/beam" for s in ("6x128", "6x512", "24x128", "42x128")]

    def table(number: int, title: str, **reads: list[str]) -> Artifact:
        name, room = f"table{number}", "settings" if number in (1, 9, 10) else "results"
        return Artifact(paper=PAPER, name=name, title=title, function=f"{ARTIFACTS}.tables_{room}:{name}", **reads)  # type: ignore[arg-type]

    def figure(number: int, title: str, **reads: list[str]) -> Artifact:
        name, room = f"figure{number}", "parameters" if number in (1, 2, 5) else "efficiency"
        return Artifact(paper=PAPER, name=name, title=title, function=f"{ARTIFACTS}.figures_{room}:{name}", **reads)  # type: ignore[arg-type]

    return [
        table(1, "Configurations of the twelve models"),
        table(
            2,
            "Deep and narrow against wide at equal parameters",
            evaluations=[f"{run_id('6x128')}/greedy", f"{run_id('6x128')}/larger", *deep],
        ),
        table(4, "Optimality gap under limited and sufficient inference budgets", evaluations=budget),
        table(9, "Training hyper-parameters"),
        table(10, "Training hardware", runs=grid),
        table(
            12,
            "In-domain greedy results of the twelve models",
            evaluations=greedy,
            bundles=[f"{PAPER}/in_domain"],
        ),
        table(17, "FLOPs and latency by batch size", evaluations=[f"{run_id(s)}/greedy" for s in LATENCY]),
        table(18, "Beam search with widths 1 to 64", evaluations=greedy + beam),
        figure(1, "Decoder parameters against optimality gap", evaluations=greedy),
        figure(2, "Power laws of the gap in parameters: all models, by width, by depth", evaluations=greedy),
        figure(3, "Data efficiency: gap against training samples", runs=six),
        figure(
            4,
            "Compute efficiency: gap against inference FLOPs",
            evaluations=[f"{r}/{g}" for r in six for g in ("greedy", "beam")],
        ),
        figure(5, "Gap by parameters and depth-to-width ratio", evaluations=greedy),
        figure(6, "Gap against inference time", evaluations=greedy + beam),
    ]
