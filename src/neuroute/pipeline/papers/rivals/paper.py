"""Rival systems of the papers' tables, trained and measured here: their common home.  No paper prints numbers of it.

`pipeline/plan/systems.py` says how one is added.
"""

from typing import TYPE_CHECKING

from pydantic import ConfigDict, create_model

from neuroute.core.dotted import parts
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.systems import PAPER as KEY
from neuroute.pipeline.plan.systems import Rival
from neuroute.specs.data import Spec
from neuroute.specs.objects import Labels, Run

if TYPE_CHECKING:

    class _Systems(Spec): ...
else:
    _BLOCKS = {name: (system.block | None, None) for name, system in parts("system", "SYSTEM")}
    _Systems = create_model("Systems", __base__=Spec, **_BLOCKS)


class RivalsScale(_Systems):
    """What rival systems of the papers' tables are trained and tested on; one that is left out is not trained."""

    model_config = ConfigDict(extra="allow")  # blocks of systems that no installed package has


def rivals(config: Config, scale: Scale) -> list[Rival]:
    """All networks that the scale trains."""
    systems = [(system, getattr(scale[RivalsScale], name)) for name, system in parts("system", "SYSTEM")]
    return [each for system, block in systems if block for each in system.rivals(config, scale, block)]


def runs(config: Config, scale: Scale) -> list[Run]:
    return [each.run for each in rivals(config, scale)]


def also_solved(scale: Scale) -> list[Labels]:
    """What nearest neighbour makes of the test sets."""
    return [each.test.model_copy(update={"solver": "nearest"}) for each in rivals(Config(), scale)]


PAPER = Paper(
    key=KEY,
    title="Rival systems of the papers' tables",
    scale=RivalsScale,
    runs=runs,
    also_solved=also_solved,
    optional=True,
)
