"""What paper `mvmoe` measures of its models and of the baseline."""

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.evaluations import RoutingEvaluation
from neuroute.papers.mvmoe.roles import GREEDY, MULTI, MULTI_TASK, SIZES, TRAINED, VARIANTS, X8, group, run_id
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.plan.config import Scale
from neuroute.plan.objects import (
    BenchmarkEvaluation,
    ConstructionEvaluation,
    Decoding,
    Evaluation,
    RunEvaluation,
    Test,
)

ROUTED = ("MVMoE/4E", "MVMoE/4E-L")  # of Figures 1 to 4, 8 and 9
OF_BENCHMARK = {"set_x": "CVRP", "solomon": "VRPTW"}  # Table 7: what a POMO is trained for that solves it
MOST_OF_SOLOMON = 101  # nodes of an instance


def evaluations(scale: Scale) -> list[RunEvaluation]:
    tests: dict[str, list[Test]] = {}

    def test(name: str, variants: tuple[str, ...], size: int) -> None:
        found = (Test(labels=roles.reference(scale, variant, size), decoding=X8) for variant in variants)
        tests.setdefault(run_id(name), []).extend(found)

    for size in SIZES:  # Tables 1 and 2
        for variant in TRAINED:
            test(roles.single(scale, variant, size), (variant,), size)
        for method in MULTI_TASK:
            test(roles.multi(scale, method, size), VARIANTS, size)
    for variant in TRAINED:  # Table 4
        test(roles.single(scale, variant, SIZES[-1]), TRAINED, SIZES[-1])
    for name in roles.ablations(scale):  # Table 5, Figure 6
        test(name, VARIANTS, SIZES[0])
    return [
        *(Evaluation(run=run, group=group(run), tests=tuple(dict.fromkeys(found))) for run, found in tests.items()),
        *_benchmarks(scale),
        *_constructions(scale),
        *_routings(scale),
    ]


def _benchmarks(scale: Scale) -> list[BenchmarkEvaluation]:
    """Tables 7 and 8, by the models of 100 customers."""
    multi = [run_id(roles.multi(scale, method, SIZES[-1])) for method in MULTI_TASK]
    single = {name: run_id(roles.single(scale, variant, SIZES[-1])) for name, variant in OF_BENCHMARK.items()}
    cvrp = [single["set_x"], *multi]
    return [
        *(_set_x(run, "set_x", scale[MvmoeScale].set_x, MULTI) for run in cvrp),
        *(_set_x(run, "set_x_large", scale[MvmoeScale].set_x_large, MULTI) for run in cvrp),
        *(
            _set_x(run, "set_x_large", scale[MvmoeScale].set_x_large, GREEDY, roles.rrc(scale))
            for run in roles.lehd(scale).values()
        ),
        *(
            BenchmarkEvaluation(
                run=run,
                group="solomon",
                benchmark="solomon",
                max_nodes=MOST_OF_SOLOMON + 1,
                sets=roles.solomon(scale),
                decodings=(MULTI,),
            )
            for run in (single["solomon"], *multi)
        ),
    ]


def _set_x(run: str, name: str, nodes: tuple[int, int], *decodings: Decoding) -> BenchmarkEvaluation:
    least, below = nodes
    return BenchmarkEvaluation(
        run=run,
        group=group(run, name),
        benchmark="cvrplib",
        min_nodes=least,
        max_nodes=below,
        sets=("X",),
        decodings=decodings,
    )


def _constructions(scale: Scale) -> list[ConstructionEvaluation]:
    """Table 6: one instance at a time, by the models of 100 customers."""
    datasets = tuple(roles.constructed(scale, variant) for variant in VARIANTS)
    runs = (run_id(roles.multi(scale, method, SIZES[-1])) for method in MULTI_TASK)
    return [ConstructionEvaluation(run=run, datasets=datasets, decoding=MULTI) for run in runs]


def _routings(scale: Scale) -> list[RoutingEvaluation]:
    """The models of 50 customers on instances that they are not tested on."""
    datasets = tuple(roles.routed(scale, variant) for variant in VARIANTS)
    runs = (run_id(roles.multi(scale, method, SIZES[0])) for method in ROUTED)
    return [RoutingEvaluation(run=run, datasets=datasets, steps=scale[MvmoeScale].routing_steps) for run in runs]
