"""GPUs of this machine, one job each: a job holds the lock of its GPU until its process ends, however it ends.

Whoever starts jobs side by side, Snakemake or torchrun or a person, needs to know nothing of the others.  What a
process may see (CUDA_VISIBLE_DEVICES) is all that it takes from.  Imports no torch.
"""

import logging
import os
import time
from functools import cache
from pathlib import Path
from typing import BinaryIO

from neuroute.core.errors import NeurouteError
from neuroute.core.files import cache_folder, lock, open_lock, private_folder

log = logging.getLogger(__name__)
LOCKS = Path(f"/tmp/neuroute-gpus-{os.getuid()}")  # of all runs of a user, so not in a run's folder
PATIENCE_S = 20.0  # for a job that is ending
DEVICES = Path("/dev")


def count_visible() -> int:
    """NVIDIA GPUs that a process started from here sees; found without loading CUDA."""
    present = len(list(DEVICES.glob("nvidia[0-9]*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or not present:
        return present
    names = [name.strip() for name in visible.split(",")]
    # CUDA stops at the first number that there is none of, such as -1; GPU-... and MIG-... are names.
    valid = [int(name) < present if name.isdecimal() else name.startswith(("GPU-", "MIG-")) for name in names]
    return valid.index(False) if False in valid else len(valid)


_open_locks: list[BinaryIO] = []  # the lock of this process's GPU, open as long as it lives


@cache
def take(names: tuple[str, ...], jobs_per_gpu: int = 1, patience_s: float = PATIENCE_S) -> int:
    """The place in `names`, which tell GPUs of this machine apart, of the one that this process has from now on.

    Where several jobs may share a GPU, it is the emptiest.  Raises NeurouteError if all are taken for `patience_s`
    seconds, or there is no folder for the locks.
    """
    until, folder = time.monotonic() + patience_s, _folder()
    while True:
        for share in range(jobs_per_gpu):
            for place, name in enumerate(names):
                file = open_lock(folder / f"{name}.{share}")
                if lock(file):
                    _open_locks.append(file)
                    return place
                file.close()
        if time.monotonic() > until:
            amount = "the only GPU is" if len(names) == 1 else f"all {len(names)} GPUs are"
            raise NeurouteError(
                f"{amount} taken by other jobs; run fewer at once (`--resources gpu={len(names) * jobs_per_gpu}`), or "
                "raise jobs_per_gpu in config.yaml"
            )
        time.sleep(0.2)


def _folder() -> Path:
    """Return where GPUs are marked: where that is not this user's alone, in the cache folder, and says so."""
    try:
        return private_folder(LOCKS)
    except NeurouteError as error:
        instead = private_folder(cache_folder() / "gpus")
        log.warning("%s; until then jobs mark their GPU in %s", error, instead)
        return instead
