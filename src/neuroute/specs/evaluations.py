"""What is measured of a model, one spec for each kind of measurement.  Papers add kinds of their own, their probes."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field, SerializeAsAny

from neuroute.specs.data import Dataset, Labels, Network, Spec
from neuroute.specs.decodings import Decoding, Test

Benchmark = Literal["tsplib", "cvrplib", "solomon"]


class RunEvaluation(Spec):
    """Something that one job measures of one model.  A kind of its own has a class with an `entry` and a `kind`."""

    entry: ClassVar[str]  # what measures it: `package.module:function`, (loaded, evaluation) -> rows, arrays
    run: str  # id of the run
    group: str

    @property
    def id(self) -> str:
        return f"{self.run}/{self.group}"

    def members(self) -> "tuple[RunEvaluation, ...]":
        """What it consists of: itself, unless it is several."""
        return (self,)

    @property
    def labels(self) -> tuple[Labels, ...]:
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


class _OfTests(RunEvaluation):
    tests: tuple[Test, ...]

    @property
    def labels(self) -> tuple[Labels, ...]:
        return tuple(dict.fromkeys(t.labels for t in self.tests))

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        return ((t.labels.dataset, t.decoding) for t in self.tests)


class Evaluation(_OfTests):
    """The gaps and times of a model on the labelled test sets of one group."""

    entry: ClassVar[str] = "neuroute.evaluation.labelled:measure"
    kind: Literal["tests"] = "tests"


class StageEvaluation(_OfTests):
    """The gaps of the checkpoints that a run's stages leave; records are of `<run>@<stage>`."""

    entry: ClassVar[str] = "neuroute.evaluation.labelled:measure_stages"
    kind: Literal["stages"] = "stages"
    group: str = "stages"
    stages: tuple[str, ...] = Field(min_length=1)


class BenchmarkEvaluation(RunEvaluation):
    """The gaps of a model on a public benchmark's instances from `min_nodes` nodes on and below `max_nodes`.

    They are against the best costs published.  With `names` only those of them.
    """

    entry: ClassVar[str] = "neuroute.evaluation.benchmarks:measure"
    kind: Literal["benchmark"] = "benchmark"
    group: str = "tsplib"
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


class RescalingEvaluation(RunEvaluation):
    """Tour length against the factor that coordinates are stretched by, and the best factor (pens, Section 4.2).

    One sweep per size; `rescale: best` of the model's other evaluations looks up what is found here.
    """

    entry: ClassVar[str] = "neuroute.evaluation.rescaling:measure"
    kind: Literal["rescaling"] = "rescaling"
    group: str = "rescaling"
    sweeps: tuple[Sweep, ...]

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        return ((sweep.dataset, Decoding()) for sweep in self.sweeps for _ in sweep.factors)


class EfficiencyEvaluation(RunEvaluation):
    """Time and memory of greedy decoding by size, of networks whose weights do not matter (sit, Tables 3, 4 and 10).

    Measured at `decisions` points along the construction of one instance of each size and integrated over all of it.
    It hangs on a run for its place in the plan alone; the weights are random.
    """

    entry: ClassVar[str] = "neuroute.evaluation.efficiency:measure"
    kind: Literal["efficiency"] = "efficiency"
    group: str = "efficiency"
    networks: dict[str, Network]  # besides the run's own
    datasets: tuple[Dataset, ...]
    decisions: int = Field(default=5, ge=2)


class ConstructionEvaluation(RunEvaluation):
    """Seconds to solve one instance after the other, without anything to compare lengths with (mvmoe, Table 6)."""

    entry: ClassVar[str] = "neuroute.evaluation.construction:measure"
    kind: Literal["construction"] = "construction"
    group: str = "construction"
    datasets: tuple[Dataset, ...]
    decoding: Decoding = Decoding()

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        return ((dataset, self.decoding) for dataset in self.datasets)


class CombinedEvaluation(RunEvaluation):
    """All evaluations of a model in one job, where starting it costs more than they do.

    Its arrays are those of its parts, each key after "<group>/", but for the labelled tests', whose keys stay.
    """

    kind: Literal["together"] = "together"
    group: str = "all"
    parts: tuple[SerializeAsAny[RunEvaluation], ...]

    def members(self) -> tuple[RunEvaluation, ...]:
        return self.parts

    @property
    def labels(self) -> tuple[Labels, ...]:
        return tuple(dict.fromkeys(labels for part in self.parts for labels in part.labels))

    def decodings_used(self) -> tuple[Decoding, ...]:
        return tuple(dict.fromkeys(decoding for part in self.parts for decoding in part.decodings_used()))

    def reads_best_factor(self) -> bool:
        """Whether it does not measure the factors itself."""
        return not any(isinstance(part, RescalingEvaluation) for part in self.parts) and super().reads_best_factor()
