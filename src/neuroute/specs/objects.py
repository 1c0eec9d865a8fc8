"""The objects that the plan is made of, whichever module defines them.

Each is frozen, has one readable id, and serialises to canonical JSON.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from neuroute.core.files import settled_sha256
from neuroute.problems.registry import entries
from neuroute.specs.data import SHARD, Dataset, Distribution, Labels, Network, Precision, Problem, Spec, Split
from neuroute.specs.decodings import Decoding, Start, beam_search
from neuroute.specs.evaluations import (
    Benchmark,
    BenchmarkEvaluation,
    ConstructionEvaluation,
    EfficiencyEvaluation,
    Evaluation,
    Measurement,
    RescalingEvaluation,
    Sweep,
    Test,
)
from neuroute.specs.trainings import (
    AnyTraining,
    Elite,
    OwnLoss,
    OwnTraining,
    Reconstruction,
    Reinforced,
    SelfImprovement,
    Stage,
    Supervised,
    Training,
)

LAST_SEED = 2**20 - 1


class Run(Spec):
    """One trained model."""

    paper: str
    name: str
    role: dict[str, Any] = {}  # what it stands for in the paper: {"depth": 6, "width": 128}
    network: Network
    training: AnyTraining
    n: int  # nodes of the training instances
    data: tuple[Labels, ...]  # none for self-improvement
    start: str | None = None  # id of the run whose weights it starts from; None: random ones
    validation: Labels
    also_validation: tuple[Labels, ...] = ()  # whose gaps are logged beside it
    seed: int = 0

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"

    @property
    def labels(self) -> tuple[Labels, ...]:
        """The labelled instances that its training and validations read."""
        return (*self.data, self.validation, *self.also_validation)

    def in_precision(self, precision: Precision) -> "Run":
        """Return the run with another precision of its products."""
        return self.model_copy(update={"training": self.training.model_copy(update={"precision": precision})})


class GivenRun(Run):
    """A model whose weights come from a file.  Its training is the declared one, for what is shown of settings."""

    weights: Annotated[str, Field(exclude=True)]  # the file's path

    def canonical(self) -> str:
        """Text of what the model is: its network and the content of the file, wherever that lies."""
        return json.dumps([self.id, self.network.canonical(), self.sha256])

    @property
    def labels(self) -> tuple[Labels, ...]:
        """None: nothing is trained."""
        return ()

    @property
    def sha256(self) -> str:
        """Of the file's content."""
        return settled_sha256(Path(self.weights))


TABLE_FORMATS = ("csv", "md", "tex", "html", "json")
FIGURE_FORMATS = ("pdf", "svg", "png", "csv", "json")


def formats(kind: str) -> tuple[str, ...]:
    """The suffixes of the files that are drawn of a "table" or a "figure"."""
    return TABLE_FORMATS if kind == "table" else FIGURE_FORMATS


def training_entries(run: Run) -> list[str]:
    """The definitions that make a run's weights, for a code digest."""
    if isinstance(run, GivenRun):
        return ["neuroute.networks.import_weights:take_weights", run.network.kind]
    decision = ("decision",) if run.training.learns_decisions else ()
    problem = entries([run.validation.dataset.problem], "spec", "environment", *decision, run.training.scheme)
    own_loss = [run.training.loss] if isinstance(run.training, OwnLoss) else []
    return ["neuroute.training.train:train", run.network.kind, *problem, *own_loss]


class Artifact(Spec):
    """A table or figure: the function that draws it and the measurements that it reads."""

    paper: str
    name: str  # table12, figure2
    title: str
    function: str  # package.module:function
    printed_files: tuple[str, ...] = ()  # files of printed numbers that are shown, without .csv
    runs: tuple[str, ...] = ()  # runs whose training logs are read
    evaluations: tuple[str, ...] = ()
    label_jobs: tuple[str, ...] = ()  # labels whose manifests are read (solver times)
    # Solver -> the one that did its work behind what is shown.  Left out where all did their own: notes are the same.
    stand_ins: Annotated[dict[str, str], Field(exclude_if=lambda names: not names)] = {}

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"

    @property
    def kind(self) -> Literal["table", "figure"]:
        return "table" if self.name.startswith("table") else "figure"
