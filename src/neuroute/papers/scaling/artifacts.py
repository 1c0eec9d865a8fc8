"""The tables and figures of paper `scaling`, and the measurements that each of them reads."""

from functools import partial

from neuroute.papers.scaling.roles import (
    BASELINES,
    COMPARED,
    DEEP,
    FEW,
    GRID,
    LATENCY,
    LOG_N,
    PAPER,
    PROBED,
    SHIFTED,
    SIX,
    run_id,
    seeds,
)
from neuroute.plan.config import Scale
from neuroute.plan.declared import artifact
from neuroute.plan.objects import Artifact

ROOMS = {
    "tables_settings": ("table1", "table9", "table10"),
    "tables_results": ("table2", "table4", "table12", "table17", "table18"),
    "tables_comparison": ("table5", "table6", "table20"),
    "tables_ablations": ("table3", "table7", "table8", "table11"),
    "tables_generalisation": ("table13", "table14", "table15", "table16", "table19"),
    "figures_parameters": ("figure1", "figure2", "figure5"),
    "figures_efficiency": ("figure3", "figure4", "figure6"),
    "figures_training": ("figure7", "figure8", "figure9"),
    "figures_probes": ("figure10", "figure11"),
    "figure_success": ("figure12",),
}
BUDGETED = ("6x128", "6x512", "24x128", "42x128")  # Table 4


def artifacts(scale: Scale) -> list[Artifact]:
    show = partial(artifact, PAPER, ROOMS)

    def of(names: tuple[str, ...] | list[str], *groups: str) -> list[str]:
        """Evaluations of these runs, with all training seeds for the groups that have them."""
        return [
            f"{PAPER}/{each}/{group}"
            for name in names
            for group in groups
            for each in (seeds(scale, name) if group in ("greedy", "larger") else [name])
        ]

    def trained(names: list[str]) -> list[str]:
        return [f"{PAPER}/{each}" for name in names for each in seeds(scale, name)]

    grid = [f"base_{shape}" for shape in GRID]
    six = [f"base_{shape}" for shape in SIX]
    compared = [f"base_{shape}" for shape in COMPARED]
    deep = [f"deep_{shape}" for shape in DEEP]
    probes = of([f"base_{shape}" for shape in PROBED], "probes")
    tables = [
        show("table1", "Configurations of the twelve models"),
        show(
            "table2",
            "Deep and narrow against wide at equal parameters",
            evaluations=of(["base_6x128", *deep], "greedy", "larger"),
        ),
        show(
            "table3",
            "Few samples: 0.1M samples, 60 epochs",
            evaluations=of([f"small01M_{shape}" for shape in FEW], "greedy"),
        ),
        show(
            "table4",
            "Optimality gap under limited and sufficient inference budgets",
            evaluations=of([f"base_{shape}" for shape in BUDGETED], "beam"),
        ),
        show(
            "table5",
            "Comparison with LEHD, BQ and SIGD",
            evaluations=[
                *of(compared, "greedy", "larger", "beam", "beam_larger"),
                *of(BASELINES, "greedy", "beam"),
                *of(["lehd_6x128"], "larger"),
            ],
        ),
        show(
            "table6",
            "TSPLIB instances below 5,000 nodes",
            evaluations=of([*compared, *BASELINES], "tsplib"),
        ),
        show(
            "table7",
            "With and without gated attention",
            evaluations=of(["base_42x128", "nogate_42x128"], "greedy", "larger"),
        ),
        show(
            "table8",
            "With and without log(n)",
            evaluations=of([f"base_{shape}" for shape in LOG_N], "greedy", "larger", "without_log"),
        ),
        show("table9", "Training hyper-parameters"),
        show("table10", "Training hardware", runs=[run_id(shape) for shape in GRID]),
        show(
            "table11",
            "One and ten million training samples",
            evaluations=of(["data1M_12x128", "data10M_12x128"], "greedy", "larger"),
        ),
        show(
            "table12",
            "In-domain greedy results of the twelve models",
            evaluations=of(grid, "greedy"),
            bundles=[f"{PAPER}/in_domain"],
        ),
        show(
            "table13",
            "Uniform TSP200, TSP500 and TSP1000",
            evaluations=of(grid, "larger"),
            bundles=[f"{PAPER}/larger"],
        ),
        *(
            show(
                f"table{number}",
                f"{distribution.capitalize()}: TSP100, TSP200, TSP500 and TSP1000",
                evaluations=of(grid, "shifted"),
                bundles=[f"{PAPER}/shifted"],
            )
            for number, distribution in enumerate(SHIFTED, 14)
        ),
        show("table17", "FLOPs and latency by batch size", evaluations=of([f"base_{x}" for x in LATENCY], "greedy")),
        show("table18", "Beam search with widths 1 to 64", evaluations=of(grid, "greedy", "beam")),
        show("table19", "Random re-construct with different budgets", evaluations=of(compared, "rrc")),
        show(
            "table20",
            "LEHD before and after modification",
            evaluations=of(["lehd_6x128", "lehd_24x64"], "greedy", "larger"),
        ),
    ]
    figures = [
        show("figure1", "Decoder parameters against optimality gap", evaluations=of(grid, "greedy")),
        show(
            "figure2",
            "Power laws of the gap in parameters: all models, by width, by depth",
            evaluations=of(grid, "greedy"),
        ),
        show("figure3", "Data efficiency: gap against training samples", runs=[f"{PAPER}/{name}" for name in six]),
        show("figure4", "Compute efficiency: gap against inference FLOPs", evaluations=of(six, "greedy", "beam")),
        show("figure5", "Gap by parameters and depth-to-width ratio", evaluations=of(grid, "greedy")),
        show("figure6", "Gap against inference time", evaluations=of(grid, "greedy", "beam")),
        show("figure7", "Convergence with and without gated attention", runs=trained(["base_42x128", "nogate_42x128"])),
        show("figure8", "Convergence with and without ReZero", runs=trained(["base_42x128", "norezero_42x128"])),
        show(
            "figure9",
            "Convergence with one and ten million training samples",
            runs=trained(["data1M_12x128", "data10M_12x128"]),
        ),
        show("figure10", "Principal components of the available nodes' last-layer states", evaluations=probes),
        show("figure11", "Cosine similarity of the available nodes' last-layer states", evaluations=probes),
        show("figure12", "Success rate by the optimal node's rank among the nearest neighbours", evaluations=probes),
    ]
    return tables + figures
