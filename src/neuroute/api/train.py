"""Train a run, as a job of the DAG and as Python does; from Python, too, the run that a paper would declare."""

import hashlib
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, field_validator

from neuroute.api.model import Model, digest_of
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.files import check_folder, read_json, sha256, write_json
from neuroute.core.yaml_files import validate
from neuroute.datasets.chunks import solver_pool
from neuroute.datasets.labels import make_labels
from neuroute.datasets.store import labels_digest
from neuroute.decoding.memory import in_precision_of_device
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.weights import LAST, network_class, unpacked_stages
from neuroute.problems.tsp import FEWEST_NODES
from neuroute.problems.vrp import SWITCHES, Variant
from neuroute.solvers.registry import is_installed, stand_in
from neuroute.specs.data import BLOCK, Spec
from neuroute.specs.objects import LAST_SEED, Dataset, Labels, Network, Run, training_entries
from neuroute.specs.trainings import OwnLoss, Positive, Reinforced, SelfImprovement, Stage, Supervised
from neuroute.training.callbacks import Callback, make_loggers
from neuroute.training.network_checks import check_run
from neuroute.training.train import CHECKPOINT, STAGES, SUMMARY, Settings, describe_checkpoint
from neuroute.training.train import train as train_run

log = logging.getLogger("neuroute.train")


@dataclass(frozen=True)
class Trainer:
    """Trains a run, or goes on where it was killed, to the same weights.

    Attributes:
        run: what is trained on what, and how.
        work: folder of its files: `runs/<run>` (checkpoint, log and summary), `state/<run>`, `labels` (manifests).
        label_dirs: folders of label shards; the first is where missing ones go.
        settings: on which device, in how many threads.
        callbacks: follow the training, and may end it.
        start: of the run that this one starts from, where it does, the checkpoint, and the ends of its stages if any.
        states: folder of what a killed training goes on from; None: `state` of `work`.
    """

    run: Run
    work: Path
    label_dirs: Sequence[Path]
    settings: Settings = field(default_factory=Settings)
    callbacks: Sequence[Callback] = ()
    start: Sequence[Path] = ()
    states: Path | None = None

    @property
    def out(self) -> Path:
        """The folder of the checkpoint."""
        return self.work / "runs" / self.run.id

    def label(self, workers: int | None = None) -> None:
        """Solve what the run learns from and is validated on, as far as it is not there.

        Args:
            workers: processes of the solver; None: as many as there are cores.

        Raises:
            NeurouteError: if the solver is not installed, or is not for the problem.
        """
        n_workers = workers or os.cpu_count() or 1
        with solver_pool(n_workers) as pool:
            for labels in dict.fromkeys(self.run.labels):
                manifest = self._manifest(labels.id)
                if not manifest.exists():
                    log.info("%s: solve %d instances by %s", labels.id, labels.dataset.count, labels.solver)
                    write_json(manifest, make_labels(labels, self.label_dirs[0], [], n_workers, pool=pool))

    def train(self) -> Model:
        """Train the run; one that is trained is only loaded.

        Raises:
            NeurouteError: before the first batch, or at it, for labels that are missing, for a network or a loss that
                does not fit, and for numbers that are not finite.
        """
        run = in_precision_of_device(self.run, self.settings)
        log.info("%s: train for %d batches; results go to %s", run.id, run.training.batches, self.out)
        if (self.out / SUMMARY).is_file():  # a model that this training replaces
            before = read_json(self.out / SUMMARY, "train it again", "spec")["spec"]
            if changed := _differences(before, run.model_dump(mode="json")):
                text = ", ".join(changed[:3]) + (" ..." if len(changed) > 3 else "")
                what = "%s: replaces the model of other settings (%s); give another `name` to keep both"
                log.warning(what, self.out, text)
        try:
            code, network_code = digest_of(*training_entries(run)), digest_of(run.network.kind)
        except (LookupError, SyntaxError, ValueError) as error:
            raise NeurouteError(f"{run.id}: {error}; define it in a module, at its top level") from None
        labels = labels_digest(self._manifest(job) for job in dict.fromkeys(labels.id for labels in run.labels))
        parts = [run.canonical(), code, labels]
        for path in self.start:
            if not path.exists():
                first = (run.start or "").partition("@")[0]
                raise NeurouteError(f"{path}: missing; train it with `neuroute train {first}`")
            parts.append(sha256(path))
        parts += [] if self.settings.tf32 else ["no TF32"]
        key = hashlib.sha256("|".join(parts).encode()).hexdigest()
        state = (self.states or self.work / "state") / run.id / key[:16]
        codes: dict[str, Any] = {"code": code, "network_code": network_code}
        with self._starting() as (start, moments):
            more: dict[str, Any] = {"start": start, "moments": moments, "callbacks": self.callbacks}
            net = train_run(run, self.out, state, list(self.label_dirs), self.settings, **codes, **more)
        place = next(net.parameters()).device
        return Model(net, describe_checkpoint(run, network_code), place, path=self.out / CHECKPOINT)

    @contextmanager
    def _starting(self) -> Iterator[tuple[Path | None, Path | None]]:
        """The checkpoint that the run starts from, and the moments to go on with, while the block runs."""
        if len(self.start) < 2:
            yield next(iter(self.start), None), None
            return
        stage = (self.run.start or "").partition("@")[2]
        with unpacked_stages(self.start[1]) as folder:
            checkpoint = folder / f"{stage}.safetensors" if stage else self.start[0]
            yield checkpoint, folder / f"{stage or LAST}.moments.safetensors"

    def _manifest(self, job: str) -> Path:
        return self.work / "labels" / f"{job}.json"


def _differences(before: Any, now: Any, path: str = "") -> list[str]:
    """Return which settings differ, with the value that each had before."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = dict(enumerate(before)), dict(enumerate(now))
    if isinstance(before, dict) and isinstance(now, dict):
        return [line for key in now for line in _differences(before.get(key), now[key], f"{path}.{key}".strip("."))]
    return [] if before == now else [f"{path}: {before}"]


SOLVERS = {"tsp": "lkh", "cvrp": "hgs-short", "vrp": "ortools-short"}
HOW = ("labels", "reinforce", "self-improvement")
NETWORKS = {  # short name -> class for each problem
    "bq": {"tsp": "bq:Bq", "cvrp": "bq:BqCvrp"},
    "decoder-only": {"tsp": "decoder_only:DecoderOnly"},
    "icam": {"tsp": "icam:Icam", "cvrp": "icam:IcamCvrp"},
    "lehd": {"tsp": "lehd:Lehd", "cvrp": "lehd:LehdCvrp"},
    "mvmoe": {"vrp": "mvmoe:MvMoe"},
    "pens": {"tsp": "pens:Pens"},
    "pomo": {"tsp": "pomo:Pomo", "cvrp": "pomo:PomoCvrp"},
    "sit": {"tsp": "sit:Sit", "cvrp": "sit:SitCvrp"},
}
SEE = "the settings of neuroute.train"
Names = Annotated[tuple[str, ...], BeforeValidator(lambda names: (names,) if isinstance(names, str) else names)]
AtOnce = Annotated[int, Field(ge=1, le=1024)]  # threads, processes: torch crashes with a million


class Arguments(Spec):
    """What `train` is called with, beside a network, a scheme and its settings: checked as a config.yaml is."""

    problem: Names
    n: int = Field(ge=FEWEST_NODES, le=1_000_000)
    arguments: dict[str, Any] | None
    batches: Positive
    batch_size: Positive
    epochs: Positive = 1
    passes: Positive = 1
    seed: int = Field(ge=0, le=LAST_SEED)
    validate_on: Positive
    solver: str | None
    name: str | None
    work: Path
    loggers: Names
    device: Literal["auto", "cpu", "cuda"]
    threads: AtOnce | None
    memory_gb: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
    compile: bool
    workers: AtOnce | None

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str | None) -> str | None:
        if name is not None and not (re.fullmatch(r"\w[\w.-]*", name) and len(os.fsencode(name)) <= 200):
            raise ValueError("it becomes a folder's name: at most 200 letters, digits, '-', '_' and '.'")
        return name


def train(
    network: type[RoutingNetwork] | str | Model,
    problem: str | Sequence[str] = "tsp",
    n: int = 50,
    how: str | type | None = None,
    *,
    arguments: Mapping[str, Any] | None = None,
    batches: int = 1000,
    batch_size: int = 64,
    seed: int = 0,
    validate_on: int = 128,
    solver: str | None = None,
    name: str | None = None,
    work: str | Path = "work",
    callbacks: Sequence[Callback] = (),
    loggers: str | Sequence[str] = (),
    device: str = "auto",
    threads: int | None = None,
    memory_gb: float | None = None,
    compile: bool = False,
    workers: int | None = None,
    **settings: Any,
) -> Model:
    """Train a network on random instances, as a job of the DAG would; a killed call goes on, to the same weights.

    Args:
        network: a class that builds on `PathNetwork` or `MultiStartNetwork`, its dotted name, the name of a network
            here (`pomo`, `lehd`, `bq`, `icam`, `sit`, `pens`, `mvmoe`, `decoder-only`), or a trained model, from whose
            weights the training starts.
        problem: `tsp`, `cvrp`, or one of the 16 vehicle routing problems, such as `vrptw`; a list of them, of which
            each batch draws one; `vrp`: all 16.
        n: nodes of the training instances (CVRP: customers).
        how: `labels`, `reinforce`, `self-improvement`, or a class of your own, made of a `Scheme`, whose
            `train(index)` returns the loss of a batch; None: `reinforce` for networks of many starts, else `labels`.
        arguments: of the network's class; `train_nodes` is n where nothing is said.
        batches: of the whole training; epochs have equally many, rounded down.
        batch_size: instances of a batch.
        seed: of the weights and of all that is drawn.
        validate_on: instances of the validation set, of all problems together.
        solver: of the validation set and of labels; None: LKH for the TSP, HGS for the CVRP, OR-Tools for networks of
            the 16 problems, or the next best one.
        name: of the run; None: of network, problem and size.
        work: folder of labels, states and results: the checkpoint is `<work>/python/runs/python/<name>`.
        callbacks: follow the training, and may end it (`neuroute.Callback`, `neuroute.StopEarly`).
        loggers: `csv`, `tensorboard`, `wandb`, `mlflow`; log.jsonl is always written.
        device: `auto` (a GPU where there is one), `cpu` or `cuda`.
        threads: of the CPU; None: one or all, by which is faster in the first batches.
        memory_gb: for activations; None: 4 on a CPU, 60 % of what a GPU has free.
        compile: the network, by `torch.compile`.
        workers: processes of the solver; None: as many as there are cores.
        settings: all else that the training has: `learning_rate`, `precision`, `validations`, `weight_decay`, ...; see
            `neuroute.specs.trainings.Supervised`, `neuroute.specs.trainings.SelfImprovement`,
            `neuroute.specs.trainings.OwnLoss`, `neuroute.specs.trainings.Reinforced` and
            `neuroute.specs.trainings.Stage`.

    Raises:
        NeurouteError: before the first batch, or at it, for a setting, network or loss that does not fit, a solver or
            logger that is missing, and numbers that are not finite.
        KeyboardInterrupt: at Ctrl-C; the same call goes on after the batch that was then in hand.
    """
    try:
        trainer = prepare(locals())
        trainer.label(workers and int(workers))
        return trainer.train()
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(*stop.args) from None  # not from the midst of a library


def prepare(given: Mapping[str, Any]) -> Trainer:
    """Return the training that `train` makes of its arguments, by name; a batch of the network is tried.

    Raises NeurouteError for what does not fit.
    """
    network, how, callbacks, settings = (given[key] for key in ("network", "how", "callbacks", "settings"))
    named = {key: value for key, value in {**settings, **given}.items() if key in Arguments.model_fields}
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in named.items()}
    checked = validate(Arguments, plain, "train", see=SEE)
    n, batches, batch_size, validate_on = checked.n, checked.batches, checked.batch_size, checked.validate_on
    settings = {**settings, **{key: getattr(checked, key) for key in {"epochs", "passes"} & settings.keys()}}
    if not isinstance(callbacks, list | tuple) or not all(isinstance(each, Callback) for each in callbacks):
        raise NeurouteError("train: callbacks: give a list of objects of classes that build on neuroute.Callback")
    spec, kind = _network(network, checked.problem, n, checked.arguments)
    variants = _variants(checked.problem, kind)
    if how is None:
        how = "reinforce" if kind.multi_start else "labels"
    if variants and how in ("labels", "self-improvement"):
        raise NeurouteError(f"how '{how}': networks of the 16 problems learn by reinforce, or by a class of your own")
    training = _training(how, n, batches, batch_size, settings, variants)
    solver = checked.solver
    if solver is None:
        usual = SOLVERS[kind.problem]
        solver = usual if is_installed(usual) else stand_in(usual)
        if solver is None:
            raise NeurouteError(f"{usual} is not installed, nor a substitute for it; see `neuroute doctor`")

    def labels(split: str, first: int, count: int, variant: str | None = None) -> Labels:
        fields = {"problem": kind.problem, "variant": variant, "split": split, "n": n, "first": first, "count": count}
        return Labels(dataset=validate(Dataset, fields, "train"), solver=solver)

    each = max(1, validate_on // max(1, len(variants)))
    validation, *more = [labels("val", 0, each, variant) for variant in variants or (None,)]
    words = "vrp" if len(variants) == len(SWITCHES) else "_".join(variants).lower() or kind.problem
    samples = training.samples if isinstance(training, Supervised) else 0
    run = Run(
        paper="python",
        name=checked.name or f"{spec.kind.rpartition(':')[2].lower()}_{words}{n}",
        network=spec,
        training=training,
        n=n,
        data=tuple(labels("train", i, min(BLOCK, samples - i)) for i in range(0, samples, BLOCK)),
        start=network.name if isinstance(network, Model) else None,
        validation=validation,
        also_validation=tuple(more),
        seed=checked.seed,
    )
    folder, followers = checked.work, [*callbacks, *make_loggers(checked.loggers)]
    # Show what a training says on standard error, where nobody has set up logging.
    logger = logging.getLogger("neuroute")
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(logging.INFO)
    check_run(run)
    check_folder(folder)
    start: list[Path] = []
    if isinstance(network, Model):  # with the moments beside it, where it lies in the folder of its training
        stages = network.checkpoint.with_name(STAGES)
        has_moments = network.checkpoint.name == CHECKPOINT and stages.exists()
        start = [network.checkpoint, *([stages] if has_moments else [])]
    how_fast = Settings(checked.device, checked.threads, checked.memory_gb, checked.compile)
    return Trainer(run, folder / "python", [folder / "labels"], how_fast, followers, start)


def _network(
    network: type[RoutingNetwork] | str | Model,
    problem: tuple[str, ...],
    n: int,
    arguments: Mapping[str, Any] | None,
) -> tuple[Network, type[RoutingNetwork]]:
    """Return a network's description, and its class.

    Raises NeurouteError for an unknown short name, and if other processes could not make it.
    """
    if isinstance(network, Model):
        spec = Network.model_validate(network.about["network"])
        return spec, type(network.net)
    if not isinstance(network, str):
        dotted = _dotted(network, "network")
    elif ":" in network:
        dotted = network
    elif network not in NETWORKS:
        mend = did_you_mean(near(network, NETWORKS)) or ";"
        raise NeurouteError(f"network '{network}'{mend} take one of {', '.join(NETWORKS)}, or a class as module:Class")
    else:
        classes = NETWORKS[network]
        there = problem[0] if len(problem) == 1 and problem[0] in classes else next(iter(classes))
        dotted = f"neuroute.networks.{classes[there]}"
    kind = network_class(dotted)
    values = dict(arguments or {})
    if "train_nodes" in signature(kind).parameters:
        values.setdefault("train_nodes", n)
    try:
        return Network(kind=dotted, arguments=values), kind
    except TypeError as error:  # no JSON
        raise NeurouteError(f"arguments of {dotted}: {error}; give numbers, texts, lists") from None


def _variants(names: tuple[str, ...], network: type[RoutingNetwork]) -> tuple[str, ...]:
    """Return which of the 16 problems batches are of; none for networks of the TSP or of the CVRP alone.

    Raises NeurouteError if the network is of another problem, or there is none of that name.
    """
    if network.problem == "vrp" and names and "tsp" not in names:
        return tuple(SWITCHES if names == ("vrp",) else dict.fromkeys(str(Variant(name.upper())) for name in names))
    if names != (network.problem,):
        raise NeurouteError(
            f"problem '{', '.join(names)}': {network.__name__} is a network of problem '{network.problem}'"
        )
    return ()


def _training(
    how: str | type, n: int, batches: int, batch_size: int, settings: Mapping[str, Any], variants: tuple[str, ...]
) -> Any:
    """Return the description of a training.  Raises NeurouteError for a setting that it does not have."""
    values: dict[str, Any]
    epochs = settings.get("epochs", 1)
    if epochs > batches and not {"samples", "instances", "batches_per_epoch"} & settings.keys():
        raise NeurouteError(f"train: {batches} batches in {epochs} epochs; give one for each at least")
    if isinstance(how, type):
        values = {"loss": _dotted(how, "how"), "steps": batches, "batch_size": batch_size, **settings}
        return _checked(OwnLoss, values, OwnLoss)
    if how == "labels":
        values = {"samples": batches // epochs * batch_size, "batch_size": batch_size, "validations": 10, **settings}
        return _checked(Supervised, values, Supervised)
    if how == "self-improvement":
        values = {"epochs": min(10, batches), "batch_size": batch_size, "validations": 10, **settings}
        each = max(1, batches // (values["epochs"] * values.get("passes", 1)))  # of a pass of an epoch
        values.setdefault("instances", each * batch_size)
        return _checked(SelfImprovement, values, SelfImprovement)
    if how == "reinforce":
        of_stage = {key: value for key, value in settings.items() if key in Stage.model_fields}
        values = {"name": "only", "epochs": 1, "sizes": (n, n), "batch_size": batch_size, "validations": 10}
        values |= {"variants": variants} | of_stage
        values.setdefault("batches_per_epoch", batches // epochs)
        others = {key: value for key, value in settings.items() if key not in of_stage}
        return _checked(Reinforced, {"stages": [values], **others}, Reinforced, Stage)
    raise NeurouteError(
        f"how '{how}'{did_you_mean(near(str(how), HOW)) or ';'} take one of {', '.join(HOW)}, or a class"
    )


def _checked(kind: type[Any], values: Mapping[str, Any], *names_of: type[Spec]) -> Any:
    fields = [name for each in names_of for name in each.model_fields]
    for name in values:
        if name not in fields:
            mend = did_you_mean(near(name, fields, most=1)) or f"; there are: {', '.join(fields)}"
            raise NeurouteError(f"train: unknown setting '{name}' of training '{kind.__name__}'{mend}")
    return validate(kind, dict(values), "train", see=SEE)


def _dotted(definition: type, argument: str) -> str:
    if not isinstance(definition, type):
        raise NeurouteError(f"{argument}: a class is needed, not {type(definition).__name__}; arguments= has its own")
    if "<locals>" in definition.__qualname__:
        raise NeurouteError(f"{argument}: {definition.__name__} is defined inside a function; move it to the top level")
    return f"{definition.__module__}:{definition.__qualname__}"
