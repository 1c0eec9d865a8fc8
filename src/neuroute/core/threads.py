"""How many threads of a CPU: one or all, by which is faster in the first pieces of the same work.

Small products are slower in several threads, and all are where other work holds the cores: threads wait for the last.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import torch

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
