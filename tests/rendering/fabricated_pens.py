"""A fabricated work folder of paper `pens`: gaps, sweeps, attention and logs.

The laws are the paper's in outline: ALiBi keeps its gap at large sizes, coordinates do not, rescaling helps at large
sizes only.
"""

import numpy as np

from fabricated import Fabric, Made, about, modules, parameters, records
from neuroute.pipeline.papers.pens.paper import PAPER, AttentionEvaluation, PensScale
from neuroute.pipeline.plan.config import Scale, load_scale
from neuroute.specs.objects import Dataset, Decoding, RescalingEvaluation, Run


def _with_all_of_tsplib(scale: Scale) -> Scale:
    """Smoke, measured on all instances of TSPLIB that the paper has and timed on some of each test set."""
    timed = {
        size: max(1, count // 4)
        for size, count in scale[PensScale].test_counts.items()
        if size in scale[PensScale].factors
    }
    update = {"tsplib_max_nodes": 10_001, "timed_counts": timed}
    return scale.with_block(scale[PensScale].model_copy(update=update)).model_copy(update={"instances": {}})


GROWTH = {  # of the gap with the nodes
    "coordinates": 0.95,
    "alibi": 0.55,
    "rope": 0.75,
    "both": 0.5,
}


def realistic(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    """Small, positive, growing with the nodes; what is rescaled or entropy-scaled grows less."""
    growth = GROWTH.get(run.role.get("positions", ""), 0.85)
    start = {"alibi": 1.4, "rope": 1.1, "both": 0.9}.get(run.role.get("positions", ""), 1.6)
    start *= 1.1 if run.role.get("initial") == "zero" and dataset.n > run.n else 1
    helped = 0.15 if decoding.rescale != 1 or decoding.esf else 0.0
    return float(start * (dataset.n / 20) ** (growth - helped))


def best_factor(run: Run, nodes: int) -> float:
    """Grows with the nodes beyond those of training, for ALiBi most."""
    slope = {"alibi": 0.25, "rope": 0.08, "both": 0.18}.get(run.role.get("positions", ""), 0.03)
    return round(float(1 + slope * np.log(max(nodes / run.n, 1))), 3)


def also(run: Run, dataset: Dataset, decoding: Decoding) -> dict[str, float]:
    """What repeats and scaling factors add to the records."""
    values = {}
    if decoding.repeats > 1:
        random = run.role.get("initial", "gaussian") == "gaussian" and run.role.get("positions") != "coordinates"
        values["gap_spread_pct"] = 0.01 * dataset.n**0.5 if random else 0.0
    if decoding.rescale != 1:
        values["rescale_factor"] = best_factor(run, dataset.n)
    return values


def write_rescaling(fabric: Fabric, evaluation: RescalingEvaluation, run: Run) -> Made:
    """Parabolas with a little noise; where the best factor lies outside the sweep there is no interior minimum."""
    rows, arrays, found = [], {}, []
    for sweep in sorted(evaluation.sweeps, key=lambda s: s.dataset.n):
        d, factors = sweep.dataset, np.array(sweep.factors)
        wanted = best_factor(run, d.n)
        interior = factors.min() < wanted < factors.max()
        base, steep = 0.7124 * d.n**0.5 * (1 + realistic(run, d, Decoding()) / 100), 0.02 * d.n**0.5
        noise = np.random.default_rng([d.n, len(run.name)]).normal(0, 2e-4 * base, len(factors))
        lengths = base + steep * ((factors - wanted) ** 2 - (1 - wanted) ** 2) + noise
        best = wanted if interior else float(factors[np.argmin(lengths)])
        found.append((d.n, best, interior))
        arrays |= {
            f"{d.id}|factors": factors,
            f"{d.id}|lengths": lengths,
            f"{d.id}|parabola": np.array([steep, -2 * steep * wanted, base + steep * (2 * wanted - 1)]),
            f"{d.id}|fitted": np.array([factors.min(), factors.max()]),
        }
        for factor, length in zip(factors, lengths, strict=True):
            decoding = Decoding(rescale=float(factor))
            rows += records(evaluation.name, run, about(d), decoding, {"length": length, "time_s": 0.1}, fabric.scale)
        rows += records(
            evaluation.name, run, about(d), Decoding(rescale="best"), {"rescale_factor": best}, fabric.scale
        )
    sizes, best_factors, interiors = zip(*found, strict=True)
    arrays |= {"sizes": np.array(sizes), "best": np.array(best_factors, float), "interior": np.array(interiors, bool)}
    return rows, arrays


def write_attention(fabric: Fabric, evaluation: AttentionEvaluation, run: Run) -> Made:
    """Logits that fall with the distance; for RoPE with waves in them.  A walk around six nodes."""
    n = evaluation.dataset.n
    rng = np.random.default_rng(n)
    coords = rng.random((n, 2)).astype(np.float32)
    factors = np.array([best_factor(run, n) if f == "best" else f for f in evaluation.factors], float)
    apart = np.linalg.norm(coords - coords[0], axis=1)
    waves = np.cos(14 * factors[:, None] * apart) if run.role["positions"] == "rope" else 0
    logits = (waves - 5 * factors[:, None] * apart).astype(np.float32)
    logits[:, 1] += 2
    small, decisions = rng.random((6, 2)), np.zeros((5, 6), np.float32)
    tour = np.argsort(np.arctan2(*(small - small.mean(axis=0)).T))
    tour = np.roll(tour, -int(np.flatnonzero(tour == 0)[0]))
    for k in range(5):
        chances = 0.3 ** np.arange(5 - k)
        decisions[k, tour[k + 1 :]] = chances / chances.sum()
    arrays = {
        "coords": coords,
        "origin": np.array(0),
        "destination": np.array(1),
        "factors": factors,
        "logits": logits,
        "small_coords": small,
        "small_tour": tour,
        "small_probabilities": decisions,
        "modules": modules(run, "layers"),
    }
    rows = records(
        evaluation.name, run, about(evaluation.dataset), Decoding(), {"parameters": parameters(run)}, fabric.scale
    )
    return rows, arrays


FABRIC = Fabric(
    PAPER,
    _with_all_of_tsplib(load_scale("smoke")),
    realistic,
    also,
    writers={RescalingEvaluation: write_rescaling, AttentionEvaluation: write_attention},
    logged=("pens",),
)
SCALE, study = FABRIC.scale, FABRIC.study
