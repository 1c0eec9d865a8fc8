"""The one line that a run shows."""

import io
import logging
from typing import Any

import pytest

from neuroute.dag import progress
from neuroute.dag.progress import Progress, show_progress


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def say(handler: logging.Handler, event: str, **fields: Any) -> None:
    record = logging.LogRecord("snakemake", logging.INFO, "", 0, "", (), None)
    record.__dict__.update(event=event, **fields)
    handler.emit(record)


def run(handler: logging.Handler, clock: Clock, job: int, rule: str, seconds: float) -> None:
    say(handler, "job_info", jobid=job, rule_name=rule)
    say(handler, "job_started", jobs=[job])
    clock.now += seconds
    say(handler, "job_finished", job_id=job)


def test_time_left_knows_that_rules_differ(clock: Clock) -> None:
    line = Progress({"train": 3, "render": 100}, io.StringIO())
    assert line.line() == "0 of 103 jobs done, 0 running, 103 waiting"
    run(line, clock, 1, "train", 100)
    run(line, clock, 2, "render", 1)
    say(line, "job_info", jobid=3, rule_name="train")
    say(line, "job_started", jobs=[3])
    assert line.line() == "2 of 103 jobs done, 1 running, 100 waiting, about 5 min left"  # 2 x 100 s and 99 x 1 s


def test_a_file_gets_a_line_now_and_then_and_the_last(clock: Clock) -> None:
    out = io.StringIO()
    line = Progress({"render": 40}, out)
    for job in range(40):
        run(line, clock, job, "render", 4)
    lines = out.getvalue().splitlines()
    assert len(lines) == 5  # after 32, 64, 96, 128 and 160 seconds
    assert lines[-1] == "40 of 40 jobs done, 0 running, 0 waiting"


def test_only_warnings_stay_on_the_screen_and_all_in_the_file() -> None:
    logger, screen, file = logging.Logger("workflow"), io.StringIO(), io.StringIO()
    for stream, name in ((screen, "DefaultStreamHandler"), (file, "DefaultLogFileHandler")):
        handler = logging.StreamHandler(stream)
        handler.name = name
        logger.addHandler(handler)
    show_progress(logger, {})
    logger.info("Select jobs to execute...")
    logger.error("Error in rule train")
    assert screen.getvalue() == "Error in rule train\n"
    assert file.getvalue() == "Select jobs to execute...\nError in rule train\n"


def test_a_screen_that_is_gone_stops_nothing(clock: Clock) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    line = Progress({"render": 1}, Gone())
    run(line, clock, 1, "render", 1)
    assert line.line() == "1 of 1 jobs done, 0 running, 0 waiting"
