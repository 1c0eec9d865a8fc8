"""One line for a whole run of Snakemake: jobs done, running and left, and the time that is left."""

import logging
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from snakemake.logging import ColorizingTextHandler
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase, OutputSettingsLoggerInterface

EVERY = 30  # seconds between two lines where a line cannot be written over
ERRORS = ("job_error", "group_error")
HEARD = ("Will exit after", "Terminating processes")  # what Snakemake answers to SIGTERM and to Ctrl-C


class LogHandler(ColorizingTextHandler, LogHandlerBase):  # type: ignore[misc]  # Snakemake's own has no types
    """Writes what Snakemake says until jobs run, then the line, warnings, errors, and records with `shown`.

    That a job ended in an error is not shown: the Snakefile lists those that failed for good, with why, at the end.
    A dry run and `--verbose` show all.  The time left follows from core-seconds that a record tells beforehand
    (`expected`: those of each job by id, for each rule), times what jobs of the same rule have taken of theirs so far.
    """

    # What Snakemake asks of a logger; its own formatter and filter (--quiet) are used.
    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def __init__(self, common_settings: OutputSettingsLoggerInterface, settings: LogHandlerSettingsBase | None) -> None:
        stream = sys.stdout if common_settings.stdout else sys.stderr
        ColorizingTextHandler.__init__(self, common_settings.nocolor, stream)
        self._shows_all = common_settings.dryrun or common_settings.verbose
        self._is_running = False
        self._total = 0
        self._started: dict[int, float] = {}  # of jobs that run, by id
        self._failed: set[int] = set()  # some of which start again
        self._seconds: dict[int, float] = {}  # core-seconds of those that are done
        self._threads: dict[int, int] = {}
        self._begun = self._printed = 0.0
        self._timer: threading.Timer | None = None  # prints the line that is not printed yet
        self._expected: Mapping[str, Mapping[int, float]] = {}
        self._at_once = 1

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "expected"):
            self._expected, self._at_once = record.expected, record.__dict__["at_once"]
        is_shown = not self._is_running or record.levelno >= logging.WARNING or hasattr(record, "shown")
        is_shown |= str(record.msg).startswith(HEARD)
        is_shown &= self._shows_all or getattr(record, "event", "") not in ERRORS
        has_line = self._is_running and self._follow(record)
        with suppress(OSError):  # nobody reads any more: raised here, it would stop what follows the log
            if is_shown:
                if self._is_running and self.is_tty:
                    self.stream.write("\r\x1b[K")  # the line makes room, and is written again with the next job
                ColorizingTextHandler.emit(self, record)
            if has_line:
                self._print(last=len(self._seconds) >= self._total)
        if getattr(record, "event", "") == "run_info" and not self._shows_all:
            self._total, self._is_running = record.__dict__["stats"]["total"], True
            self._begun = self._printed = time.monotonic()

    def _follow(self, record: logging.LogRecord) -> bool:
        """Return whether the line is another one now."""
        event = str(getattr(record, "event", ""))
        if event == "job_info":
            self._threads[record.__dict__["jobid"]] = record.__dict__["threads"]
        elif event == "job_started":
            self._started |= dict.fromkeys(record.__dict__["jobs"], time.monotonic())
            self._failed -= self._started.keys()
        elif event == "job_finished":
            job = record.__dict__["job_id"]
            seconds = time.monotonic() - self._started.pop(job, self._begun)
            self._seconds[job] = seconds * self._threads.get(job, 1)
        elif event == "job_error":
            self._failed.add(job := record.__dict__["jobid"])
            self._started.pop(job, None)
        return event in ("job_started", "job_finished", "job_error")

    def line(self) -> str:
        """As it stands now."""
        finished, remaining = len(self._seconds), self._total - len(self._seconds)
        running = min(len(self._started), remaining)  # jobs that a cluster was sent together end together
        waiting = remaining - running - len(self._failed)
        counts = f"{finished} of {self._total} jobs done, {running} running, {waiting} waiting"
        counts += f", {len(self._failed)} failed" if self._failed else ""
        if not remaining or not self._expected:
            return counts
        worked = sum(self._seconds.values())
        pace = (time.monotonic() - self._begun) / worked if worked else 1 / self._at_once
        return f"{counts}, about {_words(pace * sum(map(self._left, self._expected.values())))} left"

    def _left(self, expected: Mapping[int, float]) -> float:
        """Core-seconds of the jobs of one rule that are left."""
        done = expected.keys() & self._seconds.keys()
        took, thought = sum(self._seconds[job] for job in done), sum(expected[job] for job in done)
        return (took / thought if thought else 1.0) * sum(expected[job] for job in expected if job not in done)

    def _print(self, last: bool) -> None:
        if self.is_tty:
            self.stream.write(f"\r\x1b[K{self.line()}" + ("\n" if last else ""))
        elif last or time.monotonic() - self._printed >= EVERY:
            self._write_line()
        elif self._timer is None:
            self._timer = threading.Timer(self._printed + EVERY - time.monotonic(), self._print_late)
            self._timer.daemon = True
            self._timer.start()
        self.stream.flush()

    def _write_line(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._printed = None, time.monotonic()
        self.stream.write(self.line() + "\n")

    def _print_late(self) -> None:
        self.acquire()
        try:
            with suppress(OSError, ValueError):  # nobody reads any more
                if self._timer is not None:
                    self._write_line()
                    self.stream.flush()
        finally:
            self.release()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().close()


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
