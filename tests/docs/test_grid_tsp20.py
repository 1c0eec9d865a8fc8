"""The exponents of the grid on TSP20 follow from its kept gaps; its scale file can be run."""

import csv
from pathlib import Path
from statistics import mean

import pytest

from neuroute.analysis.power_laws import fit
from neuroute.plan.build import build_plan
from neuroute.plan.config import load_config

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "measured" / "tsp20"
DEPTHS, WIDTHS, SIZES, SEEDS = (1, 2, 4, 8), (16, 32, 64), ("20", "40", "100"), 3


@pytest.mark.parametrize(
    ("n", "deeper", "wider", "apart"), [("20", 0.29, 0.14, 0.15), ("40", 0.20, 0.13, 0.07), ("100", 0.07, 0.14, -0.07)]
)
def test_its_exponents_follow_from_the_kept_gaps(n: str, deeper: float, wider: float, apart: float) -> None:
    with (KEPT / "grid.csv").open() as file:
        rows = list(csv.DictReader(file))
    with (KEPT / "figure1.csv").open() as file:
        shown = [row for row in csv.DictReader(file) if row["side"] == "measured"]
    sizes = [float(row["parameters_millions"]) for row in shown]  # by depth, then by width
    shapes = [(depth, width) for depth in DEPTHS for width in WIDTHS]
    size = dict(zip(shapes, sizes, strict=True))
    gap = {shape: mean(float(r["gap_pct"]) for r in rows if at(r) == (*shape, n)) for shape in shapes}

    def exponents(lines: list[list[tuple[int, int]]]) -> float:
        return mean(fit([size[s] for s in on], [gap[s] for s in on]).alpha for on in lines)

    by_depth = exponents([[(depth, width) for depth in DEPTHS] for width in WIDTHS])
    by_width = exponents([[(depth, width) for width in WIDTHS] for depth in DEPTHS])
    assert (by_depth, by_width, by_depth - by_width) == pytest.approx((deeper, wider, apart), abs=0.005)


def at(row: dict[str, str]) -> tuple[int, int, str]:
    return int(row["depth"]), int(row["width"]), row["n"]


def test_its_scale_file_plans_what_was_trained() -> None:
    plan = build_plan(load_config(ROOT / "config.yaml", scale=str(KEPT / "scale.yaml"), papers=["scaling"]))
    grid = {name: run for name, run in plan.runs.items() if name.startswith("scaling/base_")}
    assert len(grid) == len(DEPTHS) * len(WIDTHS) * SEEDS
    shapes = {(run.network.arguments["depth"], run.network.arguments["width"]) for run in grid.values()}
    assert shapes == {(depth, width) for depth in DEPTHS for width in WIDTHS}
