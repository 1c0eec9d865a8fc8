"""What paper `pens` trains and measures.  Declarations only; what is shown is in `artifacts`."""

from neuroute.core.errors import NeurouteError
from neuroute.papers.pens import roles
from neuroute.papers.pens.evaluations import AttentionEvaluation
from neuroute.papers.pens.roles import BQ, ESF, LEHD, PAPER, SIZES, SMALL, SMALL_SIZES, TIMED, reference, validation
from neuroute.papers.pens.scale import PensScale, PensShape
from neuroute.plan.changes import seed_of, settled
from neuroute.plan.config import Config, Scale
from neuroute.plan.label_blocks import longest, training_blocks, training_bundles
from neuroute.plan.objects import (
    BenchmarkEvaluation,
    Decoding,
    Evaluation,
    LabelBundle,
    Labels,
    Network,
    RescalingEvaluation,
    Run,
    RunEvaluation,
    Supervised,
    Sweep,
    Test,
)
from neuroute.plan.papers import borrow_runs
from neuroute.plan.shapes import TrainingScale

PENS = "neuroute.networks.pens:Pens"


def bundles(scale: Scale, runs: list[Run]) -> list[LabelBundle]:
    tests = [reference(scale, size) for size in (*SMALL_SIZES[:2], *SIZES[:-1])]
    return [
        *training_bundles(PAPER, runs),
        LabelBundle(paper=PAPER, name="tests", labels=tuple(longest([*(r.validation for r in runs), *tests]))),
        LabelBundle(paper=PAPER, name="largest", labels=(reference(scale, SIZES[-1]),)),
    ]


def runs(config: Config, scale: Scale) -> list[Run]:
    p = scale[PensScale]
    own = [
        _run(config, scale, name, 100, {"positions": positions}, p.network, p.training)
        for name, positions in roles.POSITIONS.items()
    ]
    small = [
        _run(config, scale, name, 20, {"positions": positions, "initial": initial}, p.small_network, p.small_training)
        for name, (positions, initial) in SMALL.items()
    ]
    baselines = borrow_runs(config, scale, (BQ, LEHD))
    if (here := p.sizes[100]) != (there := baselines[0].n):
        raise NeurouteError(
            f"scale {scale.name}: pens.sizes.100 is {here}, but {BQ} and {LEHD} are trained at {there} nodes: "
            "make them equal"
        )
    return [*own, *small, *baselines]


def _run(
    config: Config, scale: Scale, name: str, size: int, role: dict[str, str], shape: PensShape, training: TrainingScale
) -> Run:
    """The training of a model on the paper's TSP`size`, with what config.yaml changes of it."""
    own = settled(config, f"{PAPER}/{name}", Supervised, training)
    if own.sub_paths != "pairs":
        raise NeurouteError(f"config.yaml: runs.{PAPER}/{name}.training.sub_paths: PENS is trained on `pairs` only")
    n = scale[PensScale].sizes[size]
    return Run(
        paper=PAPER,
        name=name,
        role=role,
        network=Network(kind=PENS, arguments=shape.model_dump() | role | {"train_nodes": n}),
        training=own,
        n=n,
        data=training_blocks(n, own.samples, scale.label_solver),
        validation=validation(scale, size),
        also_validation=(validation(scale, 100),) if size != 100 else (),  # Figure 5b
        seed=seed_of(config, f"{PAPER}/{name}"),
    )


def evaluations(scale: Scale) -> list[RunEvaluation]:
    p = scale[PensScale]
    repeated, rescaled = roles.repeated(scale), roles.rescaled(scale)
    out: list[RunEvaluation] = []

    def tests(run: str, group: str, *decodings: Decoding) -> None:
        """All sizes, with the instances that are timed one by one."""
        found = [Test(labels=reference(scale, size), decoding=d) for d in decodings for size in SIZES]
        found += [Test(labels=timed, decoding=TIMED) for timed in _timed(scale)]
        if ESF in decodings:
            found += [Test(labels=t, decoding=TIMED.model_copy(update={"esf": True})) for t in _timed(scale)]
        out.append(Evaluation(run=run, group=group, tests=tuple(dict.fromkeys(found))))

    for name in roles.POSITIONS:
        scaled = name in roles.RESCALED
        sizes = SIZES if scaled else SIZES[-1:]
        sweeps = [Sweep(dataset=roles.held_out(scale, n), factors=tuple(sorted(set(p.factors[n])))) for n in sizes]
        out.append(RescalingEvaluation(run=roles.run_id(name), sweeps=tuple(sweeps)))
        tests(roles.run_id(name), "uniform", repeated, *([rescaled] if scaled else []))
        if scaled:
            decodings = (repeated, rescaled)
            out.append(BenchmarkEvaluation(run=roles.run_id(name), max_nodes=p.tsplib_max_nodes, decodings=decodings))
        if name in roles.MAPPED:
            largest = roles.held_out(scale, SIZES[-1])
            out.append(
                AttentionEvaluation(
                    run=roles.run_id(name), dataset=largest, factors=(*sorted(set(p.attention_factors)), "best")
                )
            )
    for name in SMALL:
        small = tuple(Test(labels=reference(scale, size), decoding=repeated) for size in SMALL_SIZES)
        out.append(Evaluation(run=roles.run_id(name), group="uniform", tests=small))
    baselines: dict[str, tuple[Decoding, ...]] = {BQ: (Decoding(), ESF), LEHD: (Decoding(),)}
    for run, greedy in baselines.items():
        tests(run, f"uniform_{PAPER}", *greedy)
        out.append(
            BenchmarkEvaluation(run=run, group=f"tsplib_{PAPER}", max_nodes=p.tsplib_max_nodes, decodings=greedy)
        )
    return out


def _timed(scale: Scale) -> list[Labels]:
    return [reference(scale, size, count) for size, count in scale[PensScale].timed_counts.items()]
