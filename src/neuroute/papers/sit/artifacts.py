"""The tables and figures of paper `sit`, and the measurements that each of them reads."""

from functools import partial

from neuroute.papers.sit import roles
from neuroute.papers.sit.roles import BASELINES, PAPER, PROBLEMS, SIZES, run_id
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.config import Scale
from neuroute.plan.declared import artifact
from neuroute.plan.objects import Artifact, Problem

ROOMS = {
    "table_comparison": ("table1",),
    "table_benchmarks": ("table2",),
    "tables_ablations": ("table3", "table10"),
    "tables_analysis": ("table4", "table5", "table7"),
    "tables_settings": ("table6", "table11"),
    "tables_test_sets": ("table8", "table9"),
    "figures_model": ("figure1",),
    "figure_training": ("figure2",),
    "figure_repetitions": ("figure3",),
}


def artifacts(scale: Scale) -> list[Artifact]:
    show = partial(artifact, PAPER, ROOMS)

    def measured(*names: str) -> list[str]:
        return [f"{run_id(name)}/{PAPER}" for name in names]

    def models(problem: Problem) -> list[str]:
        return measured(*dict.fromkeys(roles.model(scale, problem, size) for size in SIZES))

    main = [e for problem in PROBLEMS for e in models(problem)]
    baselines = [_tests(run) for problem in PROBLEMS for run in BASELINES[problem].values()]
    ablated = measured("cvrp_1k", roles.NO_SIT, roles.SELF)
    benchmarks = [
        _benchmark(problem, run)
        for problem in PROBLEMS
        for run in (run_id(f"{problem}_1k"), *BASELINES[problem].values())
    ]
    controls = [roles.control(problem) for problem in scale[SitScale].controls]
    crossed = measured(*(roles.with_cross_attention(size) for size in scale[SitScale].bq_sit))
    repeated = tuple(roles.with_repetitions(count) for count in scale[SitScale].repetitions)
    solvers = tuple(f"{PAPER}/{name}" for name in ("tests-tsp", "tests-cvrp", "solvers"))
    return [
        show(
            "table1",
            "TSP and CVRP at five sizes: solvers, neural baselines, greedy and PRC",
            [*main, *measured("warm_tsp", "warm_cvrp", *controls), *baselines],
            bundles=solvers,
        ),
        show("table2", "TSPLIB and CVRPLIB above 1,000 nodes", benchmarks),
        show(
            "table3",
            "Without self-improved training, without cross-attention",
            [*ablated, f"{run_id('cvrp_1k')}/efficiency"],
        ),
        show("table4", "Time and memory of greedy decoding", [f"{run_id('tsp_1k')}/efficiency"]),
        show(
            "table5",
            "The longest partial solution in training and inference",
            measured(*(roles.with_longest(longest) for longest in roles.LONGEST)),
        ),
        show("table6", "Training settings"),
        show("table7", "What PRC starts from", main),
        show("table8", "TAM's test sets", measured("cvrp_1k"), bundles=(f"{PAPER}/tam", f"{PAPER}/solvers")),
        show(
            "table9",
            "Small instances",
            [*measured("tsp_1k", "cvrp_1k"), *baselines],
            bundles=solvers[:2],
        ),
        show(
            "table10",
            "BQ with cross-attention and self-improved training",
            [_tests(BASELINES["cvrp"]["BQ"]), *crossed, f"{run_id('cvrp_1k')}/efficiency"],
        ),
        show("table11", "Licences of the codes and data"),
        show("figure1", "The network, drawn from a decoding state", [f"{run_id('tsp_1k')}/round"]),
        show(
            "figure2",
            "Self-improved training, drawn from a real round",
            [f"{run_id('tsp_1k')}/round"],
            runs=(run_id("warm_tsp"), run_id("tsp_1k")),
        ),
        show("figure3", "Repetitions of the last node", measured(*repeated)),
    ]


def _tests(run: str) -> str:
    return f"{run}/{roles.group(run)}"


def _benchmark(problem: Problem, run: str) -> str:
    return f"{run}/{roles.group(run, 'tsplib' if problem == 'tsp' else 'cvrplib')}"
