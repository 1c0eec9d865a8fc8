"""Where tensors live: choosing the device, and the memory and name of it."""

import contextlib
import os
import platform
import resource
from pathlib import Path

import torch

from neuroute.core import gpus
from neuroute.core.errors import NeurouteError


def choose(device: str) -> torch.device:
    """`auto`, `cpu` or `cuda`.  Raises NeurouteError when CUDA is asked for and absent."""
    if device not in ("auto", "cpu", "cuda"):
        raise NeurouteError(f"unknown device '{device}'; auto, cpu or cuda")
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise NeurouteError(
            "device 'cuda' asked for, but torch finds no CUDA device; set `device: auto` (or cpu) in config.yaml"
        )
    # cuDNN plans its attention anew for each length, 50 ms on an H200: each decision of a tour has one of its own.
    torch.backends.cuda.enable_cudnn_sdp(False)
    return torch.device("cuda", torch.cuda.current_device())


def claim(device: str, jobs_per_gpu: int = 1, tf32: bool = True) -> torch.device:
    """As `choose`, for a job: of several GPUs one that no other job has, or less than `jobs_per_gpu` others.

    tf32: whether a GPU may multiply float32 matrices with ten bits of their digits, from now on, in this process.
    Raises NeurouteError if they have all of them.
    """
    place = choose(device)
    if place.type == "cpu":
        return place
    count = torch.cuda.device_count()
    if (here := int(os.environ.get("LOCAL_WORLD_SIZE", 1))) > count * jobs_per_gpu:
        raise NeurouteError(
            f"{here} GPUs asked for, but torch finds {count} on this machine; set `gpus_per_run` to at most that"
        )
    names = tuple(str(torch.cuda.get_device_properties(i).uuid) for i in range(count))
    place = torch.device("cuda", gpus.take(names, jobs_per_gpu))
    torch.cuda.set_device(place)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    return place


def threads_here(threads: int) -> int:
    """Threads of this process, where torchrun has started several that share them."""
    return max(1, threads // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


def has_bf16(device: torch.device) -> bool:
    """Whether it multiplies bf16 by instructions of its own: without them, a CPU is slower in bf16 than in fp32.

    A system that lists no features of its CPU is taken to.
    """
    if device.type != "cpu":
        return True
    features = cpu_features()
    return not features or not features.isdisjoint(("avx512_bf16", "amx_bf16", "bf16"))


def cpu_features() -> set[str]:
    """Return what Linux lists of the first processor; nothing elsewhere."""
    return set(_cpuinfo("flags", "Features").split())


def _cpuinfo(*keys: str) -> str:
    """Return the first value of such a key that Linux states; nothing where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(keys)), "")


def name(device: torch.device) -> str:
    """Of the processor; times depend on whether a GPU multiplies in TF32, so it says that too."""
    if device.type == "cuda":
        tf32 = torch.cuda.get_device_capability(device) >= (8, 0) and torch.backends.cuda.matmul.allow_tf32
        return torch.cuda.get_device_name(device) + (", TF32" if tf32 else "")
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def memory_budget_gb(device: torch.device, configured: float | None, jobs_per_gpu: int = 1) -> float:
    """What a job may use for activations: as configured, else 4 GB on a CPU and 60 % of what a GPU has free.

    Of several jobs that share a GPU each gets its part of 60 % of all of it, whoever comes first.
    """
    if configured is not None:
        return configured
    if device.type == "cpu":
        return 4.0
    free, total = torch.cuda.mem_get_info(device)
    return 0.6 * min(free, total / jobs_per_gpu) / 1e9


def reset_peak_memory(device: torch.device) -> None:
    """Start a new peak.  On a CPU Linux forgets the old one; elsewhere the peak is that of the whole process."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb(device: torch.device) -> float:
    """Since the reset, in MiB.  CUDA: torch's allocations.  CPU: resident size of this process, code included."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
