"""The sizes of paper `pens`."""

from typing import Annotated

from pydantic import Field, model_validator

from neuroute.pipeline.plan.shapes import BaselineShape, Nodes, Positive, names_each
from neuroute.specs.data import Spec as Strict
from neuroute.specs.trainings import Supervised

SIZES = (100, 250, 500, 1000, 10_000)


class PensShape(BaselineShape):
    """A shape whose heads axial RoPE can split: pairs of channels for x and for y (pens, Section 4.1)."""

    @model_validator(mode="after")
    def _heads_split(self) -> "PensShape":
        if self.width // self.heads % 4:
            raise ValueError(
                f"RoPE cannot split heads of {self.width // self.heads} channels: width / heads must be a multiple of 4"
            )
        return self


Factor = Annotated[float, Field(gt=0, allow_inf_nan=False, description="of the coordinates")]


class PensScale(Strict):
    """What the roles of paper `pens` stand for at this scale.  Keys are the paper's numbers.

    BQ and LEHD are those of `scaling`, so its TSP100 must be this paper's.
    """

    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> nodes here")]
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances here")]
    timed_counts: Annotated[
        dict[int, Positive], Field(description="the paper's n -> instances that are timed, one at a time")
    ]
    repeats: Annotated[int, Field(ge=1, description="solutions of each instance, with different embeddings")] = 5
    validation_count: Positive = 1000
    largest_solver: Annotated[str, Field(description="solver of the largest test set's reference solutions")]
    network: PensShape
    training: Supervised
    small_network: Annotated[PensShape, Field(description="Figure 5: the models that are trained on TSP20")]
    small_training: Supervised
    sweep_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> held-out instances of a sweep")]
    factors: Annotated[
        dict[int, list[Factor]], Field(description="the paper's n -> scaling factors of its sweep, at least three")
    ]
    attention_factors: Annotated[list[Factor], Field(min_length=1, description="Figure 6: before the best one")]
    tsplib_max_nodes: Annotated[int, Field(ge=51, description="TSPLIB: instances below this many nodes")] = 10_001

    _named = names_each(
        sizes={20, 50, *SIZES}, test_counts={20, 50, *SIZES}, timed_counts=SIZES, sweep_counts=SIZES, factors=SIZES
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> "PensScale":
        for size, count in self.timed_counts.items():
            if count > self.test_counts[size]:
                raise ValueError(f"timed_counts.{size} is {count}, but test_counts has only {self.test_counts[size]}")
        for name, training in (("training", self.training), ("small_training", self.small_training)):
            if (training.sub_paths, training.step) != ("pairs", "decision"):
                raise ValueError(f"{name}: PENS is trained on path-TSPs: `sub_paths: pairs` and `step: decision`")
        if len({self.sizes[role] for role in SIZES}) < len(SIZES):
            raise ValueError(f"sizes {self.sizes}: those of the paper's {list(SIZES)} must all differ")
        for size, factors in self.factors.items():
            if len(set(factors)) < 3 or max(factors) < 1.2 * min(factors):
                raise ValueError(
                    f"factors.{size} {factors}: too narrow to have a minimum; give at least three, the largest at "
                    "least 1.2 times the smallest"
                )
        return self
