"""A rehearsal: the DAG itself with a few batches of everything (`snakemake --keep-going --config rehearse=true`).

Networks, batches and precisions are the true ones, so that what cannot run, or does not fit into memory, fails as it
would after hours; what takes long is short: batches, instances, iterations of a search.  Nearest neighbour solves all.
"""

import math
from typing import Any, TypeVar, get_args

from neuroute.datasets.benchmarks import packaged_files, published_instances
from neuroute.pipeline.plan.scale import Scale
from neuroute.solvers.registry import FROM_FILES, SOLVERS
from neuroute.specs.data import Spec
from neuroute.specs.objects import Benchmark, OwnTraining, Reconstruction, Reinforced, SelfImprovement, Supervised

BATCHES = 4  # of a training
COUNT = 2  # instances of a test set
LARGE = 1000  # nodes, from which on no public instance comes with the package: the smallest of each set is fetched
MADE_AT_ONCE = 64  # instances, by a training that makes its own labels
SEARCHES = ("rrc", "prc")  # fields of a scale: iterations
T = TypeVar("T")


def short_scale(scale: Scale) -> Scale:
    """The scale with few instances, few iterations, one seed, the public instances that come with the package."""
    quick = {name: "nearest" for name in SOLVERS if name not in ("nearest", *FROM_FILES)}
    blocks = {key: _shortened(block, key) for key, block in scale.with_solvers(quick).blocks.items()}
    common = {"seeds": {}, "verdicts": False, "instances": _instances(), "label_solver": "nearest"}
    summary = "A rehearsal: a few batches of everything, whose numbers say nothing."
    return scale.model_copy(update={"blocks": blocks, "summary": summary, "reference_solver": "nearest", **common})


def _instances() -> dict[Benchmark, tuple[str, ...]]:
    """Of each public benchmark what comes with the package, and the smallest large instance of each set."""
    chosen: dict[Benchmark, tuple[str, ...]] = {}
    for benchmark in get_args(Benchmark):
        large = sorted((i for i in published_instances(benchmark).values() if i.nodes >= LARGE), key=lambda i: -i.nodes)
        smallest = {i.set: i.name for i in large}
        chosen[benchmark] = (*packaged_files(benchmark), *smallest.values())
    return chosen


def _shortened(value: Any, name: str) -> Any:
    """A value of a scale, of a field of this name."""
    if isinstance(value, Spec):
        return value.model_copy(update={key: _shortened(part, key) for key, part in value})
    if isinstance(value, dict):
        if name in SEARCHES:  # the paper's iterations -> here, in their order
            return {key: 1 + place for place, (key, _) in enumerate(sorted(value.items(), key=lambda item: item[1]))}
        return {key: _shortened(part, name) for key, part in value.items()}
    if isinstance(value, int) and name in (*SEARCHES, "repeats"):
        return min(value, 3 if name in SEARCHES else 1)
    return min(value, COUNT) if isinstance(value, int) and name.endswith(("count", "counts")) else value


def short_training(training: T) -> T:
    """A few batches, of their true size; what comes once in a round or a stage comes as often for each batch."""
    change: dict[str, Any]
    match training:
        case OwnTraining() | Reinforced():
            return training.shortened(BATCHES)  # type: ignore[return-value]
        case Supervised():
            samples = min(training.samples, BATCHES * training.batch_size)
            epochs = min(training.epochs, math.ceil(BATCHES * training.batch_size / samples))
            change = {"samples": samples, "epochs": epochs, "validations": 1}
        case SelfImprovement():
            instances = min(training.instances, MADE_AT_ONCE)
            passes = math.ceil(BATCHES // 2 * training.batch_size / instances)
            change = {"epochs": 2, "instances": instances, "passes": passes, "validations": 2}
        case Reconstruction():
            change = {"rounds": 2, "validations": 2, "epochs_per_round": 1}
            change |= {"reconstructions": min(training.reconstructions, 1)}
            change |= {"samples": min(training.samples, max(BATCHES // 2 * training.batch_size, MADE_AT_ONCE))}
        case _:
            return training
    if getattr(training, "warmup_batches", 0):
        change["warmup_batches"] = 1
    return training.model_copy(update=change)  # type: ignore[attr-defined, no-any-return]
