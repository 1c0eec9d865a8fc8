"""The training stage: a run of the plan -> checkpoint, log and summary."""

import platform
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


def train(
    run: Run,
    out: Path,
    state: Path,
    label_dirs: list[Path],
    *,
    code: str,
    network_code: str,
    device: str = "auto",
    threads: int | None = None,
    memory_gb: float = 4.0,
    compile_network: bool = False,
    tensorboard: bool = False,
) -> None:
    """Train `run` and write model.safetensors, log.jsonl and run.json into `out`.

    `state` is the folder that survives a kill; the caller keys it by spec, code and data.  A finished state is only
    exported again.  Raises NeurouteError before training when CUDA or labels are missing, or when another process
    trains the same run.
    """
    place = devices.choose(device)
    if threads:
        torch.set_num_threads(threads)
    with join(place) as world:
        if not world.leads:
            _train(
                run,
                out,
                state,
                label_dirs,
                world,
                place,
                memory_gb,
                compile_network,
                False,
                code,
                network_code,
            )
            return
        with exclusive(state / "lock", f"training of {run.id}"):
            _train(
                run,
                out,
                state,
                label_dirs,
                world,
                place,
                memory_gb,
                compile_network,
                tensorboard,
                code,
                network_code,
            )


def _train(
    run: Run,
    out: Path,
    state: Path,
    label_dirs: list[Path],
    world: World,
    place: torch.device,
    memory_gb: float,
    compile_network: bool,
    tensorboard: bool,
    code: str,
    network_code: str,
) -> None:
    torch.manual_seed(run.seed)
    net = build(run.network).to(place)
    data = TrainingSet(run.data, label_dirs, run.seed, shuffle=run.training.epochs > 1)
    if data.count != run.training.samples:
        raise NeurouteError(f"{run.id}: labels for {data.count} samples, {run.training.samples} are needed")
    trained: torch.nn.Module = torch.compile(net, dynamic=True) if compile_network else net  # type: ignore[assignment]
    batches = SupervisedBatches(run, world.wrap(trained, place), data, place, world, memory_gb)
    t = run.training
    loop = TrainingLoop(
        net,
        batches,
        total=t.batches,
        samples=lambda b: (
            (b // t.batches_per_epoch) * t.samples + min(b % t.batches_per_epoch * t.batch_size, t.samples)
        ),
        validate=_validation(run, net, label_dirs, memory_gb),
        validate_after={round(t.batches * i / t.validations) for i in range(1, t.validations + 1)},
        state_dir=state,
        world=world,
        device=place,
        tensorboard=tensorboard,
    )
    loop.resume()
    loop.run()
    if not world.leads:
        return
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
        "samples": t.samples * t.epochs,
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
