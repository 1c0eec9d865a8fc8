"""Fabricated probes: deeper and wider models separate the optimal node better and see farther."""

from pathlib import Path

import numpy as np

from fabricated import about, parameters, records, role, write_records
from neuroute.papers.scaling.evaluations import ProbeEvaluation
from neuroute.plan.objects import Decoding, Run

STATES = 16  # width of the fabricated states


def write_probe(work: Path, evaluation: ProbeEvaluation, run: Run) -> None:
    """In the format of evaluation.probes.measure, with the numbers of decisions that belong to the data set."""
    dataset = evaluation.optimal.dataset
    n, count = dataset.n, dataset.count
    depth, width = role(run)
    rng = np.random.default_rng([depth, width])
    skill = 0.6 * np.log2(depth) + 0.3 * np.log2(width)
    total = count * (n - 3)
    arrays: dict[str, np.ndarray] = {}
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
    write_records(work, evaluation, records(evaluation.group, run, where, Decoding(), measured), arrays)
