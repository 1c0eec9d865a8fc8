"""How models are trained: one spec for each training scheme."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator

from neuroute.core.dotted import resolve
from neuroute.specs.data import Precision, Spec
from neuroute.specs.epochs import InEpochs, Positive, Validations
from neuroute.specs.reinforced import Reinforced

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
        """Of one training instance, forward and backward; counts: of the run's network (`accounting.counts.Counts`)."""
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
