"""DIMES (Qiu et al., 2022), of icam's Table 1: a map of edges by meta-learning, active search, and a tree search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import Positive
from neuroute.pipeline.plan.systems import Rival, System, Trained, rival
from neuroute.specs.data import Spec
from neuroute.specs.objects import Decoding, Run
from neuroute.specs.trainings import OwnTraining

if TYPE_CHECKING:
    from neuroute.evaluation.flops import Counts

Rate = Annotated[float, Field(gt=0, le=1)]


class MetaTraining(OwnTraining):
    """AdamW at a constant rate on the gradient after each instance's own steps; no labels."""

    scheme: ClassVar[str] = "neuroute_systems.dimes.training:meta"
    kind: Literal["neuroute_systems.dimes.system:MetaTraining"] = "neuroute_systems.dimes.system:MetaTraining"
    samples: Annotated[int, Field(ge=1, description="training instances, each of them new")]
    epochs: Literal[1] = 1
    batch_size: Positive = 3
    inner_steps: Annotated[int, Field(ge=0, description="of an instance, before it is learnt from")] = 15
    tours: Annotated[int, Field(ge=2, description="drawn in each of them")] = 100
    learning_rate: Rate = 1e-3
    weight_decay: Annotated[float, Field(ge=0)] = 1e-5
    precision: Literal["fp32"] = "fp32"
    validations: Positive = 10

    def flops_per_sample(self, counts: Counts, run: Run) -> float:
        """Of the graph network once, and of the head once a step, each with a backward pass."""
        shape = DimesShape.model_validate({k: v for k, v in run.network.arguments.items() if k != "train_nodes"})
        head = run.n * min(shape.neighbours, run.n - 1) * 4 * shape.width * (shape.width + 1)
        return 3 * (counts.encoder(run.n) + (self.inner_steps - 3 * shape.search_steps) * head)


class DimesShape(Spec):
    depth: Positive
    width: Positive
    neighbours: Annotated[int, Field(ge=1, description="edges of a node")] = 50
    inner_rate: Annotated[float, Field(gt=0, le=1, description="of steps on one instance")] = 0.01
    search_steps: Annotated[int, Field(ge=0, description="of active search on a test instance")] = 0
    search_tours: Annotated[int, Field(ge=2, description="drawn in each of them")] = 500
    actions: Annotated[int, Field(ge=0, description="of tree search, a node")] = 100


class DimesTrained(Trained):
    network: DimesShape
    training: MetaTraining


class DimesBlock(Spec):
    """How DIMES is trained here."""

    small: Annotated[DimesTrained, Field(description="of all instances, or of those below 1,000 nodes")]
    large: Annotated[DimesTrained | None, Field(description="of instances of 1,000 nodes and more")] = None


def rivals(config: Config, scale: Scale, block: DimesBlock) -> list[Rival]:
    """One network, or two."""
    how = Decoding(method="edge_maps:tree_search")
    return [
        rival(config, "DIMES AS+MCTS", name, "tsp", each, "neuroute_systems.dimes.network:Dimes", how)
        for name, each in (("dimes", block.small), ("dimes_large", block.large))
        if each
    ]


SYSTEM = System(DimesBlock, rivals)
