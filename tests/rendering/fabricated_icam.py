"""A fabricated work folder of paper `icam`: records and manifests in the formats that the stages write.

`fabricate_icam(work)` writes it at the micro scale, `study(name, work)` looks at it as one artifact does.  The laws are
the paper's in outline: POMO falls off beyond the size of its training, less so in the three stages, ICAM least; more
starts and images help; each stage helps.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from fabricated import about_known, records, write_records
from fabricated_sit import write_labels, write_tests
from neuroute.datasets.benchmarks import studied
from neuroute.papers.icam import roles
from neuroute.papers.icam.paper import PAPER
from neuroute.plan.config import Config, Scale, load_scale, parse_config
from neuroute.plan.objects import (
    Artifact,
    BenchmarkEvaluation,
    Decoding,
    Evaluation,
    LabelBundle,
    Run,
    RunEvaluation,
    StageEvaluation,
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
GapLaw = Callable[[Run, int, Decoding], float]  # (run, nodes, decoding) -> gap in %
BEYOND = {"pomo_tsp": 4.0, "pomo_cvrp": 5.0, "pomo3_tsp": 1.5, "pomo3_cvrp": 1.4}  # powers of the nodes


def realistic(run: Run, nodes: int, decoding: Decoding) -> float:
    """Small, positive, growing with the nodes; less with more starts, images, iterations and beams."""
    start = {"abl_afm": 6.0, "abl_afm_cab": 5.0, "abl_aafm": 3.0}.get(run.name, 2.0) + sum(map(ord, run.id)) % 7 / 10
    gap = start * (nodes / 8) ** BEYOND.get(run.name, 1.0)
    gap *= 0.6 if decoding.starts == "all" else 1.0
    return float(gap * (0.8 if decoding.augment else 1.0) * (1 + decoding.iterations) ** -0.3 / decoding.beam)


def hopeless(run: Run, nodes: int, decoding: Decoding) -> float:
    """What models on tiny test sets may give: gaps of zero and below."""
    return -0.3 if run.paper == "icam" else 0.0


def after(stage: int, gap: GapLaw) -> GapLaw:
    """The law of what a run had learnt at the end of its first stage, or of its second."""
    return lambda run, nodes, decoding: gap(run, nodes, decoding) * 3 / stage


def write_stages(work: Path, evaluation: StageEvaluation, run: Run, gap: GapLaw) -> None:
    """What all stages of a run leave, as one evaluation of their checkpoints writes it."""
    path = work / "evaluations" / f"{evaluation.id}.csv"
    frames, arrays = [], {}
    for number, stage in enumerate(evaluation.stages, 1):
        tests = Evaluation(run=evaluation.run, group=evaluation.group, tests=evaluation.tests)
        write_tests(work, tests, run, after(number, gap))
        frames.append(pd.read_csv(path).assign(run=f"{run.id}@{stage}"))
        with np.load(path.with_suffix(".npz")) as file:
            arrays |= {f"{stage}|{key}": file[key] for key in file.files}
    pd.concat(frames).to_csv(path, index=False)
    np.savez(path.with_suffix(".npz"), **arrays)


def write_benchmark(work: Path, evaluation: BenchmarkEvaluation, run: Run, gap: GapLaw) -> None:
    found = studied(evaluation.max_nodes, evaluation.min_nodes, evaluation.benchmark)
    rows: list[dict[str, object]] = []
    for k in (k for k in found if not evaluation.sets or k.set in evaluation.sets):
        for decoding in evaluation.decodings:
            expected = gap(run, k.nodes, decoding) + k.optimum % 7 / 10
            measured = {"gap_pct": expected, "gap_rounded_pct": expected - 0.05, "time_s": k.nodes / 1e3}
            rows += records(evaluation.group, run, about_known(evaluation.benchmark, k), decoding, measured)
    write_records(work, evaluation, rows, {})


def fabricate_icam(work: Path, gap: GapLaw = realistic) -> Path:
    """Write the records of every evaluation that tables read, and the manifests of all bundles."""
    by_id = {run.id: run for run in RUNS}
    for evaluation in EVALUATIONS:
        run = by_id[evaluation.run]
        if isinstance(evaluation, Evaluation):
            write_tests(work, evaluation, run, gap)
        elif isinstance(evaluation, StageEvaluation):
            write_stages(work, evaluation, run, gap)
        elif isinstance(evaluation, BenchmarkEvaluation):
            write_benchmark(work, evaluation, run, gap)
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
