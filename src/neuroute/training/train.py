"""The training stage: a run of the plan -> checkpoint, log and summary."""

import platform
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.core.files import exclusive, write_json, write_text
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.stored_labels import check_made, load_tours
from neuroute.decoding.construct import construct
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.blocks.experts.mixture import Hierarchical
from neuroute.networks.weights import (
    build,
    describe,
    is_bundled,
    load_checkpoint,
    parameters,
    save_checkpoint,
    weights_digest,
)
from neuroute.plan.objects import Network, Reconstruction, Reinforced, Run, SelfImprovement
from neuroute.problems.registry import Part
from neuroute.training.batches import Batches, Scheme
from neuroute.training.callbacks import Callback
from neuroute.training.compiled import can_compile, compiled
from neuroute.training.distributed import World, join
from neuroute.training.loop import TrainingLoop
from neuroute.training.network_checks import check_network, in_one_line
from neuroute.training.stages import export_stages

DECISION = Part[Callable[[Any], torch.nn.Module]]("decision")  # what is trained of a network: one decision
CHECKPOINT, LOG, SUMMARY = "model.safetensors", "log.jsonl", "run.json"


@dataclass(frozen=True)
class Settings:
    """How a run is executed.  None of it changes what the run is."""

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
    callbacks: Sequence[Callback] = (),
) -> RoutingNetwork:
    """Train `run` and write model.safetensors, log.jsonl and run.json into `out`.

    `state` is the folder that survives a kill; the caller keys it by spec, code, data and start.  A finished state is
    only exported again.  `start` is the checkpoint of the run that this one starts from, where it does.  Returns the
    network with the weights that the run is left with.
    Raises NeurouteError before training when CUDA, labels or the start are missing, when the start's weights do not
    fit, or when another process trains the same run.
    """
    if (start is None) != (run.start is None):
        raise ValueError(f"{run.id} starts from {run.start or 'random weights'}, and not from {start}")
    check_made(run.labels, label_dirs)
    place = devices.claim(settings.device, settings.jobs_per_gpu, settings.tf32)
    if settings.threads:
        torch.set_num_threads(devices.threads_here(settings.threads))
    with join(place) as world:
        alone = exclusive(out / ".lock", f"training of {run.id}") if world.leads else nullcontext()
        with alone:
            loop, net = _train(run, out, state, label_dirs, settings, world, place, start, callbacks)
            if world.leads:
                _export(run, out, state, loop, net, place, world, code, network_code)
    return net.eval()


def _train(
    run: Run,
    out: Path,
    state: Path,
    label_dirs: list[Path],
    settings: Settings,
    world: World,
    place: torch.device,
    start: Path | None,
    callbacks: Sequence[Callback],
) -> tuple[TrainingLoop, RoutingNetwork]:
    budget = devices.memory_budget_gb(place, settings.memory_gb, settings.jobs_per_gpu)
    torch.manual_seed(run.seed)
    net = build(run.network)
    if start is not None and run.training.continues_start:
        net.load_state_dict(_weights_to_start(run, net, start))
    net = net.to(place)
    problem, t = run.validation.dataset.problem, run.training
    check_network(net, run.network, run.validation, place)
    model: torch.nn.Module = net
    compiles = settings.compile and can_compile(place.type)
    if t.learns_decisions:
        model = DECISION.of(problem)(net)
        model = torch.compile(model, dynamic=True) if compiles else model  # type: ignore[assignment]
        model = world.wrap(model, place, partly=any(isinstance(part, Hierarchical) for part in net.modules()))
    elif compiles and t.kind == "reinforce" and problem != "vrp":  # whose gates draw from generators
        model = compiled(net)
    scheme = Scheme(
        run,
        net,
        model,
        label_dirs,
        best=lambda: loop.exported(),
        stopping=lambda: loop.stopping(),
        state_dir=state,
        device=place,
        world=world,
        memory_gb=budget,
        start=start,
    )
    batches = Part[Callable[[Scheme], Batches]](t.scheme).of(problem)(scheme)
    loop = TrainingLoop(
        net,
        batches,
        total=t.batches,
        validate=_validation(run, net, label_dirs, budget, getattr(batches, "solve", None)),
        validate_after=t.validate_after,
        state_dir=state,
        world=world,
        device=place,
        keep_best=isinstance(t, SelfImprovement | Reconstruction) or t.keep == "best",
        callbacks=callbacks,
        out=out,
        checks_first=not is_bundled(run.network.kind),
    )
    loop.resume()
    with in_one_line(run.network.kind, str(getattr(t, "loss", ""))):
        loop.run()
    net.load_state_dict(loop.exported())
    return loop, net


def _weights_to_start(run: Run, net: torch.nn.Module, checkpoint: Path) -> dict[str, torch.Tensor]:
    """The checkpoint's weights, and those of `net` for parts that join it: arguments that its class names in `joins`.

    Raises NeurouteError for another architecture; the size that it was trained on may be another.
    """
    joins: tuple[str, ...] = getattr(net, "joins", ())
    before, about = load_checkpoint(checkpoint, trusted=(run.network.kind,))
    network = Network.model_validate(about["network"])
    if _without(network, "train_nodes", *joins) != _without(run.network, "train_nodes", *joins):
        raise NeurouteError(
            f"{checkpoint}: holds {describe(network)}, but {run.id} is a {describe(run.network)}: "
            "let it start from a run with the same network"
        )
    return {**net.state_dict(), **before.state_dict()} if joins else before.state_dict()


def _without(network: Network, *names: str) -> Network:
    return Network(kind=network.kind, arguments={k: v for k, v in network.arguments.items() if k not in names})


def _export(
    run: Run,
    out: Path,
    state: Path,
    loop: TrainingLoop,
    net: torch.nn.Module,
    place: torch.device,
    world: World,
    code: str,
    network_code: str,
) -> None:
    about = describe_checkpoint(run, network_code)
    if isinstance(run.training, Reinforced):
        export_stages(run.training, state, out, net, about)
    save_checkpoint(out / CHECKPOINT, net, about)
    write_text(out / LOG, "".join(line + "\n" for line in loop.lines))
    summary: dict[str, Any] = {
        "run": run.id,
        "spec": about["spec"],
        "code": code,
        "weights_sha256": weights_digest(net),
        "device": place.type,
        "device_name": devices.name(place),
        "threads": torch.get_num_threads(),
        "world_size": world.size,
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


def _validation(  # type: ignore[no-untyped-def]
    run: Run, net: torch.nn.Module, label_dirs: list[Path], memory_gb: float, solve: Callable[[Any], Any] | None
):
    """A function that decodes the validation sets: data set id -> gap (ratio of means) in percent.

    Greedily, unless the training brings a way to `solve` instances.
    """
    sets = []
    for labels in (run.validation, *run.also_validation):
        spec = spec_of(labels)
        instances = spec.instances(labels.dataset)
        best = float(np.mean(spec.lengths(instances, load_tours(labels, label_dirs))))
        sets.append((labels.dataset, spec, instances, best))

    def validate() -> dict[str, float]:
        gaps = {}
        for dataset, spec, instances, best in sets:
            if solve is not None:
                solutions = solve(instances)
            else:
                solutions = construct(dataset.problem, net, instances, memory_gb, run.training.precision).numpy()  # type: ignore[arg-type]
            gaps[dataset.id] = 100 * (float(np.mean(spec.lengths(instances, solutions))) / best - 1)
        return gaps

    return validate
