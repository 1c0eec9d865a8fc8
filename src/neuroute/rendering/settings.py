"""Tables of settings: what is configured here, with the printed value in parentheses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from neuroute.plan.objects import GivenRun, Reinforced, Run
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Row, Value

T = TypeVar("T")
Setting = tuple[str, str | None, Callable[[T], Value]]  # heading, key of the printed value, the value here


def setting_rows(
    settings: Iterable[Setting[T]], subjects: Sequence[T | None], published: Callable[[int, str], Value]
) -> tuple[Row, ...]:
    """Show each setting of each subject; printed: (place of the subject, key) -> the paper's value."""

    def cell(i: int, subject: T | None, key: str | None, value: Callable[[T], Value]) -> Cell:
        return Cell(value(subject) if subject is not None else None, published(i, key) if key else None)

    return tuple(
        Row((heading,), tuple(cell(i, subject, key, value) for i, subject in enumerate(subjects)))
        for heading, key, value in settings
    )


def printed_values(study: Study) -> dict[str, Value]:
    """Key -> the paper's value, as a number where it is one."""
    return {key: parse(text) for key, text in study.published(study.artifact.name)[["key", "value"]].to_numpy()}


def parse(text: object) -> Value:
    """A whole number, a number, or the text; a dash for what pandas reads as missing."""
    try:
        number = float(str(text))
    except ValueError:
        return str(text)
    return "−" if number != number else int(number) if number.is_integer() else number


def changes_note(study: Study, runs: Iterable[Run | None]) -> list[str]:
    """Say which of the runs config.yaml changes."""
    changed = [run.id for run in runs if run and run.id in study.config.runs]
    return [f"config.yaml changes {', '.join(changed)}."] if changed else []


def drawn_instances(run: Run) -> float | None:
    """Count the instances that a run's batches have on average; None for weights of a file or another training."""
    training = run.training
    if not isinstance(training, Reinforced) or isinstance(run, GivenRun):
        return None
    return sum(sum(stage.expected_instances().values()) for stage in training.stages)
