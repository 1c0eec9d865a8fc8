"""ICAM for the TSP at one size, in about the time of the paper's three stages: what the stages of growing sizes add."""

from typing import Annotated, Literal

from pydantic import Field

from neuroute.pipeline.plan.changes import apply_changes, seed_of
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper, borrow_runs
from neuroute.pipeline.plan.shapes import Positive
from neuroute.specs.data import Spec
from neuroute.specs.objects import Reinforced, Run

KEY = "one_size"
STAGED, ALIKE = "icam/icam_tsp", f"{KEY}/icam_tsp"


class OneSizeScale(Spec):
    """The block `one_size:`."""

    epochs: Annotated[
        dict[Literal["stage1", "stage2", "stage3"], Positive], Field(description="of each stage at the first's size")
    ]


def runs(config: Config, scale: Scale) -> list[Run]:
    """ICAM in its three stages, and with the sizes and batches of the first one in all."""
    *before, staged = borrow_runs(config, scale, [STAGED])
    training, epochs = staged.training, scale[OneSizeScale].epochs
    assert isinstance(training, Reinforced)
    first = training.stages[0]
    alike = {key: getattr(first, key) for key in ("sizes", "batch_size", "batch_nodes", "capacities")}
    stages = [
        stage.model_copy(update=alike | {"epochs": epochs[stage.name]})  # type: ignore[index]
        for stage in training.stages
    ]
    changed = apply_changes(config, ALIKE, training.model_copy(update={"stages": tuple(stages)}))
    own = {"paper": KEY, "training": changed, "seed": seed_of(config, ALIKE)}
    return [*before, staged, staged.model_copy(update=own)]


PAPER = Paper(
    key=KEY, title="Our own: three stages against one size", scale=OneSizeScale, runs=runs, borrows=("icam",),
    optional=True,
)  # fmt: skip
