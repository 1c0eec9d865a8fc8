"""Where tensors live: choosing the device, and the memory and name of it."""

import contextlib
import os
import platform
import resource
from pathlib import Path

import torch

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
    local = int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count()
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def memory_budget_gb(device: torch.device, configured: float | None) -> float:
    """What a job may use for activations: as configured, else 4 GB on a CPU and 60 % of what a GPU has free."""
    if configured is not None:
        return configured
    return 0.6 * torch.cuda.mem_get_info(device)[0] / 1e9 if device.type == "cuda" else 4.0


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
