"""The objects that the plan is made of.  Each is frozen, has one readable id, and serialises to canonical JSON.

Nothing here imports numpy or torch: the Snakefile reads these at parse time.
"""

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

SHARD = 10_000  # instances in one shard of an instance stream

Distribution = Literal["uniform", "cluster", "explosion", "implosion"]
Split = Literal["train", "val", "test"]


class Spec(BaseModel):
    """A frozen description; unknown or ill-typed fields are refused when it is built."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def canonical(self) -> str:
        """JSON text with sorted keys: equal specs give equal bytes, so it serves as a Snakemake param."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    def digest(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:16]


class Dataset(Spec):
    """`count` instances of one stream, from instance `first` on.  Never stored: a pure function of these fields."""

    problem: Literal["tsp"] = "tsp"
    distribution: Distribution = "uniform"
    split: Split = "test"
    n: int
    count: int
    first: int = 0

    @property
    def id(self) -> str:
        start = f"_f{self.first}" if self.first else ""
        return f"{self.problem}_{self.distribution}_{self.split}_n{self.n}_c{self.count}{start}"

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
        d = self.dataset
        return f"{d.problem}_{d.distribution}_{d.split}_n{d.n}_s{shard}_{self.solver}.npy"


class LabelBundle(Spec):
    """Labels that one job makes together (starting a process costs more than a small shard)."""

    paper: str
    name: str
    labels: tuple[Labels, ...]

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"


class Network(Spec):
    """An architecture by dotted name (`package.module:Class`) and its keyword arguments."""

    kind: str
    arguments: dict[str, Any]


class Supervised(Spec):
    """Supervised training on sub-paths of labelled tours (scaling, Section 3 and Table 9).

    `step` is the reading of the paper's "step" (README, "What is a step?"):
    `sub-path` every decision of the sampled sub-path is its own update; `decision` one update on the first
    decision only; `summed` one update on the summed loss of all decisions.
    """

    kind: Literal["supervised"] = "supervised"
    step: Literal["sub-path", "decision", "summed"] = "sub-path"
    samples: int  # labelled instances in the training set
    epochs: int = 1
    batch_size: int = 1024
    learning_rate: float = 1.25e-4
    weight_decay: float = 0.01
    decay_gamma: float = 0.997
    decay_every: int = 100  # batches
    warmup_batches: int = 0
    warmup_factor: float = 0.1
    precision: Literal["fp32", "bf16"] = "fp32"
    validations: int = 20  # greedy validations, evenly spaced over the samples seen

    @property
    def batches_per_epoch(self) -> int:
        return -(-self.samples // self.batch_size)

    @property
    def batches(self) -> int:
        return self.batches_per_epoch * self.epochs


class Run(Spec):
    """One trained model."""

    paper: str
    name: str
    role: dict[str, Any] = {}  # what it stands for in the paper: {"depth": 6, "width": 128}
    network: Network
    training: Supervised
    n: int  # nodes of the training instances
    data: tuple[Labels, ...]
    validation: Labels
    seed: int = 0

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"


class Decoding(Spec):
    """How solutions are built from a model."""

    method: Literal["greedy", "beam", "rrc"] = "greedy"
    beam: int = 1
    iterations: int = 0  # of random re-construct, after greedy
    log_n: bool = True  # the log(n) attention factor (scaling, Eq. 16)
    batch_size: int | None = None  # None: as many instances as the memory budget holds

    @property
    def id(self) -> str:
        name = {"greedy": "greedy", "beam": f"beam{self.beam}", "rrc": f"rrc{self.iterations}"}[self.method]
        return name + ("" if self.log_n else "-nolog") + (f"-b{self.batch_size}" if self.batch_size else "")


class Test(Spec):
    """One cell of an evaluation: a labelled test set and a way to decode."""

    __test__ = False  # not a pytest class

    labels: Labels
    decoding: Decoding = Decoding()


class Evaluation(Spec):
    """What is measured of one model in one job: the tests of one group."""

    run: str  # id of the run
    group: str
    tests: tuple[Test, ...]

    @property
    def id(self) -> str:
        return f"{self.run}/{self.group}"


class Artifact(Spec):
    """A table or figure: the function that draws it and the measurements that it reads."""

    paper: str
    name: str  # table12, figure2
    title: str
    function: str  # package.module:function
    runs: tuple[str, ...] = ()  # runs whose training logs are read
    evaluations: tuple[str, ...] = ()
    bundles: tuple[str, ...] = ()  # label bundles whose manifests are read (solver times)

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"

    @property
    def kind(self) -> Literal["table", "figure"]:
        return "table" if self.name.startswith("table") else "figure"
