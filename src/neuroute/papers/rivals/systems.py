"""Which rival systems there are."""

from __future__ import annotations

from neuroute.papers.rivals.scale import RivalsScale
from neuroute.plan.config import Config, Scale
from neuroute.plan.systems import Rival, parts


def rivals(config: Config, scale: Scale) -> list[Rival]:
    """All networks that the scale trains."""
    systems = [(system, getattr(scale[RivalsScale], name)) for name, system in parts("system", "SYSTEM")]
    return [each for system, block in systems if block for each in system.rivals(config, scale, block)]
