"""Options that several commands take, and the plan that `--config` and `--scale` choose."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuroute.core.errors import NeurouteError
from neuroute.core.job import CONFIG_ENV

if TYPE_CHECKING:
    from neuroute.pipeline.plan.config import Config
    from neuroute.pipeline.plan.plan import Plan

ConfigFile = Annotated[Path | None, typer.Option("--config", help="config file; default ./config.yaml")]
ScaleName = Annotated[str | None, typer.Option("--scale", help="smoke, hour, laptop, gpu, paper, zoo, or a .yaml file")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="a key of the config with another value: runs.scaling/base_6x128.training.learning_rate=2e-4",
    ),
]
Device = Annotated[str | None, typer.Option(help="auto, cpu or cuda; default: the config's")]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore-section", help="leave this key or section of a file out, as in PICKUP_SECTION; repeatable"),
]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; default: the scale's")]

log = logging.getLogger(__name__)
_PLANS: dict[str, "Plan"] = {}  # built in this process, or in the warm one that it is a copy of


def load_plan(
    config: Path | None, scale: str | None, device: str | None = None, changes: Sequence[str] | None = None
) -> "Plan":
    """The plan of a config file with these settings instead of its own, where they are given.

    Raises NeurouteError when there is no such file or scale, or for a setting that is none.
    """
    from neuroute.pipeline.plan.build import build_plan, settle
    from neuroute.pipeline.plan.config import load_config

    settings = load_config(config, changes or (), scale=scale, device=device)
    key = settings.canonical()
    if key not in _PLANS:
        _PLANS[key] = settle(build_plan(settings))
    return _PLANS[key]


def load_settings(config: Path | None, scale: str | None, device: str | None = None) -> "Config":
    """The config file with these settings; where there is none, what is so without one."""
    from neuroute.pipeline.plan.config import load_config, parse_config

    if config is None and CONFIG_ENV not in os.environ and not Path("config.yaml").exists():
        return parse_config({}, "options")
    return load_config(config, scale=scale, device=device)


def finished_runs(config: Path | None, scale: str | None, name: str) -> dict[str, str]:
    """Runs that a name stands for (a run, a paper's, or `trained`, all of them) -> what `neuroute.load_model` takes.

    No runs without a config file.  Raises NeurouteError if none of them is finished.
    """
    from neuroute.networks.weights import is_bundled

    if config is None and CONFIG_ENV not in os.environ and not Path("config.yaml").exists():
        return {}
    p = load_plan(config, scale)
    runs = [run for run in p.runs if name in (run, run.partition("/")[0], "trained")]
    checkpoints = {run: str(p.checkpoint(run)) for run in runs if p.checkpoint(run).is_file()}
    if runs and not checkpoints:
        raise NeurouteError(
            f"--method {name}: has no finished run at scale {p.scale.name}; train it: neuroute train {runs[0]}"
        )
    kinds = {run: p.runs[run].network.kind for run in checkpoints}
    # One outside the package is named by the plan, so it is trusted.
    return {run: file if is_bundled(kinds[run]) else f"{kinds[run]}={file}" for run, file in checkpoints.items()}


def begin_planned(p: "Plan", job: str, lock_file: Path) -> None:
    """Wait for a process of a killed Snakemake that still does this job of Snakemake's, whose work is then found.

    Raises NeurouteError if Snakemake has planned the job by other code or settings: it would keep what comes of it as
    made by those, so an edit that is taken back, or a branch that is left again, would leave numbers of neither.
    """
    from neuroute.core.files import lock, open_lock, read_json
    from neuroute.pipeline.plan.config import PLANNED_ENV

    if not (file := os.environ.get(PLANNED_ENV)):
        return
    planned = read_json(Path(file), "start Snakemake again")
    if job in planned and tuple(planned[job]) != p.digested(job):
        raise NeurouteError(f"{job}: its code or settings changed since Snakemake planned it; start Snakemake again")
    if lock_file.exists():
        with open_lock(lock_file) as lockable:
            if not lock(lockable):
                log.info("waiting for a process of an earlier Snakemake that is making %s", job)
                lock(lockable, waits=True)


def parse_part(text: str | None) -> tuple[int, int] | None:
    """2/4 -> (1, 4).  Raises NeurouteError for what is no part."""
    if text is None:
        return None
    first, _, of = text.partition("/")
    if not (first.isdigit() and of.isdigit() and 1 <= int(first) <= int(of)):
        raise NeurouteError(f"--part {text}: give part/parts, as in 2/4")
    return int(first) - 1, int(of)
