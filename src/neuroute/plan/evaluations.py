"""How solutions are built from a model, and what is measured of it."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.plan.specs import Dataset, Labels, Network, Spec

# What is improved: the model's own solution, or a solver's.
Start = Literal["greedy", "insertion", "insertion-angle", "insertion-published", "nearest"]
Benchmark = Literal["tsplib", "cvrplib", "solomon"]


class Decoding(Spec):
    """How solutions are built from a model.

    With `milestones`, re-construction is measured after each of these numbers of iterations in one go, 0 (what it
    starts from) included; each becomes a record of its own.
    """

    method: Literal["greedy", "beam", "rrc", "prc"] = "greedy"
    beam: int = 1
    iterations: int = 0  # of random (rrc, after greedy) or parallel local (prc) re-construction
    start: Start = "greedy"  # of prc
    longest: int | None = Field(default=None, ge=4)  # l_max of prc; None: 1000, or all stops of shorter solutions
    rule: Literal["cut-off", "from-the-end"] = "cut-off"  # by which prc cuts CVRP solutions: the paper's, the code's
    most_blocks: int | None = Field(default=None, ge=1)  # that prc rebuilds of one solution in one iteration
    milestones: tuple[int, ...] = ()
    log_n: bool = True  # the log(n) attention factor (scaling, Eq. 16)
    esf: bool = False  # the entropy scaling factor log_{n_train}(n) instead, n what is left (pens, Appendix A.3)
    batch_size: int | None = None  # None: as many instances as the memory budget holds
    rescale: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["best"] = 1.0  # of what the network sees
    # Of a network of many: the best is taken, or what rrc starts from; a beam searches from each.
    starts: Annotated[int, Field(ge=1)] | Literal["all"] = 1
    augment: bool = False  # with the eight symmetric images of each instance (POMO)
    draw: int = Field(default=0, ge=0)  # which random embeddings, of a network that has some
    repeats: int = Field(default=1, ge=1)  # solutions of each instance, draws from `draw` on: lengths are their means
    cached: bool = True  # what does not change from step to step is computed once; no other tours

    @model_validator(mode="after")
    def _only_prc_starts_elsewhere(self) -> "Decoding":
        if self.start != "greedy" and self.method != "prc":
            raise ValueError(f"start: {self.start} is for method 'prc', not '{self.method}'")
        return self

    @model_validator(mode="after")
    def _some_methods_have_one_start(self) -> "Decoding":
        if self.starts != 1 and self.method == "prc":
            raise ValueError("starts: re-construction in parallel begins with one solution; leave starts out")
        if self.augment and self.method != "greedy":
            raise ValueError(f"augment is for method 'greedy', not '{self.method}'")
        return self

    @property
    def id(self) -> str:
        name = {
            "greedy": self._greedy,
            "beam": f"beam{self.beam}" + self._from_starts,
            "rrc": f"rrc{self.iterations}{self._from_starts}" if self.iterations else self._greedy,
            "prc": self._prc,
        }[self.method]
        name += ("" if self.log_n else "-nolog") + ("-esf" if self.esf else "")
        name += "" if self.rescale == 1 else f"-x{self.rescale}"
        name += (f"-d{self.draw}" if self.draw else "") + (f"-r{self.repeats}" if self.repeats > 1 else "")
        return name + (f"-b{self.batch_size}" if self.batch_size else "") + ("" if self.cached else "-uncached")

    @property
    def _greedy(self) -> str:
        """greedy, multi, multi5, multi-x8."""
        return (self._from_starts.removeprefix("-") or "greedy") + ("-x8" if self.augment else "")

    @property
    def _from_starts(self) -> str:
        """-multi of all starts, -multi5 of five, nothing of one."""
        return {1: "", "all": "-multi"}.get(self.starts, f"-multi{self.starts}")

    @property
    def _prc(self) -> str:
        """prc100-insertion-l50; what it starts from, without iterations: insertion."""
        if not self.iterations:
            return self.start
        name = f"prc{self.iterations}" + ("" if self.start == "greedy" else f"-{self.start}")
        name += f"-l{self.longest}" if self.longest else ""
        name += "" if self.rule == "cut-off" else f"-{self.rule}"
        return name + (f"-m{self.most_blocks}" if self.most_blocks else "")

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

    entry: ClassVar[str]  # what measures it: `package.module:function`, (loaded, evaluation) -> rows, arrays
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

    entry: ClassVar[str] = "neuroute.evaluation.labelled:measure"
    kind: Literal["tests"] = "tests"
    tests: tuple[Test, ...]

    @property
    def labels(self) -> tuple[Labels, ...]:
        return tuple(dict.fromkeys(t.labels for t in self.tests))


class BenchmarkEvaluation(_OfRun):
    """The gaps of a model on a public benchmark's instances from `min_nodes` nodes on and below `max_nodes`.

    They are against the best costs published.
    """

    entry: ClassVar[str] = "neuroute.evaluation.benchmarks:measure"
    kind: Literal["benchmark"] = "benchmark"
    group: str = "tsplib"
    benchmark: Benchmark = "tsplib"
    min_nodes: int = 0  # inclusive; nodes of cvrplib count the depot
    max_nodes: int  # exclusive
    sets: tuple[str, ...] = ()  # of the benchmark's, those whose instances are taken; none: all
    decodings: tuple[Decoding, ...] = (Decoding(),)
    per_axis: bool = False  # each axis is scaled by itself, as the published code of icam does: shapes are not kept


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

    entry: ClassVar[str] = "neuroute.papers.pens.probe:measure"
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

    entry: ClassVar[str] = "neuroute.papers.scaling.probe:measure"
    kind: Literal["probe"] = "probe"
    group: str = "probes"
    optimal: Labels
    instance: int = 0
    decision: int = 0

    @property
    def labels(self) -> tuple[Labels, ...]:
        return (self.optimal,)


class EfficiencyEvaluation(_OfRun):
    """Time and memory of greedy decoding by size, of networks whose weights do not matter (sit, Tables 3, 4 and 10).

    Measured at `decisions` points along the construction of one instance of each size and integrated over all of it.
    It hangs on a run for its place in the plan alone; the weights are random.
    """

    entry: ClassVar[str] = "neuroute.evaluation.efficiency:measure"
    kind: Literal["efficiency"] = "efficiency"
    group: str = "efficiency"
    networks: dict[str, Network]
    datasets: tuple[Dataset, ...]
    decisions: int = Field(default=5, ge=2)


class RoundEvaluation(_OfRun):
    """A decoding state of the network and one iteration of re-construction on a real instance (sit, Figures 1, 2)."""

    entry: ClassVar[str] = "neuroute.papers.sit.probe:measure"
    kind: Literal["round"] = "round"
    group: str = "round"
    dataset: Dataset
    decoding: Decoding
    decision: int  # of the state that is drawn


class StageEvaluation(_OfRun):
    """The gaps of the checkpoints that a run's stages leave (icam, Table 8); records are of `<run>@<stage>`."""

    entry: ClassVar[str] = "neuroute.evaluation.stages:measure"
    kind: Literal["stages"] = "stages"
    group: str = "stages"
    stages: tuple[str, ...] = Field(min_length=1)
    tests: tuple[Test, ...]

    @property
    def labels(self) -> tuple[Labels, ...]:
        return tuple(dict.fromkeys(t.labels for t in self.tests))


class StructureEvaluation(_OfRun):
    """What drawings of a network of many starts need: its modules, and a decision on a real instance (icam).

    With `optimal` also what optimal tours choose at these sizes (Figure 1).
    """

    entry: ClassVar[str] = "neuroute.papers.icam.probe:measure"
    kind: Literal["structure"] = "structure"
    group: str = "structure"
    dataset: Dataset  # one instance
    decision: int  # of the state that is drawn
    optimal: tuple[Labels, ...] = ()

    @property
    def labels(self) -> tuple[Labels, ...]:
        return self.optimal


class RoutingEvaluation(_OfRun):
    """Where a mixture's gates send nodes, by variant, and real routings and routes to draw (mvmoe, Figures 1-4, 8, 9).

    One instance or more of each variant; gates are followed over the first `steps` decisions.
    """

    entry: ClassVar[str] = "neuroute.papers.mvmoe.probe:measure"
    kind: Literal["routing"] = "routing"
    group: str = "routing"
    datasets: tuple[Dataset, ...]
    steps: int = Field(default=20, ge=1)


class ConstructionEvaluation(_OfRun):
    """Seconds to solve one instance after the other, without anything to compare lengths with (mvmoe, Table 6)."""

    entry: ClassVar[str] = "neuroute.evaluation.construction:measure"
    kind: Literal["construction"] = "construction"
    group: str = "construction"
    datasets: tuple[Dataset, ...]
    decoding: Decoding = Decoding()


OneEvaluation = Annotated[
    Evaluation
    | BenchmarkEvaluation
    | RescalingEvaluation
    | AttentionEvaluation
    | ProbeEvaluation
    | EfficiencyEvaluation
    | RoundEvaluation
    | StageEvaluation
    | StructureEvaluation
    | RoutingEvaluation
    | ConstructionEvaluation,
    Field(discriminator="kind"),
]


class Together(_OfRun):
    """All evaluations of a model in one job, where starting it costs more than they do.

    Its arrays are those of its parts, each key after "<group>/", but for the labelled tests', whose keys stay.
    """

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


def decodings_of(evaluation: AnyEvaluation) -> tuple[Decoding, ...]:
    """All the ways in which it builds solutions."""
    found: list[Decoding] = []
    for part in parts_of(evaluation):
        if isinstance(part, Evaluation | StageEvaluation):
            found += [t.decoding for t in part.tests]
        elif isinstance(part, BenchmarkEvaluation):
            found += part.decodings
        elif isinstance(part, RoundEvaluation | ConstructionEvaluation):
            found.append(part.decoding)
    return tuple(dict.fromkeys(found))


def reads_best_factor(evaluation: OneEvaluation) -> bool:
    """Whether it needs what the model's rescaling has found."""
    if isinstance(evaluation, Evaluation):
        return any(t.decoding.rescale == "best" for t in evaluation.tests)
    if isinstance(evaluation, BenchmarkEvaluation):
        return any(d.rescale == "best" for d in evaluation.decodings)
    return isinstance(evaluation, AttentionEvaluation) and "best" in evaluation.factors
