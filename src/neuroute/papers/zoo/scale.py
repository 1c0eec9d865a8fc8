"""The sizes of the trained networks that come with the package."""

from typing import Annotated

from pydantic import Field, model_validator

from neuroute.plan.reinforced import Reinforced
from neuroute.plan.shapes import BaselineShape, IcamShape, Nodes, Positive
from neuroute.plan.specs import Spec

Solver = Annotated[str, Field(description="solver of the reference solutions")]


class TestedBlock(Spec):
    """ICAM for one problem: what it is trained for and tested on."""

    nodes: Annotated[Nodes, Field(description="nodes, or customers, of the validation instances")]
    reference: Solver
    validation_count: Positive
    test_counts: Annotated[dict[int, Positive], Field(description="nodes, or customers -> test instances")]
    network: IcamShape
    training: Reinforced


class VrpBlock(Spec):
    """POMO-MTL of `mvmoe`, on all 16 variants."""

    network: BaselineShape
    training: Reinforced
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
