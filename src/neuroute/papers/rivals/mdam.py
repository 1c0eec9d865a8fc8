"""MDAM (Xin et al., 2021), of icam's Table 1: several decoders, each with beams of its own."""

from typing import Annotated

from pydantic import Field

from neuroute.plan.config import Config, Scale
from neuroute.plan.objects import Decoding, Network, Problem
from neuroute.plan.reinforced import Reinforced
from neuroute.plan.shapes import BaselineShape, Positive
from neuroute.plan.specs import Spec
from neuroute.plan.systems import Rival, Trained, rival

KINDS: dict[Problem, str] = {"tsp": "neuroute.networks.mdam:Mdam", "cvrp": "neuroute.networks.mdam:MdamCvrp"}


class MdamShape(BaselineShape):
    """A shape, its decoders, and how often the last layer is computed anew."""

    decoders: Positive
    glimpse_every: Annotated[int, Field(ge=1, description="decisions from one glimpse at all nodes to the next")] = 2


class MdamTrained(Trained):
    """One of the two problems."""

    training: Reinforced


class MdamBlock(Spec):
    """How MDAM is trained here."""

    network: MdamShape
    beam: Annotated[int, Field(ge=1, description="beams of each decoder; in the printed rows 50")] = 50
    tsp: MdamTrained
    cvrp: MdamTrained


def rivals(config: Config, scale: Scale, block: MdamBlock) -> list[Rival]:
    """A network for each problem."""
    return [_rival(config, block, problem) for problem in KINDS]


def _rival(config: Config, block: MdamBlock, problem: Problem) -> Rival:
    p = block.tsp if problem == "tsp" else block.cvrp
    network = Network(kind=KINDS[problem], arguments=block.network.model_dump() | {"train_nodes": p.nodes})
    beams = Decoding(method="decoders", beam=block.beam)
    return rival(config, "MDAM", f"mdam_{problem}", problem, p, network, p.training, beams)
