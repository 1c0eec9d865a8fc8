"""What each job takes: FLOPs, the time that follows from this machine's rates, memory and disk."""

import json
import math
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

from neuroute.accounting import cost, revised
from neuroute.accounting.calls import GREEDY, CallPrice, training_calls
from neuroute.accounting.counts import counts
from neuroute.accounting.flops import reconstruction
from neuroute.accounting.rates import LIMITS, Rates, at_size, rates_of
from neuroute.plan.label_blocks import with_count
from neuroute.plan.objects import Dataset, Decoding, GivenRun, Labels, Network, Reinforced, Run
from neuroute.plan.plan import Plan
from neuroute.plan.preflight import gpus
from neuroute.problems.longest import longest_sub_path
from neuroute.solvers.registry import FROM_FILES

PROCESS_MB = 1000  # torch, pandas and the plan
CUDA_MB = 4000  # of the host's memory, on top, for CUDA's libraries
WORKER_MB = 300  # a solver's process
# Bytes of n^2 that HGS keeps of an instance of n customers: 108 MB measured at 2,000, 384 MB at 6,000 (less by rows).
HGS_BYTES = 8.6
ACTIVATIONS_GB = 4.0  # on a CPU, where config.yaml says nothing (core/device.py)
DRAWING_S = 0.7  # of a table or figure in its five formats
WARM_START_S = 0.3  # a copy of a process that has loaded all


@dataclass(frozen=True)
class Cost:
    """One job: where its result lies, whether it is there, and what it takes."""

    stage: str
    id: str
    path: Path
    seconds: float = 0.0  # with these threads and GPUs
    threads: int = 1
    gpus: int = 0
    flops: float = 0.0
    memory_mb: float = PROCESS_MB
    disk_mb: float = 0.0

    scale: str = ""  # for artifacts, which all scales write to the same place

    @property
    def cpu_hours(self) -> float:
        return 0.0 if self.gpus else self.seconds * self.threads / 3600

    @property
    def gpu_hours(self) -> float:
        return self.seconds * self.gpus / 3600

    @property
    def there(self) -> bool:
        if not self.path.exists():
            return False
        return not self.scale or json.loads(self.path.read_text())["measured_on"]["scale"] == self.scale


@dataclass(frozen=True)
class ByFlops:
    """What the jobs of a plan take on its machine, by FLOPs and calls; as rehearsed see `estimates`."""

    plan: Plan
    rates: Rates = field(init=False)
    gpus: int = field(init=False)  # of one training

    def __post_init__(self) -> None:
        object.__setattr__(self, "rates", rates_of(self.plan.config))
        object.__setattr__(self, "gpus", gpus(self.plan.config))

    @property
    def start_s(self) -> float:
        return WARM_START_S if self.plan.scale.warm_jobs else self.rates.start_s

    def labels(self, job: str, most_threads: int) -> Cost:
        """A label job, on as many cores as it can make use of."""
        labels = self.plan.label_jobs[job]
        fresh = labels.dataset.count - self._at_hand.get(job, 0)
        seconds = self.label_seconds(labels) * fresh / labels.dataset.count
        solver_seconds = 0.0 if math.isnan(seconds) else seconds
        threads = self.plan.config.label_workers or self._workers(labels, solver_seconds, most_threads)
        disk = fresh * labels.dataset.n * (1 if labels.dataset.n <= 256 else 2)
        return Cost(
            "labels",
            job,
            self.plan.manifest(job),
            seconds=self.start_s + seconds / threads,
            threads=threads,
            memory_mb=PROCESS_MB + threads * _worker_mb(labels),
            disk_mb=disk / 1e6,
        )

    @cached_property
    def _at_hand(self) -> dict[str, int]:
        """Label job -> how many of its labels the next shorter one on the same stream makes."""
        counts: dict[Labels, list[int]] = {}
        for labels in self.plan.label_jobs.values():
            counts.setdefault(with_count(labels, 0), []).append(labels.dataset.count)
        return {
            with_count(stream, longer).id: shorter
            for stream, each in counts.items()
            for shorter, longer in pairwise(sorted(each))
        }

    def _workers(self, labels: Labels, seconds: float, most: int) -> int:
        """As many as there are instances that take long together; more would wait for the last one."""
        if self.plan.scale.warm_jobs or seconds < 60:
            return 1
        return max(1, min(most, labels.dataset.count))

    def label_seconds(self, labels: Labels) -> float:
        """Core-seconds to solve and check all instances; not a number for a solver without a rate."""
        if labels.solver in FROM_FILES:
            return 0.0
        points, n = self.rates.solvers.get(labels.solver), labels.dataset.n
        each = at_size(points, n, beyond=True) if points else math.nan
        if n >= 5000:
            each = min(each, LIMITS.get(labels.solver, each))
        return labels.dataset.count * (each + self._drawing_s(labels.dataset.nodes))

    def train(self, run: str) -> Cost:
        r = self.plan.runs[run]
        path = self.plan.run_dir(run) / "model.safetensors"
        if isinstance(r, GivenRun):
            megabytes = 4 * cost.parameters_of(r.network) / 1e6
            peak_mb = PROCESS_MB + Path(r.weights).stat().st_size / 1e6  # a file may hold an optimizer's state, too
            return Cost("weights", run, path, self.start_s, memory_mb=peak_mb + 2 * megabytes, disk_mb=megabytes)
        t = r.training
        flops = training_flops(r)
        nodes = t.batches * self._batch_size(r) * r.n
        weights = cost.parameters_of(r.network)
        return self._network_job(
            "train",
            run,
            path,
            r,
            flops,
            training_calls(r, gpu=self.gpus > 0),
            threads=self.plan.scale.train_threads,
            gpus=self.gpus,
            more_s=self.rates.node_us * 1e-6 * nodes,
            more_mb=5 * 4 * weights / 1e6 + label_mb(r),
            disk_mb=4 * 4 * weights / 1e6,  # weights, and weights with two moments in the state
        )

    def _batch_size(self, run: Run) -> float:
        t = run.training
        return t.samples * t.epochs / t.batches if isinstance(t, Reinforced) else t.batch_size

    def _drawing_s(self, nodes: int) -> float:
        return self.rates.node_us * 1e-6 * nodes

    def evaluate(self, evaluation: str) -> Cost:
        """Benchmarks are left out (their instances are not known before they are fetched)."""
        e = self.plan.evaluations[evaluation]
        r = self.plan.runs[e.run]
        return self._network_job(
            "evaluate",
            evaluation,
            self.plan.evaluation_file(evaluation),
            r,
            e.flops(ModelPrice(r)),
            (0.0, e.flops(CallPrice(r, self.gpus > 0))),
            threads=self.plan.scale.evaluate_threads,
            gpus=min(self.gpus, 1),
            more_s=sum(labels.dataset.count * self._drawing_s(labels.dataset.nodes) for labels in e.labels),
            more_mb=4 * cost.parameters_of(r.network) / 1e6,
            disk_mb=sum(8 * labels.dataset.count for labels in e.labels) / 1e6,
        )

    def _network_job(
        self,
        stage: str,
        name: str,
        path: Path,
        run: Run,
        flops: float,
        calls: tuple[float, float],
        *,
        threads: int,
        gpus: int,
        more_s: float,
        more_mb: float,
        disk_mb: float,
    ) -> Cost:
        seconds = self.start_s + more_s + self.network_s(run, flops, calls, gpus, threads)
        budget = self.plan.config.memory_gb or ACTIVATIONS_GB
        memory = PROCESS_MB + more_mb + (CUDA_MB * gpus if gpus else 1000 * budget)
        return Cost(stage, name, path, seconds, threads, gpus, flops, memory, disk_mb)

    def network_s(self, run: Run, flops: float, calls: tuple[float, float], gpus: int, threads: int) -> float:
        """Seconds of FLOPs and of calls, in updates and forward, on so many GPUs or threads."""
        device, width = self.rates.devices["cuda" if gpus else "cpu"], _width(run)
        rate = at_size(device.gflops[self.precision(run)], width) * 1e9 * (gpus or threads)
        each = at_size(device.update_us, width), at_size(device.layer_us, width)
        return flops / rate + 1e-6 * (calls[0] * each[0] + calls[1] * each[1])

    def precision(self, run: Run) -> str:
        """In which its products are computed."""
        exact = "tf32" if self.gpus and self.plan.config.tf32 else "fp32"
        return exact if run.training.precision == "fp32" else run.training.precision

    def render(self, artifact: str) -> Cost:
        path = self.plan.artifact_stem(artifact).with_suffix(".json")
        return Cost("render", artifact, path, seconds=self.start_s + DRAWING_S, disk_mb=0.3, scale=self.plan.scale.name)


def label_mb(run: Run) -> float:
    """Coordinates and tours that a training reads."""
    return sum(labels.dataset.count * labels.dataset.n * 9 for labels in run.data) / 1e6


def _width(run: Run) -> float:
    return float(run.network.arguments.get("width", 128))


def _worker_mb(labels: Labels) -> float:
    return WORKER_MB + (HGS_BYTES * labels.dataset.n**2 / 1e6 if labels.solver.startswith("hgs") else 0.0)


def training_flops(run: Run) -> float:
    """Count updates, and the solutions that validations build."""
    amount = run.training.samples * run.training.epochs * cost.training_per_sample(run)
    many = isinstance(run.training, Reinforced)  # whose decisions are on all nodes
    all_starts = isinstance(run.training, Reinforced) and run.training.validated_starts == "all"
    for labels in (run.validation, *run.also_validation):
        nodes, starts = labels.dataset.nodes, labels.dataset.n if all_starts else 1
        each = _solution(run, nodes, starts, shrinks=not many)
        amount += labels.dataset.count * (run.training.validations + 1) * each
    return amount


def _solution(run: Run, nodes: int, at_a_time: int = 1, images: int = 1, shrinks: bool = True) -> float:
    return _solution_of(run.network.model_dump_json(), nodes, at_a_time, images, shrinks)


@cache
def _solution_of(network: str, nodes: int, at_a_time: int, images: int, shrinks: bool) -> float:
    """FLOPs of one solution; models share their networks and sizes, and large sizes are sums of many decisions."""
    described = Network.model_validate_json(network)
    return cost.per_solution(described, nodes, at_a_time, images, shrinks=shrinks)["gflops_shrinking"] * 1e9


@dataclass(frozen=True)
class ModelPrice:
    """FLOPs of a run's solutions."""

    run: Run

    def construct(self, dataset: Dataset, decoding: Decoding = GREEDY) -> float:
        starts = dataset.n if decoding.starts == "all" else decoding.starts
        images = decoding.number_of_images
        # Models that are trained from many starts mask nodes instead of dropping them.
        shrinks = decoding.method == "beam" or not isinstance(self.run.training, Reinforced)
        at_a_time = images * starts * decoding.beam
        return decoding.repeats * dataset.count * _solution(self.run, dataset.nodes, at_a_time, images, shrinks)

    def improve(self, dataset: Dataset, decoding: Decoding) -> float:
        network = self.run.network
        if decoding.method == "revise":
            blocks = tuple(network.arguments.get("blocks", (100, 50, 20)))
            return dataset.count * revised.revision(counts(network), dataset.n, decoding.revision, blocks)
        if decoding.method == "prc":
            c, longest = counts(network), longest_sub_path(decoding.longest, dataset.n)
            cvrp, most = dataset.problem == "cvrp", decoding.most_blocks
            each = reconstruction(c.decision, c.encoder, dataset.n, longest, most, cvrp=cvrp)
        else:  # a segment has half the nodes on average, and costs go with their square at least
            each = _solution(self.run, decoding.longest or dataset.n) / 3
        return dataset.count * decoding.iterations * each
