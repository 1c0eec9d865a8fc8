"""What there is to do, and what there is to do it with: plan, rehearse, doctor, schema."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from neuroute.cli.options import Changes, ConfigFile, Device, ScaleName, load_plan
from neuroute.core.errors import NeurouteError


def plan(
    target: Annotated[
        str | None, typer.Argument(help="a paper (sit), table12, scaling/figure2, a run ... ; default: everything")
    ] = None,
    lists_all: Annotated[bool, typer.Option("--all", help="list every job, of whole papers, too")] = False,
    config: ConfigFile = None,
    scale: ScaleName = None,
    changes: Changes = None,
) -> None:
    """List what a target needs and costs before anything runs."""
    from neuroute.plan.overview import describe

    print(describe(load_plan(config, scale, changes=changes), target, lists_all=lists_all))


def why(
    target: Annotated[str | None, typer.Argument(help="as of `neuroute plan`; default: everything")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
    changes: Changes = None,
) -> None:
    """Say what Snakemake would make again for a target, and what changed: `learning_rate: 0.002 -> 0.0002`."""
    from neuroute.plan.why import why as causes

    for line in causes(load_plan(config, scale, changes=changes), target):
        print(line)


def rehearse(
    minutes: Annotated[
        float | None, typer.Option(min=0.1, help="how long at most; default 2 where jobs take seconds, else 10")
    ] = None,
    on: Annotated[str | None, typer.Option(help="slurm: as one job of a cluster, whose output comes here")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
    device: Device = None,
    changes: Changes = None,
) -> None:
    """Try everything of a scale shortly, before any long run.

    A few batches of every training with its true network, batch and precision, a batch of every evaluation, a call of
    each solver, on labels that are made up.  Says all that fails, seconds a batch, memory, and the hours that follow;
    `neuroute plan`, what jobs ask a cluster for and the progress line then go by what was measured.
    """
    p = load_plan(config, scale, device, changes=changes)
    minutes = minutes or (2 if p.scale.warm_jobs else 10)
    if on is not None:
        from neuroute.dag.slurm import send_rehearsal

        words = {"--config": config, "--scale": scale, "--device": device, "--minutes": minutes}
        options = [str(part) for name, value in words.items() if value is not None for part in (name, value)]
        options += [part for change in changes or () for part in ("--set", change)]
        raise typer.Exit(send_rehearsal(on, p.config, p.scale.train_threads, minutes, options))
    from neuroute.rehearsal.rehearse import rehearse as try_all

    if try_all(p, minutes, print).failures:
        raise typer.Exit(1)


def doctor() -> None:
    """Say which solvers are there, and how to get the others.

    Each solves a small instance.  Say, too, which package does the work of each one that was asked for.
    """
    from neuroute.solvers.doctor import examine, packages

    for line in examine():
        print(line)
    from neuroute.kernels.library import describe

    print(f"operators on this CPU: {describe()}")
    print("asked for           done by")
    for line in packages():
        print(line)


def schema(folder: Annotated[Path, typer.Argument(help="where to write")] = Path("workflow/schemas")) -> None:
    """Write the JSON schemas of config.yaml and of scale files."""
    from neuroute.core.files import write_json
    from neuroute.plan.config import schemas

    for name, values in schemas().items():
        write_json(folder / f"{name}.schema.json", values)


# -- a folder to work in, where the package was installed without a checkout -----------------------------------------

PACKED = Path(__file__).resolve().parents[1] / "checkout"  # setup.py puts it into wheels


def init(folder: Annotated[Path, typer.Argument(help="where to; made if it is not there")] = Path()) -> None:
    """Copy the workflow into a folder to work in.

    Snakefile, rules, scales, config.yaml and the worked examples.
    """
    if not PACKED.is_dir():
        raise NeurouteError(f"this neuroute is a checkout: work in {PACKED.parents[2]}, which has the workflow")
    parts = sorted(path.name for path in PACKED.iterdir())
    if there := [part for part in parts if (folder / part).exists()]:
        raise NeurouteError(f"{folder / there[0]}: is there already; name another folder, or move it away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".neuroute-") as copy:
            shutil.copytree(PACKED, copy, dirs_exist_ok=True)
            for part in parts:
                os.replace(Path(copy, part), folder / part)
    except OSError as error:
        raise NeurouteError(f"{folder}: cannot be written ({error.strerror}); choose another place") from None
    print(f"{folder.resolve()}: {', '.join(parts)}; next: neuroute plan")
