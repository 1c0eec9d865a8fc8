"""A bar in a terminal, else lines of the log: how far something is, and how long it will take."""

import logging
import sys
import time
from typing import Self

from tqdm import tqdm

log = logging.getLogger(__name__)
EVERY = 30.0  # seconds between log lines


class Progress:
    """Counts instances towards `total`.  `skip` counts those that cost no time now."""

    def __init__(self, total: int, what: str) -> None:
        self._total, self._what = total, what
        self._solved = self._skipped = 0
        self._start = self._last = time.monotonic()
        self._bar = tqdm(total=total, desc=what, unit="inst", disable=not (total and sys.stderr.isatty()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def skip(self, count: int) -> None:
        self._skipped += count
        self._bar.initial = self._skipped  # left out of the bar's rate
        self._bar.update(count)

    def add(self, count: int) -> None:
        self._solved += count
        self._bar.update(count)
        if self._bar.disable and time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            rate = self._solved / (self._last - self._start)
            finished = self._solved + self._skipped
            minutes = (self._total - finished) / rate / 60
            log.info("%s: %d of %d, %.1f/s, %.0f min left", self._what, finished, self._total, rate, minutes)
