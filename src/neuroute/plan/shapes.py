"""What the scales of all papers say: shapes of networks, and how a run is trained."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from neuroute.plan.reinforced import Elite
from neuroute.plan.specs import Spec as Strict

Nodes = Annotated[int, Field(ge=4, description="nodes of an instance")]
Positive = Annotated[int, Field(ge=1)]


class Shape(Strict):
    """Width and attention heads of a decoder; the FFN is four times as wide."""

    width: Annotated[int, Field(ge=4, description="embedding dimension")]
    heads: Annotated[int, Field(ge=1, description="attention heads; must divide the width")]

    @model_validator(mode="after")
    def _heads_divide(self) -> "Shape":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not divisible by {self.heads} heads")
        return self


class DeepNarrow(Shape):
    """A shape of about the same parameter count as the smallest grid model (scaling, Table 2)."""

    depth: Annotated[int, Field(ge=1, description="decoder layers")]


class BaselineShape(DeepNarrow):
    """The shape of a network of other authors, whose FFN is not always four times as wide."""

    feed_forward: Annotated[int, Field(ge=1, description="width of the FFN's hidden layer")]


class TrainingScale(Strict):
    """How a supervised run is trained at this scale (scaling, Table 9)."""

    samples: Annotated[int, Field(ge=1, description="labelled training instances")]
    epochs: Positive = 1
    batch_size: Positive = 1024
    step: Annotated[
        Literal["sub-path", "decision", "summed"],
        Field(description="reading of the paper's 'step': what one batch updates"),
    ] = "sub-path"
    sub_paths: Annotated[
        Literal["random", "suffix", "pairs"],
        Field(description="random pieces of the tour (LEHD), its end (BQ-NCO), or one per instance (PENS only)"),
    ] = "random"
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1.25e-4
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    decay_gamma: Annotated[float, Field(gt=0, le=1)] = 0.997
    decay_every: Annotated[int, Field(ge=1, description="batches between two decays")] = 100
    final_learning_rate: Annotated[
        float | None, Field(gt=0, le=1, description="of a cosine over all batches, instead of the exponential decay")
    ] = None
    warmup_batches: Annotated[int, Field(ge=0)] = 0
    warmup_factor: Annotated[float, Field(gt=0, le=1)] = 0.1
    precision: Literal["fp32", "bf16"] = "fp32"
    validations: Annotated[int, Field(ge=1, description="greedy validations during training")] = 20
    keep: Annotated[Literal["last", "best"], Field(description="weights of the checkpoint; best: by validation")] = (
        "last"
    )


class StageChange(Strict):
    """What may be changed of one stage of a training by reinforcement learning; see `plan.reinforced.Stage`."""

    epochs: Positive | None = None
    batches_per_epoch: Positive | None = None
    batch_size: Positive | None = None
    learning_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    drops: Annotated[list[int] | None, Field(description="epochs after which the rate falls to `drop` of it")] = None
    drop: Annotated[float, Field(gt=0, le=1)] | None = None
    elite: Elite | None = None
    validations: Positive | None = None


class TrainingChange(Strict):
    """What may be changed of one run's training; everything else stays as it is."""

    samples: Positive | None = None
    epochs: Positive | None = None
    batch_size: Positive | None = None
    step: Literal["sub-path", "decision", "summed"] | None = None
    learning_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    weight_decay: Annotated[float, Field(ge=0)] | None = None
    decay_gamma: Annotated[float, Field(gt=0, le=1)] | None = None
    decay_every: Positive | None = None
    final_learning_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    warmup_batches: Annotated[int, Field(ge=0)] | None = None
    warmup_factor: Annotated[float, Field(gt=0, le=1)] | None = None
    precision: Literal["fp32", "bf16"] | None = None
    validations: Positive | None = None
    sub_paths: Literal["random", "suffix", "pairs"] | None = None
    keep: Literal["last", "best"] | None = None
    instances: Annotated[Positive | None, Field(description="self-improvement only, as are the next four")] = None
    beam: Positive | None = None
    rounds: Positive | None = None
    sigma: Annotated[float, Field(ge=0)] | None = None
    passes: Positive | None = None
    epochs_per_round: Annotated[Positive | None, Field(description="sit only, as the rest but `clip` and `rounds`")] = (
        None
    )
    reconstructions: Annotated[int, Field(ge=0)] | None = None
    warm_up: bool | None = None
    longest: Annotated[int, Field(ge=4)] | None = None
    initial: Literal["labels", "greedy"] | None = None
    starts: Literal["instance", "batch"] | None = None
    rule: Literal["cut-off", "from-the-end"] | None = None
    most_blocks: Positive | None = None
    epochs_before: Annotated[int, Field(ge=0)] | None = None
    clip: Annotated[float, Field(gt=0)] | None = None
    stages: Annotated[dict[str, StageChange], Field(description="icam, POMO and mvmoe: of single stages, by name")] = {}
