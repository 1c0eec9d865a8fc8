"""The sizes of paper `sit`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from neuroute.pipeline.plan.shapes import BaselineShape, Nodes, Positive, names_each
from neuroute.problems.longest import longest_sub_path
from neuroute.specs.data import Spec as Strict
from neuroute.specs.trainings import Reconstruction, SelfImprovement, Supervised

SIZES = (1000, 5000, 10_000, 50_000, 100_000)
TAM_SIZES = (1000, 2000, 5000, 7000)  # Table 8


class SitShape(BaselineShape):
    """A SIT network."""

    representatives: Annotated[int, Field(ge=1, description="repetitions of the last node (sit, Appendix C)")]
    detach_customers: Annotated[
        bool, Field(description="CVRP: customers enter without a gradient, as in the published code")
    ] = False


class SigdShape(BaselineShape):
    """SIGD's network for the CVRP: BQ's, near the current stop."""

    nearest: Annotated[int | None, Field(ge=1, description="customers that a decision sees; null: all")] = None


class SitProblem(Strict):
    """One of the two problems.  Keys are the paper's sizes; a size that is not trained takes the next smaller model."""

    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> nodes here (CVRP: customers)")]
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances here")]
    validation_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> validation instances here")]
    references: Annotated[dict[int, str], Field(description="the paper's n -> solver of the reference solutions")]
    other_solvers: Annotated[
        dict[int, list[str]], Field(description="Table 1's other solvers that are run: the paper's n -> solvers")
    ] = {}
    warm_up: Annotated[Reconstruction, Field(description="on the initial solutions as they are: no re-constructions")]
    training: Annotated[dict[int, Reconstruction], Field(description="the paper's n -> self-improved training")]
    small_sizes: Annotated[dict[int, Nodes], Field(description="Table 9: the paper's n -> here")]
    small_count: Annotated[int, Field(ge=1, description="Table 9: test instances")]
    small_reference: Annotated[str, Field(description="Table 9: solver of the reference solutions")]
    benchmark_nodes: Annotated[
        tuple[int, int],
        Field(description="Table 2: the benchmark's instances with at least, and with less than, this many nodes"),
    ]

    _named = names_each(sizes=SIZES, test_counts=SIZES, references=SIZES, small_sizes={300, 500, 700}, differ=["sizes"])

    @model_validator(mode="after")
    def _parts_fit(self) -> "SitProblem":
        if set(self.validation_counts) != set(self.training):
            raise ValueError(f"validation_counts must name exactly the trained {sorted(self.training)}")
        for name, mapping in (("training", self.training), ("other_solvers", self.other_solvers)):
            if strange := set(mapping) - set(SIZES):
                raise ValueError(f"{name}: {sorted(strange)} are none of the paper's sizes {list(SIZES)}")
        if 1000 not in self.training:
            raise ValueError("training must have 1000: the larger sizes start from its model")
        if self.warm_up.reconstructions or self.warm_up.rounds > 1:
            raise ValueError("warm_up is one round on the solutions as they are: `rounds: 1`, `reconstructions: 0`")
        return self

    def trained(self, size: int) -> int:
        """Whose model the paper's size takes here."""
        return max(t for t in self.training if t <= size)


class SitCvrp(SitProblem):
    """The CVRP has test sets of its own besides."""

    small_capacity: Annotated[int | None, Field(ge=9, description="Table 9: C; the paper's is 100")] = None
    tam_sizes: Annotated[dict[int, Nodes], Field(description="Table 8: TAM's n -> customers here")]
    tam_capacities: Annotated[dict[int, int], Field(description="Table 8: TAM's n -> capacity here")]
    tam_count: Annotated[int, Field(ge=1, description="Table 8: test instances of each size")]
    tam_solver: Annotated[str, Field(description="Table 8: solver that stands for HGS here")] = "hgs"
    tam_other_solvers: Annotated[list[str], Field(description="Table 8: other solvers that are run")] = []
    no_sit: Annotated[Supervised, Field(description="Table 3: trained on labelled CVRP100 instead")]

    _tam_named = names_each(tam_sizes=TAM_SIZES, tam_capacities=TAM_SIZES)


class SitScale(Strict):
    """What the roles of paper `sit` stand for at this scale.  Keys are the paper's numbers.

    BQ, LEHD and SIGD of the TSP are those of `scaling`, as is the labelled CVRP100.
    """

    network: SitShape
    tsp: SitProblem
    cvrp: SitCvrp
    controls: Annotated[
        list[Literal["tsp", "cvrp"]],
        Field(description="problems whose main training is made once more without re-construction, to compare"),
    ] = []
    prc: Annotated[dict[int, Positive], Field(description="PRC's iterations -> here")]
    rrc: Annotated[int, Field(ge=1, description="LEHD's 1,000 iterations of random re-construct -> here")]
    beam: Annotated[int, Field(ge=1, description="BQ's and SIGD's beam of 16 -> here")]
    beam_max_nodes: Annotated[int, Field(ge=4, description="largest instances that beams are run on")]
    rrc_max_nodes: Annotated[int, Field(ge=4, description="largest instances that LEHD's RRC is run on")]
    rrc_longest: Annotated[int, Field(ge=4, description="most stops of a sub-path that LEHD's RRC rebuilds")]
    benchmark_beam_nodes: Annotated[
        int, Field(ge=4, description="Table 2: BQ's beams are run on instances below this many nodes")
    ]
    benchmark_rrc_nodes: Annotated[
        int, Field(ge=4, description="Table 2: LEHD's RRC is run on instances below this many nodes")
    ]
    longest: Annotated[dict[int, Positive], Field(description="Table 5: l_max -> stops here")]
    repetitions: Annotated[
        dict[int, Positive], Field(min_length=2, description="Figure 3: repetitions of the last node -> here")
    ]
    repetition_training: Annotated[Reconstruction, Field(description="Figure 3: two rounds in the paper")]
    bq: BaselineShape
    bq_training: Supervised
    sigd: SigdShape
    sigd_training: SelfImprovement
    bq_sit: Annotated[dict[Literal[1000, 5000], Reconstruction], Field(description="Table 10: cross-attention and SIT")]
    efficiency_sizes: Annotated[dict[int, Nodes], Field(description="Tables 3, 4, 10: the paper's n -> nodes here")]
    efficiency_shapes: Annotated[
        dict[Literal["sit", "lehd", "sigd", "pomo", "bq"], BaselineShape],
        Field(description="Tables 3, 4, 10: networks with random weights whose time and memory are measured"),
    ]
    efficiency_decisions: Annotated[int, Field(ge=2, description="points of a construction that are timed")] = 5

    _named = names_each(
        prc={10, 50, 100, 500, 1000},
        longest={100, 1000, 10_000},
        efficiency_sizes=SIZES,
        efficiency_shapes={"sit", "lehd", "sigd", "pomo", "bq"},
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> "SitScale":
        if 10_000 not in self.tsp.training:
            raise ValueError("tsp.training must have 10000: Table 5 trains it with three l_max")
        main = longest_sub_path(self.tsp.training[10_000].longest, self.tsp.sizes[10_000])
        if main != self.longest[1000]:
            raise ValueError(
                f"tsp.training.10000.longest is {main}, but longest.1000, Table 5's l_max of 1,000, is "
                f"{self.longest[1000]}"
            )
        if 1000 not in self.bq_sit or 5000 in set(self.bq_sit) - set(self.cvrp.training):
            raise ValueError("bq_sit must have 1000, and 5000 only where cvrp.training has it")
        if strange := set(self.repetitions) - {1, 5, 10, 15, 20, 25}:
            raise ValueError(f"repetitions: {sorted(strange)} are none of the paper's [1, 5, 10, 15, 20, 25]")
        for role, stops in self.longest.items():
            if not 4 <= stops <= self.tsp.sizes[10_000]:
                raise ValueError(
                    f"longest.{role} is {stops}: give a number from 4 to tsp.sizes.10000, {self.tsp.sizes[10_000]}"
                )
        for name, problem in (("tsp", self.tsp), ("cvrp", self.cvrp)):
            for role, training in problem.training.items():
                if training.longest is not None and training.longest > problem.sizes[role]:
                    raise ValueError(f"{name}.training.{role}.longest is above the {problem.sizes[role]} nodes there")
        return self
