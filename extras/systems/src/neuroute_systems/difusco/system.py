"""DIFUSCO (Sun and Yang, 2023), of icam's Table 1 and sit's: maps of edges by diffusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import Positive
from neuroute.pipeline.plan.systems import Rival, System, Trained, rival, training_labels
from neuroute.specs.data import Spec
from neuroute.specs.objects import Decoding, Run
from neuroute_systems.edge_maps.system import EdgeLabels

if TYPE_CHECKING:
    from neuroute.evaluation.flops import Counts


class Denoising(EdgeLabels):
    """AdamW with half a cosine to 0; one time, and its noise, for each instance of a batch."""

    scheme: ClassVar[str] = "neuroute_systems.difusco.training:denoising"
    kind: Literal["neuroute_systems.difusco.system:Denoising"] = "neuroute_systems.difusco.system:Denoising"

    def flops_per_sample(self, counts: Counts, run: Run) -> float:
        """One of the steps that inference takes, and its backward pass."""
        return 3 * counts.encoder(run.n) / int(run.network.arguments["steps"])


class DifuscoShape(Spec):
    depth: Positive
    width: Annotated[int, Field(ge=4, multiple_of=4)]
    steps: Annotated[int, Field(ge=1, description="of inference")] = 50
    neighbours: Annotated[int, Field(ge=0, description="edges of a node, one to itself; 0: to all nodes")] = 0
    actions: Annotated[int, Field(ge=0, description="of tree search, a node")] = 100


class DifuscoBlock(Trained):
    """How DIFUSCO is trained here."""

    network: DifuscoShape
    training: Denoising


def rivals(config: Config, scale: Scale, block: DifuscoBlock) -> list[Rival]:
    kind, data = "neuroute_systems.difusco.network:Difusco", training_labels(scale, block)
    how = Decoding(method="edge_maps:merging")
    return [rival(config, "DIFUSCO greedy+2-opt", "difusco", "tsp", block, kind, how, data=data)]


SYSTEM = System(DifuscoBlock, rivals)
