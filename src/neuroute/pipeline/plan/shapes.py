"""What scales and config.yaml say besides: shapes of networks, changes to trainings, and grids of changes."""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import Annotated, Any

from pydantic import Field, create_model, field_validator, model_validator

from neuroute.specs.data import Spec
from neuroute.specs.trainings import Positive as Positive
from neuroute.specs.trainings import Reconstruction, Reinforced, SelfImprovement, Stage, Supervised

SWEEP = "sweep"  # the paper whose runs a sweep's points are
Nodes = Annotated[int, Field(ge=4, description="nodes of an instance")]


def names_each(differ: Collection[str] = (), **roles: Collection[Any]) -> Any:
    """Validate that mappings of a block name exactly these numbers of a paper, in `differ` with other values each.

    To be assigned to a private name in the class of the block.
    """

    def check(block: Spec) -> Spec:
        for name, numbers in roles.items():
            mapping: dict[Any, Any] = getattr(block, name)
            if set(mapping) != set(numbers):
                raise ValueError(f"{name} must name exactly the paper's {sorted(numbers)}, got {sorted(mapping)}")
            if name in differ and len(set(mapping.values())) < len(mapping):
                raise ValueError(f"{name} {mapping} must all differ")
        return block

    return model_validator(mode="after")(check)


class Shape(Spec):
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


class IcamShape(Spec):
    """The shape of an ICAM network, which has no heads."""

    depth: Annotated[int, Field(ge=1, description="encoder layers")]
    width: Annotated[int, Field(ge=1, description="embedding dimension")]
    feed_forward: Annotated[int, Field(ge=1, description="width of the FFN's hidden layer")]


# What is no change of the same training.
FIXED_IN_STAGES = {"name", "sizes", "batch_nodes", "capacities", "variants", "distributions", "starts", "images"}
FIXED_IN_TRAININGS = {"kind", "stages", "batches_before", "balance", "fresh", "scaled", "decoupled"}
TRAININGS = (Supervised, SelfImprovement, Reconstruction, Reinforced)


def _all_optional(*kinds: type[Spec], without: set[str]) -> Any:
    """A model with the fields of these kinds; left out is as it was.  Of one name the first kind's."""
    fields: dict[str, Any] = {}
    for kind in kinds:
        for name, field in kind.model_fields.items():
            if name not in without:
                info = Field(default=None, description=field.description)
                annotation: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
                fields.setdefault(name, (annotation | None, info))
    return create_model("Fields", __base__=Spec, **fields)


class StageChange(_all_optional(Stage, without=FIXED_IN_STAGES)):  # type: ignore[misc]
    """What may be changed of one stage of a training by reinforcement learning; see `specs.reinforced.Stage`."""


class TrainingChange(_all_optional(*TRAININGS, without=FIXED_IN_TRAININGS)):  # type: ignore[misc]
    """What may be changed of one run's training; everything else stays as it is."""

    stages: Annotated[dict[str, StageChange], Field(description="icam, POMO and mvmoe: of single stages, by name")] = {}
    own: Annotated[dict[str, Any], Field(description="what only the training of a system of other authors has")] = {}


class Sweep(Spec):
    """`sweep: {run: scaling/base_6x128, grid: {training.learning_rate: [1.0e-4, 5.0e-4]}, seeds: 2}`."""

    run: Annotated[str, Field(pattern="^[a-z][a-z0-9_]*/.+", description="the declared run that each point changes")]
    grid: Annotated[
        dict[str, Annotated[list[Any], Field(min_length=1)]],
        Field(
            min_length=1, description="key of `runs.<run>` -> its values: training.learning_rate, arguments.depth, ..."
        ),
    ]
    seeds: Annotated[Positive, Field(description="trainings of each point")] = 1
    test_count: Annotated[Positive | None, Field(description="test instances; null: as many as validate")] = None

    @field_validator("grid", mode="before")
    @classmethod
    def _with_dotted_keys(cls, grid: Any) -> Any:
        """Take nested mappings, too: {training: {learning_rate: [...]}}."""
        return dict(_flat(grid)) if isinstance(grid, Mapping) else grid

    @field_validator("grid")
    @classmethod
    def _says_nothing_twice(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for key, values in grid.items():
            if below := [other for other in grid if other.startswith(f"{key}.")]:
                raise ValueError(f"{below[0]} is a part of {key}; give one of them")
            if key == "seeds":
                raise ValueError("seeds are no key of the grid; give `seeds` beside it")
            if key == "weights":
                raise ValueError("weights are no key of the grid, whose points are trained; give them in `runs`")
            if len({_name(value) for value in values}) < len(values):
                raise ValueError(f"{key}: {values} has a value twice")
        return grid

    @property
    def points(self) -> list[dict[str, Any]]:
        """Key -> value of each point, the last key's values next to each other."""
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]

    def name_of(self, point: Mapping[str, Any]) -> str:
        """What a point's run is called, wherever it lies in the grid: base_6x128_learning_rate_0.0001."""
        words = (f"{self.short(key)}_{_name(value)}" for key, value in point.items())
        return "_".join([self.run.partition("/")[2], *words])

    def short(self, key: str) -> str:
        """The last part of a key, where no other key ends alike."""
        last = key.rpartition(".")[2]
        return last if sum(other.rpartition(".")[2] == last for other in self.grid) == 1 else key


def _flat(grid: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in grid.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _name(value: Any) -> str:
    """A value in the letters of file names."""
    return re.sub(r"[^\w.]+", "-", str(value))
