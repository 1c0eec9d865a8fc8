"""The sizes of paper `icam`."""

from typing import Annotated

from pydantic import Field, model_validator

from neuroute.pipeline.plan.shapes import BaselineShape, IcamShape, Nodes, Positive, names_each
from neuroute.specs.data import Spec as Strict
from neuroute.specs.trainings import Reinforced, Stage

SIZES = (100, 200, 500, 1000)
LARGE_SIZES = (2000, 3000, 4000, 5000)  # Table 6
TAM_SIZES = (1000, 2000, 3000, 4000, 5000)  # Table 3
KS, BETAS = (20, 50, 100), (0.0, 0.1, 0.5, 0.9)  # Table 10
MAIN = (20, 0.1)  # k and beta of the main run (Table 5)
STAGES = ["stage1", "stage2", "stage3"]
LARGEST_DEMAND = 9  # as in `datasets.streams`: a smaller vehicle could not serve every customer


class IcamProblem(Strict):
    """One of the two problems.  Keys are the paper's sizes."""

    training: Annotated[Reinforced, Field(description="three stages, of ICAM and of POMO (Section 4, Table 5)")]
    single_size: Annotated[Reinforced, Field(description="POMO as its authors train it")]
    validation_counts: Annotated[
        dict[int, Positive], Field(description="smallest and largest n -> validation instances here")
    ]
    other_solvers: Annotated[
        dict[int, list[str]], Field(description="Table 1's solvers besides the reference: the paper's n -> solvers")
    ] = {}

    _named = names_each(validation_counts={100, 1000})

    @model_validator(mode="after")
    def _stages_are_three(self) -> "IcamProblem":
        names = [stage.name for stage in self.training.stages]
        if names != STAGES:
            raise ValueError(f"training: its stages must be {STAGES}, got {names}")
        for name, training in (("training", self.training), ("single_size", self.single_size)):
            if training.batches_before:
                raise ValueError(f"{name}.batches_before is {training.batches_before}: nothing comes before it")
        if strange := set(self.other_solvers) - set(SIZES):
            raise ValueError(f"other_solvers: {sorted(strange)} are none of the paper's sizes {list(SIZES)}")
        return self

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Of all trainings."""
        return self.training.stages + self.single_size.stages


class IcamCvrp(IcamProblem):
    """The CVRP has test sets of its own; the TSP's are those of `scaling`."""

    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> customers here")]
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances here")]
    references: Annotated[dict[int, str], Field(description="the paper's n -> solver of the reference solutions")]
    tam_sizes: Annotated[dict[int, Nodes], Field(description="Table 3: the paper's n -> customers here")]
    tam_capacities: Annotated[dict[int, int], Field(description="Table 3: the paper's n -> capacity here")]
    tam_counts: Annotated[dict[int, Positive], Field(description="Table 3: the paper's n -> test instances here")]
    tam_solver: Annotated[str, Field(description="Table 3: solver of the reference solutions")]
    tam_other_solvers: Annotated[list[str], Field(description="Table 3: other solvers that are run")] = []
    benchmark_nodes: Annotated[
        tuple[int, int],
        Field(description="Table 2: Set-X's instances with at least, and with less than, this many nodes"),
    ]

    _tests_named = names_each(
        sizes=SIZES, test_counts=SIZES, references=SIZES, tam_sizes=TAM_SIZES, tam_capacities=TAM_SIZES,
        tam_counts=TAM_SIZES, differ=["sizes", "tam_sizes"],
    )  # fmt: skip

    @model_validator(mode="after")
    def _tests_can_be(self) -> "IcamCvrp":
        if min(self.tam_capacities.values()) < LARGEST_DEMAND:
            raise ValueError(f"tam_capacities {self.tam_capacities}: demands are up to {LARGEST_DEMAND}; give no less")
        least, below = self.benchmark_nodes
        if not least < below:
            raise ValueError(f"benchmark_nodes: from {least} to less than {below} nodes; give the smaller number first")
        return self


class IcamScale(Strict):
    """What the roles of paper `icam` stand for at this scale.  Keys are the paper's numbers.

    The TSP's test sets, LEHD and BQ are those of `scaling`, BQ for the CVRP is that of `sit`.
    """

    network: IcamShape
    pomo: BaselineShape
    tsp: IcamProblem
    cvrp: IcamCvrp
    elites: Annotated[dict[int, Positive], Field(description="Table 10: the paper's k -> best solutions here")]
    forks: Annotated[
        list[tuple[int, float]],
        Field(description="Table 10: the paper's k and beta of other third stages that are trained here"),
    ]
    large_sizes: Annotated[dict[int, Nodes], Field(description="Table 6: the paper's n -> nodes here")]
    large_counts: Annotated[dict[int, Positive], Field(description="Table 6: the paper's n -> test instances here")]
    large_solver: Annotated[str, Field(description="Table 6: solver of the reference solutions")]
    rrc: Annotated[int, Field(ge=1, description="Table 11's 100 iterations of random re-construct -> here")]
    rrc_max_nodes: Annotated[int, Field(ge=4, description="largest instances that random re-construct is run on")]
    beam: Annotated[int, Field(ge=1, description="Table 11's beam of 16 -> here")]
    decoder_beam: Annotated[int, Field(ge=1, description="the 50 beams of each of MDAM's decoders -> here")] = 50
    beam_max_nodes: Annotated[int, Field(ge=4, description="largest instances that beams are run on")]

    _named = names_each(elites=KS, large_sizes=LARGE_SIZES, large_counts=LARGE_SIZES, differ=["large_sizes"])

    @model_validator(mode="after")
    def _capacities_are_of_the_cvrp(self) -> "IcamScale":
        if stages := [stage.name for stage in self.tsp.stages if stage.capacities]:
            raise ValueError(f"tsp: capacities of {stages[0]}: they are for the CVRP")
        return self

    @model_validator(mode="after")
    def _third_stages_fit(self) -> "IcamScale":
        k, beta = MAIN
        last = self.tsp.training.stages[-1]
        here = (last.elite.k, last.elite.beta) if last.elite else None
        if here != (self.elites[k], beta):
            raise ValueError(
                f"tsp.training: elite of stage3 is {here}; the main run is Table 10's with k = {k}, here "
                f"elites.{k} = {self.elites[k]}, and beta = {beta}"
            )
        if len(set(self.elites.values())) < len(KS):
            raise ValueError(f"elites {self.elites} must all differ")
        fewest = last.starts_of(last.sizes[0])
        for place in self.forks:
            k, beta = place
            if k not in KS or beta not in BETAS or place == MAIN:
                raise ValueError(
                    f"forks: k = {k}, beta = {beta:g}: Table 10 has k of {list(KS)} and beta of {list(BETAS)}, and "
                    f"k = {MAIN[0]} with beta = {MAIN[1]} is the main run"
                )
            if self.elites[k] > fewest:
                raise ValueError(f"elites.{k}: the best {self.elites[k]} of {fewest} solutions")
        if len(set(self.forks)) < len(self.forks):
            raise ValueError(f"forks {self.forks} must all differ")
        return self
