"""MDAM (Xin et al., 2021), of icam's Table 1: several decoders, each with beams of its own."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import BaselineShape, Positive
from neuroute.pipeline.plan.systems import Rival, System, Trained, rival
from neuroute.specs.data import Spec
from neuroute.specs.objects import Decoding, Problem
from neuroute_systems.rollouts.spec import GreedyBaseline, Rollouts

KINDS: dict[Problem, str] = {
    "tsp": "neuroute_systems.mdam.network:Mdam",
    "cvrp": "neuroute_systems.mdam.network:MdamCvrp",
}


class WarmBaseline(GreedyBaseline):
    """In the first epoch the baseline may be a running mean of lengths (Kool et al., 2019)."""

    warm_up: float | None = Field(default=None, ge=0, lt=1)  # weight of the past


class MdamTraining(Rollouts):
    """Each decoder is compared with the copy's best greedy solution, and held apart from the others."""

    scheme: ClassVar[str] = "neuroute_systems.mdam.training:decoders"
    kind: Literal["neuroute_systems.mdam.system:MdamTraining"] = "neuroute_systems.mdam.system:MdamTraining"  # type: ignore[assignment]
    baseline: WarmBaseline
    divergence: Annotated[float, Field(ge=0)]  # how far the loss falls with that between decoders' first decisions


class MdamShape(BaselineShape):
    """A shape, its decoders, and how often the last layer is computed anew."""

    decoders: Positive
    glimpse_every: Annotated[int, Field(ge=1, description="decisions from one glimpse at all nodes to the next")] = 2


class MdamTrained(Trained):
    """One of the two problems."""

    training: MdamTraining


class MdamBlock(Spec):
    """How MDAM is trained here."""

    network: MdamShape
    beam: Annotated[int, Field(ge=1, description="beams of each decoder; in the printed rows 50")] = 50
    tsp: MdamTrained
    cvrp: MdamTrained


def rivals(config: Config, scale: Scale, block: MdamBlock) -> list[Rival]:
    """A network for each problem."""
    beams = Decoding(method="mdam:decoders", beam=block.beam)
    shape, blocks = block.network.model_dump(), {"tsp": block.tsp, "cvrp": block.cvrp}
    return [
        rival(config, "MDAM", f"mdam_{problem}", problem, blocks[problem], kind, beams, shape=shape)
        for problem, kind in KINDS.items()
    ]


SYSTEM = System(MdamBlock, rivals)
