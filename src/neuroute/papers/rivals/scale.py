"""The sizes of the rival systems, a block each, which a scale may leave out; and of the study of equal budgets."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, create_model

from neuroute.plan.config import Config, Scale
from neuroute.plan.reinforced import Reinforced
from neuroute.plan.shapes import BaselineShape, Nodes, Positive
from neuroute.plan.specs import Network, Problem, Spec
from neuroute.plan.systems import SYSTEMS, Rival, Studied, block_fields, parts


class Pomo(Studied):
    """POMO, which takes the study's shape as it is."""

    label = "POMO"
    kinds = {"tsp": "neuroute.networks.pomo:Pomo", "cvrp": "neuroute.networks.pomo:PomoCvrp"}


class Icam(Studied):
    """ICAM, which has no heads."""

    label = "ICAM"
    kinds = {"tsp": "neuroute.networks.icam:Icam", "cvrp": "neuroute.networks.icam:IcamCvrp"}

    @property
    def note(self) -> str:
        return "ICAM is without its stages of varying sizes and without elites."

    def network_of(self, problem: Problem, shape: dict[str, Any]) -> Network:
        return super().network_of(problem, {name: value for name, value in shape.items() if name != "heads"})


if TYPE_CHECKING:

    class _StudiedSystems(Spec): ...
else:
    _StudiedSystems = create_model("StudiedSystems", __base__=Spec, **block_fields(lambda system: system.studied))


class StudyBlock(_StudiedSystems):
    """Networks that are trained alike, on as many instances of one size or for as long, and tested on larger ones."""

    nodes: Annotated[Nodes, Field(description="nodes, or customers, of the training instances")]
    network: Annotated[BaselineShape, Field(description="of networks of many starts; ICAM has no heads")]
    training: Annotated[dict[Problem, Reinforced], Field(description="of all networks, but for what is their own")]
    same_time: Annotated[
        dict[Problem, dict[str, Positive]],
        Field(description="batches of an epoch with which each takes the processor time of the slowest"),
    ]
    test_counts: Annotated[dict[int, Positive], Field(description="nodes, or customers -> test instances")]
    validation_count: Positive
    references: Annotated[dict[str, str], Field(description="tsp, cvrp -> solver of the reference solutions")]

    @property
    def networks(self) -> dict[str, Studied]:
        """The networks by what they are called."""
        systems = (getattr(self, name) for name in SYSTEMS if name in type(self).model_fields)
        studied = (Pomo(), Icam(), *(each for each in systems if isinstance(each, Studied)))
        return {each.label: each for each in studied}


if TYPE_CHECKING:

    class _Systems(Spec): ...
else:
    _Systems = create_model("Systems", __base__=Spec, **block_fields(lambda system: system.block))


class RivalsScale(_Systems):
    """What rival systems of the papers' tables are trained and tested on; one that is left out is not trained."""

    study: StudyBlock | None = None


def rivals(config: Config, scale: Scale) -> list[Rival]:
    """All networks that the scale trains."""
    systems = [(system, getattr(scale[RivalsScale], name)) for name, system in parts("system", "SYSTEM")]
    return [each for system, block in systems if block for each in system.rivals(config, scale, block)]
