"""The sizes of the rival systems: a block each, which a scale may leave out."""

from typing import TYPE_CHECKING

from pydantic import create_model

from neuroute.papers.rivals.study_block import StudyBlock
from neuroute.plan.specs import Spec
from neuroute.plan.systems import block_fields

if TYPE_CHECKING:

    class _Systems(Spec): ...
else:
    _Systems = create_model("Systems", __base__=Spec, **block_fields(lambda system: system.block))


class RivalsScale(_Systems):
    """What rival systems of the papers' tables are trained and tested on; one that is left out is not trained."""

    study: StudyBlock | None = None
