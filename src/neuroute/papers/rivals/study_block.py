"""The sizes of the study of equal budgets."""

from typing import Annotated

from pydantic import Field

from neuroute.plan.reinforced import Reinforced
from neuroute.plan.shapes import BaselineShape, Nodes, Positive
from neuroute.plan.specs import Problem, Spec


class StudyBlock(Spec):
    """Networks of many starts that are trained alike, on as many instances of one size, and tested on larger ones."""

    nodes: Annotated[Nodes, Field(description="nodes, or customers, of the training instances")]
    network: Annotated[BaselineShape, Field(description="of all networks; ICAM has no heads")]
    neighbours: Annotated[int, Field(ge=1, description="ELG's nearest nodes")]
    training: Annotated[
        dict[Problem, Reinforced], Field(description="of all networks; ELG's advantages are scaled, as published")
    ]
    test_counts: Annotated[dict[int, Positive], Field(description="nodes, or customers -> test instances")]
    validation_count: Positive
    references: Annotated[dict[str, str], Field(description="tsp, cvrp -> solver of the reference solutions")]
