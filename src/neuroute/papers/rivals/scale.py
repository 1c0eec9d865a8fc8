"""The sizes of the rival systems: a block each, which a scale may leave out."""

from typing import TYPE_CHECKING, Any

from pydantic import create_model

from neuroute.papers.rivals.dgl import DglScale
from neuroute.papers.rivals.elg import ElgBlock
from neuroute.papers.rivals.glop import GlopBlock
from neuroute.papers.rivals.invit import InvitScale
from neuroute.papers.rivals.mdam import MdamBlock
from neuroute.papers.rivals.study_block import StudyBlock
from neuroute.plan.specs import Spec
from neuroute.plan.systems import SYSTEMS, parts

if TYPE_CHECKING:

    class _Systems(Spec): ...
else:
    # What is said of a system that is not there is not read.
    _BLOCKS = dict.fromkeys(SYSTEMS, Any) | {name: system.block for name, system in parts("system", "SYSTEM")}
    _Systems = create_model("Systems", __base__=Spec, **{name: (kind | None, None) for name, kind in _BLOCKS.items()})


class RivalsScale(_Systems):
    """What rival systems of the papers' tables are trained and tested on; one that is left out is not trained."""

    glop: GlopBlock | None = None
    study: StudyBlock | None = None
    elg: ElgBlock | None = None
    dgl: DglScale | None = None
    invit: InvitScale | None = None
    mdam: MdamBlock | None = None
