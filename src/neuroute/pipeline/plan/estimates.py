"""What each job takes: as Snakemake has measured it, else by its FLOPs and one rate; what a cluster is asked for it."""

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json
from neuroute.evaluation.flops import RunFlops, counts, decisions_per_batch
from neuroute.pipeline.plan.config import gpus
from neuroute.pipeline.plan.plan import Plan
from neuroute.solvers.base import at_size
from neuroute.solvers.registry import FROM_FILES, get
from neuroute.specs.data import with_count
from neuroute.specs.objects import GivenRun, Labels

Kind = Literal["cpu", "cuda"]
BySize = dict[int, float]

START_S = 12.0  # from the start of a process to its first batch: Python, torch, the plan, the data
# FLOP/s of one thread of a CPU (of small networks: wide ones reach three times as much) and of a GPU (an H200, networks
# 128 wide), and seconds of a decision of a training's batch, however few numbers it sees (of a GPU a guess).
FLOPS = {"cpu": 20e9, "cuda": 20e12}
DECISION_S = {"cpu": 2e-3, "cuda": 4e-3}

INSERTION = {100: 5e-5, 1000: 0.0013, 10_000: 0.09}  # of the TSP; the CVRP takes less
# Seconds of one 2.6 GHz EPYC core for one instance of n nodes, from 200 nodes on with only two or three instances.
SOLVERS: dict[str, BySize] = {
    "nearest": {100: 6e-5, 1000: 0.001, 10_000: 0.07},
    "insertion": INSERTION,
    "insertion-published": INSERTION,
    "insertion-angle": INSERTION,
    "concorde": {20: 0.0076, 50: 0.04, 100: 0.18, 200: 0.38, 500: 15.0},
    "concorde-6h": {20: 0.0076, 50: 0.04, 100: 0.18, 200: 0.38, 500: 15.0},
    "lkh": {20: 0.0011, 50: 0.009, 100: 0.048, 200: 0.2, 500: 2.0},
    "lkh-long": {20: 0.005, 100: 0.41, 500: 14.7},
    "lkh3": {20: 0.057, 50: 0.17, 100: 0.44, 200: 0.97, 500: 5.2, 1000: 30.0},  # CVRP
    "lkh3-short": {10: 0.05, 20: 0.08, 50: 0.2},  # VRP: means over four variants
    "hgs": {20: 0.27, 50: 0.8, 100: 2.6},  # CVRP
    "hgs-long": {20: 3.1, 50: 8.9, 100: 25.0},  # CVRP, one instance each, on a busy core
    "hgs-short": {20: 0.018, 50: 0.08, 100: 0.2},  # CVRP
    "ortools-short": {10: 0.07, 20: 0.12, 50: 0.34},  # VRP: means over variants
    "pyvrp-short": {10: 0.014, 20: 0.03, 50: 0.14},
    "pyvrp": {10: 0.37, 20: 0.9, 50: 2.0},
    "pyvrp-long": {20: 10.4, 50: 26.8},
}

PROCESS_MB = 1000  # torch, pandas and the plan
CUDA_MB = 4000  # of the host's memory, on top, for CUDA's libraries
WORKER_MB = 300  # a solver's process
ACTIVATIONS_GB = 4.0  # on a CPU, where config.yaml says nothing (core/device.py)
DRAWING_S = 0.7  # of a table or figure in its five formats
LEAST_S = {"cpu": 0.01, "cuda": 0.1}  # of a job by its FLOPs, to say how far these are off
WARM_START_S = 0.3  # a copy of a process that has loaded all
CORE_S = 300.0  # of solving for each core of a label job: shorter ones run side by side, as soon as a core is free
# Of a network's activations, of which config.yaml bounds the sum
OPERATIONS_PER_BYTE = 8.0  # of a batch's updates for each byte that they keep: measured, more in all trainings of smoke
TOKENS_AT_ONCE = 8192  # that are decoded together on a CPU (decoding/memory.py)
WIDTH = 256  # of a network that states none
# Of what a cluster is asked for
MARGIN = 2.0  # estimates have been off by less, mostly: docs/measured/log.md
LEAST_MINUTES = 10
SHORT_S = 120.0  # jobs that take less are sent together
LEAST_MINUTES_TOGETHER = 2
CPUS_TOGETHER, MB_TOGETHER = 4, 7000  # of jobs that are sent together, where each alone asks for less
UNKNOWN_S = 4 * 3600.0  # of a network or a solver without a rate
RETRIES = 2


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
    stale: bool = False  # made of another spec, by other code, or from what is made again

    @property
    def cpu_hours(self) -> float:
        return 0.0 if self.gpus else self.seconds * self.threads / 3600

    @property
    def gpu_hours(self) -> float:
        return self.seconds * self.gpus / 3600

    @property
    def is_done(self) -> bool:
        return self.there and not self.stale

    @property
    def there(self) -> bool:
        """Raises NeurouteError if an artifact's .json does not say at which scale it was measured."""
        if not self.path.exists() or not self.scale:
            return self.path.exists()
        mend = f"draw it again: neuroute render {self.id}"
        try:
            return bool(read_json(self.path, mend)["measured_on"]["scale"] == self.scale)
        except (KeyError, TypeError):
            raise NeurouteError(f"{self.path}: does not say where it was measured; {mend}") from None


@dataclass(frozen=True)
class Estimates:
    """Of each job of a plan on its machine; a label job has `cpus` cores at most.

    What a cluster is asked for it: each method takes the stage (labels, train, evaluate) and the id of the job.
    """

    plan: Plan
    cpus: int = field(default_factory=lambda: os.cpu_count() or 1)

    @cached_property
    def kind(self) -> Kind:
        return "cuda" if self.gpus else "cpu"

    @cached_property
    def gpus(self) -> int:
        """GPUs of one training."""
        return gpus(self.plan.config)

    @property
    def start_s(self) -> float:
        return WARM_START_S if self.plan.scale.warm_jobs else START_S

    def took(self, stage: str, job: str) -> float | None:
        """Seconds of a job that is done, as Snakemake has measured them; None where it has not."""
        path = self.plan.work / "usage" / stage / f"{job}.tsv"
        try:
            return float(path.read_text().splitlines()[1].split("\t")[0])
        except (OSError, IndexError, ValueError):
            return None

    def labels(self, job: str) -> Cost:
        """A label job; unless the config says how many, on as many cores as it keeps busy for a while."""
        labels = self.plan.label_jobs[job]
        n, fresh = labels.dataset.n, labels.dataset.count - self._at_hand.get(job, 0)
        seconds = self.label_seconds(labels) * fresh / labels.dataset.count
        busy = 1 if math.isnan(seconds) else max(1, int(seconds / CORE_S))
        threads = self.plan.config.label_workers or min(busy, self.cpus, labels.dataset.count)
        memory = get(labels.solver).memory
        worker_mb = WORKER_MB + (memory(labels.dataset.nodes) / 1e6 if memory else 0.0)
        return Cost(
            "labels",
            job,
            self.plan.manifest(job),
            seconds=self.start_s + seconds / threads,
            threads=threads,
            memory_mb=PROCESS_MB + threads * worker_mb,
            disk_mb=fresh * n * (1 if n <= 256 else 2) / 1e6,
        )

    def label_seconds(self, labels: Labels) -> float:
        """Core-seconds to solve all instances; not a number for a solver that nobody has measured.

        At most the solver's own limit, and all of that where nothing else is known.
        """
        if labels.solver in FROM_FILES:
            return 0.0
        n, typical, limit = labels.dataset.n, SOLVERS.get(labels.solver), get(labels.solver).limit
        most = limit(n) if limit else math.inf
        if typical:
            return labels.dataset.count * min(at_size(typical, n), most)
        return labels.dataset.count * most if most < math.inf else math.nan

    @cached_property
    def _at_hand(self) -> dict[str, int]:
        """Label job -> how many of its labels the next shorter one on the same stream makes."""
        sizes: dict[Labels, list[int]] = {}
        for labels in self.plan.label_jobs.values():
            sizes.setdefault(with_count(labels, 0), []).append(labels.dataset.count)
        return {
            with_count(stream, longer).id: shorter
            for stream, each in sizes.items()
            for shorter, longer in pairwise(sorted(each))
        }

    def train(self, run: str) -> Cost:
        """A training; of given weights, what reading them takes."""
        r, path = self.plan.runs[run], self.plan.run_dir(run) / "model.safetensors"
        weights_mb = 4 * counts(r.network).parameters / 1e6
        if isinstance(r, GivenRun):
            file_mb = Path(r.weights).stat().st_size / 1e6  # which may hold an optimizer's state, too
            memory = PROCESS_MB + file_mb + 2 * weights_mb
            return Cost("weights", run, path, self.start_s, memory_mb=memory, disk_mb=weights_mb)
        (flops, by_flops), threads = self._by_flops("train", run), self.plan.scale.train_threads
        data_mb = sum(labels.dataset.count * labels.dataset.n * 9 for labels in r.data) / 1e6  # coordinates and tours
        batch_gb = flops / max(1, r.training.batches) / OPERATIONS_PER_BYTE / 1e9
        memory = self._memory_mb(self.gpus, batch_gb) + 5 * weights_mb + data_mb
        seconds = self.took("train", run) or self.start_s + self._off["train"] * by_flops
        # On disk: weights, and weights with two moments in the state.
        return Cost("train", run, path, seconds, threads, self.gpus, flops, memory, 4 * weights_mb)

    def evaluate(self, evaluation: str) -> Cost:
        e = self.plan.evaluations[evaluation]
        r, devices = self.plan.runs[e.run], min(self.gpus, 1)
        (flops, by_flops), threads = self._by_flops("evaluate", evaluation), self.plan.scale.evaluate_threads
        seconds = self.took("evaluate", evaluation) or self.start_s + self._off["evaluate"] * by_flops
        parts = e.measurements
        sets = [labels.dataset for labels in e.labels]
        sets += [dataset for part in parts for dataset in getattr(part, "datasets", ())]
        sets += [sweep.dataset for part in parts for sweep in getattr(part, "sweeps", ())]
        tokens = 1 + max([*(dataset.nodes for dataset in sets), *(getattr(part, "max_nodes", 0) for part in parts)])
        beam = max((decoding.beam for decoding in e.decodings_used()), default=1)
        networks = [r.network, *(network for part in parts for network in getattr(part, "networks", {}).values())]
        width = max(int(network.arguments.get("width", WIDTH)) for network in networks)
        decoding_gb = (4 * 16 * width * max(TOKENS_AT_ONCE, tokens * beam) + 64 * tokens**2) / 1e9
        memory = self._memory_mb(devices, decoding_gb) + 4 * counts(r.network).parameters / 1e6
        disk = sum(8 * labels.dataset.count for labels in e.labels) / 1e6
        path = self.plan.evaluation_file(evaluation)
        return Cost("evaluate", evaluation, path, seconds, threads, devices, flops, memory, disk)

    def _by_flops(self, stage: str, job: str) -> tuple[float, float]:
        """FLOPs, and seconds by these; of a training also by its decisions, as narrow networks take long for few."""
        machine = self.plan.config.machine
        stated = 1e12 * (machine.gpu_tflops or 0) if self.gpus else 1e9 * (machine.cpu_gflops_per_thread or 0)
        rate = stated or FLOPS[self.kind]
        if stage == "evaluate":
            evaluation = self.plan.evaluations[job]
            flops = RunFlops(self.plan.runs[evaluation.run]).evaluate(evaluation)
            return flops, flops / (rate * (1 if self.gpus else self.plan.scale.evaluate_threads))
        run = self.plan.runs[job]
        flops = RunFlops(run).train()
        decisions = run.training.batches * decisions_per_batch(run)
        seconds = flops / (rate * (self.gpus or self.plan.scale.train_threads)) + decisions * DECISION_S[self.kind]
        return flops, seconds

    @cached_property
    def _off(self) -> dict[str, float]:
        """Stage -> how many times the seconds by their FLOPs those jobs took that are done: so do the others."""
        trained = [run for run, r in self.plan.runs.items() if not isinstance(r, GivenRun)]
        off = dict[str, float]()
        for stage, jobs in {"train": trained, "evaluate": list(self.plan.evaluations)}.items():
            done = [
                (took - self.start_s, self._by_flops(stage, job)[1]) for job in jobs if (took := self.took(stage, job))
            ]
            # Less takes the time of its calls, which says nothing of the rest.
            told = [(took, seconds) for took, seconds in done if seconds >= LEAST_S[self.kind]]
            off[stage] = max(0.0, sum(t for t, _ in told)) / sum(s for _, s in told) if told else 1.0
        return off

    def _memory_mb(self, devices: int, activations_gb: float) -> float:
        """Of a process with its libraries, and its activations on a CPU, which memory_gb bounds."""
        most = self.plan.config.memory_gb or ACTIVATIONS_GB
        return PROCESS_MB + (CUDA_MB * devices if devices else 1000 * min(most, activations_gb))

    def render(self, artifact: str) -> Cost:
        path = self.plan.artifact_stem(artifact).with_suffix(".json")
        return Cost("render", artifact, path, seconds=self.start_s + DRAWING_S, disk_mb=0.3, scale=self.plan.scale.name)

    # -- of a cluster: each job's estimate with a margin, capped, and more at each attempt ----------------------------

    @cached_property
    def cost(self) -> Callable[[str, str], Cost]:
        """(stage, id) -> the estimate, made once."""
        return cache(lambda stage, name: getattr(self, stage)(name))

    def seconds(self, stage: str, name: str) -> float:
        seconds = self.cost(stage, name).seconds
        return UNKNOWN_S if math.isnan(seconds) else seconds

    def runtime(self, stage: str, name: str, attempt: int = 1) -> int:
        """Minutes: the estimate with a margin, more at each attempt, and never above what a job may have."""
        least = LEAST_MINUTES_TOGETHER if self.group(stage, name) else LEAST_MINUTES
        minutes = least + math.ceil(MARGIN * self.seconds(stage, name) / 60)
        return min(attempt * minutes, round(60 * self.plan.config.machine.job_hours))

    def mem_mb(self, stage: str, name: str, attempt: int = 1) -> int:
        """Memory: half as much again, and as much more at each attempt, as one may have ended for want of it."""
        return math.ceil(self.cost(stage, name).memory_mb * (0.5 + attempt))

    def share(self, stage: str, name: str, attempt: int = 1) -> int:
        """Percent of what jobs that are sent together ask for at most, CPUs or memory: as many run at once as fit."""
        cpus = self.cost(stage, name).threads / CPUS_TOGETHER
        return min(100, math.ceil(100 * max(cpus, self.mem_mb(stage, name, attempt) / MB_TOGETHER)))

    def retries(self, stage: str, names: Iterable[str]) -> int:
        """How often the longest of these jobs may be started again: as often as its time needs, and for mishaps."""
        longest = max((self.seconds(stage, name) for name in names), default=0.0)
        return RETRIES + math.ceil(MARGIN * longest / (3600 * self.plan.config.machine.job_hours)) - (longest > 0)

    def group(self, stage: str, name: str) -> str | None:
        """Short jobs of one stage that do not hang on each other are sent together; None: a job goes alone.

        Those with a GPU go alone: jobs that are sent together may run at once.
        """
        if self.cost(stage, name).gpus or self.seconds(stage, name) > SHORT_S:
            return None
        return f"{stage}{self.depth(stage, name)}"

    def depth(self, stage: str, name: str) -> int:
        """How many jobs of the same stage come before it, one after the other."""
        if stage == "train":
            run = self.plan.runs[name]
            start = None if isinstance(run, GivenRun) else run.start
            return 0 if start is None else 1 + self.depth(stage, start.partition("@")[0])
        return int(stage == "evaluate" and self.plan.rescaling_of_evaluation(name) is not None)
