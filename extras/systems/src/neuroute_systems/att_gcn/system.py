"""Att-GCN + MCTS (Fu et al., 2021), of icam's Table 1: a map of edges from small sub-graphs, and a tree search."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import Positive
from neuroute.pipeline.plan.systems import Rival, System, Trained, rival, training_labels
from neuroute.specs.data import Spec
from neuroute.specs.objects import Decoding
from neuroute_systems.edge_maps.system import EdgeLabels

ATT_GCN = "neuroute_systems.att_gcn.network:AttGcn"


class EdgeTraining(EdgeLabels):
    """Adam on a focal loss; the published rate falls where validation losses do not."""

    scheme: ClassVar[str] = "neuroute_systems.att_gcn.training:edges"
    kind: Literal["neuroute_systems.att_gcn.system:EdgeTraining"] = "neuroute_systems.att_gcn.system:EdgeTraining"
    decay: Annotated[float, Field(gt=0, le=1, description="of the rate, after each epoch")] = 1.0


class AttGcnShape(Spec):
    depth: Positive
    width: Annotated[int, Field(ge=2, multiple_of=2)]
    near: Annotated[int, Field(ge=1, description="nodes of a sub-graph that are tagged as near")] = 20
    coverage: Annotated[int, Field(ge=1, description="sub-graphs that a node is in, on average")] = 5
    actions: Annotated[int, Field(ge=0, description="of tree search, a node")] = 100


class AttGcnTrained(Trained):
    """A network for sub-graphs of `nodes` nodes."""

    network: AttGcnShape
    training: EdgeTraining


class AttGcnBlock(Spec):
    """How Att-GCN is trained here."""

    small: Annotated[AttGcnTrained, Field(description="of all instances, or of those of 100 nodes")]
    large: Annotated[AttGcnTrained | None, Field(description="of instances of 200 nodes and more")] = None


def rivals(config: Config, scale: Scale, block: AttGcnBlock) -> list[Rival]:
    """One network, or two."""
    how = Decoding(method="edge_maps:tree_search")
    return [
        rival(config, "Att-GCN+MCTS", name, "tsp", each, ATT_GCN, how, data=training_labels(scale, each))
        for name, each in (("att_gcn", block.small), ("att_gcn_large", block.large))
        if each
    ]


SYSTEM = System(AttGcnBlock, rivals)
