"""DGL (Xiao et al., 2025): the nearest open nodes, trained on a small pool that beams improve (pens, Tables 2-4)."""

from neuroute.plan.config import Config, Scale
from neuroute.plan.objects import Decoding, Network
from neuroute.plan.shapes import BaselineShape, Positive
from neuroute.plan.systems import Rival, Trained, rival
from neuroute.plan.trainings import BeamPool

DGL = "neuroute.networks.dgl:Dgl"


class DglShape(BaselineShape):
    """A shape, and how many of the nearest open nodes a decision reads."""

    nearest: Positive


class DglScale(Trained):
    """How DGL for the TSP is trained here."""

    network: DglShape
    training: BeamPool


def rivals(config: Config, scale: Scale, block: DglScale) -> list[Rival]:
    network = Network(kind=DGL, arguments=block.network.model_dump() | {"train_nodes": block.nodes})
    return [rival(config, "DGL", "dgl", "tsp", block, network, block.training, Decoding())]
