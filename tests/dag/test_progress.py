"""The one line that a run shows."""

import io
import logging
from typing import Any

import pytest
from snakemake.settings.types import OutputSettings

from snakemake_logger_plugin_neuroute import LogHandler, progress


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def handler(stream: io.StringIO, **settings: Any) -> LogHandler:
    logger = LogHandler(OutputSettings(**settings), None)
    logger.stream = stream
    return logger


def say(handler: logging.Handler, text: str, level: int = logging.INFO, **fields: Any) -> None:
    record = logging.LogRecord("snakemake", level, "", 0, text, (), None)
    record.__dict__.update(fields)
    handler.handle(record)


def begin(stream: io.StringIO, **jobs: int) -> LogHandler:
    logger = handler(stream)
    say(logger, "Job stats", event="run_info", stats=jobs | {"total": sum(jobs.values())})
    return logger


def run(handler: logging.Handler, clock: Clock, job: int, rule: str, seconds: float) -> None:
    say(handler, "", event="job_info", jobid=job, rule_name=rule)
    say(handler, "", event="job_started", jobs=[job])
    clock.now += seconds
    say(handler, "", event="job_finished", job_id=job)


def test_time_left_knows_that_rules_differ(clock: Clock) -> None:
    line = begin(io.StringIO(), train=3, render=100)
    assert line.line() == "0 of 103 jobs done, 0 running, 103 waiting"
    run(line, clock, 1, "train", 100)
    run(line, clock, 2, "render", 1)
    say(line, "", event="job_info", jobid=3, rule_name="train")
    say(line, "", event="job_started", jobs=[3])
    assert line.line() == "2 of 103 jobs done, 1 running, 100 waiting, about 5 min left"  # 2 x 100 s and 99 x 1 s


def test_a_file_gets_a_line_now_and_then_and_the_last(clock: Clock) -> None:
    out = io.StringIO()
    line = begin(out, render=40)
    for job in range(40):
        run(line, clock, job, "render", 4)
    lines = out.getvalue().splitlines()
    assert lines[0] == "Job stats"
    assert len(lines) == 6  # after 32, 64, 96, 128 and 160 seconds
    assert lines[-1] == "40 of 40 jobs done, 0 running, 0 waiting"


def test_until_jobs_run_all_is_shown_and_then_what_matters() -> None:
    screen = io.StringIO()
    logger = handler(screen)
    say(logger, "Building DAG of jobs...")
    say(logger, "Job stats", event="run_info", stats={"train": 2, "total": 2})
    say(logger, "Select jobs to execute...")
    say(logger, "Error in rule train", logging.ERROR)
    say(logger, "Report: results/index.html", shown=True)
    assert screen.getvalue() == "Building DAG of jobs...\nJob stats\nError in rule train\nReport: results/index.html\n"


@pytest.mark.parametrize("settings", [{"dryrun": True}, {"verbose": True}])
def test_all_is_shown_where_nothing_runs_or_all_is_wanted(settings: dict[str, bool]) -> None:
    screen = io.StringIO()
    logger = handler(screen, **settings)
    say(logger, "Job stats", event="run_info", stats={"train": 2, "total": 2})
    say(logger, "Select jobs to execute...")
    assert screen.getvalue() == "Job stats\nSelect jobs to execute...\n"


def test_a_screen_that_is_gone_stops_nothing(clock: Clock) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    line = begin(Gone(), render=1)
    run(line, clock, 1, "render", 1)
    assert line.line() == "1 of 1 jobs done, 0 running, 0 waiting"


def test_what_was_rehearsed_counts_until_jobs_of_a_rule_are_done(clock: Clock) -> None:
    logger = begin(io.StringIO(), train=4, evaluate=2)
    assert "left" not in logger.line()
    say(logger, "Rehearsed: about 1 min", expected={"train": 10.0, "evaluate": 30.0}, at_once=2)
    assert "about 50 s left" in logger.line()
    run(logger, clock, 1, "train", 20)
    assert "about 2 min left" in logger.line()  # 3 x 20 and 2 x 30
