"""Processes that work beside each other."""

import errno
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import BaseContext
from typing import Any

from neuroute.core.errors import NeurouteError

NO_PLACE = {errno.ENOSPC, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS}  # for locks; not too many open files


def process_pool(
    workers: int, context: BaseContext, initializer: Callable[..., object], arguments: tuple[Any, ...] = ()
) -> ProcessPoolExecutor:
    """Return a pool of processes, which start when first needed.  Raises NeurouteError where they can have no locks."""
    try:
        return ProcessPoolExecutor(workers, context, initializer, arguments)
    except OSError as error:
        if error.errno not in NO_PLACE:
            raise
        raise NeurouteError(
            f"/dev/shm: full, missing or not writable ({error.strerror}), and worker processes need it; free some "
            "space, or correct its permissions"
        ) from None
