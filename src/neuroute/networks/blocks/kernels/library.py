"""Kernels in C for a CPU: each file `NAME.c` of this folder, compiled when it is first needed.

Where there is no C compiler, no place to keep what it made, or a CPU without AVX2, there are no kernels, and torch's
own operations do the same work: equal to rounding.  NEUROUTE_KERNELS=off turns them off.
"""

import ctypes
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.core.private import cache_folder, is_private, scratch_folder

log = logging.getLogger(__name__)
SWITCH = "NEUROUTE_KERNELS"
FOLDER = Path(__file__).parent
# What torch says of the CPU (ATEN_CPU_CAPABILITY may name less) -> the instructions to use, and floats of a vector.
TARGETS = {"AVX512": ("x86-64-v4", 16), "AVX2": ("x86-64-v3", 8)}
FLAGS = ("-O3", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-fPIC")
DIGEST = hashlib.sha256().digest_size
PARALLEL = 1 << 18  # multiply-adds that are worth a second thread


def source(name: str) -> str:
    """What a kernel is compiled from."""
    return "".join(path.read_text() for path in (*sorted(FOLDER.glob("*.h")), FOLDER / f"{name}.c"))


@cache
def library(name: str, version: str) -> ctypes.CDLL | None:
    """A kernel; None where there cannot be one.

    version: the start of its source's sha256.  Code digests read Python, and an edit there must change them.
    """
    if reason():
        return None
    march, lanes = TARGETS[torch.backends.cpu.get_cpu_capability()]
    compiler = Path(shutil.which("cc") or "").resolve()
    command = [str(compiler), *FLAGS, f"-march={march}", f"-DLANES={lanes}"]
    about = compiler.stat()
    key = [*command, str(about.st_size), str(about.st_mtime_ns), source(name)]
    try:
        path = cache_folder() / f"{name}-{version}-{hashlib.sha256(chr(0).join(key).encode()).hexdigest()[:16]}.so"
        if not _is_whole(path):
            with tempfile.TemporaryFile(dir=path.parent):  # else it compiles for nothing, in each process anew
                _compile(command, FOLDER / f"{name}.c", path)
        return ctypes.CDLL(str(path))  # its OpenMP is the one that torch has loaded
    except (OSError, NeurouteError, subprocess.CalledProcessError) as error:
        log.warning("%s is torch's own, which is slower: its kernel cannot be made (%s)", name, error)
        return None


def reason() -> str:
    """Why there are no kernels; empty where they can be tried."""
    if os.environ.get(SWITCH) == "off":
        return f"{SWITCH}=off"
    if torch.backends.cpu.get_cpu_capability() not in TARGETS:
        return "no AVX2"
    return "" if shutil.which("cc") else "no C compiler (cc)"


def are_on() -> bool:
    """Whether kernels may run just now: not while torch compiles, nor inside sdpa_kernel(MATH), for plain products."""
    return not torch.compiler.is_compiling() and torch.backends.cuda.flash_sdp_enabled()


def lanes() -> int:
    """Floats of a vector, where there are kernels; else 1."""
    return TARGETS.get(torch.backends.cpu.get_cpu_capability(), ("", 1))[1]


def threads_for(products: int) -> int:
    """Threads for so many multiply-adds."""
    return torch.get_num_threads() if products > PARALLEL else 1


def dense(x: Tensor) -> Tensor:
    """With neighbouring numbers along the last axis."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _is_whole(path: Path) -> bool:
    """Whether this user has written it, and nothing of it is lost: it ends with the SHA-256 of the library before."""
    try:
        with path.open("rb") as file:
            about, content = os.fstat(file.fileno()), file.read()
    except OSError:
        return False
    return is_private(about) and hashlib.sha256(content[:-DIGEST]).digest() == content[-DIGEST:]


def _compile(command: list[str], file: Path, path: Path) -> None:
    """Appears whole or not at all: several processes may want it at once."""
    with scratch_folder() as folder:
        object_file, linked = f"{folder}/kernel.o", f"{folder}/kernel.so"
        subprocess.run([*command, "-c", str(file), "-o", object_file], check=True, capture_output=True)
        # Linked without OpenMP: torch's is there already, and two of them would each have threads of their own.
        subprocess.run([command[0], "-shared", object_file, "-o", linked, "-lm"], check=True, capture_output=True)
        content = Path(linked).read_bytes()

    def write(file: BinaryIO) -> None:
        os.fchmod(file.fileno(), 0o600)
        file.write(content + hashlib.sha256(content).digest())  # what loads it reads no further than its sections

    write_whole(path, write)
