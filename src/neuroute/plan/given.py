"""Weights that config.yaml gives in place of a training, `runs: {icam/icam_tsp: {weights: path}}`, and what follows.

Such a run needs no labels and leaves no log.  The ends of its earlier stages are nowhere: they are not measured, and
runs that would start from one are not trained.
"""

import hashlib
import json
from collections.abc import Container, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from neuroute.core.errors import NeurouteError
from neuroute.plan.config import Config
from neuroute.plan.evaluations import StageEvaluation
from neuroute.plan.needs import Need, Solved
from neuroute.plan.objects import Run


class GivenRun(Run):
    """A model whose weights come from a file.  Its training is the declared one, for what is shown of settings."""

    weights: Annotated[str, Field(exclude=True)]  # the file's path

    def canonical(self) -> str:
        """Text of what the model is: its network and the content of the file, wherever that lies."""
        return json.dumps([self.id, self.network.canonical(), self.sha256])

    @property
    def sha256(self) -> str:
        """Of the file's content."""
        path = Path(self.weights)
        return _sha256(path, path.stat().st_mtime_ns)


def give_weights(config: Config, run: Run) -> Run:
    """Return the run with the weights that config.yaml gives it, if any.  Raises NeurouteError if no file is there."""
    change = config.runs.get(run.id)
    if change is None or change.weights is None:
        return run
    if not Path(change.weights).is_file():
        raise NeurouteError(f"config.yaml: runs.{run.id}.weights: no file {change.weights}; correct the path")
    return GivenRun(**{name: getattr(run, name) for name in Run.model_fields}, weights=change.weights)


def lost_runs(runs: Iterable[Run]) -> set[str]:
    """Ids of runs that start from the end of an earlier stage of a given one, or from such a run."""
    lost: set[str] = set()
    given = {run.id for run in runs if isinstance(run, GivenRun)}
    for run in runs:  # each after the one that it starts from
        start, _, stage = (run.start or "").partition("@")
        if run.id not in given and ((stage and start in given) or start in lost):
            lost.add(run.id)
    return lost


def can_be_met(need: Need, runs: Mapping[str, Run], lost: Container[str]) -> bool:
    """Whether a need is of no lost run, and of no earlier stage of a given one."""
    if isinstance(need, Solved):
        return True
    of_stages = isinstance(need, StageEvaluation) and isinstance(runs.get(need.run), GivenRun)
    return need.run not in lost and not of_stages


@cache
def _sha256(path: Path, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
