"""Training by reinforcement learning with multiple optima: many starts of each instance, in stages (POMO, icam)."""

from bisect import bisect_right
from itertools import accumulate
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.problems.vrp import Variant
from neuroute.specs.data import Distribution, Precision, Spec
from neuroute.specs.epochs import Learning, Validations

LARGEST_BATCH = 4096  # instances; the stream keeps as many for each batch


class Elite(Spec):
    """The best of an instance's solutions count once more (icam, Eq. 10 and 11)."""

    k: int = Field(default=20, ge=1)  # those with the largest advantage
    beta: float = Field(default=0.1, ge=0)  # weight of their loss


class Stage(Spec):
    """Batches that are drawn and weighed alike.  Each draws its size, and its capacity, for all of its instances.

    `batch_size` is that of every batch or, with `batch_nodes`, of batches of so many nodes: a batch of n nodes then
    has batch_size * (batch_nodes / n)^2 instances, rounded down (icam, Table 5).
    """

    name: str = Field(pattern="^[a-z0-9_-]+$")  # of its checkpoint's file
    epochs: int = Field(ge=1)
    batches_per_epoch: int = Field(default=1000, ge=1)
    sizes: tuple[int, int]  # smallest and largest number of nodes (CVRP: customers)
    batch_size: int = Field(ge=1)
    batch_nodes: int | None = Field(default=None, ge=1)
    capacities: tuple[int, int] | None = None  # CVRP: smallest and largest; None: the rule for n customers
    variants: tuple[str, ...] = ()  # VRP: each batch draws one; none for other problems
    # CVRP: each batch draws one; none: uniform.  Left out of the text of other stages, as are all later fields.
    distributions: tuple[Distribution, ...] = Field(default=(), exclude_if=lambda names: not names)
    # Solutions of an instance, one from each of its first nodes; None: all.
    starts: int | None = Field(default=None, ge=1)
    # Each instance is seen in so many random images, itself the first, where these share no baseline.
    images: int = Field(default=1, ge=1, exclude_if=lambda images: images == 1)
    learning_rate: float = Field(default=1e-4, gt=0, allow_inf_nan=False)
    drops: tuple[int, ...] = ()  # after each of these numbers of epochs the rate falls to `drop` of what it was
    drop: float = Field(default=0.1, gt=0)
    decay: float = Field(default=1.0, gt=0, le=1, exclude_if=lambda decay: decay == 1)  # of the rate, after each epoch
    elite: Elite | None = None
    validations: Validations = 1  # greedy ones, evenly spaced; the last is at the end

    @model_validator(mode="after")
    def _ranges_and_batches_are_some(self) -> "Stage":
        low, high = self.sizes
        if not 4 <= low <= high:
            raise ValueError(f"sizes: {low} to {high} nodes; give the smallest, at least 4, then the largest")
        if self.capacities and not 9 <= self.capacities[0] <= self.capacities[1]:
            raise ValueError(f"capacities: {self.capacities}; give the smallest, at least 9, then the largest")
        if not self.batch_of(high):
            raise ValueError(f"batch_size: {self.batch_size} at {self.batch_nodes} nodes leaves none at {high}")
        if self.batch_of(low) > LARGEST_BATCH:
            raise ValueError(f"batch_size: {self.batch_of(low)} instances of {low} nodes, the most are {LARGEST_BATCH}")
        fewest = self.starts_of(low)
        if self.starts is not None and self.starts > low:
            raise ValueError(f"starts: {self.starts} of instances of {low} nodes")
        if self.elite and self.elite.k > fewest:
            raise ValueError(f"elite.k: the best {self.elite.k} of {fewest} solutions")
        for variant in self.variants:
            Variant(variant)
        if list(self.drops) != sorted(set(self.drops)) or not all(0 < epoch < self.epochs for epoch in self.drops):
            raise ValueError(f"drops: {self.drops}; give rising numbers of epochs between 0 and {self.epochs}")
        return self

    def batch_of(self, n: int) -> int:
        """Instances of a batch of n nodes."""
        return self.batch_size if self.batch_nodes is None else self.batch_size * self.batch_nodes**2 // n**2

    def expected_instances(self) -> dict[int, float]:
        """Of each size, as many as draws lead to on average: all sizes are equally likely."""
        low, high = self.sizes
        return {n: self.batches / (high - low + 1) * self.batch_of(n) for n in range(low, high + 1)}

    def starts_of(self, n: int) -> int:
        """Solutions of an instance of n nodes."""
        return n if self.starts is None else self.starts

    def rate(self, epoch: int) -> float:
        return self.learning_rate * self.drop ** bisect_right(self.drops, epoch) * self.decay**epoch

    @property
    def batches(self) -> int:
        return self.epochs * self.batches_per_epoch


class Reinforced(Learning, Spec):
    """REINFORCE with a baseline that the solutions of an instance share, in stages (Kwon et al., 2020; icam, 3.3).

    Instances are drawn, never stored: those of a batch follow from its number alone, its size, capacity and samples
    from the seed too.  `batches_before` is the number of the first one: a run that goes on where another ends then
    draws what the two would have drawn as one.  The optimizer is Adam with L2 decay, as published.
    """

    keep: ClassVar[str] = "last"  # no weights are selected: those after the last batch are the model

    learns_decisions: ClassVar[bool] = False
    shares_baseline: ClassVar[bool] = True  # solutions of an instance share their mean; else greedy ones are built, too
    kind: Literal["reinforce"] = "reinforce"
    stages: tuple[Stage, ...] = Field(min_length=1)
    batches_before: int = Field(default=0, ge=0)
    weight_decay: float = Field(default=0.0, ge=0)
    clip: float | None = Field(default=None, gt=0)  # largest norm of a gradient; icam: 5 for the CVRP
    balance: float = Field(default=0.0, ge=0)  # weight of the loss that balances experts (mvmoe, Eq. 2: 0.01)
    fresh: bool = False  # a run that starts from another one's weights does not go on with its moments
    precision: Precision = "fp32"
    # Advantages are shares of the largest one of their instance, or in standard deviations of its lengths.
    scaled: Literal["largest", "deviation"] | None = Field(default=None, exclude_if=lambda scaled: scaled is None)
    # Weight decay beside the gradient (AdamW), not in it.
    decoupled: bool = Field(default=False, exclude_if=lambda decoupled: not decoupled)

    @model_validator(mode="after")
    def _stages_fit_the_baseline_and_have_own_names(self) -> "Reinforced":
        for stage in self.stages:
            if self.shares_baseline and (stage.starts == 1 or stage.images > 1):
                raise ValueError(f"stages: {stage.name} has a single start, or images: no others share its baseline")
        names = [stage.name for stage in self.stages]
        if len(set(names)) < len(names):
            raise ValueError(f"stages: {names} must have names of their own")
        return self

    @property
    def scheme(self) -> str:
        """The learner that the training takes; else the problem's own."""
        return self.kind

    @property
    def validated_starts(self) -> Literal[1, "all"]:
        """Solutions of an instance by which runs are validated."""
        return "all" if self.shares_baseline else 1

    def shortened(self, batches: int, epochs: int = 1) -> "Reinforced":
        """About so many batches of each stage, of their true size, in so many epochs: what a rehearsal runs."""
        stages = []
        for stage in self.stages:
            few = {"epochs": min(epochs, stage.epochs), "drops": (), "validations": 1}
            few["batches_per_epoch"] = min(batches // epochs, stage.batches_per_epoch)
            stages.append(stage.model_copy(update=few))
        return self.model_copy(update={"stages": tuple(stages)})

    @property
    def ends(self) -> list[int]:
        """Batches behind the run at the end of each stage."""
        return list(accumulate(stage.batches for stage in self.stages))

    @property
    def batches(self) -> int:
        return self.ends[-1]

    @property
    def epochs(self) -> int:
        return sum(stage.epochs for stage in self.stages)

    @property
    def samples(self) -> int:
        """Instances of an epoch, on average over stages and draws."""
        return round(sum(sum(stage.expected_instances().values()) for stage in self.stages) / self.epochs)

    @property
    def validations(self) -> int:
        return len(self.validate_after)

    @property
    def validate_after(self) -> set[int]:
        """Numbers of batches after which the run is validated."""
        by_end = zip(self.ends, self.stages, strict=True)
        spaced = ((end, stage, i) for end, stage in by_end for i in range(stage.validations))
        return {end - round(stage.batches * i / stage.validations) for end, stage, i in spaced}

    def place(self, index: int) -> tuple[int, int]:
        """(stage, batch of that stage) of batch `index` of the run."""
        number = bisect_right(self.ends, index)
        return number, index - (self.ends[number] - self.stages[number].batches)

    def learning_rate(self, index: int) -> float:
        number, within = self.place(index)
        stage = self.stages[number]
        return stage.rate(within // stage.batches_per_epoch)
