"""What paper `mvmoe` measures of a model besides gaps: where its gates send nodes."""

from typing import ClassVar, Literal

from pydantic import Field

from neuroute.plan.evaluations import Price, RunEvaluation
from neuroute.plan.specs import Dataset


class RoutingEvaluation(RunEvaluation):
    """Where a mixture's gates send nodes, by variant, and real routings and routes to draw (mvmoe, Figures 1-4, 8, 9).

    One instance or more of each variant; gates are followed over the first `steps` decisions.
    """

    entry: ClassVar[str] = "neuroute.papers.mvmoe.probe:measure"
    kind: Literal["routing"] = "routing"
    group: str = "routing"
    datasets: tuple[Dataset, ...]
    steps: int = Field(default=20, ge=1)

    def flops(self, price: Price) -> float:
        return sum(map(price.construct, self.datasets))
