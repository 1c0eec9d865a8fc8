"""H-TSP (Pan et al., 2023), of icam's Table 1 and sit's Tables 1 and 9: two levels, the lower one trained first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import BaselineShape, Positive
from neuroute.pipeline.plan.systems import PAPER, Rival, System, Trained, rival
from neuroute.specs.data import Spec
from neuroute.specs.objects import Decoding, Run
from neuroute.specs.trainings import Reinforced

if TYPE_CHECKING:
    from neuroute.evaluation.flops import Counts

NAME, LOWER = "htsp", "htsp_lower"
IMAGES = 8  # under which a fragment is solved in a test


class Proximal(Spec):
    """How the upper level is trained: by proximal policy optimization, on whole episodes (Schulman et al., 2017).

    Defaults are as published, but for what docs/choices.md says.
    """

    environments: Positive = 64
    rounds: Annotated[int, Field(ge=1, description="episodes of an environment between two updates")] = 10
    passes: Positive = 2
    minibatch: Positive = 64
    clip_ratio: Annotated[float, Field(gt=0)] = 0.2
    trace: Annotated[float, Field(ge=0, le=1, description="lambda of generalized advantage estimation")] = 0.9
    learning_rate: Annotated[float, Field(gt=0)] = 3e-4
    entropy: Annotated[float, Field(ge=0, description="weight of the entropy, at first")] = 0.02
    target_entropy: Annotated[float, Field(description="of a dimension: above it that weight falls")] = 0.2
    entropy_rate: Annotated[float, Field(ge=0, description="by which it does, after each minibatch")] = 2e-4
    anchor: Annotated[float, Field(ge=0, description="weight of a place's squared distance from the anchor")] = 0.05
    target_rate: Annotated[float, Field(gt=0, le=1, description="by which targets follow, once a pass")] = 0.005


class HtspTraining(Reinforced):
    """The lower level on paths that are drawn; or, with an `upper` level, both.

    Each of a stage's batches then has many episodes, updates of the upper level on them, and `updates` of the lower
    level, each on `batch_size` of the last `buffer` fragments.
    """

    scheme: ClassVar[str] = "neuroute_systems.htsp.training:levels"
    kind: Literal["neuroute_systems.htsp.system:HtspTraining"] = "neuroute_systems.htsp.system:HtspTraining"  # type: ignore[assignment]
    decoupled: bool = True
    upper: Proximal | None = None
    updates: Positive = 1
    buffer: Positive = 10_000

    @model_validator(mode="after")
    def _paths_have_one_size(self) -> HtspTraining:
        if len({stage.sizes for stage in self.stages}) > 1 or len(set(self.stages[0].sizes)) > 1:
            raise ValueError("stages: fragments have one size, and no `baseline`; give all stages the same `sizes`")
        if self.upper is None and self.updates > 1:
            raise ValueError("updates: of the lower level for one of the upper one; give `upper`, too")
        return self

    @property
    def samples(self) -> int:
        """Paths of an epoch that the lower level learns from."""
        return super().samples * self.updates

    def flops_per_sample(self, counts: Counts, run: Run) -> float:
        """Of a path: sampled and learnt, four times a construction from all starts.

        A path costs about as much as `added` nodes of a tour do.  With an upper level, its share of the episodes.
        """
        node = counts.decision(run.n)
        total: float = 4 * run.network.arguments["added"] * node / IMAGES
        if self.upper is not None:
            episodes = self.upper.environments * self.upper.rounds
            total += episodes * run.n * node / IMAGES / (self.updates * self.stages[0].batch_size)
        return total


class HtspShape(BaselineShape):
    """The lower level, fragments, and the image that the upper level sees."""

    fragment: Annotated[int, Field(ge=4, description="nodes that the lower level orders at a time")]
    added: Annotated[int, Field(ge=1, description="those of them that join the tour")]
    neighbours: Annotated[int, Field(ge=1, description="nearest nodes among which they are found")]
    cells: Annotated[int, Field(ge=2, description="of the image, on each axis")]
    channels: Annotated[list[int], Field(min_length=1, description="of the convolutional blocks")]
    upper_width: Positive
    critic_width: Positive


class HtspBlock(Trained):
    """How H-TSP is trained here."""

    network: HtspShape
    lower: Annotated[HtspTraining, Field(description="the warm-up of the lower level, on paths that are drawn")]
    training: Annotated[HtspTraining, Field(description="both levels, from there on")]


def rivals(config: Config, scale: Scale, block: HtspBlock) -> list[Rival]:
    """The lower level's warm-up, which leaves the upper level as it is, and the whole, which starts from it."""
    how = (block, "neuroute_systems.htsp.network:Htsp", Decoding(method="htsp:grow"))
    joint = block.training.model_copy(update={"batches_before": block.lower.batches, "fresh": True})
    return [
        rival(config, "H-TSP without its upper level", LOWER, "tsp", *how, training=block.lower),
        rival(config, "H-TSP", NAME, "tsp", *how, training=joint, start=f"{PAPER}/{LOWER}"),
    ]


SYSTEM = System(HtspBlock, rivals)
