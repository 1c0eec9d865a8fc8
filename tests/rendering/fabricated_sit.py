"""A fabricated work folder of paper `sit`: records and manifests in the formats that the stages write.

`fabricate_sit(work)` writes it at the micro scale, `study(name, work)` looks at it as one artifact does.  The laws are
the paper's in outline: rounds help after the warm-up, re-construction helps, longer instances are harder, attention of
a model on itself takes the square of the nodes.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from fabricated import about, about_known, gaps, manifest_entry, records, tests_of, write_manifest, write_records
from neuroute.datasets.benchmarks import studied
from neuroute.papers.sit import roles
from neuroute.papers.sit.paper import PAPER
from neuroute.plan.config import Config, Scale, load_scale, parse_config
from neuroute.plan.objects import (
    Artifact,
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    EfficiencyEvaluation,
    Evaluation,
    LabelBundle,
    Labels,
    Run,
    RunEvaluation,
)
from neuroute.rendering.study import Study
from neuroute.rendering.table import Table
from table_cells import of

SCALE: Scale = load_scale(str(Path(__file__).parents[1] / "data" / "micro.yaml"))
CONFIG: Config = parse_config({})
RUNS: list[Run] = PAPER.runs(CONFIG, SCALE)
ARTIFACTS: dict[str, Artifact] = {a.name: a for a in PAPER.artifacts(SCALE, PAPER.label_jobs(SCALE, RUNS))}
EVALUATIONS: list[RunEvaluation] = PAPER.evaluations(SCALE)
BUNDLES: list[LabelBundle] = PAPER.label_jobs(SCALE, RUNS)
SHORT = {1000: "1k", 5000: "5k", 10_000: "10k", 50_000: "50k", 100_000: "100k"}
GapLaw = Callable[[Run, int, Decoding], float]  # (run, nodes, decoding) -> gap in %
OTHERS = {"insertion": 12.0, "insertion-published": 55.0, "nearest": 25.0, "lkh": 0.01}  # gaps of solvers in %


def realistic(run: Run, nodes: int, decoding: Decoding) -> float:
    """Small, positive, growing with the nodes; half of it after the rounds, less with every re-construction."""
    start = 8.0 if run.name.startswith("warm") else 5.0 if run.name == roles.NO_SIT else 2.0
    start = OTHERS.get(decoding.id, start * (nodes / 10) ** 0.5)
    start *= {"nearest": 1.3, "greedy": 1.1}.get(decoding.start, 1.0) if decoding.iterations else 1.0
    return float(start * (1 + decoding.iterations) ** -0.7 * (1 + 0.1 / (decoding.longest or 5)))


def hopeless(run: Run, nodes: int, decoding: Decoding) -> float:
    """What models on tiny test sets may give: gaps of zero and below."""
    return -0.3 if run.paper == "sit" else 0.0


def references(dataset: Dataset) -> np.ndarray:
    return np.random.default_rng(dataset.n).normal(0.7124 * dataset.nodes**0.5, 0.1, dataset.count)


def write_tests(work: Path, evaluation: Evaluation, run: Run, gap: GapLaw) -> None:
    rows: list[dict[str, object]] = []
    arrays: dict[str, np.ndarray] = {}
    for test, decoding in tests_of(evaluation):
        dataset = test.labels.dataset
        best, cell = references(dataset), f"{dataset.id}|{decoding.id}"
        if cell in arrays:
            continue
        spread = np.random.default_rng([dataset.n, *map(ord, run.id + decoding.id)]).normal(0, 0.002, dataset.count)
        lengths = best * (1 + gap(run, dataset.n, decoding) / 100 + spread)
        arrays |= {f"{dataset.id}|reference": best, cell: lengths}
        measured = gaps(lengths, best) | {
            "time_s": 1e-3 * dataset.count * dataset.n * (1 + decoding.iterations),
            "peak_memory_mb": 300.0,
            "parameters": 1234,
        }
        rows += records(evaluation.group, run, about(dataset, test.labels.solver), decoding, measured)
    write_records(work, evaluation, rows, arrays)


def write_benchmark(work: Path, evaluation: BenchmarkEvaluation, run: Run, gap: GapLaw) -> None:
    known = studied(evaluation.max_nodes, evaluation.min_nodes, evaluation.benchmark)
    rows: list[dict[str, object]] = []
    lengths: dict[str, list[float]] = {decoding.id: [] for decoding in evaluation.decodings}
    for k in known:
        for decoding in evaluation.decodings:
            expected = gap(run, k.nodes, decoding) + (int(k.optimum) % 7) / 10
            lengths[decoding.id].append(k.optimum * (1 + expected / 100))
            measured = {"gap_pct": expected, "gap_rounded_pct": expected - 0.05, "length": lengths[decoding.id][-1]}
            measured |= {"time_s": k.nodes / 1e3, "peak_memory_mb": 300.0}
            rows += records(evaluation.group, run, about_known(evaluation.benchmark, k), decoding, measured)
    arrays = {"names": np.array([k.name for k in known]), "optima": np.array([k.optimum for k in known])}
    write_records(work, evaluation, rows, arrays | {key: np.array(found) for key, found in lengths.items()})


def efficiency(network: str, nodes: int) -> dict[str, float]:
    """Linear memory and quadratic time of cross-attention; one power more for the others, too much from 60 nodes on."""
    cross, held = network in ("SIT", "BQ+cross-attention"), network.endswith("-math")
    if held and not cross and nodes >= 60:
        return {"out_of_memory": 1.0}
    power = 1.0 if cross or not held else 2.0
    return {"time_s": 1e-3 * nodes ** (2.0 if cross else 3.0), "peak_memory_mb": 0.1 * nodes**power}


def write_efficiency(work: Path, evaluation: EfficiencyEvaluation, run: Run) -> None:
    rows, arrays = [], {}
    for dataset in evaluation.datasets:
        for network in evaluation.networks:
            for name in (network, f"{network}-math"):
                measured = efficiency(name, dataset.n)
                made = records(evaluation.group, run, about(dataset), Decoding(), measured)
                rows += [row | {"decoding": f"efficiency-{name}"} for row in made]
                if "time_s" in measured:
                    tokens = np.linspace(dataset.n, 3, evaluation.decisions)
                    mean, share = measured["time_s"] / dataset.n, tokens / dataset.n
                    points = [tokens, mean * share, measured["peak_memory_mb"] * share]
                    arrays[f"{name}|{dataset.id}"] = np.column_stack(points)
    write_records(work, evaluation, rows, arrays)


def write_labels(work: Path, bundle: LabelBundle) -> None:
    """Manifests as label jobs write them."""
    write_manifest(work, bundle, [label_entry(labels) for labels in bundle.labels])


def label_entry(labels: Labels) -> dict[str, object]:
    mean = references(labels.dataset).mean() * (1 + OTHERS.get(labels.solver, 0.0) / 100)
    return manifest_entry(labels, float(mean))


def fabricate_sit(work: Path, gap: GapLaw = realistic) -> Path:
    """Write the records of every evaluation that tables read, and the manifests of all bundles."""
    by_id = {run.id: run for run in RUNS}
    for evaluation in EVALUATIONS:
        run = by_id[evaluation.run]
        if isinstance(evaluation, Evaluation):
            write_tests(work, evaluation, run, gap)
        elif isinstance(evaluation, BenchmarkEvaluation):
            write_benchmark(work, evaluation, run, gap)
        elif isinstance(evaluation, EfficiencyEvaluation):
            write_efficiency(work, evaluation, run)
    for bundle in BUNDLES:
        write_labels(work, bundle)
    return work


def study(name: str, work: Path, scale: Scale = SCALE) -> Study:
    return Study.load(ARTIFACTS[name], CONFIG, scale, RUNS, work)


@cache  # folders that are changed are changed before they are drawn
def draw(name: str, work: Path) -> Table:
    return of(study(name, work))


def set_id(problem: str, size: int) -> str:
    return roles.reference(SCALE, problem, size).dataset.id
