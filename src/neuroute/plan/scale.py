"""A scale: what the roles of all papers stand for."""

from typing import Annotated

from pydantic import Field, model_validator

from neuroute.papers.icam.scale import IcamScale
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.papers.pens.scale import PensScale
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.shapes import Positive
from neuroute.plan.specs import Spec as Strict


class Scale(Strict):
    """A scale binds the papers' roles to sizes."""

    name: str
    summary: Annotated[str, Field(description="what this scale is good for, shown beside every result")]
    label_solver: Annotated[str, Field(description="solver of the training labels")] = "concorde"
    reference_solver: Annotated[str, Field(description="solver of the test sets' reference solutions")] = "concorde"
    train_threads: Positive = 1
    evaluate_threads: Positive = 1
    evaluate_together: Annotated[
        bool, Field(description="one job measures all test sets of a model: starting it costs more than they do")
    ] = False
    scaling: ScalingScale
    pens: PensScale
    sit: SitScale
    icam: IcamScale
    mvmoe: MvmoeScale

    def of(self, paper: str) -> "ScalePart":
        """What one paper's artifacts depend on: an edit of another paper's sizes changes nothing of it."""
        return ScalePart(name=self.name, summary=self.summary, solver=self.reference_solver, sizes=getattr(self, paper))

    @model_validator(mode="after")
    def _equal_terms(self) -> "Scale":
        if self.pens.sizes[100] != self.scaling.sizes[100]:
            raise ValueError(
                f"pens.sizes.100 is {self.pens.sizes[100]}, but BQ and LEHD are trained at scaling.sizes.100, "
                f"{self.scaling.sizes[100]} nodes: make them equal"
            )
        return self


class ScalePart(Strict):
    """A scale as one paper sees it."""

    name: str
    summary: str
    solver: str
    sizes: ScalingScale | PensScale | SitScale | IcamScale | MvmoeScale
