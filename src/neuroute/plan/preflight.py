"""What can be known to be missing before the first job starts."""

import shutil
from pathlib import Path

from neuroute.core.errors import NeurouteError
from neuroute.plan.build import Plan
from neuroute.plan.config import Config


def has_gpu() -> bool:
    """Whether an NVIDIA GPU is visible, found without importing torch."""
    return Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi") is not None


def gpus(config: Config) -> int:
    """GPUs that one training job asks Snakemake for."""
    wanted = config.device == "cuda" or (config.device == "auto" and has_gpu())
    return config.gpus_per_run if wanted else 0


def check_device(config: Config) -> None:
    """Raises NeurouteError when the GPU that config.yaml names is not here, where the jobs run."""
    if config.device == "cuda" and not has_gpu():
        raise NeurouteError(
            "config.yaml asks for device 'cuda', but this machine shows no NVIDIA GPU; set `device: auto`"
        )


def check(plan: Plan) -> None:
    """Raises NeurouteError when a folder that config.yaml names is not there."""
    for cache in plan.config.label_caches:
        if not Path(cache).is_dir():
            raise NeurouteError(f"config.yaml: label_caches: no folder {cache}; correct the path or leave it out")
    for key in ("benchmarks_dir", "testsets_dir"):
        folder = getattr(plan.config, key)
        if folder is not None and not Path(folder).is_dir():
            raise NeurouteError(f"config.yaml: {key}: no folder {folder}; correct the path or leave it out")
