"""Frozen descriptions, and the first of them: instances, their solutions, networks.

Each has one readable id and serialises to canonical JSON.  Nothing here imports numpy or torch: the Snakefile reads
these at parse time.
"""

import hashlib
import json
from pathlib import PurePath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from neuroute.core.digest import without_modules
from neuroute.problems.vrp import Variant

SHARD = 10_000  # instances in one shard of an instance stream

Problem = Literal["tsp", "cvrp", "vrp"]
Distribution = Literal["uniform", "cluster", "explosion", "implosion", "centred", "half-centred"]
Precision = Literal["fp32", "bf16", "auto"]  # auto: whichever of the two is faster, by measurement
Split = Literal["train", "val", "test"]


class Spec(BaseModel):
    """A frozen description; unknown or ill-typed fields are refused when it is built."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def canonical(self) -> str:
        """JSON text with sorted keys: equal specs give equal bytes, so it serves as a Snakemake param.

        Definitions stand in it without their modules, so that moving a file reruns nothing.
        """
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return without_modules(text)

    def digest(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:16]


class Dataset(Spec):
    """`count` instances of one stream, from instance `first` on.  Never stored: a pure function of these fields."""

    problem: Problem = "tsp"
    distribution: Distribution = "uniform"
    split: Split = "test"
    n: int = Field(ge=1, lt=2**32)  # nodes; CVRP and VRP: customers
    count: int = Field(ge=0)
    first: int = Field(default=0, ge=0)
    capacity: int | None = Field(default=None, ge=9)  # demands are up to 9; None: the rule for n customers
    # VRP: one of `problems.vrp.SWITCHES`.  Left out of the text of other problems, which is as old as they are.
    variant: str | None = Field(default=None, exclude_if=lambda variant: variant is None)

    # A published test set: its instances, as `neuroute label` keeps them.  None: those of the stream.
    file: str | None = Field(default=None, exclude_if=lambda file: file is None)

    @model_validator(mode="after")
    def _fields_are_of_the_problem(self) -> "Dataset":
        if self.capacity is not None and self.problem == "tsp":
            raise ValueError(f"capacity {self.capacity} is for problems with vehicles, not '{self.problem}'")
        if (self.variant is None) == (self.problem == "vrp"):
            raise ValueError(f"variant {self.variant} of problem '{self.problem}'; 'vrp' has variants, and only it has")
        if self.variant is not None:
            Variant(self.variant)
        return self

    @property
    def id(self) -> str:
        start = f"_f{self.first}" if self.first else ""
        return f"{self.stem}_c{self.count}{start}"

    @property
    def stem(self) -> str:
        """The stream, or the file, that these instances are from."""
        if self.file is not None:
            return PurePath(self.file).stem
        capacity = f"_q{self.capacity}" if self.capacity else ""
        problem = f"{self.problem}_{self.variant}" if self.variant else self.problem
        return f"{problem}_{self.distribution}_{self.split}_n{self.n}{capacity}"

    @property
    def nodes(self) -> int:
        """What an encoder sees of one instance: with the depot."""
        return self.n + (self.problem != "tsp")

    def shards(self) -> list[tuple[int, int, int]]:
        """(shard, first, stop) for each shard that these instances touch; first and stop count inside the shard."""
        last = self.first + self.count
        return [
            (s, max(self.first - s * SHARD, 0), min(last - s * SHARD, SHARD))
            for s in range(self.first // SHARD, -(-last // SHARD))
        ]


class Labels(Spec):
    """Solutions of a data set by one solver."""

    dataset: Dataset
    solver: str

    @property
    def id(self) -> str:
        return f"{self.dataset.id}_{self.solver}"

    def shard_file(self, shard: int) -> str:
        """Name of a shard's file in any label cache."""
        return f"{self.dataset.stem}_s{shard}_{self.solver}.npy"


class Network(Spec):
    """An architecture by dotted name (`package.module:Class`) and its keyword arguments."""

    kind: str
    arguments: dict[str, Any]

    @field_validator("arguments")
    @classmethod
    def _as_a_checkpoint_keeps_them(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        """In JSON's terms, where tuples are lists: networks are compared with those of checkpoints."""
        plain: dict[str, Any] = json.loads(json.dumps(arguments))
        return plain


# -- training sets in blocks, so that no label job makes more than a million labels ----------------------------------

BLOCK = 1_000_000  # labels that one job makes at most


def training_blocks(n: int, samples: int, solver: str) -> tuple[Labels, ...]:
    """The first instances of the uniform TSP's training stream, in blocks."""
    return tuple(
        Labels(dataset=Dataset(split="train", n=n, first=first, count=min(BLOCK, samples - first)), solver=solver)
        for first in range(0, samples, BLOCK)
    )


def with_count(labels: Labels, count: int) -> Labels:
    """The first `count` instances of the same stream."""
    return labels.model_copy(update={"dataset": labels.dataset.model_copy(update={"count": count})})
