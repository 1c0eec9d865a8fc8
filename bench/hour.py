"""How often scale `hour` shows depth's exponent above width's: draws of seeds from trainings of its length.

    python bench/hour.py [--draws 2000] [--out docs/measured/checks/hour_draws.csv]

Six shapes of the grid were trained three times each on 26,688 samples at `laptop` (Figure 3), where `hour` has 28,800.
Their mean ln gaps, and the spread of their seeds, are taken for the truth; the other six shapes lie where laptop's
whole trainings put them, shifted by the cost of the shorter training at their depth and at their width.  Each draw is
three trainings of each of the twelve, judged by the verdict's own regression.
"""

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean, variance

import numpy as np

from neuroute.analysis.contrasts import law
from neuroute.core.files import write_text
from neuroute.core.lazy import pd
from neuroute.core.text import csv_text
from neuroute.pipeline.papers.scaling.claims import EXPONENTS, ModelGrid
from neuroute.pipeline.papers.scaling.paper import GRID, Shape
from neuroute.pipeline.rendering.comparisons import spread_of
from neuroute.pipeline.rendering.kept import KeptTables

MEASURED = Path("docs/measured")
SHAPES = [Shape(depth, 128) for depth in (6, 12, 24, 42)] + [Shape(6, 256), Shape(6, 512)]
SEEDS = ("", "-s1", "-s2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    short = {shape: [final_log("part4", shape, seed) for seed in SEEDS] for shape in SHAPES}
    whole = {shape: fmean(final_log("base", shape, seed) for seed in SEEDS) for shape in SHAPES}
    spread = math.sqrt(fmean(variance(logs) for logs in short.values()))
    cost = {shape: fmean(logs) - whole[shape] for shape, logs in short.items()}
    grid = ModelGrid.of(KeptTables(MEASURED / "laptop", "scaling", is_headline=True))
    gaps = [gap for shape in GRID if (gap := grid.gaps[shape].behind)]
    corner = cost[Shape(6, 128)]
    truth = [
        fmean(map(math.log, gap.values)) + cost[Shape(shape.depth, 128)] + cost[Shape(6, shape.width)] - corner
        for shape, gap in zip(GRID, gaps, strict=True)
    ]
    rng, design = np.random.default_rng(0), grid.directions("measured")
    apart, above = [], 0
    for _ in range(args.draws):
        drawn = np.exp(np.array(truth)[:, None] + spread * rng.normal(size=(len(GRID), len(SEEDS))))
        here = [replace(gap, values=tuple(values)) for gap, values in zip(gaps, drawn.tolist(), strict=True)]
        estimate = law(design, here, EXPONENTS["apart"], spread_of)
        interval = estimate.interval()
        assert interval is not None
        apart.append(estimate.value)
        above += interval[0] > 0
    row = {
        "draws": args.draws, "spread_of_seeds": spread, "apart_mean": fmean(apart), "apart_sd": float(np.std(apart)),
        "above_zero_pct": 100 * above / args.draws,
    }  # fmt: skip
    text = csv_text(pd.DataFrame([row]))
    print(text, end="")
    if args.out:
        write_text(args.out, text)


def final_log(kind: str, shape: Shape, seed: str) -> float:
    """Ln of the validation gap at a training's end."""
    run = MEASURED / "runs" / "laptop" / "scaling" / f"{kind}_{shape.depth}x{shape.width}{seed}"
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return math.log([line["gap_pct"] for line in lines if line["kind"] == "validation"][-1])


if __name__ == "__main__":
    main()
