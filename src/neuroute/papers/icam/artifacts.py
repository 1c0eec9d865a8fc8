"""The tables and figures of paper `icam`, and the measurements that each of them reads."""

from functools import partial

from neuroute.papers.icam import roles
from neuroute.papers.icam.roles import ABLATIONS, BASELINES, ORIGINAL, OWN, PAPER, PROBLEMS, STAGED, group, run_id
from neuroute.plan.config import Scale
from neuroute.plan.objects import Artifact
from neuroute.plan.old_declared import artifact

LABELS = (f"{PAPER}/labels",)  # whose manifest says how long the solvers took
ROOMS = {
    "table_comparison": ("table1",),
    "table_benchmarks": ("table2",),
    "tables_test_sets": ("table3", "table6"),
    "tables_settings": ("table4", "table5", "table12"),
    "tables_training": ("table7", "table8", "table10"),
    "tables_ablations": ("table9", "table11"),
    "figure_selection": ("figure1",),
    "figures_adaptation": ("figure2", "figure4"),
    "figure_calculation": ("figure5",),
    "figures_network": ("figure3", "figure6"),
}


def artifacts(scale: Scale) -> list[Artifact]:
    show = partial(artifact, PAPER, ROOMS)

    tsp, cvrp = run_id(OWN["tsp"]), run_id(OWN["cvrp"])
    own = _tests(*(run_id(OWN[problem]) for problem in PROBLEMS))
    original = _tests(*(run_id(ORIGINAL[problem]) for problem in PROBLEMS))
    staged = _tests(*(run_id(STAGED[problem]) for problem in PROBLEMS))
    others = {problem: _tests(*BASELINES[problem].values()) for problem in PROBLEMS}
    solvers = [run_id(names["cvrp"]) for names in (OWN, ORIGINAL)] + list(BASELINES["cvrp"].values())
    forks = [run_id(roles.fork(k, beta)) for k, beta in (roles.MAIN, *roles.forks(scale))]
    adapted = [_structure(tsp)]
    return [
        show(
            "table1",
            "TSP and CVRP at four sizes",
            [*own, *original, *staged, *others["tsp"], *others["cvrp"]],
            bundles=LABELS,
        ),
        show("table2", "CVRPLIB's Set-X", [f"{run}/{group(run, 'cvrplib')}" for run in solvers]),
        show("table3", "CVRP in TAM's capacities", [*_tests(cvrp), *others["cvrp"]], bundles=LABELS),
        show("table4", "Time and space of attention and of AAFM"),
        show("table5", "Training settings"),
        show("table6", "Larger TSP instances", [*_tests(tsp, run_id(ORIGINAL["tsp"])), *others["tsp"]], bundles=LABELS),
        show("table7", "ICAM and POMO in the same training", [*original, *staged, *own], bundles=LABELS),
        show("table8", "After each stage of the training", [f"{tsp}/stages", *_tests(tsp)]),
        show("table9", "Without the adaptation", _tests(*(run_id(name) for name in ABLATIONS.values()))),
        show("table10", "Parameters of the third stage", _tests(*forks)),
        show("table11", "Inference strategies", [*_tests(tsp), *others["tsp"]], bundles=LABELS),
        show("table12", "Licences of the codes"),
        show("figure1", "Where optimal tours go, in small and large instances", adapted),
        show("figure2", "Adaptation to an instance, drawn from a trained model", adapted),
        show("figure3", "The network, drawn from its modules", adapted),
        show("figure4", "The adaptation attention-free module", adapted),
        show("figure5", "The module's calculation, with its own numbers", adapted),
        show("figure6", "POMO, drawn from its modules", [_structure(run_id(ORIGINAL["tsp"]))]),
    ]


def _tests(*runs: str) -> list[str]:
    return [f"{run}/{group(run)}" for run in runs]


def _structure(run: str) -> str:
    return f"{run}/structure"
