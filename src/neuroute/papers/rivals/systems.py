"""Which rival systems there are."""

from __future__ import annotations

from neuroute.papers.rivals import dgl, elg, glop, invit, mdam
from neuroute.papers.rivals.scale import RivalsScale
from neuroute.plan.config import Config, Scale
from neuroute.plan.systems import Rival, System, parts

SYSTEMS: dict[str, System] = {
    "elg": System(elg.ElgBlock, elg.rivals),
    "dgl": System(dgl.DglScale, dgl.rivals),
    "invit": System(invit.InvitScale, invit.rivals),
    "glop": System(glop.GlopBlock, glop.rivals),
}
LATER = {"mdam": System(mdam.MdamBlock, mdam.rivals)}


def rivals(config: Config, scale: Scale) -> list[Rival]:
    """All networks that the scale trains."""
    systems = SYSTEMS | dict(parts("system", "SYSTEM")) | LATER
    blocks = {name: getattr(scale[RivalsScale], name) for name in systems}
    return [each for name, block in blocks.items() if block for each in systems[name].rivals(config, scale, block)]
