"""Which rival systems there are."""

from __future__ import annotations

from neuroute.papers.rivals import glop
from neuroute.papers.rivals.scale import RivalsScale
from neuroute.plan.config import Config, Scale
from neuroute.plan.systems import Rival, System, parts

HERE: dict[str, System] = {
    "glop": System(glop.GlopBlock, glop.rivals),
}


def rivals(config: Config, scale: Scale) -> list[Rival]:
    """All networks that the scale trains."""
    systems = dict(parts("system", "SYSTEM")) | HERE
    blocks = {name: getattr(scale[RivalsScale], name) for name in systems}
    return [each for name, block in blocks.items() if block for each in systems[name].rivals(config, scale, block)]
