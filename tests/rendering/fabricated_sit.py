"""A fabricated work folder of paper `sit`, at the micro scale.

The laws are the paper's in outline: rounds help after the warm-up, re-construction helps, longer instances are harder,
attention of a model on itself takes the square of the nodes.
"""

import numpy as np

from fabricated import MICRO, Fabric, Made, about, records
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.pipeline.papers.sit.paper import PAPER
from neuroute.specs.objects import Dataset, Decoding, EfficiencyEvaluation, Run

SOLVERS = {"insertion": 12.0, "insertion-published": 55.0, "nearest": 25.0, "lkh": 0.01}  # gaps in %


def realistic(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    """Small, positive, growing with the nodes; half of it after the rounds, less with every re-construction."""
    start = 8.0 if run.name.startswith("warm") else 5.0 if run.name == sit.NO_SIT else 2.0
    start = SOLVERS.get(decoding.name, start * (dataset.n / 10) ** 0.5)
    start *= {"nearest": 1.3, "greedy": 1.1}.get(decoding.start, 1.0) if decoding.iterations else 1.0
    return float(start * (1 + decoding.iterations) ** -0.7 * (1 + 0.1 / (decoding.longest or 5)))


def efficiency(network: str, nodes: int) -> dict[str, float]:
    """Linear memory and quadratic time of cross-attention; one power more for the others, too much from 60 nodes on."""
    cross, held = network in ("SIT", "BQ+cross-attention"), network.endswith("-math")
    if held and not cross and nodes >= 60:
        return {"out_of_memory": 1.0}
    power = 1.0 if cross or not held else 2.0
    return {"time_s": 1e-3 * nodes ** (2.0 if cross else 3.0), "peak_memory_mb": 0.1 * nodes**power}


def write_efficiency(fabric: Fabric, evaluation: EfficiencyEvaluation, run: Run) -> Made:
    rows, arrays = [], {}
    for dataset in evaluation.datasets:
        for network in evaluation.networks:
            for name in (network, f"{network}-math"):
                measured = efficiency(name, dataset.n)
                made = records(evaluation.name, run, about(dataset), Decoding(), measured, fabric.scale)
                rows += [row | {"decoding": f"efficiency-{name}"} for row in made]
                if "time_s" in measured:
                    tokens = np.linspace(dataset.n, 3, evaluation.decisions)
                    mean, share = measured["time_s"] / dataset.n, tokens / dataset.n
                    points = [tokens, mean * share, measured["peak_memory_mb"] * share]
                    arrays[f"{name}|{dataset.id}"] = np.column_stack(points)
    return rows, arrays


FABRIC = Fabric(PAPER, MICRO, realistic, solvers=SOLVERS, writers={EfficiencyEvaluation: write_efficiency})
SCALE, study = MICRO, FABRIC.study
