"""What is measured of a model, one spec for each kind of measurement.  Papers add kinds of their own, their probes."""

from collections.abc import Iterator
from typing import ClassVar, Literal, TypeVar

from pydantic import Field, SerializeAsAny

from neuroute.specs.data import Dataset, Labels, Network, Spec
from neuroute.specs.decodings import Decoding

Benchmark = Literal["tsplib", "cvrplib", "solomon"]
M = TypeVar("M", bound="Measurement")


class Measurement(Spec):
    """Something to measure of one model.  A kind of its own has a class with an `entry`, a `kind` and a `name`."""

    entry: ClassVar[str]  # what measures it: `package.module:function`, (loaded, measurement) -> rows, arrays
    run: str  # id of the run
    name: str  # of its records and arrays

    @property
    def id(self) -> str:
        return f"{self.run}/{self.name}"

    @property
    def reads(self) -> tuple[Labels, ...]:
        """The labelled instances that it reads."""
        return ()

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        """The instances, but for a public benchmark's, that it builds solutions of, and how."""
        yield from ()

    def decodings_used(self) -> tuple[Decoding, ...]:
        """All the ways in which it builds solutions."""
        return tuple(dict.fromkeys(decoding for _, decoding in self.solved()))

    def reads_best_factor(self) -> bool:
        """Whether it needs the best scaling factor that the model's `RescalingEvaluation` finds."""
        return any(decoding.rescale == "best" for decoding in self.decodings_used())


class Test(Measurement):
    """The gaps and times of a model on one labelled test set, in one way to decode.

    With a `stage` they are of the checkpoint that this stage of the training leaves; records are of `<run>@<stage>`.
    """

    __test__ = False  # not a pytest class

    entry: ClassVar[str] = "neuroute.evaluation.labelled:measure"
    kind: Literal["test"] = "test"
    name: str = "tests"
    labels: Labels
    decoding: Decoding = Decoding()
    stage: str | None = None

    @property
    def reads(self) -> tuple[Labels, ...]:
        return (self.labels,)

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        yield self.labels.dataset, self.decoding


class BenchmarkEvaluation(Measurement):
    """The gaps of a model on a public benchmark's instances from `min_nodes` nodes on and below `max_nodes`.

    They are against the best costs published.  With `names` only those of them.
    """

    entry: ClassVar[str] = "neuroute.evaluation.benchmarks:measure"
    kind: Literal["benchmark"] = "benchmark"
    name: str = "tsplib"
    benchmark: Benchmark = "tsplib"
    min_nodes: int = 0  # inclusive; nodes of cvrplib count the depot
    max_nodes: int  # exclusive
    sets: tuple[str, ...] = ()  # of the benchmark's, those whose instances are taken; none: all
    names: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    decodings: tuple[Decoding, ...] = (Decoding(),)
    per_axis: bool = False  # each axis is scaled by itself, as the published code of icam does: shapes are not kept

    def decodings_used(self) -> tuple[Decoding, ...]:
        return self.decodings


class Sweep(Spec):
    """Held-out instances, which need no labels, and the factors that their coordinates are stretched by."""

    dataset: Dataset
    factors: tuple[float, ...]


class RescalingEvaluation(Measurement):
    """Tour length against the factor that coordinates are stretched by, and the best factor (pens, Section 4.2).

    One sweep per size; `rescale: best` of the model's other evaluations looks up what is found here.
    """

    entry: ClassVar[str] = "neuroute.evaluation.rescaling:measure"
    kind: Literal["rescaling"] = "rescaling"
    name: str = "rescaling"
    sweeps: tuple[Sweep, ...]

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        return ((sweep.dataset, Decoding()) for sweep in self.sweeps for _ in sweep.factors)


class EfficiencyEvaluation(Measurement):
    """Time and memory of greedy decoding by size, of networks whose weights do not matter (sit, Tables 3, 4 and 10).

    Measured at `decisions` points along the construction of one instance of each size and integrated over all of it.
    It hangs on a run for its place in the plan alone; the weights are random.
    """

    entry: ClassVar[str] = "neuroute.evaluation.efficiency:measure"
    kind: Literal["efficiency"] = "efficiency"
    name: str = "efficiency"
    networks: dict[str, Network]  # besides the run's own
    datasets: tuple[Dataset, ...]
    decisions: int = Field(default=5, ge=2)


class ConstructionEvaluation(Measurement):
    """Seconds to solve one instance after the other, without anything to compare lengths with (mvmoe, Table 6)."""

    entry: ClassVar[str] = "neuroute.evaluation.labelled:measure_construction"
    kind: Literal["construction"] = "construction"
    name: str = "construction"
    datasets: tuple[Dataset, ...]
    decoding: Decoding = Decoding()

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        return ((dataset, self.decoding) for dataset in self.datasets)


class Evaluation(Spec):
    """One job: all that it measures of one model, in this order.

    Arrays of a measurement are called "<name>/<key>", but for the labelled tests', whose keys stay.
    """

    run: str
    group: str
    measurements: tuple[SerializeAsAny[Measurement], ...]

    @property
    def id(self) -> str:
        return f"{self.run}/{self.group}"

    @property
    def labels(self) -> tuple[Labels, ...]:
        """The labelled instances that it reads."""
        return tuple(dict.fromkeys(labels for each in self.measurements for labels in each.reads))

    def of_kind(self, kind: type[M]) -> list[M]:
        """Its measurements of one kind."""
        return [each for each in self.measurements if isinstance(each, kind)]

    def decodings_used(self) -> tuple[Decoding, ...]:
        """All the ways in which it builds solutions."""
        return tuple(dict.fromkeys(decoding for each in self.measurements for decoding in each.decodings_used()))

    def reads_best_factor(self) -> bool:
        """Whether it needs the best scaling factor, and does not measure the factors itself."""
        return not self.of_kind(RescalingEvaluation) and any(each.reads_best_factor() for each in self.measurements)
