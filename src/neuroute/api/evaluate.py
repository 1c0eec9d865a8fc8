"""Evaluate a model on the user's instances: a short summary, and records like those of the plan.

Timed: from coordinates in host memory to solutions in host memory, after a warm-up, in fp32.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import cKDTree

from neuroute.analysis.intervals import gap_pct, gaps
from neuroute.api.files import gather, read_instances
from neuroute.api.model import SOLVES, Model, load_model, resolve_decoding
from neuroute.api.solution import check_numbers
from neuroute.core import device as devices
from neuroute.core.device import Threads
from neuroute.core.errors import NeurouteError
from neuroute.core.lazy import pd
from neuroute.core.progress import Progress
from neuroute.core.text import html_table
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import REFERENCES, load_tours
from neuroute.decoding.decode import decode_timed, instances_per_batch
from neuroute.evaluation.loaded import Rows, check_records, make_rows, write_records
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.weights import build, describe_source, parameters
from neuroute.problems.instances.instance import Instance, Instances
from neuroute.solvers.registry import is_installed
from neuroute.specs.decodings import check_decoding
from neuroute.specs.objects import Decoding, Labels, Network

ROUNDING = 0.05  # points of a gap that still agree: on another kind of CPU near ties may fall otherwise
if TYPE_CHECKING:
    from neuroute.problems.instances.drawing import Drawing

FEW_NODES = 400  # of the instances by which it is tried how many threads are faster


@dataclass(frozen=True)
class GroupResult:
    """The solutions' lengths of one group."""

    group: Instances
    reference: np.ndarray | None  # (count,)
    lengths: np.ndarray  # (count,)
    rounded: np.ndarray | None  # (count,) in the library's rounded distances
    seconds: float

    def gaps(self) -> dict[str, float]:
        """Return gaps in per cent, by both conventions; none without reference lengths."""
        return {} if self.reference is None else gaps(self.lengths, self.reference, self.rounded)


def find_instances(
    data: str,
    testsets_dir: str | None,
    label_jobs: Mapping[str, Labels],
    label_dirs: list[Path],
    argument: str,
    ignore: Sequence[str] = (),
) -> Instances:
    """Return the instances of a file or folder, a test set in `testsets_dir`, or a labelled data set of the plan.

    ignore: keys and sections of files that are left out.  Raises NeurouteError, which begins with the `argument`, if
    there are none of that name.
    """
    if Path(data).exists():
        return read_instances(Path(data), ignore)
    if testsets_dir is not None and (Path(testsets_dir) / f"{data}.npz").is_file():
        return read_instances(Path(testsets_dir) / f"{data}.npz")
    planned = [labels for job, labels in label_jobs.items() if data in (job, labels.dataset.id)]
    if planned:  # by several solvers perhaps, of which one that bounds others is the better yardstick
        labels = next((labels for labels in planned if labels.solver in REFERENCES), planned[0])
        kind, dataset = spec_of(labels), labels.dataset
        instances, solutions = kind.instances(dataset), load_tours(labels, label_dirs).astype(np.int64)
        whole = Instances.of_batch(dataset.id, instances, dataset.problem)
        return whole.with_solutions(solutions, kind.lengths(instances, solutions).tolist())
    place = f"{testsets_dir}/{data}.npz" if testsets_dir else "a test set (`testsets_dir` in config.yaml is not set)"
    raise NeurouteError(f"{argument} {data}: no such file, nor {place}, nor a labelled data set of the plan")


@dataclass(frozen=True)
class Evaluation:
    """What was measured of a model on a set of instances; `str` gives a summary.

    Attributes:
        instances: in the order given.
        groups: for each size (or file) the instances, lengths (count,), and seconds.
        model: that was measured.
        decoding: how it built solutions.
        reference: whose solutions the gaps are to; empty where there are none.
        doubts: why references that came with the instances cannot be right, a line each.
        threads: in how many, and why.
    """

    instances: Instances
    groups: tuple[GroupResult, ...]
    model: Model
    decoding: Decoding
    reference: str = ""
    doubts: tuple[str, ...] = ()
    threads: str = ""

    @property
    def name(self) -> str:
        """Of the set."""
        return self.instances.name

    @property
    def lengths(self) -> np.ndarray:
        """(count,) of the solutions, in the instances' own units, not rounded, in the order given."""
        return self.to_frame()["length"].to_numpy(float)

    def to_frame(self) -> "pd.DataFrame":
        """Return a row for each instance, in the order given.

        `length` is not rounded; `reference` and `gap_pct` (in a library's rounded distances) are NaN where no solution
        is known; `time_s` is an equal share of the seconds of the instances of its size, which are solved together.
        """
        rows = dict[int, dict[str, Any]]()
        for m in self.groups:
            costs = m.lengths if m.rounded is None else m.rounded
            for each, length, cost in zip(m.group.members, m.lengths, costs, strict=True):
                best = each.best_known
                gap = None if best is None else gap_pct(float(cost), best)
                about = {"instance": each.name, "n": each.n, "length": float(length), "reference": best}
                rows[id(each)] = about | {"gap_pct": gap, "time_s": m.seconds / m.group.count}
        frame = pd.DataFrame([rows[id(each)] for each in self.instances.members])
        return frame.astype({"reference": float, "gap_pct": float})

    def plot(self) -> "Drawing":
        """Draw the gaps of the instances, smallest first.

        Raises:
            NeurouteError: where no gap is known.
        """
        from neuroute.problems.instances.drawing import draw_sorted

        gaps = self.to_frame()["gap_pct"].dropna().to_numpy()
        if not len(gaps):
            raise NeurouteError(f"{self.name}: has no reference solutions, so no gaps; evaluate with reference='lkh'")
        return draw_sorted(gaps, f"{self.model.name}, {self.decoding.name}, on {self.name}", "gap (%)", "instances")

    def _repr_html_(self) -> str:
        rows = [
            {"instances": m.group.count, "n": m.group.n, "length": m.lengths.mean()}
            | {"gap_pct": m.gaps().get("gap_rounded_pct", m.gaps().get("gap_pct")), "time_s": m.seconds}
            for m in self.groups
        ]
        return html_table(f"{self.name}: {self.model.name}, {self.decoding.name}", pd.DataFrame(rows))

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of all groups."""
        return sum(m.seconds for m in self.groups)

    @property
    def gaps(self) -> dict[str, float]:
        """Gaps in per cent, by several conventions, on the instances with a reference; empty where none has one.

        `gap_pct` is of mean lengths, `gap_mean_of_ratios_pct` the mean of the instances' gaps, `gap_rounded_pct` the
        same in a library's rounded distances.
        """
        pairs = [(m, m.reference) for m in self.groups if m.reference is not None]
        if not pairs:
            return {}
        rounded = [m.rounded for m, _ in pairs if m.rounded is not None]
        return gaps(
            np.concatenate([m.lengths for m, _ in pairs]),
            np.concatenate([reference for _, reference in pairs]),
            np.concatenate(rounded) if len(rounded) == len(pairs) else None,
        )

    @property
    def of_card(self) -> str:
        """How the gap compares with what the network's card says of the same set; "" where it says nothing."""
        for gap in self.model.card.gaps if self.model.card else ():
            if (gap.set, gap.decoding, gap.instances) == (self.name, self.decoding.name, len(self.lengths)):
                apart = self.gaps["gap_pct"] - gap.gap
                verdict = "agrees" if abs(apart) <= ROUNDING else f"{apart:+.3f} points off"
                return f"{gap.gap:.3f} % (to {gap.reference}): {verdict}"
        return ""

    def __repr__(self) -> str:
        gap = "".join(f", gap {value:.3f} %" for key, value in self.gaps.items() if key == "gap_pct")
        how = f"{self.model.name}, {self.decoding.name}"
        return f"<Evaluation {self.name}: {len(self.lengths)} instances by {how}{gap}>"

    def __str__(self) -> str:
        total = sum(m.group.count for m in self.groups)
        sizes = sorted({m.group.n for m in self.groups})
        n = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        variants = sorted({str(vrp.variant) for m in self.groups if (vrp := m.group.vrp) is not None})
        lines = [f"{self.name}: {total} {' '.join([*variants, 'instance' + 's' * (total > 1)])}, n = {n}"]
        if ignored := sorted({name for m in self.groups for each in m.group.members for name in each.ignored}):
            lines[0] += f", without {', '.join(ignored)} of the file{'s' * (total > 1)}"
        if len(self.groups) > 1:
            width = max(len(m.group.name) for m in self.groups)
            for m in self.groups:
                gap = "".join(f"  {_gap(key, value)}" for key, value in m.gaps().items() if key != "gap_pct")
                size = f"{m.group.count} x n={m.group.n}"
                lines.append(f"  {m.group.name:{width}}  {size}, length {_short(m.lengths)}{gap}")
        lines.append(f"length  {_short(self.lengths)} on average")
        count = sum(m.group.count for m in self.groups if m.reference is not None)
        if count:
            of = "" if count == total else f", on the {count} instances with a reference"
            lines.append(f"gap     {', '.join(_gap(key, value) for key, value in self.gaps.items())}{of}")
            lines.append(f"gaps to {self.reference}")
            lines += [f"kept    {self.of_card}"] if self.of_card else []
            lines += [f"WARNING {line}" for line in self.doubts]
        else:
            lines.append("gap     unknown: the data have no reference solutions; name a solver as reference")
        place = self.model.place
        on = devices.name(place) + (f", {self.threads}" if place.type == "cpu" else "")
        lines.append(f"time    {self.seconds:.2f} s on {on}")
        net, (low, high) = self.model.net, self.model.trained_nodes
        trained = f"trained at n = {low}" + (f" to {high}" if high > low else "")
        what = f"{type(net).__name__}, {parameters(net):,} parameters, {trained}"
        lines.append(f"model   {self.model.name}, {what}, {self.decoding.name}")
        return "\n".join(lines)


def evaluate(
    model: Model | str | Path,
    instances: Instances | Instance | str | Path | np.ndarray | Sequence[Instance | str | Path],
    decoding: Decoding | str | None = None,
    memory_gb: float | None = None,
    out: str | Path | None = None,
    *,
    reference: str | None = None,
    workers: int | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> Evaluation:
    """Solve all instances with a network and measure lengths, gaps and time.

    Args:
        model: a loaded one (`neuroute.load_model`), the name of a shipped one, or a checkpoint.
        instances: of one problem; a file or folder, a list of instances or files, or coordinates (count, n, 2).
        decoding: how solutions are built, or its name, such as `greedy`; None: `multistart` for a network of many
            starts, `greedy` for others, and its own way for a network that has one.
        memory_gb: for activations; None: 4 on a CPU, 60 % of what a GPU has free.
        out: records are written here (.csv), and lengths of single instances beside it (.npz); None: nowhere.
        reference: a solver (`neuroute.methods`), to whose solutions the gaps are; they are kept beside `out`.
        workers: processes in which it solves; None: as many as there are cores.
        device: `auto` (a GPU where there is one), `cpu` or `cuda`.
        threads: of the CPU; None: one or all, by which is faster on the first instances.

    Raises:
        NeurouteError: before anything is solved or overwritten, if model, instances and decoding do not fit, or the
            reference cannot solve the instances.
    """
    check_numbers(memory_gb, threads=threads)
    instances, out = gather(instances), None if out is None else Path(out)
    if not isinstance(model, Model):
        model = load_model(model, device)
    decoding = fitting(model.name, model.net, instances, decoding)
    if out is not None:
        if out.suffix != ".csv":
            raise NeurouteError(f"--out {out}: records are written as .csv")
        check_records("--out", out)
    if reference is not None:
        from neuroute.api.reference import with_reference  # solvers compile when they are imported

        instances = with_reference(instances, reference, out, workers or os.cpu_count() or 1)
    budget = devices.memory_budget_gb(model.place, memory_gb)
    short = decoding.model_copy(update={"iterations": min(decoding.iterations, 1)})
    results = []
    few = instances.groups[0]
    few = few.first(max(1, FEW_NODES // few.n))
    with Progress(instances.count, instances.name) as progress, Threads(threads, model.place) as pace:
        while pace.chosen is None:
            with pace.piece():
                decode_timed(model.problem, model.net, few.inputs(model.problem), short, budget)
        decode_timed(model.problem, model.net, few.first(1).inputs(model.problem), short, budget)
        for group in instances.groups:
            results.append(_measure(model, group, decoding, budget, progress))
        on = pace.reason or f"{pace.chosen} thread{'s' * (pace.chosen > 1)}"
    if out is not None:
        rows = [row for m in results for row in _rows(model, m, decoding, budget, reference or "given")]
        write_records(out, rows, {f"{m.group.name}|{decoding.name}": m.lengths for m in results})
    evaluation = Evaluation(instances, tuple(results), model, decoding, threads=on)
    if not evaluation.gaps:
        return evaluation
    gap = evaluation.gaps.get("gap_rounded_pct", evaluation.gaps["gap_pct"])
    return replace(evaluation, reference=reference or origin(instances), doubts=doubts(instances, gap, reference))


def fitting(
    name: str, net: RoutingNetwork | Network, instances: Instances, decoding: Decoding | str | None
) -> Decoding:
    """Return how a network, or one of this spec, decodes instances; None: as is usual for it.

    Raises NeurouteError for an unknown name, and if network, instances and decoding do not fit.
    """
    net = build(net) if isinstance(net, Network) else net
    decoding = resolve_decoding(net, decoding)
    if instances.problem not in SOLVES[net.problem]:
        raise NeurouteError(
            f"{instances.name}: holds {instances.problem.upper()} instances, but {name} solves {net.problem.upper()}"
        )
    for group in instances.groups:
        check_decoding(net.problem, group.n, decoding, group.name)
    return decoding


def _measure(model: Model, group: Instances, decoding: Decoding, memory_gb: float, progress: Progress) -> GroupResult:
    """Solve as evaluations of the plan do, but in parts that show progress.

    Where something is drawn by an instance's number in the call, a group is solved in one: re-construct of the CVRP,
    solutions that insertion starts with, systems' own ways, random images, starts and embeddings, and gates that draw
    for a batch.
    """
    is_random = decoding.method in ("prc", "revise") or (model.problem == "cvrp" and decoding.method == "rrc")
    is_random = is_random or decoding.is_own or decoding.images > 1 or model.net.single_start
    whole = is_random or model.net.random_embeddings or model.net.is_batch_dependent
    step = group.count if whole else instances_per_batch(model.net, group.n, decoding, memory_gb)
    lengths, rounded, seconds = [], [], 0.0
    for first in range(0, group.count, step):
        part = group.slice(first, first + step)
        devices.synchronize(model.place)
        solutions, took = decode_timed(model.problem, model.net, part.inputs(model.problem), decoding, memory_gb)
        seconds += took
        lengths.append(part.lengths(solutions.numpy()))
        if group.members[0].distances != "EXACT_2D" or group.library == "solomon":
            rounded.append(part.lengths(solutions.numpy(), rounded=True))
        progress.add(part.count)
    in_integers = np.concatenate(rounded) if rounded else None
    return GroupResult(group, group.reference, np.concatenate(lengths), in_integers, seconds)


def _rows(model: Model, m: GroupResult, decoding: Decoding, memory_gb: float, reference: str) -> Rows:
    run, group = str(model.about["run"]), m.group
    shared = {
        "paper": run.partition("/")[0],
        "run": run,
        "group": "user",
        "seed": model.about.get("spec", {}).get("seed"),
        "test": group.name,
        "distribution": "tsplib" if group.library == "tsplib" else "user",
        "n": group.n,
        "n_instances": group.count,
        "reference": "" if m.reference is None else reference,
        "batch_size": instances_per_batch(model.net, group.n, decoding, memory_gb),
        "weights": describe_source(model.about["source"]) if "source" in model.about else None,
        "precision": "fp32",
    }
    values = m.gaps() | {"length": float(m.lengths.mean()), "time_s": m.seconds}
    return make_rows(shared, decoding, values, devices.name(model.place), "", model.about["code"], m.seconds)


def _gap(key: str, value: float) -> str:
    names = {
        "gap_pct": "of mean lengths",
        "gap_mean_of_ratios_pct": "mean of the instances' gaps",
        "gap_rounded_pct": "the same in rounded distances",
    }
    return f"{value:.3f} % ({names[key]})"


def _short(lengths: np.ndarray) -> str:
    mean = float(lengths.mean())
    return f"{mean:.5f}" if mean < 1000 else f"{mean:,.1f}"


CLEAR = 0.1  # % below a reference, from which on its being better is no matter of rounding
FIRST = 8  # instances that a construction solves for comparison
CONSTRUCTION = "nearest"
QUICK = ("insertion", "nearest", "savings", "insertion-angle", "insertion-published")  # solvers that a network beats


def origin(instances: Instances) -> str:
    """Return whose the references of instances are, in words."""
    known = [each for each in instances.members if each.best_known is not None]
    if all(each.library and each.solution is None for each in known):
        return f"best costs known of {' and '.join(sorted({each.library for each in known}))}"
    return "the data's own solutions" if all(each.solution is not None for each in known) else "lengths in the data"


def doubts(instances: Instances, gap_pct: float, solver: str | None = None) -> tuple[str, ...]:
    """Return a line for each reason why references are no yardstick.

    gap_pct: of the network to them; solver: whose they are, None: they came with the instances, of which the first ones
    are compared with a construction and, where no solutions are there, all with what no solution can be shorter than.
    """
    lines = []
    if gap_pct < -CLEAR and solver not in QUICK:
        lines.append(f"the network is {-gap_pct:.3f} % shorter than the reference, which is not near-optimal")
    if solver is not None:
        return tuple(lines)
    known = [each for each in instances.members if each.best_known is not None]
    by_construction = [(each, _construct(each)) for each in known[:FIRST]]
    worse = [cost < (each.best_known or 0) * (1 - CLEAR / 100) for each, cost in by_construction if cost is not None]
    if any(worse):
        lines.append(f"{CONSTRUCTION} neighbour is shorter than it on {sum(worse)} of the first {len(worse)} instances")
    lengths_alone = [each for each in known if each.solution is None and not each.open and each.points is not None]
    if short := [each for each in lengths_alone if (each.best_known or 0) < 0.999 * least_length(each)]:
        lines.append(
            f"{len(short)} reference{'s are' if len(short) > 1 else ' is'} impossibly short (first: {short[0].name}, "
            f"{short[0].format(short[0].best_known or 0)}); are they of other instances, or in other units?"
        )
    return tuple(lines)


def least_length(instance: Instance) -> float:
    """Return what no solution with routes that end at the depot, or no tour, is shorter than, without rounding.

    Every node of a tour is reached and left by the ways to its two nearest ones at best, a customer by the nearest one
    twice.
    """
    coords = instance.coords
    near: np.ndarray = np.asarray(cKDTree(coords).query(coords, k=3)[0])[:, 1:]
    bound = near.sum() / 2 if instance.problem == "tsp" else near[1:, 0].sum()
    loss = 0 if instance.distances == "EXACT_2D" else len(coords) + instance.n  # that rounding may take, and more
    return float(bound - loss) if instance.distances in ("EXACT_2D", "EUC_2D", "CEIL_2D") else 0.0


def _construct(instance: Instance) -> float | None:
    """Return the length of a construction, if there is one of the problem."""
    from neuroute.api.classical import solve_with  # solvers compile when they are imported

    try:
        return instance.length(solve_with(CONSTRUCTION, instance).stops) if is_installed(CONSTRUCTION) else None
    except NeurouteError:
        return None
