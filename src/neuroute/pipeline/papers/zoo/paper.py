"""The trained networks that come with the package, as a paper of its own: trained, measured and tabled by the DAG."""

from typing import Annotated

from pydantic import Field, model_validator

from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.shapes import BaselineShape, IcamShape, Nodes, Positive
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.data import Spec
from neuroute.specs.objects import Dataset, Labels, Network, Problem, Reinforced, Run, Split

Pilots = Annotated[
    dict[Annotated[str, Field(pattern=r"^[\w.-]+$")], Reinforced],
    Field(description="short trainings that recipes are compared by, by name"),
]
Solver = Annotated[str, Field(description="solver of the reference solutions")]


class TestedBlock(Spec):
    """ICAM for one problem: what it is trained for and tested on."""

    nodes: Annotated[Nodes, Field(description="nodes, or customers, of the validation instances")]
    reference: Solver
    validation_count: Positive
    test_counts: Annotated[dict[int, Positive], Field(description="nodes, or customers -> test instances")]
    network: IcamShape
    training: Reinforced
    pilots: Pilots = {}


class VrpBlock(Spec):
    """POMO-MTL of `mvmoe`, on all 16 variants."""

    network: BaselineShape
    training: Reinforced
    pilots: Pilots = {}
    nodes: Annotated[Nodes, Field(description="customers of the validation and test instances")]
    validation_count: Positive
    test_count: Positive
    references: Annotated[dict[str, str], Field(description="variant, or `others` -> solver of the references")]

    @model_validator(mode="after")
    def _others_have_a_reference(self) -> "VrpBlock":
        if "others" not in self.references:
            raise ValueError("references: name a solver for `others`")
        return self

    def reference_of(self, variant: str) -> str:
        return self.references.get(variant, self.references["others"])


class ZooScale(Spec):
    """What the networks are trained and tested on."""

    tsp: TestedBlock
    prc: Annotated[int, Field(ge=1, description="iterations of parallel re-construction in the tables of `tsp`")]
    cvrp: TestedBlock
    vrp: VrpBlock
    largest_benchmark: Annotated[int, Field(ge=1, description="TSPLIB and CVRPLIB: instances below so many nodes")]


KEY = "zoo"
TSP, CVRP, VRP = (f"{KEY}/{name}" for name in ("tsp", "cvrp", "vrp"))
VARIANTS = tuple(SWITCHES)


def labels(scale: Scale, problem: Problem, split: Split, n: int, count: int) -> Labels:
    """Solved instances of the TSP or the CVRP to validate, or to test, on."""
    block: TestedBlock = scale[ZooScale].tsp if problem == "tsp" else scale[ZooScale].cvrp
    return Labels(dataset=Dataset(problem=problem, split=split, n=n, count=count), solver=block.reference)


def test_sets(scale: Scale, problem: Problem) -> dict[int, Labels]:
    """Nodes, or customers -> the test set of that size."""
    block: TestedBlock = scale[ZooScale].tsp if problem == "tsp" else scale[ZooScale].cvrp
    return {n: labels(scale, problem, "test", n, count) for n, count in block.test_counts.items()}


def vrp_labels(scale: Scale, split: Split, variant: str) -> Labels:
    """Solved instances of a VRP variant to validate, or to test, on."""
    v = scale[ZooScale].vrp
    count = v.validation_count if split == "val" else v.test_count
    dataset = Dataset(problem="vrp", variant=variant, split=split, n=v.nodes, count=count)
    return Labels(dataset=dataset, solver=v.reference_of(variant))


def runs(config: Config, scale: Scale) -> list[Run]:
    z = scale[ZooScale]
    vrp_validation = [vrp_labels(scale, "val", variant) for variant in VARIANTS]
    kinds: dict[str, tuple[str, TestedBlock | VrpBlock, list[Labels], dict[str, int]]] = {
        TSP: ("icam:Icam", z.tsp, [labels(scale, "tsp", "val", z.tsp.nodes, z.tsp.validation_count)], {}),
        CVRP: ("icam:IcamCvrp", z.cvrp, [labels(scale, "cvrp", "val", z.cvrp.nodes, z.cvrp.validation_count)], {}),
        VRP: ("mvmoe:MvMoe", z.vrp, vrp_validation, {"experts": 0}),
    }

    def declare(run: str, training: Reinforced, of: str) -> Run:
        kind, block, validation, more = kinds[of]
        if of == VRP:
            stages = tuple(stage.model_copy(update={"variants": VARIANTS}) for stage in training.stages)
            training = training.model_copy(update={"stages": stages})
        arguments = block.network.model_dump() | more | {"train_nodes": block.nodes}
        network, name = Network(kind=f"neuroute.networks.{kind}", arguments=arguments), run.partition("/")[2]
        return declare_run(
            config,
            KEY,
            name,
            training,
            network=network,
            n=block.nodes,
            validation=validation[0],
            also_validation=validation[1:],
        )

    pilots = (declare(pilot(of, name), each, of) for of in kinds for name, each in kinds[of][1].pilots.items())
    return [*(declare(of, kinds[of][1].training, of) for of in kinds), *pilots]


def pilot(run: str, name: str) -> str:
    """The run of a short training that a recipe for another one is tried by."""
    return f"{KEY}/pilot_{run.partition('/')[2]}_{name}"


PAPER = Paper(key=KEY, title="Networks that come with neuroute", scale=ZooScale, runs=runs)
