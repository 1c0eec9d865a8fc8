"""A fabricated work folder of paper `pens`: gaps, sweeps, attention and logs in the formats that the stages write.

`fabricate_pens(work)` writes it, `study(name, work)` looks at it as one artifact does.  The laws are the paper's in
outline: ALiBi keeps its gap at large sizes, coordinates do not, rescaling helps at large sizes only.
"""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fabricated import about, about_known, gaps, records, write_records
from fabricated import parameters as parameters_of_baseline
from neuroute.accounting.counts import Pens
from neuroute.datasets.benchmarks import studied
from neuroute.papers.pens.evaluations import AttentionEvaluation
from neuroute.papers.pens.paper import PAPER
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.config import Config, Scale, load_scale, parse_config
from neuroute.plan.objects import (
    Artifact,
    BenchmarkEvaluation,
    Decoding,
    Evaluation,
    RescalingEvaluation,
    Run,
    RunEvaluation,
)
from neuroute.rendering.study import Study


def _with_all_of_tsplib(scale: Scale) -> Scale:
    """Smoke, measured on all instances of TSPLIB that the paper has and timed on some of each test set."""
    timed = {
        size: max(1, count // 4)
        for size, count in scale[PensScale].test_counts.items()
        if size in scale[PensScale].factors
    }
    update = {"tsplib_max_nodes": 10_001, "timed_counts": timed}
    return scale.with_block(scale[PensScale].model_copy(update=update))


SCALE = _with_all_of_tsplib(load_scale("smoke"))
CONFIG: Config = parse_config({})
RUNS: list[Run] = PAPER.runs(CONFIG, SCALE)
ARTIFACTS: dict[str, Artifact] = {a.name: a for a in PAPER.artifacts(SCALE)}
EVALUATIONS: list[RunEvaluation] = PAPER.evaluations(SCALE)
GapLaw = Callable[[Run, int, Decoding], float]  # (run, nodes, decoding) -> gap in %

GROWTH = {  # of the gap with the nodes
    "coordinates": 0.95,
    "alibi": 0.55,
    "rope": 0.75,
    "both": 0.5,
}


def realistic(run: Run, nodes: int, decoding: Decoding) -> float:
    """Small, positive, growing with the nodes; what is rescaled or entropy-scaled grows less."""
    growth = GROWTH.get(run.role.get("positions", ""), 0.85)
    start = {"alibi": 1.4, "rope": 1.1, "both": 0.9}.get(run.role.get("positions", ""), 1.6)
    start *= 1.1 if run.role.get("initial") == "zero" and nodes > run.n else 1
    helped = 0.15 if decoding.rescale != 1 or decoding.esf else 0.0
    return float(start * (nodes / 20) ** (growth - helped))


def hopeless(run: Run, nodes: int, decoding: Decoding) -> float:
    """What a model on tiny test sets may give: gaps of zero and below."""
    return -0.2 if "pens_a" in run.id else 0.0


def parameters(run: Run) -> int:
    a = run.network.arguments
    if run.paper != PAPER.key:
        return parameters_of_baseline(run)
    return Pens(**a).parameters


def best_factor(run: Run, nodes: int) -> float:
    """Grows with the nodes beyond those of training, for ALiBi most."""
    slope = {"alibi": 0.25, "rope": 0.08, "both": 0.18}.get(run.role.get("positions", ""), 0.03)
    return round(float(1 + slope * np.log(max(nodes / run.n, 1))), 3)


def write_tests(work: Path, evaluation: Evaluation, run: Run, gap: GapLaw) -> None:
    rows, arrays = [], {}
    for test in evaluation.tests:
        dataset, decoding = test.labels.dataset, test.decoding
        n, count = dataset.n, dataset.count
        references = np.random.default_rng(n).normal(0.7124 * n**0.5, 0.2, count)
        expected = gap(run, n, decoding)
        spread = np.random.default_rng([n, RUNS.index(run), *map(ord, decoding.id)]).normal(0, 0.002, count)
        lengths = references * (1 + expected / 100 + spread - spread.mean())
        arrays[f"{dataset.id}|reference"] = references
        arrays[f"{dataset.id}|{decoding.id}"] = lengths
        measured = gaps(lengths, references) | {
            "time_s": 1e-4 * count * n * (1 + n / 500) * (1 if decoding.batch_size else 0.2),
            "peak_memory_mb": 300.0,
            "parameters": parameters(run),
            "gflops_paper": n / 1e3,
            "gflops_shrinking": n / 2e3,
        }
        measured |= also(run, n, decoding)
        rows += records(evaluation.group, run, about(dataset, test.labels.solver), decoding, measured)
    write_records(work, evaluation, rows, arrays)


def also(run: Run, nodes: int, decoding: Decoding) -> dict[str, float]:
    """What repeats and scaling factors add to the records."""
    values = {}
    if decoding.repeats > 1:
        random = run.role.get("initial", "gaussian") == "gaussian" and run.role.get("positions") != "coordinates"
        values["gap_spread_pct"] = 0.01 * nodes**0.5 if random else 0.0
    if decoding.rescale != 1:
        values["rescale_factor"] = best_factor(run, nodes)
    return values


def write_benchmark(work: Path, evaluation: BenchmarkEvaluation, run: Run, gap: GapLaw) -> None:
    known = studied(evaluation.max_nodes)
    rows, lengths = [], {decoding.id: [] for decoding in evaluation.decodings}
    for k, decoding in itertools.product(known, evaluation.decodings):
        expected = gap(run, k.nodes, decoding) + (k.optimum % 7) / 10
        lengths[decoding.id].append(k.optimum * (1 + expected / 100))
        measured = {
            "gap_pct": expected,
            "gap_rounded_pct": expected - 0.05,
            "length": lengths[decoding.id][-1],
            "time_s": k.nodes / 1e3,
            "peak_memory_mb": 300.0,
        }
        measured |= also(run, k.nodes, decoding)
        rows += records(evaluation.group, run, about_known(evaluation.benchmark, k), decoding, measured)
    arrays = {"names": np.array([k.name for k in known]), "optima": np.array([k.optimum for k in known])}
    write_records(work, evaluation, rows, arrays | {key: np.array(found) for key, found in lengths.items()})


def write_rescaling(work: Path, evaluation: RescalingEvaluation, run: Run) -> None:
    """Parabolas with a little noise; where the best factor lies outside the sweep there is no interior minimum."""
    rows, arrays, found = [], {}, []
    for sweep in sorted(evaluation.sweeps, key=lambda s: s.dataset.n):
        d, factors = sweep.dataset, np.array(sweep.factors)
        wanted = best_factor(run, d.n)
        interior = factors.min() < wanted < factors.max()
        base, steep = 0.7124 * d.n**0.5 * (1 + realistic(run, d.n, Decoding()) / 100), 0.02 * d.n**0.5
        noise = np.random.default_rng([d.n, RUNS.index(run)]).normal(0, 2e-4 * base, len(factors))
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
            rows += records(evaluation.group, run, about(d), decoding, {"length": length, "time_s": 0.1})
        rows += records(evaluation.group, run, about(d), Decoding(rescale="best"), {"rescale_factor": best})
    sizes, best_factors, interiors = zip(*found, strict=True)
    arrays |= {"sizes": np.array(sizes), "best": np.array(best_factors, float), "interior": np.array(interiors, bool)}
    write_records(work, evaluation, rows, arrays)


def write_attention(work: Path, evaluation: AttentionEvaluation, run: Run) -> None:
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
        "modules": np.array(json.dumps(modules(run))),
    }
    rows = records(evaluation.group, run, about(evaluation.dataset), Decoding(), {"parameters": parameters(run)})
    write_records(work, evaluation, rows, arrays)


def modules(run: Run) -> list[dict[str, object]]:
    """What attention_maps tells of the live network: top level and first layer, in order, then the parameters."""
    a = run.network.arguments
    w, f = a["width"], a["feed_forward"]
    embed = [{"name": "embed", "kind": "Linear", "shapes": {"weight": [w, 2]}}]
    return [
        *(embed if a["positions"] == "coordinates" else []),
        {"name": "layers", "kind": "ModuleList", "shapes": {}},
        {"name": "layers.0", "kind": "PreNormLayer", "shapes": {}},
        {"name": "layers.0.attention_norm", "kind": "RMSNorm", "shapes": {"weight": [w]}},
        {"name": "layers.0.qkv", "kind": "Linear", "shapes": {"weight": [3 * w, w]}},
        {"name": "layers.0.feed_forward_norm", "kind": "RMSNorm", "shapes": {"weight": [w]}},
        {"name": "layers.0.up", "kind": "Linear", "shapes": {"weight": [f, w]}},
        {"name": "layers.0.down", "kind": "Linear", "shapes": {"weight": [w, f]}},
        {"name": "norm", "kind": "RMSNorm", "shapes": {"weight": [w]}},
        {"name": "query", "kind": "Linear", "shapes": {"weight": [w, w]}},
        {"name": "key", "kind": "Linear", "shapes": {"weight": [w, w]}},
        {"parameters": parameters(run)},
    ]


def write_log(work: Path, run: Run, gap: GapLaw) -> None:
    """A log and a summary as training leaves them, with the gaps on all validation sets."""
    folder = work / "runs" / run.id
    folder.mkdir(parents=True, exist_ok=True)
    t = run.training
    total, lines = t.samples * getattr(t, "epochs", 1), []
    for i in range(t.validations + 1):
        samples, batch = total * i // t.validations, max(1, t.batches * i // t.validations)
        line = {"batch": batch, "updates": batch, "samples": max(32, samples), "seconds": 0.1 + i}
        lines.append(line | {"kind": "train", "loss": 0.2 + 1.2 / batch**0.3, "lr": 1e-3})
        if i:
            sets = [run.validation.dataset, *(also.dataset for also in run.also_validation)]
            gaps = {d.id: gap(run, d.n, Decoding()) * (samples / total) ** -0.6 for d in sets}
            line = {"kind": "validation", "batch": batch, "samples": samples, "seconds": i}
            lines.append(line | {"gap_pct": gaps[run.validation.dataset.id], "gaps_pct": gaps})
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = {"run": run.id, "device": "cpu", "device_name": "Test CPU", "threads": 1, "torch": "2.11"}
    summary |= {"batches": t.batches, "parameters": parameters(run), "wall_time_s": 12.5, "updates": t.batches}
    summary |= {"samples": total, "train_flops": 2.5e12, "world_size": 1, "spec": {}}
    (folder / "run.json").write_text(json.dumps(summary))


def fabricate_pens(work: Path, gap: GapLaw = realistic) -> Path:
    """Write the records of every evaluation of the paper, and the logs of its own runs."""
    by_id = {run.id: run for run in RUNS}
    for evaluation in EVALUATIONS:
        run = by_id[evaluation.run]
        if isinstance(evaluation, Evaluation):
            write_tests(work, evaluation, run, gap)
        elif isinstance(evaluation, BenchmarkEvaluation):
            write_benchmark(work, evaluation, run, gap)
        elif isinstance(evaluation, RescalingEvaluation):
            write_rescaling(work, evaluation, run)
        else:
            assert isinstance(evaluation, AttentionEvaluation)
            write_attention(work, evaluation, run)
    for run in RUNS:
        if run.paper == PAPER.key:
            write_log(work, run, gap)
    return work


def study(name: str, work: Path) -> Study:
    return Study.load(ARTIFACTS[name], CONFIG, SCALE, RUNS, work)
