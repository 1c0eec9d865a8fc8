"""Arrays in .npz files, checked before anything is unpacked: a small file may claim to hold any amount."""

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_regular

UNPACKED = 2**28  # bytes that any file may hold; others no more than
TIMES = 50  # times their own size: what is measured or drawn is packed by less


def read_arrays(path: Path, mend: str = "save it again", *keys: str) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz by name, these keys among them.

    Raises NeurouteError, with `mend`, if it is none, or damaged, or unpacks to far more than its size; nothing in it is
    executed.
    """
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as file:
            members = file.infolist()
            names = [member.filename.removesuffix(".npy") for member in members]
            if twice := {name for name in names if names.count(name) > 1}:
                raise ValueError(f"two arrays '{min(twice)[:40]}'")
            claimed = 0
            for member in members:
                with file.open(member) as opened:
                    claimed += max(member.file_size, _claimed(opened))
            if claimed > max(UNPACKED, TIMES * path.stat().st_size):
                raise ValueError(f"{claimed:,} bytes once unpacked; write it by numpy.savez, not savez_compressed")
            arrays = {}
            for name, member in zip(names, members, strict=True):
                with file.open(member) as opened:
                    arrays[name] = np.lib.format.read_array(opened, allow_pickle=False)
            if missing := set(keys) - arrays.keys():
                raise ValueError(f"no array '{min(missing)}'")
            return arrays
    except Exception as error:  # a damaged file can end in nearly any
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise NeurouteError(f"{path}: not a readable npz of numbers ({reason}); {mend}") from None


def array_of(value: Any, what: str) -> np.ndarray:
    """Return what a user gives as an array.

    Raises NeurouteError, naming `what` it is, where its library makes none of it: of a tensor with gradients, say.
    """
    try:
        return np.asarray(value)
    except (RuntimeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:160]
        raise NeurouteError(f"{what}: not an array ({why}); convert a tensor by .detach().cpu().numpy()") from None


def _claimed(file: IO[bytes]) -> int:
    """Return how many bytes the array has that a header announces."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"an array of format {version}")
    shape, _, dtype = HEADERS[version](file)
    lengths = (max(int(length), 1) for length in shape)  # one of 0 does not make the others harmless
    return int(dtype.itemsize) * math.prod(lengths)


HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
