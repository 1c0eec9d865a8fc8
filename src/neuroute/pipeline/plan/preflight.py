"""What can be known to be missing before the first job starts."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from neuroute.core import gpus as here
from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_folder
from neuroute.pipeline.plan.config import Config
from neuroute.pipeline.plan.plan import Plan

SPECIAL = re.compile(r"[\s'\"\\$&;|<>()*?\[\]{}`]")  # in a path that jobs are started with


def has_gpu() -> bool:
    """Whether an NVIDIA GPU is visible, found without importing torch."""
    return here.count_visible() > 0


def gpus(config: Config) -> int:
    """GPUs that one training job asks Snakemake for."""
    uses_gpu = config.device == "cuda" or (config.device == "auto" and has_gpu())
    return config.gpus_per_run if uses_gpu else 0


def without_gpu(config: Config, command: Iterable[str]) -> str:
    """Say that a command which asks for a GPU (`--resources gpu=1`) gets none; nothing for another one."""
    requests = [word for word in command if re.fullmatch(r"(--res(ources)?=)?gpu=[1-9]\d*", word)]
    if not requests or gpus(config):
        return ""
    why = f"{config.where} says `device: cpu`" if config.device == "cpu" else "this machine shows no GPU"
    return f"{requests[0].rpartition('resources=')[2]}: {why}, so networks run on the CPU"


def check_gpus(config: Config, at_once: int) -> None:
    """Raises NeurouteError if jobs of this machine ask for more GPUs than it has: of the DAG at most `at_once`."""
    per_job = gpus(config)
    if not per_job:
        return
    count = here.count_visible()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    there = f"this machine shows {count} GPU{'' if count == 1 else 's'}" + (
        f" (CUDA_VISIBLE_DEVICES={visible})" if visible is not None else ""
    )
    if config.device == "cuda" and not count:
        raise NeurouteError(f"{config.where} asks for device 'cuda', but {there}; set `device: auto`")
    if per_job > count:
        raise NeurouteError(f"{config.where}: gpus_per_run: {per_job}, but {there}; set it to at most that")
    if at_once > (most := count * config.jobs_per_gpu):
        raise NeurouteError(
            f"--resources gpu={at_once}, but {there}; give at most {most}, or let more jobs share one: jobs_per_gpu"
        )


def check(plan: Plan) -> None:
    """Raises NeurouteError when a folder that config.yaml names is not there, or cannot be written by jobs."""
    for key in ("work_dir", "results_dir"):
        folder = getattr(plan.config, key)
        if special := SPECIAL.search(folder):
            where = f"{plan.config.where}: {key}: '{folder}'"
            raise NeurouteError(f"{where} contains '{special[0]}', which shells interpret; remove it")
        check_folder(Path(folder))
    for cache in plan.config.label_caches:
        if not Path(cache).is_dir():
            raise NeurouteError(
                f"{plan.config.where}: label_caches: no folder {cache}; correct the path or leave it out"
            )
    for key in ("benchmarks_dir", "testsets_dir"):
        folder = getattr(plan.config, key)
        if folder is not None and not Path(folder).is_dir():
            raise NeurouteError(f"{plan.config.where}: {key}: no folder {folder}; correct the path or leave it out")
