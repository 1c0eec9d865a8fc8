"""The objects that the plan is made of.  Each is frozen, has one readable id, and serialises to canonical JSON.

Nothing here imports numpy or torch: the Snakefile reads these at parse time.
"""

import hashlib
import json
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

SHARD = 10_000  # instances in one shard of an instance stream

Problem = Literal["tsp", "cvrp"]
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

    problem: Problem = "tsp"
    distribution: Distribution = "uniform"
    split: Split = "test"
    n: int  # nodes; CVRP: customers
    count: int
    first: int = 0

    @property
    def id(self) -> str:
        start = f"_f{self.first}" if self.first else ""
        return f"{self.problem}_{self.distribution}_{self.split}_n{self.n}_c{self.count}{start}"

    @property
    def nodes(self) -> int:
        """What an encoder sees of one instance: with the depot."""
        return self.n + (self.problem == "cvrp")

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
    `sub_paths` is how they are cut: `random` (LEHD) anywhere and in either direction; `suffix` (BQ-NCO) the end of
    the stored tour, so that the destination is always its first node; `pairs` (pens) an origin and a destination of its
    own for each instance, and one decision.
    The optimizer is AdamW; without weight decay it is Adam.
    """

    kind: Literal["supervised"] = "supervised"
    step: Literal["sub-path", "decision", "summed"] = "sub-path"
    sub_paths: Literal["random", "suffix", "pairs"] = "random"
    samples: int  # labelled instances in the training set
    epochs: int = 1
    batch_size: int = 1024
    learning_rate: float = 1.25e-4
    weight_decay: float = 0.01
    decay_gamma: float = 0.997
    decay_every: int = 100  # batches
    final_learning_rate: float | None = None  # of a cosine over all batches, instead of the exponential decay
    warmup_batches: int = 0
    warmup_factor: float = 0.1
    precision: Literal["fp32", "bf16"] = "fp32"
    validations: int = 20  # greedy validations, evenly spaced over the samples seen
    keep: Literal["last", "best"] = "last"  # which weights the checkpoint holds; best: by validation gap

    @model_validator(mode="after")
    def _pairs_decide_once(self) -> "Supervised":
        if self.sub_paths == "pairs" and self.step != "decision":
            raise ValueError(
                f"sub_paths: pairs trains one decision of each path: step must be 'decision', not '{self.step}'"
            )
        return self

    @property
    def scheme(self) -> str:
        """The room of a problem that trains so."""
        return "path-tsp" if self.sub_paths == "pairs" else self.kind

    @property
    def batches_per_epoch(self) -> int:
        return -(-self.samples // self.batch_size)

    @property
    def batches(self) -> int:
        return self.batches_per_epoch * self.epochs


class SelfImprovement(Spec):
    """Training without labels: sample tours without replacement, imitate the best (SIGD; Pirnay and Grimm, 2024).

    Each epoch samples `beam` x `rounds` distinct tours of `instances` new instances with the best weights so far (by
    greedy validation) and trains on the shortest of each.  As there: instances anew each epoch, sampling in rounds with
    the policy shifted between them, next-node training on random sub-paths, the best policy by validation.
    Assumptions, as scaling says nothing about how its SIGD was trained: every default below; the shift itself (sigma
    times the mean advantage of the tours through a prefix); an epoch's tours are dropped at its end.
    The best weights are those of any validation: a multiple of `epochs` has one at the end of each.
    """

    kind: Literal["self-improvement"] = "self-improvement"
    epochs: int
    instances: int  # that are sampled anew in each epoch
    beam: int = Field(32, ge=1)  # tours of one round of stochastic beam search
    rounds: int = Field(4, ge=1)
    sigma: float = Field(0.3, ge=0)  # per unit of length: how far a round's advantages shift the next round's policy
    passes: int = Field(1, ge=1)  # over the epoch's tours
    batch_size: int = 1024
    step: Literal["sub-path", "decision", "summed"] = "decision"
    sub_paths: Literal["random", "suffix"] = "random"
    learning_rate: float = 2e-4
    weight_decay: float = 0.0
    decay_gamma: float = 1.0
    decay_every: int = 1  # batches
    warmup_batches: int = 0
    warmup_factor: float = 0.1
    precision: Literal["fp32", "bf16"] = "fp32"
    validations: int = 20

    @property
    def samples(self) -> int:
        """Pseudo-labelled instances that one epoch trains on."""
        return self.instances * self.passes

    @property
    def scheme(self) -> str:
        """The room of a problem that trains so."""
        return self.kind

    @property
    def batches_per_epoch(self) -> int:
        return -(-self.samples // self.batch_size)

    @property
    def batches(self) -> int:
        return self.batches_per_epoch * self.epochs


Training = Annotated[Supervised | SelfImprovement, Field(discriminator="kind")]


class Run(Spec):
    """One trained model."""

    paper: str
    name: str
    role: dict[str, Any] = {}  # what it stands for in the paper: {"depth": 6, "width": 128}
    network: Network
    training: Training
    n: int  # nodes of the training instances
    data: tuple[Labels, ...]  # none for self-improvement
    validation: Labels
    also_validation: tuple[Labels, ...] = ()  # whose gaps are logged beside it
    seed: int = 0

    @property
    def id(self) -> str:
        return f"{self.paper}/{self.name}"


class Decoding(Spec):
    """How solutions are built from a model.

    With `milestones`, random re-construct is measured after each of these numbers of iterations in one go, 0 (greedy)
    included; each becomes a record of its own.
    """

    method: Literal["greedy", "beam", "rrc"] = "greedy"
    beam: int = 1
    iterations: int = 0  # of random re-construct, after greedy
    milestones: tuple[int, ...] = ()
    log_n: bool = True  # the log(n) attention factor (scaling, Eq. 16)
    esf: bool = False  # the entropy scaling factor log_{n_train}(n) instead, n what is left (pens, Appendix A.3)
    batch_size: int | None = None  # None: as many instances as the memory budget holds
    rescale: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["best"] = 1.0  # of what the network sees
    draw: int = Field(default=0, ge=0)  # which random embeddings, of a network that has some
    repeats: int = Field(default=1, ge=1)  # solutions of each instance, draws from `draw` on: lengths are their means
    cached: bool = True  # what does not change from step to step is computed once; no other tours

    @property
    def id(self) -> str:
        rrc = f"rrc{self.iterations}" if self.iterations else "greedy"
        name = {"greedy": "greedy", "beam": f"beam{self.beam}", "rrc": rrc}[self.method]
        name += ("" if self.log_n else "-nolog") + ("-esf" if self.esf else "")
        name += "" if self.rescale == 1 else f"-x{self.rescale}"
        name += (f"-d{self.draw}" if self.draw else "") + (f"-r{self.repeats}" if self.repeats > 1 else "")
        return name + (f"-b{self.batch_size}" if self.batch_size else "") + ("" if self.cached else "-uncached")

    def draws(self) -> list["Decoding"]:
        """One decoding for each repeat."""
        return [self.model_copy(update={"draw": self.draw + i, "repeats": 1}) for i in range(self.repeats)]


class Test(Spec):
    """One cell of an evaluation: a labelled test set and a way to decode."""

    __test__ = False  # not a pytest class

    labels: Labels
    decoding: Decoding = Decoding()


class _OfRun(Spec):
    """Something that one job measures of one model."""

    entry: ClassVar[str]  # the function that measures it, `package.module:function`
    run: str  # id of the run
    group: str

    @property
    def id(self) -> str:
        return f"{self.run}/{self.group}"

    @property
    def labels(self) -> tuple[Labels, ...]:
        """The labelled instances that it reads."""
        return ()


class Evaluation(_OfRun):
    """The gaps and times of a model on the labelled test sets of one group."""

    entry: ClassVar[str] = "neuroute.evaluation.measure:measure"
    kind: Literal["tests"] = "tests"
    tests: tuple[Test, ...]

    @property
    def labels(self) -> tuple[Labels, ...]:
        return tuple(dict.fromkeys(t.labels for t in self.tests))


class BenchmarkEvaluation(_OfRun):
    """The gaps of a model on a public benchmark's instances below `max_nodes` nodes, against published optima."""

    entry: ClassVar[str] = "neuroute.evaluation.benchmarks:measure"
    kind: Literal["benchmark"] = "benchmark"
    group: str = "tsplib"
    benchmark: Literal["tsplib"] = "tsplib"
    max_nodes: int  # exclusive
    decodings: tuple[Decoding, ...] = (Decoding(),)


class Sweep(Spec):
    """Held-out instances, which need no labels, and the factors that their coordinates are stretched by."""

    dataset: Dataset
    factors: tuple[float, ...]


class RescalingEvaluation(_OfRun):
    """Tour length against the factor that coordinates are stretched by, and the best factor (pens, Section 4.2).

    One sweep per size; `rescale: best` of the model's other evaluations looks up what is found here.
    """

    entry: ClassVar[str] = "neuroute.evaluation.rescaling:measure"
    kind: Literal["rescaling"] = "rescaling"
    group: str = "rescaling"
    sweeps: tuple[Sweep, ...]


class AttentionEvaluation(_OfRun):
    """Where the origin of a path looks: its attention logits on all nodes, by scaling factor (pens, Figure 6).

    Besides, what a drawing of the model needs: its modules, and its decisions on one small instance (Figure 2).
    """

    entry: ClassVar[str] = "neuroute.evaluation.attention_maps:measure"
    kind: Literal["attention"] = "attention"
    group: str = "attention"
    dataset: Dataset
    instance: int = 0
    factors: tuple[float | Literal["best"], ...]
    small: Dataset = Dataset(split="val", n=6, first=9, count=1)  # whose instance is walked: its cities lie apart


class ProbeEvaluation(_OfRun):
    """How a model chooses when it is led along optimal tours (scaling, Appendix H).

    Success by neighbour rank over all of `optimal`; last-layer states at decision `decision` of instance `instance`.
    """

    entry: ClassVar[str] = "neuroute.evaluation.probes:measure"
    kind: Literal["probe"] = "probe"
    group: str = "probes"
    optimal: Labels
    instance: int = 0
    decision: int = 0

    @property
    def labels(self) -> tuple[Labels, ...]:
        return (self.optimal,)


OneEvaluation = Annotated[
    Evaluation | BenchmarkEvaluation | RescalingEvaluation | AttentionEvaluation | ProbeEvaluation,
    Field(discriminator="kind"),
]


class Together(_OfRun):
    """All evaluations of a model in one job, where starting it costs more than they do.

    Its arrays are those of its parts, each key after "<group>/", but for the labelled tests', whose keys stay.
    """

    entry: ClassVar[str] = "neuroute.evaluation.together:measure"
    kind: Literal["together"] = "together"
    group: str = "all"
    parts: tuple[OneEvaluation, ...]

    @property
    def labels(self) -> tuple[Labels, ...]:
        return tuple(dict.fromkeys(labels for part in self.parts for labels in part.labels))


AnyEvaluation = Annotated[OneEvaluation | Together, Field(discriminator="kind")]


def parts_of(evaluation: AnyEvaluation) -> tuple[OneEvaluation, ...]:
    """What an evaluation consists of: itself, unless it is several."""
    return evaluation.parts if isinstance(evaluation, Together) else (evaluation,)


def reads_best_factor(evaluation: OneEvaluation) -> bool:
    """Whether it needs what the model's rescaling has found."""
    if isinstance(evaluation, Evaluation):
        return any(t.decoding.rescale == "best" for t in evaluation.tests)
    if isinstance(evaluation, BenchmarkEvaluation):
        return any(d.rescale == "best" for d in evaluation.decodings)
    return isinstance(evaluation, AttentionEvaluation) and "best" in evaluation.factors


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
