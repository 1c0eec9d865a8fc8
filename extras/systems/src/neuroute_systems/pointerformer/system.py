"""Pointerformer (Jin et al., 2023), of icam's Table 1: many starts, advantages in standard deviations."""

from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import BaselineShape
from neuroute.pipeline.plan.systems import Rival, System, Trained, rival
from neuroute.specs.objects import Decoding
from neuroute.specs.trainings import Reinforced

POINTERFORMER = "neuroute_systems.pointerformer.network:Pointerformer"


class PointerformerScale(Trained):
    """How Pointerformer is trained here."""

    network: BaselineShape
    training: Reinforced


def rivals(config: Config, scale: Scale, block: PointerformerScale) -> list[Rival]:
    decoding = Decoding(starts="all", augment=True)
    return [rival(config, "Pointerformer", "pointerformer", "tsp", block, POINTERFORMER, decoding)]


SYSTEM = System(PointerformerScale, rivals)
