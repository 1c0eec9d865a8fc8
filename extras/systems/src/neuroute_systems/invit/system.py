"""INViT (Fang et al., 2024), of sit's Tables 1, 2 and 9 and pens' Tables 2 to 4: two views for the TSP, three for both.

The published networks of the TSP have two and four layers in their action encoders, which is what pens' Table 4 counts.
"""

from typing import Annotated, Any

from pydantic import Field

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import BaselineShape, Positive
from neuroute.pipeline.plan.systems import PAPER, Rival, System, Trained, rival
from neuroute.specs.data import Spec
from neuroute.specs.objects import Decoding, Problem
from neuroute_systems.rollouts.spec import Rollouts

INVIT: dict[Problem, str] = {
    "tsp": "neuroute_systems.invit.network:Invit",
    "cvrp": "neuroute_systems.invit.network:InvitCvrp",
}
RUNS: dict[str, tuple[Problem, int]] = {  # run -> problem, views
    "invit_2v": ("tsp", 2),
    "invit_3v": ("tsp", 3),
    "invit_cvrp": ("cvrp", 3),
}


class Views(Spec):
    """What a decision reads."""

    views: Annotated[tuple[Positive, Positive, Positive], Field(description="nodes of the views; 2V has the first two")]
    actions: Annotated[int, Field(ge=1, description="nearest nodes that are chosen from")]

    def shape(self, network: BaselineShape, views: int, action_depth: int, nodes: int) -> dict[str, Any]:
        """Arguments of a network with so many views, trained on so many nodes."""
        views_here = {"views": list(self.views[:views]), "actions": self.actions}
        return network.model_dump() | views_here | {"action_depth": action_depth, "train_nodes": nodes}


class InvitTrained(Trained, Views):
    """One of the two problems."""


class InvitScale(Spec):
    """How INViT is trained here."""

    network: Annotated[BaselineShape, Field(description="depth: of each view's encoder")]
    action_depths: Annotated[dict[str, Positive], Field(description="layers of the action encoder, of each run")]
    images: Annotated[int, Field(ge=1, description="images of an instance as its authors decode; the best counts")]
    tsp: InvitTrained
    cvrp: InvitTrained
    training: dict[Problem, Rollouts]


def rivals(config: Config, scale: Scale, block: InvitScale) -> list[Rival]:
    """Raises NeurouteError if a run's action encoder has no depth."""
    all_rivals = []
    for name, (problem, views) in RUNS.items():
        if name not in block.action_depths:
            raise NeurouteError(f"{PAPER}.invit.action_depths: says nothing of {name}; give its layers")
        trained = block.tsp if problem == "tsp" else block.cvrp
        shape = trained.shape(block.network, views, block.action_depths[name], trained.nodes)
        how, training = (trained, INVIT[problem], Decoding(images=block.images)), block.training[problem]
        all_rivals.append(rival(config, f"INViT-{views}V", name, problem, *how, shape=shape, training=training))
    return all_rivals


SYSTEM = System(InvitScale, rivals)
