"""A fabricated work folder of paper `mvmoe`: records and manifests in the formats that the stages write.

`fabricate_mvmoe(work)` writes it at the micro scale, or another, `study(name, work)` looks at it as one artifact does.
The laws are the paper's in outline: a model of one problem is best on it and poor on others, experts help, problems
that were not trained are harder.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabricated import about, about_known, gaps, manifest_entry, records, tests_of, write_manifest, write_records
from neuroute.datasets.benchmarks import studied
from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.paper import PAPER
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.plan.config import Config, Scale, load_scale, parse_config
from neuroute.plan.objects import (
    Artifact,
    BenchmarkEvaluation,
    ConstructionEvaluation,
    Dataset,
    Decoding,
    Evaluation,
    LabelBundle,
    Labels,
    Run,
    RunEvaluation,
)
from neuroute.problems.vrp_variants import SWITCHES
from neuroute.rendering.study import Study
from neuroute.rendering.table import Table
from table_cells import of

MICRO: Scale = load_scale(str(Path(__file__).parents[1] / "data" / "micro.yaml"))


def _changed(scale: Scale, update: dict[str, object]) -> Scale:
    return scale.with_block(scale[MvmoeScale].model_copy(update=update))


OWN_SOLVERS = {"references": {"CVRP": "hgs-short", "others": "ortools-short"}, "other_solvers": {}}
SCALE = _changed(MICRO, OWN_SOLVERS)
CONFIG: Config = parse_config({})
RUNS: list[Run] = PAPER.runs(CONFIG, SCALE)
ARTIFACTS: dict[str, Artifact] = {a.name: a for a in PAPER.artifacts(SCALE, PAPER.label_jobs(SCALE, RUNS))}
EVALUATIONS: list[RunEvaluation] = PAPER.evaluations(SCALE)
GapLaw = Callable[[Run, str, int, Decoding], float]  # (run, variant, nodes, decoding) -> gap in %
OTHERS = {"ortools-x10": -1.5, "ortools-network": 4.0, "lkh3": 0.4}  # gaps of solvers in %


def realistic(run: Run, variant: str, nodes: int, decoding: Decoding) -> float:
    """Positive, less with experts, images and re-construction, more for what a model was not trained on."""
    start = {"POMO": 1.0, "POMO-MTL": 2.0, "MVMoE/4E": 1.7, "MVMoE/4E-L": 1.8}.get(str(run.role.get("method")), 2.5)
    start += sum(map(ord, run.name + variant)) % 11 / 100
    start *= 10 if run.role.get("problem") not in (None, variant) else 1
    start *= 3 if variant in roles.UNSEEN else 1
    return float(start * (nodes / 8) ** 0.5 * (0.8 if decoding.augment else 1.0) * (1 + decoding.iterations) ** -0.3)


def hopeless(run: Run, variant: str, nodes: int, decoding: Decoding) -> float:
    """What models on tiny test sets may give: gaps of zero and below."""
    return -0.3 if run.paper == "mvmoe" else 0.0


def references(dataset: Dataset) -> np.ndarray:
    """Lengths of the reference solutions, which differ by variant."""
    seed = [dataset.n, *map(ord, str(dataset.variant))]
    return np.random.default_rng(seed).uniform(0.5, 1.5, dataset.count) * dataset.nodes**0.5


def feasible(dataset: Dataset) -> float:
    """Share in % of the reference solutions that networks could drive."""
    return 100.0 - 7 * len(str(dataset.variant)) if SWITCHES[str(dataset.variant)].backhaul else 100.0


def write_tests(work: Path, evaluation: Evaluation, run: Run, gap: GapLaw) -> None:
    rows: list[dict[str, object]] = []
    arrays: dict[str, np.ndarray] = {}
    for test, decoding in tests_of(evaluation):
        dataset, variant = test.labels.dataset, str(test.labels.dataset.variant)
        best, cell = references(dataset), f"{dataset.id}|{decoding.id}"
        seed = [dataset.n, *map(ord, run.id + decoding.id + variant)]
        spread = np.random.default_rng(seed).normal(0, 0.004, dataset.count)
        lengths = best * (1 + gap(run, variant, dataset.n, decoding) / 100 + spread)
        arrays |= {f"{dataset.id}|reference": best, cell: lengths}
        measured = gaps(lengths, best) | {
            "time_s": 1e-3 * dataset.count * dataset.n + len(run.name + variant) / 1e4,
            "reference_feasible_pct": feasible(dataset),
            "peak_memory_mb": 300.0,
            "parameters": 1234,
        }
        rows += records(evaluation.group, run, about(dataset, test.labels.solver), decoding, measured)
    write_records(work, evaluation, rows, arrays)


def write_benchmark(work: Path, evaluation: BenchmarkEvaluation, run: Run, gap: GapLaw) -> None:
    e, rows = evaluation, list[dict[str, object]]()
    for k in studied(e.max_nodes, e.min_nodes, e.benchmark, e.sets):
        for decoding in e.decodings:
            expected = gap(run, "CVRP", k.nodes, decoding) + sum(map(ord, k.name)) % 7 / 10
            rounded = 100 * (round(k.optimum * (1 + (expected - 0.2) / 100)) / k.optimum - 1)
            measured = {"gap_pct": expected, "gap_rounded_pct": rounded, "length": k.optimum * (1 + expected / 100)}
            rows += records(e.group, run, about_known(e.benchmark, k), decoding, measured | {"time_s": k.nodes / 1e3})
    write_records(work, e, rows, {})


def write_construction(work: Path, evaluation: ConstructionEvaluation, run: Run) -> None:
    rows: list[dict[str, object]] = []
    for dataset in evaluation.datasets:
        measured = {"time_s": (len(run.name) + len(str(dataset.variant))) / 10, "peak_memory_mb": 300.0}
        rows += records(evaluation.group, run, about(dataset), evaluation.decoding, measured)
    write_records(work, evaluation, rows, {})


def label_entry(labels: Labels) -> dict[str, object]:
    return manifest_entry(labels, float(solved(labels).mean())) | {"lengths": solved(labels).tolist()}


def solved(labels: Labels) -> NDArray[np.float64]:
    """Lengths (count,) of a solver's solutions: solvers but the reference are the worse, the longer a solution is."""
    best = references(labels.dataset)
    return best * (1 + OTHERS.get(labels.solver, 0.0) / 100 * best / best.mean())


def write_labels(work: Path, bundle: LabelBundle, *more: Labels) -> None:
    write_manifest(work, bundle, [label_entry(labels) for labels in (*bundle.labels, *more)])


def fabricate_mvmoe(work: Path, gap: GapLaw = realistic, scale: Scale = SCALE) -> Path:
    """Write the records of every evaluation that tables read, and the manifests of all bundles."""
    runs = PAPER.runs(CONFIG, scale)
    by_id = {run.id: run for run in runs}
    for evaluation in PAPER.evaluations(scale):
        run = by_id[evaluation.run]
        if isinstance(evaluation, Evaluation):
            write_tests(work, evaluation, run, gap)
        elif isinstance(evaluation, BenchmarkEvaluation):
            write_benchmark(work, evaluation, run, gap)
        elif isinstance(evaluation, ConstructionEvaluation):
            write_construction(work, evaluation, run)
    for bundle in PAPER.label_jobs(scale, runs):
        write_labels(work, bundle)
    return work


def study(name: str, work: Path, scale: Scale = SCALE) -> Study:
    artifacts = {a.name: a for a in PAPER.artifacts(scale, PAPER.label_jobs(scale, RUNS))}
    return Study.load(artifacts[name], CONFIG, scale, PAPER.runs(CONFIG, scale), work)


def changed(**update: object) -> Scale:
    """The scale with other settings of this paper."""
    return _changed(SCALE, update)


@cache  # folders that are changed are changed before they are drawn
def draw(name: str, work: Path) -> Table:
    return of(study(name, work))


def set_of(variant: str, size: int) -> Dataset:
    return roles.reference(SCALE, variant, size).dataset
