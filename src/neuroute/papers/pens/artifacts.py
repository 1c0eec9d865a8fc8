"""The tables and figures of paper `pens`, and the measurements that each of them reads."""

from functools import partial

from neuroute.papers.pens import roles
from neuroute.papers.pens.roles import BQ, LEHD, MAPPED, PAPER, RESCALED, SMALL, run_id
from neuroute.plan.config import Scale
from neuroute.plan.declared import artifact
from neuroute.plan.objects import Artifact

ROOMS = {
    "tables_rescaling": ("table1",),
    "tables_comparison": ("table2", "table3", "table4"),
    "tables_ablations": ("table_figure4", "table_figure5"),
    "figures_results": ("figure1", "figure4"),
    "figures_model": ("figure2",),
    "figure_attention": ("figure6",),
    "figures_rescaling": ("figure3",),
    "figures_training": ("figure5",),
}


def artifacts(scale: Scale) -> list[Artifact]:
    show = partial(artifact, PAPER, ROOMS)

    def of(names: tuple[str, ...], *groups: str) -> list[str]:
        return [f"{run_id(name)}/{group}" for name in names for group in groups]

    compared = [
        *(f"{run}/{group}_{PAPER}" for run in (BQ, LEHD) for group in ("uniform", "tsplib")),
        *of(RESCALED, "uniform", "rescaling", "tsplib"),
    ]
    unscaled = of(tuple(roles.POSITIONS), "uniform")
    small = of(tuple(SMALL), "uniform")
    return [
        show(
            "table1", "The best scaling factors and what they change", of(("pens_a", "pens_r"), "uniform", "rescaling")
        ),
        show("table2", "Comparison with neural solvers on uniform TSPs and TSPLIB", compared),
        show("table3", "All results, with and without rescaling", compared),
        show("table4", "Overview of the solvers", [*unscaled, *(f"{run}/uniform_{PAPER}" for run in (BQ, LEHD))]),
        show("table_figure4", "Figure 4's table: ALiBi, RoPE and coordinates", unscaled),
        show("table_figure5", "Figure 5a: zero and Gaussian initial embeddings", small),
        show("figure1", "The gap at the largest size", [*compared, *of(("coordns",), "uniform")]),
        show("figure2", "Path-TSP and the model, drawn from the live network", of(("pens_a",), "attention")),
        show("figure3", "Tour length against the scaling factor of the coordinates", of(RESCALED, "rescaling")),
        show("figure4", "ALiBi, RoPE and coordinates across sizes", unscaled),
        show(
            "figure5",
            "Zero and Gaussian initial embeddings",
            small,
            runs=[run_id(name) for name in SMALL],
        ),
        show("figure6", "Where the origin looks, by scaling factor", of(MAPPED, "attention")),
    ]
