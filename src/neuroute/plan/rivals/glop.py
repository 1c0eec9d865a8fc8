"""Training of GLOP: revisers of blocks, and the partition of the CVRP (Ye et al., 2024)."""

from itertools import accumulate
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.plan.decodings import Revision
from neuroute.plan.epochs import InEpochs
from neuroute.plan.specs import Precision, Spec

Count = Annotated[int, Field(ge=1)]


class Phase(InEpochs, Spec):
    """So many epochs on paths of one size.

    `drawn`: every path is new, uniform in a box that is 1 wide and of a height drawn from 0 to 1 (stage 1).
    `revised`: `samples` paths that stay, cut from what the revisers of larger blocks leave of random insertion on TSPs
    of `nodes` nodes: paths of the largest block from insertion's tours, at every place, of a smaller one from the next
    larger one's paths once that reviser has rebuilt them (stage 2).
    """

    block: Annotated[int, Field(ge=4)]  # nodes of a path
    source: Literal["drawn", "revised"] = "drawn"
    epochs: Count
    samples: Count  # paths of an epoch
    batch_size: Count = 512
    learning_rate: float = Field(default=1e-4, gt=0)
    decay: float = Field(default=1.0, gt=0, le=1)  # of the learning rate, after each epoch
    nodes: Annotated[int, Field(ge=4)] = 500  # of the TSPs that paths are cut from


class Revising(InEpochs, Spec):
    """REINFORCE on paths with both ends given, built from either end, against greedy rollouts of earlier weights.

    These are adopted anew where they are shorter in a paired t-test on `baseline_samples` paths, after an epoch; in the
    first epoch of a phase the baseline is a running mean of lengths (Kool et al., 2019).
    """

    keep: ClassVar[str] = "last"  # no weights are selected: those after the last batch are the model

    learns_decisions: ClassVar[bool] = False
    kind: Literal["revising"] = "revising"
    phases: tuple[Phase, ...] = Field(min_length=1)
    clip: float | None = Field(default=1.0, gt=0)  # largest norm of a gradient
    significance: float = Field(default=0.05, gt=0, lt=1)  # of the test of new weights for the baseline
    baseline_samples: int = Field(default=10_000, ge=2)
    warm_up: float = Field(default=0.8, ge=0, lt=1)  # weight of the past in the first epoch's mean
    weight_decay: float = 0.0
    precision: Precision = "fp32"
    validations: int = Field(default=20, ge=1)
    revision: Revision | None = None  # how validation tours are revised; None: as published

    @model_validator(mode="after")
    def _paths_fit_their_tours(self) -> "Revising":
        for phase in self.phases:
            if phase.source == "revised" and phase.block > phase.nodes:
                raise ValueError(f"phases: paths of {phase.block} nodes of TSPs of {phase.nodes}")
        return self

    @property
    def ends(self) -> list[int]:
        """Batches behind the run at the end of each phase."""
        return list(accumulate(phase.batches for phase in self.phases))

    @property
    def batches(self) -> int:
        return self.ends[-1]

    @property
    def epochs(self) -> int:
        return sum(phase.epochs for phase in self.phases)

    @property
    def samples(self) -> int:
        """Paths of an epoch, on average."""
        return round(sum(phase.epochs * phase.samples for phase in self.phases) / self.epochs)

    @property
    def batch_size(self) -> int:
        """Paths of a batch, on average."""
        return round(self.samples * self.epochs / self.batches)

    def place(self, index: int) -> tuple[int, int]:
        """(phase, batch of that phase) of batch `index` of the run."""
        number = next(i for i, end in enumerate(self.ends) if index < end)
        return number, index - (self.ends[number] - self.phases[number].batches)


class Partitioning(InEpochs, Spec):
    """REINFORCE on partitions of CVRPs into routes, each as long as revisers leave it; the baseline is the mean.

    The revisers are those of the run that it starts from.  AdamW, with a cosine to 0 over the epochs.
    """

    keep: ClassVar[str] = "best"  # by validation

    learns_decisions: ClassVar[bool] = False
    continues_start: ClassVar[bool] = False
    kind: Literal["partitioning"] = "partitioning"
    epochs: Count = 20
    samples: Count = 1280  # instances of an epoch
    batch_size: Count = 5
    solutions: int = Field(default=20, ge=2)  # partitions of an instance
    capacity: int | None = Field(default=None, ge=9)  # None: the rule for n customers
    learning_rate: float = Field(default=3e-4, gt=0)
    weight_decay: float = 0.01
    clip: float | None = Field(default=1.0, gt=0)
    precision: Literal["fp32"] = "fp32"
    validations: int = Field(default=20, ge=1)
    revision: Revision = Revision(blocks=((20, 5),), flips="none")  # of routes, as they are trained on
