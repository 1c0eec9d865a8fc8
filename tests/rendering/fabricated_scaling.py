"""A fabricated work folder of paper `scaling`: power-law gaps with noise; deeper and wider models see farther."""

from dataclasses import dataclass

import numpy as np

from fabricated import Arrays, Fabric, Made, about, manifest_entry, parameters, records, role
from neuroute.pipeline.papers.scaling.paper import PAPER, ProbeEvaluation, ScalingScale, reference
from neuroute.pipeline.plan.config import Scale, load_scale
from neuroute.specs.objects import Dataset, Decoding, Labels, Run

STATES = 16  # width of the fabricated states
VERSIONS = {"concorde": "Concorde (kit 0.5.7)", "lkh": "elkai 2.0.1"}


def with_seeds(scale: Scale) -> Scale:
    """More than one training of some runs, and rates by shape, as larger scales have."""
    several = {"base_6x128": 3, "base_42x128": 2, "nogate_42x128": 2}
    laptop = load_scale("laptop")[ScalingScale]
    own = {"rates": laptop.rates, "parts": [2, 4]}
    seeds = {f"scaling/{run}": count for run, count in several.items()}
    return scale.with_block(scale[ScalingScale].model_copy(update=own)).model_copy(update={"seeds": seeds})


def realistic(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    """About the paper's Eq. 5, with its beams and sizes: small, positive, smooth; seeds differ by some percent."""
    (depth, width), nodes = role(run), dataset.n
    beams = decoding.beam ** -(0.9 + depth / 60)
    law = 30 * depth**-0.9 * width**-0.6 * beams * (nodes / 20) ** 0.7 + 1e-4
    searched = (1 + decoding.iterations) ** -0.8 * (1 if decoding.log_n else 1.3)
    return float(law * (1 + 0.05 * run.seed) * searched)


def noisy(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    """What a barely trained model may give: gaps around zero, many of them negative or exactly zero."""
    depth, width = role(run)
    values = (-0.4, 0.0, 0.0, 0.3, -0.1, 1.5, 0.0)
    return values[(depth + width // 64 + decoding.beam) % len(values)]


def hopeless(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    return 0.0


def write_probe(fabric: Fabric, evaluation: ProbeEvaluation, run: Run) -> Made:
    """With the numbers of decisions that belong to the data set."""
    dataset = evaluation.optimal.dataset
    n, count = dataset.n, dataset.count
    depth, width = role(run)
    rng = np.random.default_rng([depth, width])
    skill = 0.6 * np.log2(depth) + 0.3 * np.log2(width)
    total = count * (n - 3)
    arrays: Arrays = {}
    for name, reach in (("available", 0.25), ("all", 0.55)):
        share = reach ** np.arange(n - 1)
        decisions = np.random.default_rng(n).multinomial(total, share / share.sum())
        rate = 1 / (1 + np.exp(-skill + 0.25 * np.arange(n - 1)))
        arrays[f"decisions_{name}"] = decisions
        arrays[f"hits_{name}"] = rng.binomial(decisions, rate)
    available = n - 1 - evaluation.decision
    states = rng.normal(size=(available, STATES)) * np.linspace(2, 0.2, STATES) + 2.0
    states[0] -= skill
    hits = arrays["hits_available"].sum()
    arrays |= {
        "states": states.astype(np.float32),
        "coords": rng.random((available, 2)),
        "separation": rng.lognormal(0.2 * skill, 0.2, count),
        "instance": np.array(evaluation.instance),
        "decision": np.array(evaluation.decision),
    }
    where = about(dataset, evaluation.optimal.solver)
    measured = {"success_pct": 100 * hits / total, "decisions": total, "parameters": parameters(run)}
    rows = records(evaluation.name, run, where, Decoding(), measured, fabric.scale)
    return rows, arrays


@dataclass(frozen=True)
class Scaling(Fabric):
    """The first test set's Concorde tours came from a cache without times."""

    def label_entry(self, labels: Labels) -> dict[str, object]:
        entry = manifest_entry(labels, float(self.solved(labels).mean()))
        entry["version"] = VERSIONS.get(labels.solver, entry["version"])
        if labels == reference(self.scale, 100):
            entry["seconds"] = None
        return entry


FABRIC = Scaling(
    PAPER,
    with_seeds(load_scale("smoke")),
    realistic,
    solvers={"lkh": 0.01},
    writers={ProbeEvaluation: write_probe},
    logged=("scaling",),
)
SCALE, RUNS, ARTIFACTS, study_of = FABRIC.scale, FABRIC.runs, FABRIC.artifacts, FABRIC.study


def shown_as(size: int, count: int | None = None) -> str:
    """How tables name the uniform test set that stands for the paper's TSP`size`, or its first instances."""
    s = SCALE[ScalingScale]
    return f"TSP{s.sizes[size]}, {count or s.test_counts[size]:,} instances"
