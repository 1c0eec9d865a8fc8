"""GLOP: revisers of blocks for the TSP, and GLOP-G, which parts the CVRP into routes (Ye et al., 2024)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from neuroute.plan.config import Config, Scale
from neuroute.plan.decodings import Decoding, revise
from neuroute.plan.objects import Network
from neuroute.plan.rivals.glop import Partitioning, Revising
from neuroute.plan.shapes import BaselineShape, names_each
from neuroute.plan.specs import Spec
from neuroute.plan.systems import PAPER, Rival, Trained, rival

REVISERS = "glop"
PARTITIONS = {"1k": "glop_g", "2k": "glop_g_2k", "cvrplib": "glop_g_cvrplib"}  # what it is trained for -> its run


class ReviserShape(BaselineShape):
    """A reviser for each size of block."""

    blocks: Annotated[list[int], Field(min_length=1, description="nodes of blocks, falling")]
    shared: Annotated[bool, Field(description="one reviser, trained on the largest blocks, for all")] = False
    insertions: Annotated[
        tuple[int, int, int, int],
        Field(description="that tours start from: small ones, others, large ones, TSPLIB's"),
    ] = (35, 10, 1, 128)


class PartitionShape(Spec):
    """A graph network over each node's neighbours by direction."""

    depth: Annotated[int, Field(ge=1)]
    width: Annotated[int, Field(ge=1)]
    neighbours: Annotated[int, Field(ge=1, description="of a node, by the cosine of directions from the depot")]
    near: Annotated[bool, Field(description="rank neighbours by their distance, too, as published for CVRPLIB")] = False


class Revisers(Trained):
    """GLOP for the TSP; it is validated and tested by its revision of random insertion."""

    network: ReviserShape
    training: Revising


class Partition(Trained):
    """GLOP-G for the CVRP; its routes are solved by LKH, and while it is trained by the revisers."""

    network: PartitionShape
    training: Partitioning


class GlopBlock(Spec):
    tsp: Revisers
    cvrp: Annotated[
        dict[Literal["1k", "2k", "cvrplib"], Partition],
        Field(description="the partitions of CVRP1K, of larger drawn instances, and of CVRPLIB"),
    ]

    _named = names_each(cvrp=PARTITIONS)


def rivals(config: Config, scale: Scale, block: GlopBlock) -> list[Rival]:
    """The revisers, and the partitions that are trained by them."""
    tsp = block.tsp
    shape = tsp.network.model_dump() | {"train_nodes": tsp.network.blocks[0]}
    revisers = Network(kind="neuroute.networks.glop:Glop", arguments=shape)
    first = rival(config, "GLOP", REVISERS, "tsp", tsp, revisers, tsp.training, revise())
    return [first, *(_partition(config, PARTITIONS[name], each) for name, each in block.cvrp.items())]


def _partition(config: Config, name: str, p: Partition) -> Rival:
    shape = p.network.model_dump() | {"train_nodes": p.nodes}
    network = Network(kind="neuroute.networks.glop_partition:GlopPartition", arguments=shape)
    more: dict[str, Any] = {"start": f"{PAPER}/{REVISERS}"}
    walk = Decoding(method="partition")
    return rival(config, "GLOP-G (LKH3)", name, "cvrp", p, network, p.training, walk, **more)
