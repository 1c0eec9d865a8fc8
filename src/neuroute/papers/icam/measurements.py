"""What paper `icam` measures of its models and of the baselines."""

from neuroute.papers.icam import roles
from neuroute.papers.icam.evaluations import StructureEvaluation
from neuroute.papers.icam.roles import (
    ABLATIONS,
    BASELINES,
    DECODINGS,
    LARGE_SIZES,
    MULTI,
    ORIGINAL,
    OWN,
    PROBLEMS,
    SINGLE,
    SIZES,
    STAGED,
    STAGES,
    TAM_SIZES,
    group,
    reference,
    run_id,
)
from neuroute.papers.icam.scale import IcamScale
from neuroute.plan.config import Scale
from neuroute.plan.objects import (
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    Evaluation,
    Labels,
    RunEvaluation,
    StageEvaluation,
    Test,
)


def evaluations(scale: Scale) -> list[RunEvaluation]:
    tests: dict[str, list[Test]] = {}

    def test(run: str, labels: Labels, *decodings: Decoding) -> None:
        tests.setdefault(run, []).extend(Test(labels=labels, decoding=d) for d in decodings or (SINGLE,))

    for problem in PROBLEMS:
        for size in SIZES:
            labels = reference(scale, problem, size)
            for names in (OWN, ORIGINAL, STAGED):  # Tables 1 and 7
                test(run_id(names[problem]), labels, *DECODINGS)
            for run in BASELINES[problem].values():
                test(run, labels)
    for name in ABLATIONS.values():
        for size in SIZES:
            test(run_id(name), reference(scale, "tsp", size), MULTI)
    for k, beta in roles.forks(scale):
        test(run_id(roles.fork(k, beta)), reference(scale, "tsp", 1000), SINGLE, MULTI)
    for size in LARGE_SIZES:
        labels = roles.large(scale, size)
        for name in (OWN["tsp"], ORIGINAL["tsp"]):
            test(run_id(name), labels, MULTI)
        for run in BASELINES["tsp"].values():
            test(run, labels)
    for size in TAM_SIZES:
        labels = roles.tam(scale, size)
        test(run_id(OWN["cvrp"]), labels, SINGLE, MULTI)
        for run in BASELINES["cvrp"].values():
            test(run, labels)
    for size in roles.searched(scale, "rrc"):  # Table 11
        test(run_id(OWN["tsp"]), reference(scale, "tsp", size), roles.rrc(scale, "all"))
        test(BASELINES["tsp"]["LEHD"], reference(scale, "tsp", size), roles.rrc(scale))
    for size in roles.searched(scale, "beam"):
        test(run_id(OWN["tsp"]), reference(scale, "tsp", size), roles.beam(scale, "all"))
        test(BASELINES["tsp"]["BQ"], reference(scale, "tsp", size), roles.beam(scale))
    return [
        *(Evaluation(run=run, group=group(run), tests=tuple(dict.fromkeys(found))) for run, found in tests.items()),
        _stages(scale),
        *_benchmarks(scale),
        *_structures(scale),
    ]


def _stages(scale: Scale) -> StageEvaluation:
    """Table 8, but for the last stage, which the model itself is of."""
    tests = tuple(Test(labels=reference(scale, "tsp", size), decoding=MULTI) for size in SIZES)
    return StageEvaluation(run=run_id(OWN["tsp"]), stages=STAGES, tests=tests)


def _benchmarks(scale: Scale) -> list[BenchmarkEvaluation]:
    """Table 2: Set-X, from many starts where a model has them, whose axes are then scaled one by one."""
    least, below = scale[IcamScale].cvrp.benchmark_nodes

    def of(run: str, many: bool) -> BenchmarkEvaluation:
        return BenchmarkEvaluation(
            run=run,
            group=group(run, "cvrplib"),
            benchmark="cvrplib",
            min_nodes=least,
            max_nodes=below,
            sets=("X",),
            decodings=(MULTI if many else SINGLE,),
            per_axis=many,
        )

    own = [of(run_id(names["cvrp"]), many=True) for names in (OWN, ORIGINAL)]
    return [*own, *(of(run, many=False) for run in BASELINES["cvrp"].values())]


def _structures(scale: Scale) -> list[StructureEvaluation]:
    """Figures 1 to 5 are of ICAM, Figure 6 is of POMO: an instance of the validation stream, a third of the way."""
    n = reference(scale, "tsp", 100).dataset.n
    optimal = tuple(reference(scale, "tsp", size) for size in roles.OPTIMAL_SIZES)
    dataset = Dataset(split="val", n=n, count=1)
    return [
        StructureEvaluation(run=run_id(OWN["tsp"]), dataset=dataset, decision=n // 3, optimal=optimal),
        StructureEvaluation(run=run_id(ORIGINAL["tsp"]), dataset=dataset, decision=n // 3),
    ]
