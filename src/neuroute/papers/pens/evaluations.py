"""What paper `pens` measures of a model besides gaps: where its attention goes."""

from typing import ClassVar, Literal

from neuroute.plan.evaluations import RunEvaluation
from neuroute.plan.specs import Dataset


class AttentionEvaluation(RunEvaluation):
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

    def reads_best_factor(self) -> bool:
        return "best" in self.factors
