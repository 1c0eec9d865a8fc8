"""How models are trained: one spec for each training scheme."""

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator

from neuroute.core.dotted import resolve
from neuroute.problems.vrp import Variant
from neuroute.specs.data import Distribution, Precision, Spec

Positive = Annotated[int, Field(ge=1)]
Validations = Annotated[int, Field(ge=1, le=100_000)]  # of a training


class Learning:
    """What is true of a kind of training, where its class says nothing else."""

    learns_decisions: ClassVar[bool] = True  # one at a time; False: it adds up gradients itself, or of whole solutions
    continues_start: ClassVar[bool] = True  # with the weights that it starts from; False: they only judge it


class InEpochs(Learning):
    """Counts the batches of a training in epochs over the same number of samples."""

    if TYPE_CHECKING:  # fields or properties of the training's class

        @property
        def kind(self) -> str: ...
        @property
        def samples(self) -> int: ...
        @property
        def batch_size(self) -> int: ...
        @property
        def epochs(self) -> int: ...
        @property
        def validations(self) -> int: ...

    @property
    def scheme(self) -> str:
        """The part of a problem that trains so."""
        return self.kind

    @property
    def batches_per_epoch(self) -> int:
        return -(-self.samples // self.batch_size)

    @property
    def batches(self) -> int:
        return self.batches_per_epoch * self.epochs

    @property
    def validate_after(self) -> set[int]:
        """Numbers of batches after which a run is validated: evenly spaced, the last at its end."""
        return {round(self.batches * i / self.validations) for i in range(1, self.validations + 1)}


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
    # TSP and CVRP: each batch draws one; none: uniform.  Left out of the text of other stages, as are all later fields.
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


Rate = Annotated[float, Field(gt=0, le=1)]
Step = Literal["sub-path", "decision", "summed"]


class Supervised(InEpochs, Spec):
    """Supervised training on sub-paths of labelled tours (scaling, Section 3 and Table 9).

    `step` is the reading of the paper's "step" (docs/choices.md, "What is a step?"):
    `sub-path` every decision of the sampled sub-path is its own update; `decision` one update on the first
    decision only; `summed` one update on the summed loss of all decisions.
    `sub_paths` is how they are cut: `random` (LEHD) anywhere and in either direction; `suffix` (BQ-NCO) the end of
    the stored tour, so that the destination is always its first node, or of the stored routes, the fullest first;
    `pairs` (pens) an origin and a destination of its own for each instance, and one decision.
    The optimizer is AdamW; without weight decay it is Adam.
    """

    kind: Literal["supervised"] = "supervised"
    samples: Annotated[int, Field(ge=1, description="labelled training instances")]
    epochs: Positive = 1
    batch_size: Positive = 1024
    step: Annotated[Step, Field(description="reading of the paper's 'step': what one batch updates")] = "sub-path"
    sub_paths: Annotated[
        Literal["random", "suffix", "pairs"],
        Field(description="random pieces of the tour (LEHD), its end (BQ-NCO), or one per instance (PENS only)"),
    ] = "random"
    learning_rate: Rate = 1.25e-4
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    decay_gamma: Rate = 0.997
    decay_every: Annotated[int, Field(ge=1, description="batches between two decays")] = 100
    final_learning_rate: Annotated[
        float | None, Field(gt=0, le=1, description="of a cosine over all batches, instead of the exponential decay")
    ] = None
    warmup_batches: Annotated[int, Field(ge=0)] = 0
    warmup_factor: Rate = 0.1
    precision: Precision = "fp32"
    validations: Annotated[
        Validations, Field(description="greedy validations, evenly spaced over the samples seen")
    ] = 20
    keep: Annotated[Literal["last", "best"], Field(description="weights of the checkpoint; best: by validation")] = (
        "last"
    )

    @model_validator(mode="after")
    def _pairs_decide_once(self) -> "Supervised":
        if self.sub_paths == "pairs" and self.step != "decision":
            raise ValueError(
                f"sub_paths: pairs trains one decision of each path: step must be 'decision', not '{self.step}'"
            )
        return self

    @property
    def scheme(self) -> str:
        """The part of a problem that trains so."""
        return "path-tsp" if self.sub_paths == "pairs" else self.kind


class SelfImprovement(InEpochs, Spec):
    """Training without labels: sample solutions without replacement, imitate the best (SIGD; Pirnay and Grimm, 2024).

    Each epoch samples `beam` x `rounds` distinct solutions of `instances` new instances with the best weights so far
    (by greedy validation) and trains on the shortest of each.  As there: instances anew each epoch, sampling in rounds
    with the policy shifted between them, next-node training on random sub-paths, the best policy by validation.
    Assumptions, as scaling and sit say nothing about how their SIGD was trained: every default below; the shift itself
    (sigma times the mean advantage of the solutions through a prefix); an epoch's solutions are dropped at its end.
    The best weights are those of any validation: a multiple of `epochs` has one at the end of each.
    """

    kind: Literal["self-improvement"] = "self-improvement"
    epochs: Positive
    instances: int = Field(ge=1)  # that are sampled anew in each epoch
    beam: int = Field(32, ge=1)  # solutions of one round of stochastic beam search
    rounds: int = Field(4, ge=1)
    sigma: float = Field(0.3, ge=0)  # per unit of length: how far a round's advantages shift the next round's policy
    passes: int = Field(1, ge=1)  # over the epoch's solutions
    batch_size: Positive = 1024
    step: Literal["sub-path", "decision", "summed"] = "decision"
    sub_paths: Literal["random", "suffix"] = "random"
    learning_rate: Rate = 2e-4
    weight_decay: float = Field(0.0, ge=0)
    decay_gamma: Rate = 1.0
    decay_every: Positive = 1  # batches
    warmup_batches: int = Field(0, ge=0)
    warmup_factor: Rate = 0.1
    precision: Precision = "fp32"
    validations: Validations = 20

    @property
    def samples(self) -> int:
        """Pseudo-labelled instances that one epoch trains on."""
        return self.instances * self.passes


class Reconstruction(InEpochs, Spec):
    """Self-improved training without labels (sit, Algorithm 1, Table 6).

    Each of `rounds` begins with the best weights so far (by greedy validation), improves all solutions of one fixed
    data set by `reconstructions` iterations of parallel local re-construction, and trains `epochs_per_round` epochs on
    sub-paths of them, of 4 to `longest` stops, one update for each stop.  Without re-constructions a round is the
    warm-up on the solutions as they are given.  Defaults are the paper's; the published code differs in what is marked.
    """

    kind: Literal["reconstruction"] = "reconstruction"
    samples: int = Field(ge=1)  # instances of the data set, which stay the same
    rounds: int = Field(ge=1)  # the paper's self-improved iterations
    epochs_per_round: int = Field(20, ge=1)
    reconstructions: int = Field(100, ge=0)
    warm_up: bool = False  # the first round, too, trains on the solutions as they are given
    batch_size: int = Field(256, ge=1)
    longest: int | None = Field(None, ge=4)  # l_max; None: 1000, or all stops of shorter solutions
    initial: Literal["labels", "greedy"] = "labels"  # what is improved first; published at larger scales: greedy
    starts: Literal["instance", "batch"] = "instance"  # who draws where a sub-path starts (TSP); published: batch
    rule: Literal["cut-off", "from-the-end"] = "cut-off"  # how CVRP solutions are cut; published: from-the-end
    most_blocks: int | None = Field(None, ge=1)  # of one solution in one iteration; published: 250 (TSP)
    step: Literal["sub-path", "decision", "summed"] = "sub-path"
    learning_rate: Rate = 1e-4
    decay_gamma: Rate = 0.97  # per epoch
    epochs_before: int = Field(0, ge=0)  # that the rate has fallen in already; published: it never starts anew
    clip: float | None = Field(None, gt=0)  # largest norm of a gradient; published: 10
    weight_decay: float = Field(0.0, ge=0)
    precision: Precision = "fp32"
    validations: Validations  # a multiple of `rounds`, so that each ends with one; the paper: one an epoch

    @model_validator(mode="after")
    def _rounds_end_with_a_validation(self) -> "Reconstruction":
        if self.validations % self.rounds:
            raise ValueError(f"validations: {self.validations} is no multiple of the {self.rounds} rounds")
        return self

    @property
    def epochs(self) -> int:
        return self.rounds * self.epochs_per_round

    @property
    def batches_per_round(self) -> int:
        return self.batches_per_epoch * self.epochs_per_round


class OwnTraining(InEpochs, Spec):
    """A training that a system brings, or a module of the user's: `kind` is its own dotted name, `scheme` what trains.

    The scheme is a function (`training.batches.Scheme`) -> `Batches`.
    """

    keep: ClassVar[str] = "last"  # the weights that are the model; "best": by validation
    learns_decisions: ClassVar[bool] = False

    if TYPE_CHECKING:  # fields or properties of the class of its own

        @property
        def weight_decay(self) -> float: ...
        @property
        def precision(self) -> Precision: ...

    def shortened(self, batches: int) -> "OwnTraining":
        """About so many of its batches, of their true size, and one validation: what a rehearsal runs."""
        short = {"epochs": 1, "samples": batches * self.batch_size, "validations": 1}
        return self.model_copy(update={key: value for key, value in short.items() if key in type(self).model_fields})

    def flops_per_sample(self, counts: Any, run: Any) -> float:
        """Of one training instance, forward and backward; counts: of the run's network (`evaluation.flops.Counts`)."""
        raise NotImplementedError


class OwnLoss(OwnTraining):
    """Training by a loss of the user's own (`training.own_loss`), from Python; the optimizer is Adam."""

    kind: Literal["neuroute.specs.trainings:OwnLoss"] = "neuroute.specs.trainings:OwnLoss"
    loss: str  # its class, as "module:Class"
    steps: Positive
    batch_size: Positive = 64
    learning_rate: Rate = 1e-4
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    clip: Annotated[float | None, Field(gt=0)] = None  # largest norm of a gradient
    validations: Validations = 10
    precision: Precision = "fp32"
    epochs: Literal[1] = 1

    @property
    def samples(self) -> int:
        return self.steps * self.batch_size

    @property
    def scheme(self) -> str:
        return "neuroute.training.own_loss:OwnLossBatches"


KINDS: dict[str, type[Spec]] = {
    "supervised": Supervised,
    "self-improvement": SelfImprovement,
    "reconstruction": Reconstruction,
    "reinforce": Reinforced,
}


def _of_kind(values: Any) -> Any:
    """A training of the class that its `kind` says."""
    if not isinstance(values, dict):
        return values
    kind = values.get("kind", "")
    return (KINDS[kind] if kind in KINDS else cast(type[Spec], resolve(kind))).model_validate(values)


Training = Supervised | SelfImprovement | Reconstruction | Reinforced | OwnTraining
AnyTraining = Annotated[SerializeAsAny[Training], BeforeValidator(_of_kind)]
