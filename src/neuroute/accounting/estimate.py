"""What a target costs before anything runs: FLOPs, hours and disk, for whatever is not there yet."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from neuroute.accounting import cost
from neuroute.accounting.flops import reconstruction
from neuroute.plan.objects import Dataset, Decoding, GivenRun, LabelJob, Labels, Reinforced, Run, RunEvaluation
from neuroute.plan.plan import Plan
from neuroute.plan.preflight import gpus
from neuroute.problems.longest import longest_sub_path

GREEDY = Decoding()

# Seconds of one core to label one TSP instance of n nodes, log-log interpolated and extrapolated.  Measured on one
# 2.6 GHz EPYC core, from 200 nodes on with only two or three instances: `make bench` measures yours.
SOLVER_SECONDS: dict[str, dict[int, float]] = {
    "concorde": {20: 0.0076, 50: 0.04, 100: 0.18, 200: 0.38, 500: 15.0},
    "lkh": {20: 0.0011, 50: 0.009, 100: 0.048, 200: 0.2, 500: 2.0},
    "lkh-long": {20: 0.005, 100: 0.41, 500: 14.7},
    "hgs": {20: 0.27, 50: 0.8, 100: 2.6},  # CVRP
    "hgs-long": {20: 3.1, 50: 8.9, 100: 25.0},  # CVRP, one instance each, on a busy core
    "hgs-short": {20: 0.018, 50: 0.08, 100: 0.2},  # CVRP
    "ortools-short": {10: 0.07, 20: 0.12, 50: 0.34},  # VRP: means over variants
    "pyvrp-short": {10: 0.014, 20: 0.03, 50: 0.14},
    "pyvrp": {10: 0.37, 20: 0.9, 50: 2.0},
    "pyvrp-long": {20: 10.4, 50: 26.8},
    # Their budgets, which are seconds.
    "ortools": {10: 4.0, 100: 40.0},
    "ortools-network": {10: 4.0, 100: 40.0},
    "ortools-x10": {10: 40.0, 100: 400.0},
}


@dataclass(frozen=True)
class Cost:
    """One job: where its result lies, whether it is there, and what it takes."""

    stage: str
    id: str
    path: Path
    flops: float = 0.0
    cpu_hours: float = 0.0
    gpu_hours: float = 0.0
    disk_mb: float = 0.0

    scale: str = ""  # for artifacts, which all scales write to the same place

    @property
    def there(self) -> bool:
        if not self.path.exists():
            return False
        return not self.scale or json.loads(self.path.read_text())["measured_on"]["scale"] == self.scale


def costs(plan: Plan, target: str | None) -> list[Cost]:
    """Every job behind a target, in the order of the walk."""
    artifacts, evaluations, runs, label_jobs = _closure(plan, target)
    return [
        *(_label_cost(plan, plan.label_jobs[b]) for b in label_jobs),
        *(_train_cost(plan, plan.runs[r]) for r in runs),
        *(_evaluate_cost(plan, plan.evaluations[e]) for e in evaluations),
        *(_render_cost(plan, a) for a in artifacts),
    ]


def describe(plan: Plan, target: str | None) -> str:
    """The plan of a target as text: one line a job, then the sum of what is still missing."""
    all_costs = costs(plan, target)
    lines = [f"scale {plan.scale.name}: {plan.scale.summary}"]
    lines += [f"{other} stands in for {name}" for name, other in (plan.config.substitutes or {}).items()]
    lines += [
        f"not trained: {run}, which starts from a stage of a run whose weights are given" for run in sorted(plan.lost)
    ]
    lines.append("")
    lines.append(f"{'stage':9} {'file':6} {'FLOP':>9} {'hours':>12} {'disk MB':>9}  id")
    for c in all_costs:
        hours = f"{_text(c.gpu_hours, '.2f')} GPU" if c.gpu_hours else f"{_text(c.cpu_hours, '.3f')} CPU"
        there = "yes" if c.there else "-"
        amount = _text(c.flops, ".1e") if c.flops else ""
        lines.append(f"{c.stage:9} {there:6} {amount:>9} {hours:>12} {c.disk_mb:9.1f}  {c.id}")
    left = [c for c in all_costs if not c.there]
    work = sum(c.flops for c in left if not math.isnan(c.flops))
    labels, disk = sum(c.cpu_hours for c in left if c.stage == "labels"), sum(c.disk_mb for c in left)
    cpu, gpu = plan.config.machine.cpu_gflops_per_thread, plan.config.machine.gpu_tflops
    lines += [
        "",
        f"{len(left)} of {len(all_costs)} jobs to do, {disk / 1000:.2f} GB of disk",
        f"  labels    {labels:,.2f} core-hours (less what a label cache holds)",
        f"  networks  {work:.2e} FLOP: {work / cpu / 3.6e12:,.2f} core-hours at {cpu:g} GFLOP/s a thread, "
        f"or {work / gpu / 3.6e15:,.2f} GPU-hours at {gpu:g} TFLOP/s (config.yaml: machine)",
    ]
    return "\n".join(lines)


def _text(amount: float, form: str) -> str:
    return "?" if math.isnan(amount) else format(amount, form)


def _closure(plan: Plan, target: str | None) -> tuple[list[str], list[str], list[str], list[str]]:
    """Artifacts, evaluations, runs and label jobs behind a target."""
    artifacts, evaluations, runs, label_jobs = [], [], [], []
    if target in (None, "all", "report"):
        artifacts = list(plan.artifacts)
    elif target in plan.titles:
        artifacts = [a for a, artifact in plan.artifacts.items() if artifact.paper == target]
    else:
        name = target.removeprefix(f"{plan.config.results_dir}/")
        if name not in plan.runs and name not in plan.evaluations:  # whose names may hold dots of their own
            name = name.rsplit(".", 1)[0]
        name = plan.full_id(name)
        if name in plan.runs:
            runs = [name]
        elif name in plan.evaluations:
            evaluations = [name]
        elif name in plan.label_jobs:
            label_jobs = [name]
        else:
            plan.find(plan.artifacts, name, "target")
            artifacts = [name]
    for a in artifacts:
        evaluations += plan.artifacts[a].evaluations
        runs += plan.artifacts[a].runs
        label_jobs += plan.artifacts[a].label_jobs
    evaluations = _once(evaluations)
    for e in evaluations:
        runs.append(plan.evaluations[e].run)
        label_jobs += plan.label_jobs_of_evaluation(e)
    runs = _with_starts(plan, _once(runs))
    for r in runs:
        label_jobs += plan.label_jobs_of_run(r)
    return artifacts, evaluations, runs, [b for b in plan.label_jobs if b in set(label_jobs)]


def _with_starts(plan: Plan, runs: list[str]) -> list[str]:
    """Runs after those whose weights they start from."""
    found: list[str] = []
    for run in runs:
        chain = [run]
        while start := plan.runs[chain[-1]].start:
            chain.append(start.partition("@")[0])
        found += reversed(chain)
    return _once(found)


def _once(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))


def _render_cost(plan: Plan, artifact: str) -> Cost:
    path = plan.artifact_stem(artifact).with_suffix(".json")
    return Cost("render", artifact, path, disk_mb=0.3, scale=plan.scale.name)


def _computed(plan: Plan, stage: str, name: str, path: Path, amount: float, disk_mb: float) -> Cost:
    """A job whose cost is `amount` FLOPs on this plan's device."""
    if gpus(plan.config):
        hours = amount / (plan.config.machine.gpu_tflops * 1e12) / 3600
        return Cost(stage, name, path, amount, gpu_hours=hours, disk_mb=disk_mb)
    hours = amount / (plan.config.machine.cpu_gflops_per_thread * 1e9) / 3600
    return Cost(stage, name, path, amount, cpu_hours=hours, disk_mb=disk_mb)


def _label_cost(plan: Plan, job: LabelJob) -> Cost:
    hours = sum(label_seconds(labels) for labels in job.labels) / 3600
    disk = sum(labels.dataset.count * labels.dataset.n * (1 if labels.dataset.n <= 256 else 2) for labels in job.labels)
    return Cost("labels", job.id, plan.manifest(job.id), cpu_hours=hours, disk_mb=disk / 1e6)


def label_seconds(labels: Labels) -> float:
    """Core-seconds to solve all instances, 0 for a solver without a measured rate."""
    import numpy as np

    points = SOLVER_SECONDS.get(labels.solver)
    if points is None:
        return 0.0
    sizes, seconds = np.log(list(points)), np.log(list(points.values()))
    n = np.log(labels.dataset.n)
    slope = (seconds[-1] - seconds[-2]) / (sizes[-1] - sizes[-2])
    beyond = max(0.0, n - sizes[-1]) * slope
    return float(np.exp(np.interp(n, sizes, seconds) + beyond)) * labels.dataset.count


def _train_cost(plan: Plan, run: Run) -> Cost:
    path = plan.run_dir(run.id) / "model.safetensors"
    if isinstance(run, GivenRun):
        return Cost("weights", run.id, path, disk_mb=4 * cost.parameters_of(run.network) / 1e6)
    samples = run.training.samples * run.training.epochs
    amount = samples * cost.training_per_sample(run)
    many = isinstance(run.training, Reinforced)  # whose validations build solutions from all starts
    for labels in (run.validation, *run.also_validation):
        nodes, starts = labels.dataset.nodes, labels.dataset.n if many else 1
        each = cost.per_solution(run.network, nodes, starts, shrinks=not many)["gflops_shrinking"] * 1e9
        amount += labels.dataset.count * (run.training.validations + 1) * each
    disk = 4 * 4 * cost.parameters_of(run.network) / 1e6  # weights, and weights with two moments in the state
    return _computed(plan, "train", run.id, path, amount, disk)


def _evaluate_cost(plan: Plan, evaluation: RunEvaluation) -> Cost:
    """Benchmarks are left out (their instances are not known before they are fetched)."""
    amount = evaluation.flops(ModelPrice(plan.runs[evaluation.run]))
    disk = sum(8 * labels.dataset.count for labels in evaluation.labels) / 1e6
    return _computed(plan, "evaluate", evaluation.id, plan.evaluation_file(evaluation.id), amount, disk)


@dataclass(frozen=True)
class ModelPrice:
    """FLOPs of a run's solutions."""

    run: Run

    def construct(self, dataset: Dataset, decoding: Decoding = GREEDY) -> float:
        starts = dataset.n if decoding.starts == "all" else decoding.starts
        images = 8 if decoding.augment else 1
        # Models that are trained from many starts mask nodes instead of dropping them.
        shrinks = decoding.method == "beam" or not isinstance(self.run.training, Reinforced)
        at_a_time = images * starts * decoding.beam
        each = cost.per_solution(self.run.network, dataset.nodes, at_a_time, images, shrinks=shrinks)
        return decoding.repeats * dataset.count * each["gflops_shrinking"] * 1e9

    def improve(self, dataset: Dataset, decoding: Decoding) -> float:
        network = self.run.network
        if decoding.method == "prc":
            c, longest = cost.counts(network), longest_sub_path(decoding.longest, dataset.n)
            cvrp, most = dataset.problem == "cvrp", decoding.most_blocks
            each = reconstruction(c.decision, c.encoder, dataset.n, longest, most, cvrp=cvrp)
        else:  # a segment has half the nodes on average, and costs go with their square at least
            each = cost.per_solution(network, decoding.longest or dataset.n)["gflops_shrinking"] * 1e9 / 3
        return dataset.count * decoding.iterations * each
