"""`neuroute rehearse`: everything of a scale once and shortly, on this machine; all that fails, and the hours."""

import math
import os
import re
import shutil
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import count, groupby
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import torch

from neuroute.accounting.flops import RunFlops
from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.plan.estimates import Estimates
from neuroute.plan.overview import costs
from neuroute.plan.plan import Plan
from neuroute.plan.rates import Kind, OnDevice, kind_of
from neuroute.rehearsal.findings import Findings, job_times, keep_rehearsal, report
from neuroute.rehearsal.loading import load_what_jobs_use
from neuroute.rehearsal.short import BATCHES, pieces, training_key
from neuroute.rehearsal.trials import Stage, try_piece, try_solver, try_training
from neuroute.solvers.registry import FROM_FILES
from neuroute.specs.objects import GivenRun, Labels, Run

LONGEST_CALL = 0.1  # of the whole time, of one call of a solver by what is typical
LONGEST_TRIAL = 0.15  # likewise, of one trial
HALVINGS = 4  # of a batch that does not fit
SLOW_S, FEW = 0.5, 2  # where a batch is expected to take so long, so few are tried
QUICK = 4  # quick trials that go between two long ones: hours hang on these, what fails on all


@dataclass(frozen=True)
class Trial:
    """One thing to try: its name in what is printed, its key in the file, and what to call in a process of its own."""

    stage: str
    name: str
    key: str
    call: Callable[[Stage], Any]
    expected_s: float  # of all jobs that it tells of, by what is typical
    turn: int = 0  # first of everything, of each evaluation its longest part; then the next ones
    smaller: "Trial | None" = None  # with half the batch, where that is something to say


def rehearse(plan: Plan, minutes: float, say: Callable[[str], None]) -> Findings:
    """Try all of a plan for so many minutes, keep what was measured, and say what failed and what follows.

    Trials run side by side on a CPU's cores, those of networks one at a time on a GPU.  A failure is one line, and
    the rest goes on.
    """
    began = time.monotonic()
    kind = kind_of(plan.config)
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # so that a look for CUDA does not start it here
    load_what_jobs_use(plan)
    device = _device(kind)
    start_s = time.process_time()  # of this process, until all is loaded: what a job's process takes
    findings = Findings()
    findings.failures += _lacking_space(plan)
    trials = _in_order(_trials(plan, kind, 60 * minutes))
    say(f"scale {plan.scale.name}: {len(trials)} trials on {device}, at most {minutes:g} minutes")
    findings.all = len(trials)
    _run(plan, kind, trials, began + 60 * minutes, findings)
    try:
        fresh = OnDevice(measured=date.today().isoformat(), device=device, jobs=job_times(plan, findings))
        path = keep_rehearsal(plan.config, kind, fresh, findings.solvers, start_s)
    except NeurouteError as error:
        findings.failures.append(f"keep what was measured: {error}")
        path = None
    for line in report(plan, findings):
        say(line)
    say(f"{time.monotonic() - began:.0f} s" + (f"; {path} has what was measured" if path else ""))
    return findings


def _device(kind: Kind) -> str:
    """Its name; of a GPU as a copy finds it: copies of a process that uses CUDA could not."""
    if kind == "cpu":
        return devices.name(torch.device(kind))
    try:
        with get_context("fork").Pool(1) as pool:
            return pool.apply(devices.name, (torch.device(kind, 0),))
    except (RuntimeError, AssertionError) as error:
        raise NeurouteError(f"device: the GPU cannot be used ({_line(error)}); or set `device: cpu`") from None


def _trials(plan: Plan, kind: Kind, seconds: float) -> Iterator[Trial]:
    estimates = Estimates(plan)
    distinct: dict[str, Trial] = {}

    def add(trial: Trial) -> None:
        trial = replace(trial, expected_s=0.0) if math.isnan(trial.expected_s) else trial
        if same := distinct.get(trial.key):  # which tells of this job, too
            turn = min(same.turn, trial.turn)
            trial = replace(same, expected_s=same.expected_s + trial.expected_s, turn=turn)
        distinct[trial.key] = trial

    for run in plan.runs.values():
        if not isinstance(run, GivenRun):
            expected_s = estimates.train(run.id).seconds
            slow = expected_s > SLOW_S * run.training.batches
            add(_training(run, training_key(run, kind), expected_s, FEW if slow else BATCHES))
    for evaluation in plan.evaluations.values():
        run = plan.runs[evaluation.run]
        parts = [(estimates.evaluation_s(RunFlops(run).evaluate(p.whole)), p) for p in pieces(evaluation, kind)]
        for turn, (expected_s, piece) in enumerate(sorted(parts, key=lambda part: -part[0])):
            call, is_unknown = partial(try_piece, run=run, piece=piece), not expected_s > 0  # which may be long
            add(Trial("evaluate", evaluation.id, piece.key(run), call, expected_s, turn + is_unknown))
    yield from distinct.values()
    yield from _of_solvers(plan, estimates, seconds)


def _in_order(trials: Iterable[Trial]) -> list[Trial]:
    """By turn, and in each the longest and some of the quickest by turns."""
    in_order: list[Trial] = []
    for _, group in groupby(sorted(trials, key=lambda trial: (trial.turn, trial.expected_s)), lambda t: t.turn):
        waiting = deque(group)
        while waiting:
            in_order.append(waiting.pop())
            in_order += [waiting.popleft() for _ in range(min(QUICK, len(waiting)))]
    return in_order


def _training(run: Run, key: str, expected_s: float, batches: int, halvings: int = HALVINGS) -> Trial:
    smaller, size = None, getattr(run.training, "batch_size", 1)
    if halvings and size > 1 and "batch_size" in type(run.training).model_fields:
        training = run.training.model_copy(update={"batch_size": size // 2})
        smaller = _training(run.model_copy(update={"training": training}), key, expected_s, batches, halvings - 1)
    call = partial(try_training, run=run, batches=batches)
    return Trial("train", run.id, key, call, expected_s, smaller=smaller)


def _of_solvers(plan: Plan, estimates: Estimates, seconds: float) -> Iterator[Trial]:
    """One call of each solver at each size whose call is short enough; at half the size, where it is not."""
    calls: dict[tuple[str, str, int], tuple[Labels, float]] = {}
    for labels in plan.label_jobs.values():
        if labels.solver in FROM_FILES:
            continue
        dataset, longest_s = labels.dataset, LONGEST_CALL * seconds
        while estimates.rehearsal.solver_s(labels.solver, dataset.n) > longest_s and dataset.n > 20:
            dataset = dataset.model_copy(update={"n": dataset.n // 2})
        dataset = dataset.model_copy(update={"first": 0, "file": None})
        whole = estimates.label_seconds(labels)
        place = labels.solver, dataset.problem, dataset.n
        _, before = calls.get(place, (labels, 0.0))
        total = before + (0.0 if math.isnan(whole) else whole)
        calls[place] = labels.model_copy(update={"dataset": dataset}), total
    for (solver, problem, n), (labels, whole) in calls.items():
        yield Trial("solve", f"{solver} ({problem}, {n})", solver, partial(try_solver, labels=labels), whole)


def _lacking_space(plan: Plan) -> list[str]:
    needed = sum(c.disk_mb for c in costs(plan, None) if not c.there)
    folder = Path(plan.config.work_dir)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free / 1e6
    return (
        [f"disk: {needed / 1e3:.1f} GB are needed in {folder}, {free / 1e3:.1f} GB are free"] if needed > free else []
    )


@dataclass
class _Running:
    trial: Trial
    first: Trial  # with the batch that was asked for
    process: Any
    answer: connection.Connection
    folder: Path
    until: float = math.inf

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Lane:
    """Trials that run side by side, so many at once."""

    def __init__(self, at_once: int, trials: list[Trial]) -> None:
        self.at_once = at_once
        self.waiting = [(trial, trial) for trial in reversed(trials)]
        self.running: list[_Running] = []

    def collect(self, ready: list[Any], until: float, findings: Findings) -> None:
        """Take what those have found that are ready, and end those whose time is up."""
        for each in self.running.copy():
            if each.answer in ready:
                self.running.remove(each)
                if smaller := _finish(each, findings):
                    self.waiting.append((smaller, each.first))
            elif each.until <= time.monotonic():
                self.running.remove(each)
                each.end()
                findings.left += 1
                if time.monotonic() < until:
                    findings.too_long.append(f"{each.first.stage} {each.first.name}")


def _run(plan: Plan, kind: Kind, trials: list[Trial], until: float, findings: Findings) -> None:
    """Each trial in a copy of this process, which has loaded all: what ends one, ends no other.

    One that takes a large part of the time is ended, too: it says nothing, and others wait.
    """
    longest_s = LONGEST_TRIAL * (until - time.monotonic())
    place, numbers = plan.work / "rehearsal", count()
    lanes = _lanes(trials, kind, plan.scale.train_threads)
    try:
        while True:
            for lane in lanes:
                while lane.waiting and len(lane.running) < lane.at_once and time.monotonic() < until:
                    trial, first = lane.waiting.pop()
                    lane.running.append(_start(plan, kind, trial, first, place / str(next(numbers))))
                    lane.running[-1].until = min(until, time.monotonic() + longest_s)
            running = [each for lane in lanes for each in lane.running]
            if not running:
                break
            soonest = min(each.until for each in running)
            ready = connection.wait([each.answer for each in running], max(0.0, soonest - time.monotonic()))
            for lane in lanes:
                lane.collect(ready, until, findings)
    finally:
        for lane in lanes:
            for each in lane.running:
                each.end()
        shutil.rmtree(place, ignore_errors=True)
    findings.left += sum(len(lane.waiting) for lane in lanes)


def _lanes(trials: list[Trial], kind: Kind, threads: int) -> list[_Lane]:
    """Of a GPU, networks have it one after the other, and solvers the cores beside."""
    cores = os.cpu_count() or 1
    if kind == "cpu":
        return [_Lane(max(1, cores // threads), trials)]
    solvers = [trial for trial in trials if trial.stage == "solve"]
    networks = [trial for trial in trials if trial.stage != "solve"]
    return [_Lane(1, networks), _Lane(max(1, cores - threads), solvers)]


def _start(plan: Plan, kind: Kind, trial: Trial, first: Trial, folder: Path) -> _Running:
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_in_copy, args=(trial, Stage(plan, kind, folder), there), daemon=False)
    process.start()
    there.close()
    return _Running(trial, first, process, here, folder)


def _in_copy(trial: Trial, stage: Stage, answer: connection.Connection) -> None:
    """Send (pace, None), or (None, what went wrong and whether memory was short)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    try:
        torch.set_num_threads(1)
        stage.folder.mkdir(parents=True, exist_ok=True)
        answer.send((trial.call(stage), None))
    except BaseException as error:
        answer.send((None, (_line(error), _is_memory(error))))
    finally:
        os._exit(0)


def _finish(ended: _Running, findings: Findings) -> Trial | None:
    """Take what a trial has sent; the same with half the batch, if memory was short."""
    try:
        pace, fault = ended.answer.recv()
    except EOFError:  # killed
        ended.process.join()
        pace, fault = None, (f"was killed (signal {-(ended.process.exitcode or 0)}), for want of memory perhaps", True)
    ended.process.join()
    shutil.rmtree(ended.folder, ignore_errors=True)
    first, is_smaller = ended.first, ended.trial is not ended.first
    if fault is None:
        findings.add(first.key, pace)
        if is_smaller:
            size = ended.trial.call.keywords["run"].training.batch_size  # type: ignore[attr-defined]
            findings.failures.append(f"{first.stage} {first.name}: a batch of {size} fits")
        return None
    text, lacks_memory = fault
    if not (is_smaller and lacks_memory):  # that less does not fit either is nothing new
        findings.failures.append(f"{first.stage} {first.name}: {text}")
    return ended.trial.smaller if lacks_memory else None


def _is_memory(error: BaseException) -> bool:
    texts = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(t in str(error).lower() for t in texts)


def _line(error: BaseException) -> str:
    """What was raised, and where in this package or the user's code, unless it says how to mend it."""
    text = re.sub(r"\s+", " ", str(error)).strip()
    text = text if len(text) <= 300 else text[:300] + "..."
    if isinstance(error, NeurouteError):
        return text
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {text}{where}"
