"""The C files of this folder as one library, compiled when it is first needed, and the operators that it computes.

Without a C compiler, a place to keep what it made, or AVX2, and with NEUROUTE_KERNELS=off, the operators' plain torch
twins do the same work: equal to rounding.  So they do on a GPU, under torch.compile and on shapes alone.
"""

import ctypes
import hashlib
import logging
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor, nn

from neuroute.core.errors import NeurouteError
from neuroute.core.files import cache_folder, is_private, scratch_folder, write_whole

log = logging.getLogger(__name__)
SWITCH = "NEUROUTE_KERNELS"
VERSION = "cc229883700a2b71"  # of `source`: code digests read Python, and an edit of the C files must change them
FOLDER = Path(__file__).parent
# What torch says of the CPU (ATEN_CPU_CAPABILITY may name less) -> the instructions to use, and floats of a vector.
TARGETS = {"AVX512": ("x86-64-v4", 16), "AVX2": ("x86-64-v3", 8)}
FLAGS = ("-O3", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-fPIC")
DIGEST = hashlib.sha256().digest_size
PARALLEL = 1 << 18  # multiply-adds that are worth a second thread
OPERATORS = torch.library.Library("neuroute", "FRAGMENT")


def operator(schema: str, run: Callable[..., Any], shapes: Callable[..., Any]) -> Callable[..., Any]:
    """Register an operator with torch: what runs it on a CPU, and the shapes alone of what it returns."""
    name = schema.partition("(")[0]
    OPERATORS.define(schema)
    OPERATORS.impl(name, run, "CPU")
    OPERATORS.impl(name, shapes, "Meta")
    registered: Callable[..., Any] = getattr(torch.ops.neuroute, name).default
    return registered


def runs(*tensors: Tensor | None, dtypes: tuple[torch.dtype, ...] = (torch.float32,)) -> bool:
    """Whether C computes on these: plain tensors on a CPU, neither compiled by torch nor inside sdpa_kernel(MATH)."""
    return (
        all(
            x is None or (type(x) in (Tensor, nn.Parameter) and x.device.type == "cpu" and x.dtype in dtypes)
            for x in tensors
        )
        and not torch.compiler.is_compiling()
        and torch.backends.cuda.flash_sdp_enabled()
        and library() is not None
    )


def call(function: str, *values: Tensor | float | None) -> None:
    """Call a C function with a struct of these, eight bytes each: addresses (None: 0), whole numbers and doubles.

    Tensors have to live until it returns.  Raises MemoryError, and IndexError if the function finds an index that is
    not there.
    """
    layout = "".join("d" if type(value) is float else "q" for value in values)
    numbers = (value.data_ptr() if isinstance(value, Tensor) else value or 0 for value in values)
    failed = getattr(library(), function)(struct.pack(layout, *numbers))
    if failed:
        raise (
            MemoryError(f"{function}: no memory for a thread's work")
            if failed == 1
            else IndexError(f"{function}: an index is out of range")
        )


@cache
def library() -> ctypes.CDLL | None:
    """What was compiled here, now or before; None where nothing can be."""
    if reason():
        return None
    march, floats = TARGETS[torch.backends.cpu.get_cpu_capability()]
    compiler = shutil.which("cc") or ""
    command = [compiler, *FLAGS, f"-march={march}", f"-DLANES={floats}"]  # by this name ccache is the compiler
    about = Path(compiler).stat()
    key = [*command, str(about.st_size), str(about.st_mtime_ns), source()]
    try:
        path = cache_folder() / f"kernels-{VERSION}-{hashlib.sha256(chr(0).join(key).encode()).hexdigest()[:16]}.so"
        if not _is_whole(path):
            with tempfile.TemporaryFile(dir=path.parent):  # else it compiles for nothing, in each process anew
                _compile(command, sorted(FOLDER.glob("*.c")), path)
        return ctypes.CDLL(str(path))  # its OpenMP is the one that torch has loaded
    except (OSError, NeurouteError, subprocess.SubprocessError) as error:
        log.warning("operators are torch's own, which is slower: kernels cannot be made (%s)", error)
        return None


def source() -> str:
    """All that is compiled."""
    return "".join(path.read_text() for path in sorted(FOLDER.glob("*.[ch]")))


def reason() -> str:
    """Why nothing is compiled; empty where it can be tried."""
    if os.environ.get(SWITCH) == "off":
        return f"{SWITCH}=off"
    if torch.backends.cpu.get_cpu_capability() not in TARGETS:
        return "no AVX2"
    return "" if shutil.which("cc") else "no C compiler (cc)"


def describe() -> str:
    """What computes the operators on this machine, in a few words."""
    if library() is not None:
        return f"compiled here for {torch.backends.cpu.get_cpu_capability()}"
    return f"torch's own: {reason() or 'they could not be compiled'}"


def lanes() -> int:
    """Floats of a vector, where there are kernels; else 1."""
    return TARGETS.get(torch.backends.cpu.get_cpu_capability(), ("", 1))[1]


def threads_for(products: int) -> int:
    """Threads for so many multiply-adds."""
    return torch.get_num_threads() if products > PARALLEL else 1


def _is_whole(path: Path) -> bool:
    """Whether this user has written it, and nothing of it is lost: it ends with the SHA-256 of the library before."""
    try:
        with path.open("rb") as file:
            about, content = os.fstat(file.fileno()), file.read()
    except OSError:
        return False
    return is_private(about) and hashlib.sha256(content[:-DIGEST]).digest() == content[-DIGEST:]


def _compile(command: list[str], files: list[Path], path: Path) -> None:
    """Appears whole or not at all: several processes may want it at once."""
    with scratch_folder() as folder, ThreadPoolExecutor() as pool:  # a compiler is a process of its own

        def make(*options: object) -> None:
            subprocess.run([command[0], *map(str, options)], check=True, capture_output=True)

        list(pool.map(lambda file: make(*command[1:], "-c", file, "-o", folder / f"{file.stem}.o"), files))
        # Linked without OpenMP: torch's is there already, and two of them would each have threads of their own.
        make("-shared", *folder.glob("*.o"), "-o", folder / "kernels.so", "-lm")
        content = (folder / "kernels.so").read_bytes()

    def write(file: BinaryIO) -> None:
        os.fchmod(file.fileno(), 0o600)
        file.write(content + hashlib.sha256(content).digest())  # what loads it reads no further than its sections

    write_whole(path, write)
