"""What `runs` in config.yaml changes of a declared run: one thing changed, and its chain alone reruns.

A run whose weights are given needs no labels and leaves no log.  The ends of its earlier stages are nowhere: they are
not measured, and runs that would start from one are not trained.

A rehearsal changes all of it: the DAG itself with a few batches of everything (`snakemake --keep-going --config
rehearse=true`).  Networks, batches and precisions are the true ones, so that what cannot run, or does not fit into
memory, fails as it would after hours; what takes long is short: batches, instances, iterations of a search.  Nearest
neighbour solves all.
"""

import math
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel

from neuroute.core.digest import code_digest
from neuroute.core.dotted import search_working_folder
from neuroute.core.errors import NeurouteError
from neuroute.core.yaml_files import validate
from neuroute.datasets.benchmarks import packaged_files, published_instances
from neuroute.pipeline.plan.config import Config
from neuroute.pipeline.plan.needs import Need, Solved
from neuroute.pipeline.plan.paper import is_optional
from neuroute.pipeline.plan.scale import Scale
from neuroute.solvers.registry import FROM_FILES, SOLVERS
from neuroute.specs.data import Spec
from neuroute.specs.evaluations import Test
from neuroute.specs.objects import (
    Benchmark,
    GivenRun,
    Labels,
    Network,
    OwnTraining,
    Reconstruction,
    Reinforced,
    Run,
    SelfImprovement,
    Supervised,
    Training,
)

T = TypeVar("T", bound=BaseModel)


def declare_run(
    config: Config,
    paper: str,
    name: str,
    training: Training,
    *,
    data: Callable[[Any], tuple[Labels, ...]] = lambda training: (),
    seed: int = 0,
    **fields: Any,
) -> Run:
    """Return the run `<paper>/<name>`, with what config.yaml changes of its training and of its usual seed.

    data: what the training, as changed, is labelled with; fields: the other ones of `Run`.
    Raises NeurouteError for changes that cannot be.
    """
    run = f"{paper}/{name}"
    changed, seed = apply_changes(config, run, training), seed_of(config, run, seed)
    return Run(paper=paper, name=name, training=changed, data=data(changed), seed=seed, **fields)


def with_seed(name: str, repetition: int) -> str:
    """Name (or identify) a repeated training, or what it was at the end of a stage; the first is the run itself."""
    run, at, stage = name.partition("@")
    return name if repetition == 0 else f"{run}-s{repetition}{at}{stage}"


def apply_changes(config: Config, run: str, declared: T) -> T:
    """Return the training `declared` of a run (its id), with what config.yaml changes of it.

    Raises NeurouteError that names the wrong key, or the stage that there is not.
    """
    where, values = f"{config.where}: runs.{run}.training", declared.model_dump()
    change = config.runs.get(run)
    changed = change.training.model_dump(exclude_none=True) if change else {}
    changed |= changed.pop("own", {})
    if stages := changed.pop("stages", None):
        values["stages"] = _with_stages(values.get("stages", ()), stages, f"{where}.stages")
    training = validate(type(declared), values | changed, where)
    return short_training(training) if config.rehearse else training


def change_networks(config: Config, runs: Iterable[Run]) -> list[Run]:
    """Return the runs, each after the one that it starts from, with the networks that config.yaml gives them.

    What starts from a changed run has its network, but for the size of its instances.
    """
    changed: dict[str, Network] = {}
    out = []
    for run in runs:
        now = change_network(config, run)
        first = changed.get((run.start or "").partition("@")[0])
        if now is run and first is not None and run.training.continues_start:
            size = {name: value for name, value in run.network.arguments.items() if name == "train_nodes"}
            network = Network(kind=first.kind, arguments=first.arguments | size)
            now = run.model_copy(update={"network": network})
        if now is not run:
            changed[run.id] = now.network
        out.append(now)
    return out


def change_network(config: Config, run: Run) -> Run:
    """Return the run with the network that config.yaml gives it, if any.

    A network of the user's own may lie in a module in the working folder.  Nothing is imported.
    Raises NeurouteError if the module or the class is not there, or cannot be read.
    """
    change = config.runs.get(run.id)
    if change is None or (change.network is None and not change.arguments):
        return run
    if change.network is None:
        network = Network(kind=run.network.kind, arguments=run.network.arguments | change.arguments)
    else:
        network = Network(kind=change.network, arguments=change.arguments)
        search_working_folder()
        try:
            code_digest(network.kind)
        except (LookupError, SyntaxError, ValueError) as error:
            raise NeurouteError(
                f"{config.where}: runs.{run.id}.network: {error}; put your module beside the Snakefile or on PYTHONPATH"
            ) from None
    return run.model_copy(update={"network": network})


def give_weights(config: Config, run: Run) -> Run:
    """Return the run with the weights that config.yaml gives it, if any.  Raises NeurouteError if no file is there."""
    change = config.runs.get(run.id)
    if change is None or change.weights is None:
        return run
    if not Path(change.weights).is_file():
        raise NeurouteError(f"{config.where}: runs.{run.id}.weights: no file {change.weights}; correct the path")
    return GivenRun(**{name: getattr(run, name) for name in Run.model_fields}, weights=change.weights)


def unreachable_runs(runs: Iterable[Run]) -> set[str]:
    """Ids of runs that start from the end of an earlier stage of a given one, or from such a run."""
    unreachable: set[str] = set()
    given_ids = {run.id for run in runs if isinstance(run, GivenRun)}
    for run in runs:  # each after the one that it starts from
        start, _, stage = (run.start or "").partition("@")
        if run.id not in given_ids and ((stage and start in given_ids) or start in unreachable):
            unreachable.add(run.id)
    return unreachable


def left_out(needs: Iterable[Need], runs: Container[str]) -> set[str]:
    """Ids of runs of optional papers that are needed, and that the scale does not have."""
    needed = {need.run for need in needs if not isinstance(need, Solved)}
    return {run for run in needed if run not in runs and is_optional(run)}


def can_be_met(need: Need, runs: Mapping[str, Run], unreachable: Container[str]) -> bool:
    """Whether a need is of no unreachable run, and of no earlier stage of a given one."""
    if isinstance(need, Solved):
        return True
    of_stage = isinstance(need, Test) and need.stage and isinstance(runs.get(need.run), GivenRun)
    return need.run not in unreachable and not of_stage


def seed_of(config: Config, run: str, usual: int = 0) -> int:
    """Return the seed that config.yaml gives a run (its id), else the `usual` one."""
    change = config.runs.get(run)
    return change.seed if change and change.seed is not None else usual


def _with_stages(declared: Any, changes: dict[str, dict[str, Any]], where: str) -> list[dict[str, Any]]:
    """Return stages with their changes, by name."""
    names = [stage["name"] for stage in declared]
    for name in changes:
        if name not in names:
            raise NeurouteError(
                f"{where}.{name}: no such stage; there is {', '.join(names) or 'none in this training'}"
            )
    return [stage | changes.get(stage["name"], {}) for stage in declared]


BATCHES = 4  # of a training
COUNT = 2  # instances of a test set
LARGE = 1000  # nodes, from which on no public instance comes with the package: the smallest of each set is fetched
MADE_AT_ONCE = 64  # instances, by a training that makes its own labels
SEARCHES = ("rrc", "prc")  # fields of a scale: iterations


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
    return training.model_copy(update=change)
