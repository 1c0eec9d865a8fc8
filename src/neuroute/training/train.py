"""The training stage: a run of the plan -> checkpoint, log and summary."""

import copy
import logging
import platform
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from neuroute.core import device as devices
from neuroute.core.device import Threads
from neuroute.core.errors import NeurouteError
from neuroute.core.files import exclusive, private_folder, read_json, sha256, write_json, write_text, write_whole
from neuroute.core.source import source
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import check_made, label_digests, load_tours
from neuroute.decoding.decode import construct
from neuroute.decoding.memory import CHOICES, faster_precision
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.blocks.mixture import Hierarchical
from neuroute.networks.weights import (
    LAST,
    build,
    check_weights,
    checkpoint_bytes,
    describe,
    load_checkpoint,
    pack_stages,
    parameters,
    read_tensors,
    save_checkpoint,
    weights_digest,
)
from neuroute.problems.registry import Part
from neuroute.specs.objects import Network, Precision, Run
from neuroute.specs.trainings import Reinforced
from neuroute.training.batches import Batches, Scheme, World, join
from neuroute.training.callbacks import Callback
from neuroute.training.loop import TrainingLoop, load_whole, on_host
from neuroute.training.network_checks import check_network, in_one_line

log = logging.getLogger(__name__)


def keep_stage(state: Path, stage: str, net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """In the folder that survives a kill, moments as "<parameter>/<what>".  A stage that ends twice ends the same."""
    states = {name: optimizer.state.get(parameter, {}) for name, parameter in net.named_parameters()}
    moments = {f"{name}/{key}": torch.as_tensor(each) for name, of in states.items() for key, each in of.items()}
    content = on_host({"net": net.state_dict(), "moments": moments})
    write_whole(_stage_file(state, stage), lambda file: torch.save(content, file))


def stage_ends(training: Reinforced, state: Path, net: nn.Module, about: dict[str, Any]) -> dict[str, bytes]:
    """Files of the ends of all stages, by name.

    `net` is used to hold the weights, and holds those of the last stage in the end.
    """
    files: dict[str, bytes] = {}
    for stage in training.stages:
        file = _stage_file(state, stage.name)
        try:
            content = load_whole(file)
        except Exception as error:
            raise NeurouteError(
                f"{file}: unreadable end of a stage ({error}); delete the folder above it to train anew"
            ) from None
        net.load_state_dict(content["net"])
        name = LAST if stage is training.stages[-1] else stage.name
        if name != LAST:
            files[f"{name}.safetensors"] = checkpoint_bytes(net, {**about, "stage": name})
        files[f"{name}.moments.safetensors"] = save(
            {key: tensor.cpu().contiguous() for key, tensor in content["moments"].items()}
        )
    return files


def recall_moments(path: Path, net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Go on with the moments of a stage's end; where there are none, the optimizer starts anew.

    Raises NeurouteError for moments of other parameters.
    """
    if not path.exists():
        log.info("the weights that this run starts from have no moments beside them; the optimizer starts anew")
        return
    parameters = dict(net.named_parameters())
    state: dict[str, dict[str, Tensor]] = {}
    for key, value in read_tensors(path).items():
        name, _, what = key.rpartition("/")
        if name not in parameters or (value.ndim and value.shape != parameters[name].shape):
            raise NeurouteError(f"{path.name}: '{key}' does not fit this network; let the run start `fresh`")
        state.setdefault(name, {})[what] = value
    by_number = {number: state[name] for number, name in enumerate(parameters) if name in state}
    optimizer.load_state_dict({"state": by_number, "param_groups": optimizer.state_dict()["param_groups"]})


def _stage_file(state: Path, stage: str) -> Path:
    return state / "stages" / f"{stage}.pt"


N = TypeVar("N", bound=RoutingNetwork)
DECISION = Part[Callable[[Any], nn.Module]]("decision")  # what is trained of a network: one decision
SMALL = 50_000  # parameters of a network below which several threads mostly wait for each other
CHECKPOINT, LOG, STAGES, SUMMARY = "model.safetensors", "log.jsonl", "stages.zip", "run.json"


@dataclass(frozen=True)
class Settings:
    """How a run is executed.  None of it changes what the run is.

    threads: None: one or all, by which is faster in the first batches; sums may round otherwise in another number.
    """

    device: str = "auto"
    threads: int | None = None
    memory_gb: float | None = None
    compile: bool = False
    jobs_per_gpu: int = 1
    tf32: bool = True


def train(
    run: Run,
    out: Path,
    state: Path,
    label_dirs: list[Path],
    settings: Settings,
    *,
    code: str,
    network_code: str,
    start: Path | None = None,
    moments: Path | None = None,
    callbacks: Sequence[Callback] = (),
) -> RoutingNetwork:
    """Train `run` and write model.safetensors, log.jsonl, stages.zip and run.json into `out`.

    `state` is the folder that survives a kill; the caller keys it by spec, code, data and start.  A finished state is
    only exported again.  `start` is the checkpoint of the run that this one starts from, where it does, and `moments`
    the file of those to go on with.  Returns the network with the weights that the run is left with.
    Raises NeurouteError before training when CUDA, labels or the start are missing, when the start's weights do not
    fit, or when another process trains the same run.
    """
    check_made(run.labels, label_dirs)
    place = devices.claim(settings.device, settings.jobs_per_gpu, settings.tf32)
    # Threads of this process are to be tried, unless several processes share the cores.
    threads = devices.threads_here(settings.threads or torch.get_num_threads())
    is_fixed = bool(settings.threads) or threads != torch.get_num_threads()
    with (
        Threads(threads if is_fixed else None, place) as pace,
        join(place) as world,
        exclusive(out / ".lock", f"training of {run.id}") if world.leads else nullcontext(),
    ):
        memory_gb = devices.memory_budget_gb(place, settings.memory_gb, settings.jobs_per_gpu)
        torch.manual_seed(run.seed)
        net = build(run.network)
        if start is not None and run.training.continues_start:
            net.load_state_dict(_weights_to_start(run, net, start))
        net = net.to(place)
        if pace.chosen is None and parameters(net) < SMALL:
            pace.choose(1, "the network is small")
        check_network(net, run.network, run.validation, place)
        planned = run

        def batches_of(run: Run, net: RoutingNetwork, state: Path, **loop: Callable[[], Any]) -> Batches:
            scheme = Scheme(
                run,
                net,
                _model(run, net, world, place, settings.compile),
                label_dirs,
                state_dir=state,
                device=place,
                world=world,
                memory_gb=memory_gb,
                start=start,
                moments=moments,
                **loop,
            )
            return Part[Callable[[Scheme], Batches]](run.training.scheme).of(run.validation.dataset.problem)(scheme)

        with in_one_line(run.network.kind, str(getattr(run.training, "loss", ""))):
            if run.training.precision == "auto":
                run = run.in_precision(_faster(run, net, state, world, place, batches_of))
            batches = batches_of(run, net, state, best=lambda: loop.exported(), stopping=lambda: loop.stopping())
            loop = TrainingLoop(batches, _validation(batches), callbacks, out, pace)
            loop.resume()
            loop.run()
        net.load_state_dict(loop.exported())
        if world.leads:
            labels = label_digests((labels.id for labels in run.labels), label_dirs)
            made_from: dict[str, Any] = {"labels_sha256": labels}
            if start is not None:
                made_from["start_sha256"] = sha256(start)
            _export(loop, out, code, describe_checkpoint(planned, network_code), made_from)
    return net.eval()


def _faster(
    run: Run, net: RoutingNetwork, state: Path, world: World, place: torch.device, batches_of: Callable[..., Batches]
) -> Precision:
    """The precision in which twins of the network learn faster from the first batches; of a resumed run as before.

    Trainings that make solutions of their own make those of the first batch for each of the twins, too.
    """
    file = state / "precision.json"
    if world.tell(float(file.exists()), place):
        precision: Precision = read_json(file, "train anew", "precision")["precision"]
        if precision not in CHOICES:
            raise NeurouteError(f"{file}: precision {precision!r} is neither fp32 nor bf16; train anew")
    else:
        gpus = [place] if place.type == "cuda" else []
        with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(gpus):
            twins: dict[Precision, Batches] = {}
            for each in CHOICES:
                twin = copy.deepcopy(net)
                apart: dict[str, Any] = {"best": twin.state_dict, "stopping": lambda: False}
                twins[each] = batches_of(run.in_precision(each), twin, Path(folder, each), **apart)
            count = run.training.batches
            precision, ratio = faster_precision(lambda each, number: twins[each].train(number % count), place)
        precision = "bf16" if world.tell(float(precision == "bf16"), place) else "fp32"
        if world.leads:
            write_json(file, {"precision": precision, "bf16_times_as_fast": round(ratio, 3)})
        log.info("%s: precision auto: %s, as bf16 is %.2f times as fast as fp32", run.id, precision, ratio)
    world.barrier()
    return precision


def _model(run: Run, net: RoutingNetwork, world: World, place: torch.device, compiles: bool) -> nn.Module:
    """What is trained of the network: its decisions or all of it, compiled if that is asked for and can be."""
    problem, compiles = run.validation.dataset.problem, compiles and can_compile(place.type)
    if run.training.learns_decisions:
        model: Any = DECISION.of(problem)(net)
        model = torch.compile(model, dynamic=True) if compiles else model
        return world.wrap(model, place, partly=any(isinstance(part, Hierarchical) for part in net.modules()))
    if compiles and isinstance(run.training, Reinforced) and problem != "vrp":  # whose gates draw from generators
        return compiled(net)
    return net


def _weights_to_start(run: Run, net: nn.Module, checkpoint: Path) -> dict[str, Tensor]:
    """The checkpoint's weights, and those of `net` for parts that join it: arguments that its class names in `joins`.

    Raises NeurouteError for another architecture, or damaged weights; the size that it was trained on may be another.
    """
    joins: tuple[str, ...] = getattr(net, "joins", ())
    before, about = load_checkpoint(checkpoint, trusted=(run.network.kind,))
    network, others = Network.model_validate(about["network"]), ("train_nodes", *joins)
    there, here = (
        (each.kind, {key: value for key, value in each.arguments.items() if key not in others})
        for each in (network, run.network)
    )
    if there != here:
        raise NeurouteError(
            f"{checkpoint}: holds {describe(network)}, but {run.id} is a {describe(run.network)}: start from the same "
            "network"
        )
    check_weights(checkpoint, before, about["run"])
    return {**net.state_dict(), **before.state_dict()} if joins else before.state_dict()


def _export(loop: TrainingLoop, out: Path, code: str, about: dict[str, Any], made_from: dict[str, Any]) -> None:
    run, net, place = loop.scheme.run, loop.scheme.net, loop.scheme.device
    stages = stage_ends(run.training, loop.scheme.state_dir, net, about) if isinstance(run.training, Reinforced) else {}
    pack_stages(out / STAGES, stages)
    save_checkpoint(out / CHECKPOINT, net, about)
    write_text(out / LOG, "".join(line + "\n" for line in loop.lines))
    summary: dict[str, Any] = {
        "run": run.id,
        "spec": about["spec"],
        "code": code,
        "source": source(),
        **made_from,
        "weights_sha256": weights_digest(net),
        "device": place.type,
        "device_name": devices.name(place),
        "threads": torch.get_num_threads(),
        "precision": run.training.precision,
        "world_size": loop.scheme.world.size,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "parameters": parameters(net),
        "batches": loop.done,
        "updates": loop.updates,
        "samples": loop.samples(loop.done),
        "wall_time_s": round(loop.seconds, 4),
        "processor_time_s": round(loop.processor_seconds, 2),
        "peak_memory_mb": round(devices.peak_memory_mb(place), 1),
    }
    write_json(out / SUMMARY, summary)


def describe_checkpoint(run: Run, network_code: str) -> dict[str, Any]:
    """What a run's checkpoint says of itself."""
    spec, network = run.model_dump(mode="json"), run.network.model_dump()
    return {"run": run.id, "spec": spec, "network": network, "code": network_code}


def _validation(batches: Batches) -> Callable[[], dict[str, float]]:
    """A function that decodes the validation sets: data set id -> gap (ratio of means) in percent.

    Greedily, unless the training brings a way to `solve` instances.
    """
    scheme, run = batches.scheme, batches.run
    solve: Callable[[Any], Any] | None = getattr(batches, "solve", None)
    sets = []
    for labels in (run.validation, *run.also_validation):
        spec = spec_of(labels)
        instances = spec.instances(labels.dataset)
        best = float(np.mean(spec.lengths(instances, load_tours(labels, scheme.label_dirs))))
        sets.append((labels.dataset, spec, instances, best))

    def validate() -> dict[str, float]:
        gaps = {}
        for dataset, spec, instances, best in sets:
            if solve is not None:
                solutions = solve(instances)
            else:
                how = (scheme.memory_gb, run.training.precision)
                solutions = construct(dataset.problem, scheme.net, instances, *how).numpy()
            gaps[dataset.id] = 100 * (float(np.mean(spec.lengths(instances, solutions))) / best - 1)
        return gaps

    return validate


# -- networks whose encoders and decisions torch has compiled: sizes may change, and nothing is compiled anew ----------


def compiled(net: N) -> N:
    """A copy of the network with the same weights and compiled parts; itself if it is decoded in a way of its own."""
    if hasattr(net, "own_method"):
        return net
    twin = copy.copy(net)
    for name in ("encode", "prepare", "decide"):
        vars(twin)[name] = torch.compile(getattr(net, name), dynamic=True)
    return twin


@cache
def can_compile(device: str) -> bool:
    """Whether torch can compile for the device ("cpu", "cuda") on this machine; if not, a line of the log says why."""
    try:
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        private_folder(Path(cache_dir()))  # of libraries that torch loads
        torch.compile(_trial)(torch.ones(2, device=device))
    except Exception as error:  # of many kinds: no C++ compiler, no headers of Python, no Triton
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        log.warning("`compile`: torch cannot compile for %s here (%s); networks run as they are", device, reason)
        return False
    return True


def _trial(x: Tensor) -> Tensor:
    return (x * x).sin()
