"""Evaluate a model on the user's instances: a short summary, and records like those of the plan.

Timed: from coordinates in host memory to solutions in host memory, after a warm-up, in fp32.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.datasets.labels import load_tours
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.progress import Progress
from neuroute.datasets.shard_files import REFERENCES
from neuroute.decoding.decode import decode, instances_per_batch
from neuroute.evaluation.loaded import make_rows
from neuroute.evaluation.records import Rows, write_records
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.weights import all_finite, describe, load_checkpoint
from neuroute.plan.digest import code_digest
from neuroute.plan.objects import Decoding, LabelJob, Labels, Network
from neuroute.user.data import read_instances
from neuroute.user.instances import Group, Instances
from neuroute.user.options import check_decoding
from neuroute.user.outputs import check_records

SOLVES = {"tsp": ("tsp",), "cvrp": ("cvrp",), "vrp": ("vrp", "cvrp")}  # what instances a model of each problem takes


@dataclass(frozen=True)
class Model:
    """A checkpoint of any run, ready on its device."""

    net: RoutingNetwork
    about: Mapping[str, Any]
    place: torch.device

    @property
    def problem(self) -> str:
        return self.net.problem


@dataclass(frozen=True)
class GroupResult:
    """The solutions' lengths of one group."""

    group: Group
    lengths: np.ndarray  # (count,)
    rounded: np.ndarray | None  # (count,) in TSPLIB's integer distances
    seconds: float

    def gaps(self) -> dict[str, float]:
        """Return gaps in per cent, by both conventions; none without reference lengths."""
        reference = self.group.reference
        if reference is None:
            return {}
        gaps = {
            "gap_pct": 100 * (self.lengths.mean() / reference.mean() - 1),
            "gap_mean_of_ratios_pct": 100 * (np.mean(self.lengths / reference) - 1),
        }
        if self.rounded is not None:
            gaps["gap_rounded_pct"] = 100 * (np.mean(self.rounded / reference) - 1)
        return {name: float(gap) for name, gap in gaps.items()}


def load_model(path: Path, device: str, trusted: Collection[str] = ()) -> Model:
    """Load a checkpoint; of networks outside this package those of the `trusted` kinds.

    Raises NeurouteError if the file is no checkpoint, is of other network code, or its training diverged.
    """
    net, about = load_checkpoint(path, trusted=trusted)
    if not all_finite(net):
        raise NeurouteError(
            f"{path}: weights of {about['run']} are no finite numbers; its training diverged: lower the learning rate "
            "and train it anew"
        )
    if about["code"] != code_digest(about["network"]["kind"]):
        raise NeurouteError(
            f"{path}: {about['run']} was written by another version of the network's code; make it again, or, if its "
            "arithmetic is the same, keep the weights with `neuroute import-weights`"
        )
    place = devices.choose(device)
    return Model(net.to(place), about, place)


def find_instances(
    data: str, testsets_dir: str | None, label_jobs: Mapping[str, LabelJob], label_dirs: list[Path]
) -> Instances:
    """Return the instances of a file or folder, a test set in `testsets_dir`, or a labelled data set of the plan."""
    if Path(data).exists():
        return read_instances(Path(data))
    if testsets_dir is not None and (Path(testsets_dir) / f"{data}.npz").is_file():
        return read_instances(Path(testsets_dir) / f"{data}.npz")
    planned = [labels for job in label_jobs.values() for labels in job.labels if labels.dataset.id == data]
    if planned:  # by several solvers perhaps, of which one that bounds others is the better yardstick
        return _labelled(next((labels for labels in planned if labels.solver in REFERENCES), planned[0]), label_dirs)
    place = f"{testsets_dir}/{data}.npz" if testsets_dir else "a test set (`testsets_dir` in config.yaml is not set)"
    raise NeurouteError(f"--data {data}: no such file, nor {place}, nor a labelled data set of the plan")


def _labelled(labels: Labels, label_dirs: list[Path]) -> Instances:
    """Return a labelled data set of the plan."""
    kind, dataset = spec_of(labels), labels.dataset
    instances = kind.instances(dataset)
    reference = kind.lengths(instances, load_tours(labels, label_dirs))
    coords, *loads = kind.arrays(instances)
    demand, capacity = loads[:2] or (None, None)
    vrp = instances if dataset.problem == "vrp" else None
    group = Group(dataset.id, coords.astype(np.float64), reference, demand, capacity, vrp=vrp, seen=vrp)
    return Instances(dataset.problem, dataset.id, (group,))


def evaluate(
    model: Model, instances: Instances, decoding: Decoding, memory_gb: float | None, out: Path | None, scale: str = ""
) -> str:
    """Solve all instances, write records to `out` (.csv, with its .npz twin of lengths), and return a summary.

    Raises NeurouteError, before anything is solved or overwritten, if model, instances and decoding do not fit.
    """
    if out is not None and out.suffix != ".csv":
        raise NeurouteError(f"--out {out}: records are written as .csv")
    if instances.problem not in SOLVES[model.problem]:
        raise NeurouteError(
            f"{instances.name}: holds {instances.problem.upper()} instances, but {model.about['run']} solves "
            f"{model.problem.upper()}"
        )
    for group in instances.groups:
        check_decoding(model.problem, group.n, decoding, group.name)
    if out is not None:
        check_records("--out", out)
    budget = devices.memory_budget_gb(model.place, memory_gb)
    short = decoding.model_copy(update={"iterations": min(decoding.iterations, 1)})
    total = sum(g.count for g in instances.groups)
    measured = []
    with Progress(total, instances.name, show=True) as progress:
        _solve(model, instances.groups[0].slice(0, 1), short, budget)  # warm up
        for group in instances.groups:
            measured.append(_measure(model, group, decoding, budget, progress))
    if out is not None:
        rows = [row for m in measured for row in _rows(model, m, decoding, budget, scale)]
        write_records(out, rows, {f"{m.group.name}|{decoding.id}": m.lengths for m in measured})
    return _summary(model, instances.name, measured, decoding)


def _measure(model: Model, group: Group, decoding: Decoding, memory_gb: float, progress: Progress) -> GroupResult:
    # Where something is drawn by an instance's number in the call, a group is solved in one: re-construct of the CVRP,
    # solutions that insertion starts with, random embeddings, and gates that draw for a batch.
    drawn = decoding.method == "prc" or (model.problem == "cvrp" and decoding.method == "rrc")
    whole = drawn or model.net.random_embeddings or model.net.is_batch_dependent
    step = group.count if whole else instances_per_batch(model.net, group.coords.shape[1], decoding, memory_gb)
    lengths, rounded, seconds = [], [], 0.0
    for first in range(0, group.count, step):
        part = group.slice(first, first + step)
        devices.synchronize(model.place)
        began = time.perf_counter()
        solutions = _solve(model, part, decoding, memory_gb)
        seconds += time.perf_counter() - began
        lengths.append(part.lengths(solutions))
        if group.tsplib is not None:
            rounded.append(np.array([group.tsplib.length(solutions[0])]))
        progress.add(part.count)
    return GroupResult(group, np.concatenate(lengths), np.concatenate(rounded) if rounded else None, seconds)


def _solve(model: Model, group: Group, decoding: Decoding, memory_gb: float) -> np.ndarray:
    """Return tours (count, n), or solutions with vehicles (count, 2, n)."""
    return decode(model.problem, model.net, group.inputs(), decoding, memory_gb).numpy()


def _rows(model: Model, m: GroupResult, decoding: Decoding, memory_gb: float, scale: str) -> Rows:
    run, group = str(model.about["run"]), m.group
    shared = {
        "paper": run.partition("/")[0],
        "run": run,
        "group": "user",
        "seed": model.about.get("spec", {}).get("seed"),
        "test": group.name,
        "distribution": "tsplib" if group.tsplib else "user",
        "n": group.n,
        "n_instances": group.count,
        "reference": "" if group.reference is None else "given",
        "batch_size": instances_per_batch(model.net, group.coords.shape[1], decoding, memory_gb),
    }
    values = m.gaps() | {"length": float(m.lengths.mean()), "time_s": m.seconds}
    return make_rows(shared, decoding, values, model.place, scale, model.about["code"], m.seconds)


def _summary(model: Model, name: str, measured: list[GroupResult], decoding: Decoding) -> str:
    total = sum(m.group.count for m in measured)
    sizes = sorted({m.group.n for m in measured})
    n = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    variants = sorted({m.group.vrp.variant for m in measured if m.group.vrp is not None})
    lines = [f"{name}: {total} {' '.join([*variants, 'instances'])}, n = {n}"]
    if len(measured) > 1:
        width = max(len(m.group.name) for m in measured)
        for m in measured:
            gap = "".join(f"  {_gap(key, value)}" for key, value in m.gaps().items() if key != "gap_pct")
            lines.append(f"  {m.group.name:{width}}  {m.group.count} x n={m.group.n}, length {_short(m.lengths)}{gap}")
    lengths = np.concatenate([m.lengths for m in measured])
    lines.append(f"length  {_short(lengths)} on average")
    known = [m for m in measured if m.group.reference is not None]
    if known:
        references = np.concatenate([m.group.reference for m in known if m.group.reference is not None])
        all_rounded = [m.rounded for m in known if m.rounded is not None]
        whole = GroupResult(
            Group(name, np.empty((len(references), 4, 2)), references),
            np.concatenate([m.lengths for m in known]),
            np.concatenate(all_rounded) if len(all_rounded) == len(known) else None,
            0.0,
        )
        of = "" if len(references) == total else f", on the {len(references)} instances with a reference"
        lines.append("gap     " + ", ".join(_gap(key, value) for key, value in whole.gaps().items()) + of)
    else:
        lines.append("gap     unknown: the data bring no reference solutions")
    seconds, threads = sum(m.seconds for m in measured), torch.get_num_threads()
    on = devices.name(model.place) + (f", {threads} threads" if model.place.type == "cpu" else "")
    lines.append(f"time    {seconds:.2f} s on {on}")
    what = describe(Network.model_validate(model.about["network"]))
    lines.append(f"model   {model.about['run']}, {what}, {decoding.id}")
    return "\n".join(lines)


def _gap(key: str, value: float) -> str:
    names = {
        "gap_pct": "of mean lengths",
        "gap_mean_of_ratios_pct": "mean of the instances' gaps",
        "gap_rounded_pct": "the same in integer distances",
    }
    return f"{value:.3f} % ({names[key]})"


def _short(lengths: np.ndarray) -> str:
    mean = float(lengths.mean())
    return f"{mean:.5f}" if mean < 1000 else f"{mean:,.1f}"
