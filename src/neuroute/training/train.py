"""The training stage: a run of the plan -> checkpoint, log and summary."""

import platform
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuroute import device as devices
from neuroute.datasets.labels import load_tours
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.decode import decode
from neuroute.errors import NeurouteError
from neuroute.files import exclusive, write_json, write_text
from neuroute.networks.weights import build, parameters, save_checkpoint
from neuroute.plan.objects import Decoding, Run
from neuroute.problems.tsp import tour_length
from neuroute.training.data import TrainingSet
from neuroute.training.distributed import World, join
from neuroute.training.loop import TrainingLoop
from neuroute.training.supervised import SupervisedBatches

CHECKPOINT, LOG, SUMMARY = "model.safetensors", "log.jsonl", "run.json"


@dataclass(frozen=True)
class Settings:
    """How a run is executed.  None of it changes what the run is."""

    device: str = "auto"
    threads: int | None = None
    memory_gb: float | None = None
    compile: bool = False
    tensorboard: bool = False


def train(
    run: Run, out: Path, state: Path, label_dirs: list[Path], settings: Settings, *, code: str, network_code: str
) -> None:
    """Train `run` and write model.safetensors, log.jsonl and run.json into `out`.

    `state` is the folder that survives a kill; the caller keys it by spec, code and data.  A finished state is only
    exported again.  Raises NeurouteError before training when CUDA or labels are missing, or when another process
    trains the same run.
    """
    place = devices.choose(settings.device)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    with join(place) as world:
        alone = exclusive(out / ".lock", f"training of {run.id}") if world.leads else nullcontext()
        with alone:
            loop, net = _train(run, state, label_dirs, settings, world, place)
            if world.leads:
                _export(run, out, loop, net, place, world, code, network_code)


def _train(
    run: Run, state: Path, label_dirs: list[Path], settings: Settings, world: World, place: torch.device
) -> tuple[TrainingLoop, torch.nn.Module]:
    budget = devices.memory_budget_gb(place, settings.memory_gb)
    if (run.training.samples - 1) % run.training.batch_size + 1 < world.size:
        raise NeurouteError(
            f"{run.id}: the last batch is smaller than {world.size} processes; change samples or batch_size"
        )
    torch.manual_seed(run.seed)
    net = build(run.network).to(place)
    data = TrainingSet(run.data, label_dirs, run.seed, shuffle=run.training.epochs > 1)
    if data.count != run.training.samples:
        raise NeurouteError(f"{run.id}: labels for {data.count} samples, {run.training.samples} are needed")
    trained: torch.nn.Module = torch.compile(net, dynamic=True) if settings.compile else net  # type: ignore[assignment]
    batches = SupervisedBatches(run, world.wrap(trained, place), data, place, world, budget)
    t = run.training
    loop = TrainingLoop(
        net,
        batches,
        total=t.batches,
        samples=lambda b: (
            (b // t.batches_per_epoch) * t.samples + min(b % t.batches_per_epoch * t.batch_size, t.samples)
        ),
        validate=_validation(run, net, label_dirs, budget),
        validate_after={round(t.batches * i / t.validations) for i in range(1, t.validations + 1)},
        state_dir=state,
        world=world,
        device=place,
        tensorboard=settings.tensorboard,
    )
    loop.resume()
    loop.run()
    return loop, net


def _export(
    run: Run,
    out: Path,
    loop: TrainingLoop,
    net: torch.nn.Module,
    place: torch.device,
    world: World,
    code: str,
    network_code: str,
) -> None:
    save_checkpoint(
        out / CHECKPOINT,
        net,
        {
            "run": run.id,
            "spec": run.model_dump(mode="json"),
            "network": run.network.model_dump(),
            "code": network_code,
        },
    )
    write_text(out / LOG, "".join(line + "\n" for line in loop.lines))
    summary: dict[str, Any] = {
        "run": run.id,
        "spec": run.model_dump(mode="json"),
        "code": code,
        "device": place.type,
        "device_name": devices.name(place),
        "threads": torch.get_num_threads(),
        "world_size": world.size,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "parameters": parameters(net),
        "batches": loop.done,
        "updates": loop.updates,
        "samples": run.training.samples * run.training.epochs,
        "wall_time_s": round(loop.seconds, 2),
        "peak_memory_mb": round(devices.peak_memory_mb(place), 1),
    }
    write_json(out / SUMMARY, summary)


def _validation(run: Run, net: torch.nn.Module, label_dirs: list[Path], memory_gb: float):  # type: ignore[no-untyped-def]
    """A function that decodes the validation set greedily and returns the gap (ratio of means) in percent."""
    coords = dataset_coordinates(run.validation.dataset)
    best = float(np.mean(tour_length(coords, load_tours(run.validation, label_dirs))))
    points = torch.from_numpy(coords)

    def validate() -> float:
        tours = decode(net, points, Decoding(), memory_gb, run.training.precision)
        return 100 * (float(np.mean(tour_length(coords, tours.numpy()))) / best - 1)

    return validate
