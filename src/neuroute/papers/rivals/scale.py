"""The sizes of the rival systems: a block each, which a scale may leave out."""

from neuroute.papers.rivals.dgl import DglScale
from neuroute.papers.rivals.elg import ElgBlock
from neuroute.papers.rivals.glop import GlopBlock
from neuroute.papers.rivals.invit import InvitScale
from neuroute.papers.rivals.mdam import MdamBlock
from neuroute.papers.rivals.pointerformer import PointerformerScale
from neuroute.papers.rivals.study_block import StudyBlock
from neuroute.plan.specs import Spec


class RivalsScale(Spec):
    """What rival systems of the papers' tables are trained and tested on; one that is left out is not trained."""

    glop: GlopBlock | None = None
    study: StudyBlock | None = None
    elg: ElgBlock | None = None
    dgl: DglScale | None = None
    invit: InvitScale | None = None
    pointerformer: PointerformerScale | None = None
    mdam: MdamBlock | None = None
