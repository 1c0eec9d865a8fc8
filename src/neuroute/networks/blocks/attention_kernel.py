"""Attention of small heads on a CPU, as one pass over each head: `attention.c`, compiled when it is first needed.

Where there is no C compiler, no place to keep what it made, or a CPU without AVX2, there is no kernel, and torch's own
attention does the same work: equal to rounding.  NEUROUTE_KERNELS=off turns it off.
"""

import ctypes
import hashlib
import logging
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole

log = logging.getLogger(__name__)
SWITCH = "NEUROUTE_KERNELS"
SOURCE = Path(__file__).with_name("attention.c")
VERSION = "7b77a65601bef611"  # the start of its sha256: code digests read Python, and an edit there must change them
# What torch says of the CPU (ATEN_CPU_CAPABILITY may name less) -> the instructions to use, and floats of a vector.
TARGETS = {"AVX512": ("x86-64-v4", 16), "AVX2": ("x86-64-v3", 8)}
FLAGS = ("-O3", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-fPIC")
PARALLEL = 1 << 18  # multiply-adds that are worth a second thread
CHANNELS = 64  # of a head, at most: beyond, torch's matrix products are as fast


class _View(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("batch", ctypes.c_int64),
        ("head", ctypes.c_int64),
        ("token", ctypes.c_int64),
    )

    @classmethod
    def of(cls, tensor: Tensor | None) -> "_View":
        return cls() if tensor is None else cls(tensor.data_ptr(), *tensor.stride()[:3])


class _Task(ctypes.Structure):
    _fields_ = (
        *((name, _View) for name in ("q", "k", "v", "out", "bias")),
        ("logsum", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("batch", "heads", "queries", "keys", "channels")),
        ("scale", ctypes.c_float),
        ("half", ctypes.c_int),
        ("threads", ctypes.c_int),
    )


class _Back(ctypes.Structure):
    _fields_ = (("forward", _Task), *((name, _View) for name in ("given", "dq", "dk", "dv")))


def fits(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether the kernel takes these (batch, heads, tokens, d_k) tensors, and is there."""
    return (
        q.device.type == "cpu"
        and q.shape[-1] <= CHANNELS
        and q.dtype == k.dtype == v.dtype
        and q.dtype in (torch.float32, torch.bfloat16)
        and not torch.compiler.is_compiling()
        and torch.backends.cuda.flash_sdp_enabled()  # off inside sdpa_kernel(MATH), which asks for plain products
        and _compiled() is not None
    )


def describe() -> str:
    """Which attention this machine has, in a few words."""
    if _compiled() is not None:
        return f"compiled here for {torch.backends.cpu.get_cpu_capability()}"
    return f"torch's own: {_reason() or 'it could not be compiled'}"


@cache
def _compiled() -> ctypes.CDLL | None:
    """The kernel; None where there cannot be one."""
    if _reason():
        return None
    march, lanes = TARGETS[torch.backends.cpu.get_cpu_capability()]
    compiler = Path(shutil.which("cc") or "").resolve()
    command = [str(compiler), *FLAGS, f"-march={march}", f"-DLANES={lanes}"]
    about = compiler.stat()
    key = [*command, str(about.st_size), str(about.st_mtime_ns), SOURCE.read_text()]
    path = _folder() / f"attention-{VERSION}-{hashlib.sha256(chr(0).join(key).encode()).hexdigest()[:16]}.so"
    try:
        if not path.exists():
            _compile(command, path)
        library = ctypes.CDLL(str(path))  # its OpenMP is the one that torch has loaded
    except (OSError, NeurouteError, subprocess.CalledProcessError) as error:
        log.warning("attention is torch's own, which is slower: its kernel cannot be made (%s)", error)
        return None
    library.attention.argtypes = [ctypes.POINTER(_Task)]
    library.attention_backward.argtypes = [ctypes.POINTER(_Back)]
    return library


def _reason() -> str:
    """Why there is no kernel; empty where one can be tried."""
    if os.environ.get(SWITCH) == "off":
        return f"{SWITCH}=off"
    if torch.backends.cpu.get_cpu_capability() not in TARGETS:
        return "no AVX2"
    return "" if shutil.which("cc") else "no C compiler (cc)"


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neuroute"


def _compile(command: list[str], path: Path) -> None:
    """Appears whole or not at all: several processes may want it at once."""
    with tempfile.TemporaryDirectory() as folder:
        made, linked = f"{folder}/attention.o", f"{folder}/attention.so"
        subprocess.run([*command, "-c", str(SOURCE), "-o", made], check=True, capture_output=True)
        # Linked without OpenMP: torch's is there already, and two of them would each have threads of their own.
        subprocess.run([command[0], "-shared", made, "-o", linked, "-lm"], check=True, capture_output=True)
        content = Path(linked).read_bytes()
    write_whole(path, lambda file: file.write(content))


def _run(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None) -> Tensor:
    return _forward(q, k, v, scale, bias, None)


def _forward(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None, logsum: Tensor | None) -> Tensor:
    library = _compiled()
    assert library is not None
    out = _like(q, k, v, scale, bias)
    # Copies have to live until the call is over.
    q, k, v, bias = (*(_dense(each) for each in (q, k, v)), _wide(bias, q, k))
    if library.attention(ctypes.byref(_task(q, k, v, out, scale, bias, logsum))):
        raise MemoryError("attention: no memory for a thread's keys and values")
    return out


def _task(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, scale: float, bias: Tensor | None, logsum: Tensor | None
) -> _Task:
    batch, heads, queries, channels = q.shape
    shape = (batch, heads, queries, k.shape[2], channels)
    threads = torch.get_num_threads() if math.prod(shape) > PARALLEL else 1
    views = (_View.of(each) for each in (q, k, v, out, bias))
    half = q.dtype == torch.bfloat16
    return _Task(*views, None if logsum is None else logsum.data_ptr(), *shape, scale, half, threads)


def _wide(bias: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
    """In float32, one for each head, query and key."""
    return None if bias is None else _dense(bias.to(torch.float32)).expand(*q.shape[:3], k.shape[2])


class Trained(torch.autograd.Function):
    """The kernel forward and backward; a bias has no gradient."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None) -> Tensor:
        logsum = q.new_empty(q.shape[:3], dtype=torch.float32)
        out = _forward(q, k, v, scale, bias, logsum)
        ctx.save_for_backward(q, k, v, out, logsum, bias)
        ctx.scale = scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        library = _compiled()
        assert library is not None
        q, k, v, out, logsum, bias = ctx.saved_tensors
        gradients = [_like(each, k, v, ctx.scale, bias) for each in (q, k, v)]
        q, k, v, given, bias = (*(_dense(each) for each in (q, k, v, given)), _wide(bias, q, k))
        task = _task(q, k, v, out, ctx.scale, bias, logsum)
        if library.attention_backward(ctypes.byref(_Back(task, *(_View.of(each) for each in (given, *gradients))))):
            raise MemoryError("attention: no memory for a thread's keys and values")
        return (*gradients, None, None)


def _dense(x: Tensor) -> Tensor:
    """With neighbouring numbers along the last axis."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _like(q: Tensor, k: Tensor, v: Tensor, scale: float, bias: Tensor | None) -> Tensor:
    """Shapes alone."""
    batch, heads, queries, channels = q.shape
    return q.new_empty(batch, queries, heads, channels).transpose(1, 2)


_library = torch.library.Library("neuroute", "FRAGMENT")
_library.define("attention(Tensor q, Tensor k, Tensor v, float scale, Tensor? bias) -> Tensor")
_library.impl("attention", _run, "CPU")
_library.impl("attention", _like, "Meta")
fused: Callable[[Tensor, Tensor, Tensor, float, Tensor | None], Tensor] = torch.ops.neuroute.attention.default
