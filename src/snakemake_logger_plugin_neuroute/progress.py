"""One line for a whole run of Snakemake: jobs done, running and left, and the time that is left."""

import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from snakemake.logging import ColorizingTextHandler
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase, OutputSettingsLoggerInterface

EVERY = 30  # seconds between two lines where a line cannot be written over


class LogHandler(ColorizingTextHandler, LogHandlerBase):  # type: ignore[misc]  # Snakemake's own has no types
    """Writes what Snakemake says until jobs run, then the line, warnings, errors, and records with `shown`.

    A dry run and `--verbose` show all.  The time left counts each job as the mean of its rule's jobs so far; while none
    of them is done as it was rehearsed (a record with `expected`), or as the mean of all.
    """

    # What Snakemake asks of a logger; its own formatter and filter (--quiet) are used.
    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def __init__(self, common_settings: OutputSettingsLoggerInterface, settings: LogHandlerSettingsBase | None) -> None:
        stream = sys.stdout if common_settings.stdout else sys.stderr
        ColorizingTextHandler.__init__(self, common_settings.nocolor, stream)
        self._shows_all = common_settings.dryrun or common_settings.verbose
        self._is_running = False
        self._left = Counter[str]()  # jobs of each rule
        self._rule: dict[int, str] = {}  # of jobs by id
        self._started: dict[int, float] = {}  # of those that run
        self._seconds: dict[str, list[float]] = {}  # of those that are done
        self._begun = self._printed = 0.0
        self._expected: Mapping[str, float] = {}  # seconds of a job of each rule
        self._at_once = 1

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "expected"):
            self._expected, self._at_once = record.expected, record.__dict__["at_once"]
        is_shown = not self._is_running or record.levelno >= logging.WARNING or hasattr(record, "shown")
        has_line = self._is_running and self._follow(record)
        with suppress(OSError):  # nobody reads any more: raised here, it would stop what follows the log
            if is_shown:
                if self._is_running and self.is_tty:
                    self.stream.write("\r\x1b[K")  # the line makes room, and is written again with the next job
                ColorizingTextHandler.emit(self, record)
            if has_line:
                self._print(last=not self._left.total())
        if getattr(record, "event", "") == "run_info" and not self._shows_all:
            self._begin(record.__dict__["stats"])

    def _begin(self, jobs: Mapping[str, int]) -> None:
        self._left = Counter({rule: count for rule, count in jobs.items() if rule != "total"})
        self._begun = self._printed = time.monotonic()
        self._is_running = True

    def _follow(self, record: logging.LogRecord) -> bool:
        """Return whether the line is another one now."""
        event = str(getattr(record, "event", ""))
        if event == "job_info":
            self._rule[record.__dict__["jobid"]] = record.__dict__["rule_name"]
        elif event == "job_started":
            self._started |= dict.fromkeys(record.__dict__["jobs"], time.monotonic())
        elif event == "job_finished":
            self._finish(record.__dict__["job_id"])
        elif event == "job_error":
            self._started.pop(record.__dict__["jobid"], None)
        return event in ("job_started", "job_finished")

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
        if not remaining or not (worked or self._expected):
            return counts
        mean = worked / finished if finished else 0.0
        ahead = sum(count * self._mean(rule, mean) for rule, count in self._left.items())
        pace = (time.monotonic() - self._begun) / worked if worked else 1 / self._at_once
        return f"{counts}, about {_words(pace * ahead)} left"

    def _mean(self, rule: str, otherwise: float) -> float:
        seconds = self._seconds.get(rule)
        return sum(seconds) / len(seconds) if seconds else self._expected.get(rule, otherwise)

    def _print(self, last: bool) -> None:
        if self.is_tty:
            self.stream.write(f"\r\x1b[K{self.line()}" + ("\n" if last else ""))
        elif last or time.monotonic() - self._printed >= EVERY:
            self._printed = time.monotonic()
            self.stream.write(self.line() + "\n")
        self.stream.flush()


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
