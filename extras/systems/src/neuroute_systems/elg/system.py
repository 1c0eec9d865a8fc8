"""ELG (Gao et al., 2024): POMO with a local policy, which joins for the last steps; without it, ELG's own ablation."""

from typing import Annotated

from pydantic import Field

from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import BaselineShape
from neuroute.pipeline.plan.systems import PAPER, Rival, System, Trained, rival
from neuroute.specs.data import Spec
from neuroute.specs.objects import Decoding, Problem, Reinforced

ELG: dict[Problem, str] = {"tsp": "neuroute_systems.elg.network:Elg", "cvrp": "neuroute_systems.elg.network:ElgCvrp"}
AUGMENTED = Decoding(starts="all", augment=True)


class ElgTrained(Trained):
    """One of the two problems."""

    neighbours: Annotated[int, Field(ge=1, description="nearest nodes of the penalty and the local policy")]
    without_local: Annotated[Reinforced, Field(description="the first steps, without the local policy")]
    training: Annotated[Reinforced, Field(description="the last steps, with it and a new optimizer")]


class ElgBlock(Spec):
    """ELG's encoder and decoder are POMO's; its local policy is as published at all scales."""

    network: BaselineShape
    tsp: ElgTrained
    cvrp: ElgTrained | None = None


def rivals(config: Config, scale: Scale, block: ElgBlock) -> list[Rival]:
    """Of each problem the network without its local policy, and the whole one, which starts from it."""
    cvrp = _both(config, block, "cvrp", block.cvrp) if block.cvrp else []
    return [*_both(config, block, "tsp", block.tsp), *cvrp]


def _both(config: Config, block: ElgBlock, problem: Problem, p: ElgTrained) -> list[Rival]:
    name, without = f"elg_{problem}", f"elg_{problem}_global"
    how, whole = (problem, p, ELG[problem], AUGMENTED), block.network.model_dump() | {"neighbours": p.neighbours}
    shape = whole | {"local": False}
    first = rival(config, "ELG without its local policy", without, *how, shape=shape, training=p.without_local)
    last = p.training.model_copy(update={"batches_before": p.without_local.batches, "fresh": True})
    return [first, rival(config, "ELG", name, *how, shape=whole, training=last, start=f"{PAPER}/{without}")]


SYSTEM = System(ElgBlock, rivals)
