"""The one line that a run shows."""

import io
import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.settings.types import OutputSettings

from snakemake_logger_plugin_neuroute import LogHandler, progress


class Clock:
    """Time that passes when a test says so, and what is to happen later."""

    def __init__(self) -> None:
        self.now, self.later = 0.0, list[tuple[float, Callable[[], None]]]()

    def monotonic(self) -> float:
        return self.now

    def go(self, seconds: float) -> None:
        self.now += seconds
        for due in [due for due in self.later if due[0] <= self.now]:
            self.later.remove(due)
            due[1]()

    def timer(self, seconds: float, function: Callable[[], None]) -> SimpleNamespace:
        due = (self.now + seconds, function)
        cancel = lambda: self.later.remove(due) if due in self.later else None  # noqa: E731
        return SimpleNamespace(start=lambda: self.later.append(due), cancel=cancel)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(threading, "Timer", clock.timer)
    return clock


def handler(stream: io.StringIO, **settings: Any) -> LogHandler:
    logger = LogHandler(OutputSettings(**settings), None)
    logger.stream = stream
    return logger


def say(handler: logging.Handler, text: str, level: int = logging.INFO, **fields: Any) -> None:
    record = logging.LogRecord("snakemake", level, "", 0, text, (), None)
    record.__dict__.update(fields)
    handler.handle(record)


def begin(stream: io.StringIO, jobs: int) -> LogHandler:
    logger = handler(stream)
    say(logger, "Job stats", event="run_info", stats={"train": jobs, "total": jobs})
    return logger


def start(handler: logging.Handler, job: int, threads: int = 1) -> None:
    say(handler, "", event="job_info", jobid=job, threads=threads)
    say(handler, "", event="job_started", jobs=[job])


def run(handler: logging.Handler, clock: Clock, job: int, seconds: float) -> None:
    start(handler, job)
    clock.go(seconds)
    say(handler, "", event="job_finished", job_id=job)


def test_time_left_follows_what_was_expected_and_what_jobs_of_a_rule_took(clock: Clock) -> None:
    line = begin(io.StringIO(), 6)
    assert line.line() == "0 of 6 jobs done, 0 running, 6 waiting"
    say(
        line,
        "Estimated",
        expected={"labels": {1: 10.0, 2: 20.0}, "train": dict.fromkeys(range(3, 7), 100.0)},
        at_once=2,
    )
    assert line.line().endswith("6 waiting, about 4 min left")  # 430 core-seconds on two cores
    for job in (1, 3):
        start(line, job)
    clock.now = 20
    say(line, "", event="job_finished", job_id=1)  # twice as long as expected: the other labels will be, too
    assert line.line() == "1 of 6 jobs done, 1 running, 4 waiting, about 7 min left"  # 440 core-seconds, one at a time
    clock.now = 50
    say(line, "", event="job_finished", job_id=3)  # half as long
    assert line.line().endswith("about 2 min left")  # 40 and 3 x 50 at 70 core-seconds in 50 s


def test_a_file_gets_a_line_now_and_then_and_the_last(clock: Clock) -> None:
    out = io.StringIO()
    line = begin(out, 40)
    for job in range(40):
        run(line, clock, job, 4)
    lines = out.getvalue().splitlines()
    assert lines[0] == "Job stats"
    assert len(lines) == 7  # each 30 seconds, and at the end
    assert lines[-1] == "40 of 40 jobs done, 0 running, 0 waiting"


def test_a_file_gets_what_came_after_the_last_line_though_nothing_more_happens(clock: Clock) -> None:
    """As when jobs that were sent together end together, and the next ones take an hour."""
    out = io.StringIO()
    line = begin(out, 3)
    clock.go(60)
    for job in (1, 2):
        run(line, clock, job, 0)
    start(line, 3)
    assert out.getvalue().splitlines()[-1] == "0 of 3 jobs done, 1 running, 2 waiting"
    clock.go(30)
    assert out.getvalue().splitlines()[-1] == "2 of 3 jobs done, 1 running, 0 waiting"
    clock.go(3000)
    assert len(out.getvalue().splitlines()) == 3  # nothing has changed


def test_a_job_that_fails_is_counted_until_it_starts_again(clock: Clock) -> None:
    screen = io.StringIO()
    line = begin(screen, 2)
    start(line, 1)
    say(line, "Error in rule train", logging.ERROR, event="job_error", jobid=1)
    assert line.line() == "0 of 2 jobs done, 0 running, 1 waiting, 1 failed"
    assert "Error" not in screen.getvalue()  # said once, at the end
    run(line, clock, 1, 5)
    assert line.line() == "1 of 2 jobs done, 0 running, 1 waiting"


def test_until_jobs_run_all_is_shown_and_then_what_matters() -> None:
    screen = io.StringIO()
    logger = handler(screen)
    say(logger, "Building DAG of jobs...")
    say(logger, "Job stats", event="run_info", stats={"train": 2, "total": 2})
    say(logger, "Select jobs to execute...")
    say(logger, "Error in rule train", logging.ERROR)
    say(logger, "Report: results/index.html", shown=True)
    asked_to_end = "Will exit after finishing currently running jobs (scheduler)."  # which may take hours
    say(logger, asked_to_end)
    shown = ["Building DAG of jobs...", "Job stats", "Error in rule train", "Report: results/index.html", asked_to_end]
    assert screen.getvalue().splitlines() == shown


def test_a_screen_that_is_gone_stops_nothing(clock: Clock) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    line = begin(Gone(), 1)
    run(line, clock, 1, 1)
    assert line.line() == "1 of 1 jobs done, 0 running, 0 waiting"
