"""What paper `icam` measures of a model besides gaps: its modules and a decision."""

from typing import ClassVar, Literal

from neuroute.plan.evaluations import Price, RunEvaluation
from neuroute.plan.specs import Dataset, Labels


class StructureEvaluation(RunEvaluation):
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

    def flops(self, price: Price) -> float:
        return price.construct(self.dataset)
