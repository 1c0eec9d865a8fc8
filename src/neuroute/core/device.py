"""Where tensors live, on how many threads, and the seeds of their generators."""

import contextlib
import os
import platform
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

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
    features = set(_cpuinfo("flags", "Features").split())
    return not features or not features.isdisjoint(("avx512_bf16", "amx_bf16", "bf16"))


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


GOLDEN = 2_654_435_769  # 2^32 over the golden ratio: its multiples lie far apart among 32-bit numbers


def stream_seed(stream: int, number: int) -> int:
    """The seed of draw `number` of a stream, of 32 bits: torch's CPU generators heed no more.

    Of few streams, hundreds of millions of numbers all differ.
    """
    return (stream * GOLDEN + number) % 2**32


PIECES = 4  # that one thread has, and all of them
FASTER = 1.1  # times as fast, that all must be
HOPELESS = 4.0  # times as slow in one piece, which says enough
BUSY = 0.75  # of a core, that one thread gets at least where no other work is beside it


class Threads:
    """Sets torch's threads for pieces of work of about the same size, and at the end what they were before.

    The first piece is not counted, as it loads.  The next ones have one thread; if other work holds the cores,
    it stays at one, else all threads and one take turns.  The choice hangs on the machine and on what else it does, and
    sums may round otherwise in other threads: where results must be the same everywhere, as in the DAG, it is fixed.

    Attributes:
        chosen: how many; None while it is being tried.
        tried: what each has taken; empty where nothing was tried.
        reason: why, in words; empty where threads are fixed, or on a GPU.
    """

    def __init__(self, fixed: int | None, device: torch.device) -> None:
        self.most, self.reason = torch.get_num_threads(), ""
        self.chosen: int | None = None
        self.tried: dict[int, list[tuple[float, float]]] = {}  # threads -> (seconds, of them on a processor) of pieces
        self._number = 0
        if fixed or device.type != "cpu" or self.most == 1:
            self.choose(fixed or self.most, "")
        else:
            torch.set_num_threads(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self.most)

    def choose(self, threads: int, why: str) -> None:
        """Take so many threads."""
        self.chosen = threads
        self.reason = f"{threads} thread{'s' * (threads > 1)}: {why}" if why else ""
        torch.set_num_threads(threads)

    @contextmanager
    def piece(self) -> Iterator[None]:
        """Do a piece of work in so many threads as are chosen, or to be tried next."""
        if self.chosen is not None:
            yield
            return
        threads = 1 if self._number < 1 + PIECES or self._number % 2 else self.most
        torch.set_num_threads(threads)
        began, used = time.perf_counter(), time.process_time()
        yield
        self._number += 1
        if self._number > 1:
            self.tried.setdefault(threads, []).append((time.perf_counter() - began, time.process_time() - used))
            self._settle()

    def _settle(self) -> None:
        one, every = (self.tried.get(threads, []) for threads in (1, self.most))
        share = sum(used for _, used in one) / max(sum(seconds for seconds, _ in one), 1e-9)
        if len(one) == PIECES and not every and (share < BUSY or is_busy()):
            self.choose(1, "other work holds the cores")
        if self.chosen or not every:
            return
        mean = [sum(seconds for seconds, _ in tried) / len(tried) for tried in (one, every)]
        if len(every) < PIECES and mean[1] < HOPELESS * mean[0]:
            return
        ratio = mean[0] / mean[1]
        if ratio >= FASTER:
            self.choose(self.most, f"{ratio:.1f} times as fast as 1")
        else:
            self.choose(1, f"{self.most} take {1 / ratio:.1f} times as long")


def is_busy() -> bool:
    """Whether more threads of all processes run, or want to, than there are cores, where the system says so."""
    try:
        running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return False
    return running > (os.cpu_count() or 1)
