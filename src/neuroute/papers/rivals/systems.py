"""Which rival systems there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuroute.papers.rivals import dgl, elg, glop, invit, mdam, pointerformer
from neuroute.papers.rivals.rival import Rival
from neuroute.papers.rivals.scale import RivalsScale
from neuroute.plan.config import Config, Scale

# Name of a system's block in `RivalsScale` -> its networks: (config, scale, block) -> [Rival].
SYSTEMS: dict[str, Callable[[Config, Scale, Any], list[Rival]]] = {
    "elg": elg.rivals,
    "dgl": dgl.rivals,
    "invit": invit.rivals,
    "glop": glop.rivals,
    "pointerformer": pointerformer.rivals,
    "mdam": mdam.rivals,
}


def rivals(config: Config, scale: Scale) -> list[Rival]:
    """All networks that the scale trains."""
    blocks = {name: getattr(scale[RivalsScale], name) for name in SYSTEMS}
    return [each for name, block in blocks.items() if block for each in SYSTEMS[name](config, scale, block)]
