"""The scale file of the grid on TSP20 can be run."""

from pathlib import Path

from neuroute.plan.build import build_plan
from neuroute.plan.config import load_config

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "measured" / "tsp20"
DEPTHS, WIDTHS, SEEDS = (1, 2, 4, 8), (16, 32, 64), 3


def test_its_scale_file_plans_what_was_trained() -> None:
    plan = build_plan(load_config(ROOT / "config.yaml", scale=str(KEPT / "scale.yaml"), papers=["scaling"]))
    grid = {name: run for name, run in plan.runs.items() if name.startswith("scaling/base_")}
    assert len(grid) == len(DEPTHS) * len(WIDTHS) * SEEDS
    shapes = {(run.network.arguments["depth"], run.network.arguments["width"]) for run in grid.values()}
    assert shapes == {(depth, width) for depth in DEPTHS for width in WIDTHS}
