"""What paper `sit` measures of a model besides gaps: one round of its training."""

from typing import ClassVar, Literal

from neuroute.plan.decodings import Decoding
from neuroute.plan.evaluations import Price, RunEvaluation
from neuroute.plan.specs import Dataset


class RoundEvaluation(RunEvaluation):
    """A decoding state of the network and one iteration of re-construction on a real instance (sit, Figures 1, 2)."""

    entry: ClassVar[str] = "neuroute.papers.sit.probe:measure"
    kind: Literal["round"] = "round"
    group: str = "round"
    dataset: Dataset
    decoding: Decoding
    decision: int  # of the state that is drawn

    def decodings_used(self) -> tuple[Decoding, ...]:
        return (self.decoding,)

    def flops(self, price: Price) -> float:
        return price.construct(self.dataset) + price.improve(self.dataset, self.decoding)
