"""Where checkpoints come from: train, import-weights."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuroute.cli.options import ConfigFile, Device, ScaleName, Threads, labels_digest, load_plan
from neuroute.core.errors import NeurouteError

if TYPE_CHECKING:
    pass


def train(
    run: Annotated[str, typer.Argument(help="a run of the plan, e.g. scaling/base_6x128")],
    config: ConfigFile = None,
    scale: ScaleName = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Train a run; a killed call goes on where it stopped and ends with the same weights."""
    from neuroute.training.train import Settings
    from neuroute.training.train import train as train_run

    p = load_plan(config, scale, device)
    r = p.find(p.runs, run, "run")
    code = p.train_code(run)
    starts, mend = p.files_to_start(run), f"train it with `neuroute train {(r.start or '').partition('@')[0]}`"
    started = [_file_digest(path, mend) for path in starts]
    train_run(
        r,
        p.run_dir(run),
        p.work / "state" / run / _state_key(r.canonical(), code, labels_digest(p, p.label_jobs_of_run(run)), *started),
        p.label_dirs,
        Settings(
            p.config.device,
            threads or p.scale.train_threads,
            p.config.memory_gb,
            p.config.compile,
            p.config.tensorboard,
        ),
        code=code,
        network_code=p.network_code(run),
        start=starts[0] if starts else None,
    )


def _file_digest(path: Path, mend: str) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        raise NeurouteError(f"{path}: missing; {mend}") from None


def _state_key(*parts: str) -> str:
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


def import_weights(
    file: Annotated[Path, typer.Argument(help="weights: .pt, .pth or .safetensors")],
    out: Annotated[Path, typer.Option(help="the checkpoint to write (.safetensors)")],
    network: Annotated[
        str | None, typer.Option(help="lehd, bq or decoder-only; not needed for a checkpoint of neuroute")
    ] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="default: read from the tensors")] = None,
    width: Annotated[int | None, typer.Option(min=1, help="default: read from the tensors")] = None,
    heads: Annotated[int | None, typer.Option(min=1, help="default: as published; no tensor tells")] = None,
    feed_forward: Annotated[int | None, typer.Option(min=1, help="default: read from the tensors")] = None,
    train_nodes: Annotated[int | None, typer.Option(min=4, help="nodes of the training instances; default 100")] = None,
) -> None:
    """Turn weights from elsewhere into a checkpoint, or keep a checkpoint after rewriting its network's code.

    Reads LEHD's published checkpoints for the TSP, and any file whose tensors are called as here. Nothing in the file
    is executed.
    """
    from neuroute.networks.import_weights import import_weights as convert

    shape = {"depth": depth, "width": width, "heads": heads, "feed_forward": feed_forward, "train_nodes": train_nodes}
    print(convert(file, out, network, shape))
