"""The sizes of the study of equal budgets."""

from typing import Annotated, Literal

from pydantic import Field

from neuroute.papers.rivals.invit import Views
from neuroute.plan.reinforced import GreedyBaseline, Reinforced
from neuroute.plan.shapes import BaselineShape, Nodes, Positive
from neuroute.plan.specs import Problem, Spec

Starting = Literal["POMO", "ICAM", "ELG"]  # the networks of many starts


class StudiedInvit(Views):
    """INViT, whose instances and batches are those of the others, in images from one start each."""

    network: Annotated[BaselineShape, Field(description="depth: of each view's encoder, that of the actions too")]
    images: Annotated[int, Field(ge=2, description="of an instance in training")]
    baseline: GreedyBaseline
    learning_rate: Annotated[float, Field(gt=0, description="a rate of its own: the others' is too large for it")]
    tested_images: Annotated[int, Field(ge=2, description="of an instance in tests; the best counts")]


class StudyBlock(Spec):
    """Networks that are trained alike, on as many instances of one size or for as long, and tested on larger ones."""

    nodes: Annotated[Nodes, Field(description="nodes, or customers, of the training instances")]
    network: Annotated[BaselineShape, Field(description="of POMO, ICAM and ELG; ICAM has no heads")]
    neighbours: Annotated[int, Field(ge=1, description="ELG's nearest nodes")]
    invit: StudiedInvit
    training: Annotated[
        dict[Problem, Reinforced], Field(description="of all networks; ELG's advantages are scaled, as published")
    ]
    same_time: Annotated[
        dict[Problem, dict[Starting, Positive]],
        Field(description="batches of an epoch with which each takes the processor time that INViT takes"),
    ]
    test_counts: Annotated[dict[int, Positive], Field(description="nodes, or customers -> test instances")]
    validation_count: Positive
    references: Annotated[dict[str, str], Field(description="tsp, cvrp -> solver of the reference solutions")]
