"""One line for a whole run of Snakemake: jobs done, running and left, and the time that is left."""

import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

EVERY = 30  # seconds between two lines where a line cannot be written over


class Progress(logging.Handler):
    """Follows Snakemake's log records.

    The time left counts each job as the mean of its rule's jobs so far, or of all while none of them is done.
    """

    def __init__(self, jobs: Mapping[str, int], out: TextIO = sys.stderr) -> None:
        """jobs: how many of each rule are to run."""
        super().__init__()
        self._left = Counter(jobs)
        self._rule: dict[int, str] = {}  # of jobs by id
        self._started: dict[int, float] = {}  # of those that run
        self._seconds: dict[str, list[float]] = {}  # of those that are done
        self._begun = time.monotonic()
        self._printed = self._begun
        self._out = out

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # nobody reads any more: raised here, it would stop Snakemake
            self._follow(record)

    def _follow(self, record: logging.LogRecord) -> None:
        event = str(getattr(record, "event", ""))
        if event == "job_info":
            self._rule[record.__dict__["jobid"]] = record.__dict__["rule_name"]
        elif event == "job_started":
            self._started |= dict.fromkeys(record.__dict__["jobs"], time.monotonic())
        elif event == "job_finished":
            self._finish(record.__dict__["job_id"])
        elif event == "job_error":
            self._started.pop(record.__dict__["jobid"], None)
        if record.levelno >= logging.WARNING and self._out.isatty():
            self._out.write("\r\x1b[K")  # the line makes room, and is written again below
        if event in ("job_started", "job_finished"):
            self._print(last=not self._left.total())

    def _finish(self, job: int) -> None:
        rule = self._rule.get(job, "")
        self._seconds.setdefault(rule, []).append(time.monotonic() - self._started.pop(job, self._begun))
        self._left[rule] -= 1

    def line(self) -> str:
        """As it stands now."""
        finished, remaining = sum(map(len, self._seconds.values())), self._left.total()
        running = min(len(self._started), remaining)  # jobs that a cluster was sent together end together
        counts = f"{finished} of {finished + remaining} jobs done, {running} running, {remaining - running} waiting"
        worked = sum(map(sum, self._seconds.values()))
        if not worked or not remaining:
            return counts
        ahead = sum(count * self._mean(rule, worked / finished) for rule, count in self._left.items())
        return f"{counts}, about {_words((time.monotonic() - self._begun) * ahead / worked)} left"

    def _mean(self, rule: str, otherwise: float) -> float:
        seconds = self._seconds.get(rule)
        return sum(seconds) / len(seconds) if seconds else otherwise

    def _print(self, last: bool) -> None:
        if self._out.isatty():
            self._out.write(f"\r\x1b[K{self.line()}" + ("\n" if last else ""))
        elif last or time.monotonic() - self._printed >= EVERY:
            self._printed = time.monotonic()
            self._out.write(self.line() + "\n")
        self._out.flush()


def show_progress(logger: logging.Logger, jobs: Mapping[str, int]) -> None:
    """Show the line instead of Snakemake's messages on the screen; warnings and errors stay, and the log file."""
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            handler.addFilter(lambda record: record.levelno >= logging.WARNING)
    logger.handlers.insert(0, Progress(jobs))


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
