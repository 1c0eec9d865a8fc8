"""Where checkpoints come from: train, import-weights."""

from pathlib import Path
from typing import Annotated, Any

import typer

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.cli.options import Changes, ConfigFile, Device, ScaleName, Threads, begin_planned, load_plan


def train(
    run: Annotated[str, typer.Argument(help="a run of the plan, e.g. scaling/base_6x128")],
    config: ConfigFile = None,
    scale: ScaleName = None,
    device: Device = None,
    threads: Threads = None,
    changes: Changes = None,
) -> None:
    """Train a run.

    A killed call goes on where it stopped and ends with the same weights.

    Of a run whose weights config.yaml gives, takes these instead.
    """
    from neuroute.specs.objects import GivenRun

    p = load_plan(config, scale, device, changes)
    r = p.find(p.runs, run, "run")
    begin_planned(p, run, p.run_dir(run) / ".lock")
    if isinstance(r, GivenRun):
        from neuroute.networks.import_weights import take_weights

        take_weights(r, p.run_dir(run), p.network_code(run))
        return
    from neuroute.api.train import Trainer
    from neuroute.datasets.labels import restore_labels
    from neuroute.training.callbacks import make_loggers
    from neuroute.training.train import Settings

    c = p.config
    restore_labels(r.labels, p.label_store, p.solutions)
    trainer = Trainer(
        r,
        p.work,
        p.label_dirs,
        Settings(c.device, threads or p.scale.train_threads, c.memory_gb, c.compile, c.jobs_per_gpu, c.tf32),
        tuple(make_loggers(c.loggers)),
        p.files_to_start(run),
        p.cache / p.scale.name / "state",
    )
    trainer.train()


def import_weights(
    file: Annotated[Path, typer.Argument(help="weights: .pt, .pth or .safetensors")],
    out: Annotated[Path, typer.Option(help="the checkpoint to write (.safetensors)")],
    network: Annotated[
        str | None,
        typer.Option(help="network of files with neuroute's tensor names: lehd, bq-cvrp, ... or your module:Net"),
    ] = None,
    argument: Annotated[
        list[str] | None, typer.Option(help="constructor argument that no tensor tells: heads=4, inputs=OVRP")
    ] = None,
) -> None:
    """Turn weights from elsewhere into a checkpoint.

    Or keep a checkpoint after rewriting its network's code.

    Reads what the published code of some twenty networks writes (docs/how-to/published_weights.md lists them), and any
    file whose tensors are called as here. Nothing in the file is executed.
    """
    from neuroute.core.yaml_files import parse_yaml
    from neuroute.networks.import_weights import import_weights as convert

    arguments: dict[str, Any] = {}
    for text in argument or ():
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise NeurouteError(f"--argument {text}: write NAME=VALUE, as in heads=8")
        arguments[name] = parse_yaml(value)
    print(convert(file, out, network, arguments))
