"""What paper `scaling` measures of a model besides gaps: how it chooses along optimal tours."""

from typing import ClassVar, Literal

from neuroute.plan.evaluations import Price, RunEvaluation
from neuroute.plan.specs import Labels


class ProbeEvaluation(RunEvaluation):
    """How a model chooses when it is led along optimal tours (scaling, Appendix H).

    Success by neighbour rank over all of `optimal`; last-layer states at decision `decision` of instance `instance`.
    """

    entry: ClassVar[str] = "neuroute.papers.scaling.probe:measure"
    kind: Literal["probe"] = "probe"
    group: str = "probes"
    optimal: Labels
    instance: int = 0
    decision: int = 0

    @property
    def labels(self) -> tuple[Labels, ...]:
        return (self.optimal,)

    def flops(self, price: Price) -> float:
        return price.construct(self.optimal.dataset)
