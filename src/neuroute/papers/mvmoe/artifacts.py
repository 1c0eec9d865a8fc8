"""The tables and figures of paper `mvmoe`, and the measurements that each of them reads."""

from functools import partial

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.roles import FEW, MULTI_TASK, PAPER, SIZES, TRAINED, WITHOUT_OVRPTW, group, run_id
from neuroute.plan.config import Scale
from neuroute.plan.declared import artifact
from neuroute.plan.objects import Artifact

LABELS = (f"{PAPER}/labels",)  # whose manifest says how long the solvers took
ROOMS = {
    "tables_comparison": ("table1", "table2"),
    "tables_settings": ("table3",),
    "tables_transfer": ("table4",),
    "tables_ablations": ("table5",),
    "tables_benchmarks": ("table6", "table7", "table8"),
    "figure_constraints": ("figure1",),
    "figures_model": ("figure2", "figure4"),
    "figure_scores": ("figure3",),
    "figures_training": ("figure5", "figure7"),
    "figures_ablations": ("figure6",),
    "figures_routing": ("figure8", "figure9"),
}


def artifacts(scale: Scale) -> list[Artifact]:
    show = partial(artifact, PAPER, ROOMS)

    multi = [run_id(roles.multi(scale, method, size)) for size in SIZES for method in MULTI_TASK]
    single = [run_id(roles.single(scale, variant, size)) for size in SIZES for variant in TRAINED]
    larger = [run_id(roles.single(scale, variant, SIZES[-1])) for variant in TRAINED]
    light, experts = (run_id(roles.multi(scale, method, SIZES[0])) for method in ("MVMoE/4E-L", "MVMoE/4E"))
    routing = [f"{experts}/routing"]
    few = [run_id(roles.few(method, variant)) for variant in FEW for method in MULTI_TASK]
    curves = [run_id(roles.multi(scale, "POMO-MTL", SIZES[0])), run_id(WITHOUT_OVRPTW)]
    ablated = _ablated(scale, "figure6")
    return [
        show("table1", "The six problems of the training", _tests(*single, *multi), bundles=LABELS),
        show("table2", "The ten problems that no model has seen", _tests(*multi), bundles=LABELS),
        show("table3", "Constraints of the 16 problems"),
        show("table4", "POMO on problems that it is not trained for", _tests(*larger)),
        show("table5", "Balance loss, normalisation, experts of a token", _tests(*_ablated(scale, "table5"))),
        show("table6", "Seconds of an instance of 1000 customers", _of_models(scale, "construction")),
        show("table7", "CVRPLIB's Set-X and Solomon's instances", _benchmarks(scale)),
        show("table8", "Larger instances of Set-X", _larger(scale)),
        show("figure1", "Routes under each constraint", routing),
        show("figure2", "MVMoE, drawn from a trained model", routing),
        show("figure3", "Nodes that choose experts, experts that choose nodes", routing),
        show("figure4", "A base gate and a hierarchical one", [*routing, f"{light}/routing"]),
        show("figure5", "Few-shot training on two unseen problems", runs=few),
        show("figure6", "Where experts are, how many, and how they are chosen", _tests(*ablated), ablated),
        show("figure7", "POMO-MTL trained with and without OVRPTW", runs=curves),
        show("figure8", "When MVMoE/4E-L runs its experts", [f"{light}/routing"]),
        show("figure9", "Load of the experts of MVMoE/4E", routing),
    ]


def _tests(*runs: str) -> list[str]:
    return [f"{run}/{group(run)}" for run in runs]


def _ablated(scale: Scale, name: str) -> list[str]:
    """Runs of an artifact, or of all panels of a figure."""
    return [
        run_id(run) for each in roles.ABLATIONS if each.startswith(name) for run in roles.shown(scale, each).values()
    ]


def _of_models(scale: Scale, name: str) -> list[str]:
    """An evaluation of the models for several problems, those of 100 customers."""
    return [f"{run_id(roles.multi(scale, method, SIZES[-1]))}/{name}" for method in MULTI_TASK]


def _benchmarks(scale: Scale) -> list[str]:
    cvrp, vrptw = (run_id(roles.single(scale, variant, SIZES[-1])) for variant in ("CVRP", "VRPTW"))
    sets = [f"{cvrp}/set_x", *_of_models(scale, "set_x")]
    return [*sets, f"{vrptw}/solomon", *_of_models(scale, "solomon")]


def _larger(scale: Scale) -> list[str]:
    cvrp = run_id(roles.single(scale, "CVRP", SIZES[-1]))
    lehd = [f"{run}/{group(run, 'set_x_large')}" for run in roles.lehd(scale).values()]
    return [f"{cvrp}/set_x_large", *_of_models(scale, "set_x_large"), *lehd]
