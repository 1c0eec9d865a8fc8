"""Rival systems of the papers' tables, trained and measured here: their common home.  No paper prints numbers of it.

To add a system:

1. `networks/<system>.py`: the network; published weights in `networks/layouts`.
2. `<system>.py` in this folder: a block class on `rival.Trained` (shape, training), and a function (config, scale,
   block) -> [Rival] that calls `rival.rival` once for each network.  Its runs are `rivals/<name>`.
3. `scale.py`: a field `<system>: <Block> | None = None`.  `systems.py`: the function, under the field's name.
4. workflow/scales: the block at smoke and laptop, the published protocol at gpu and paper; then `make schema`.
5. In the papers that print it: the ids of its runs in `roles.RIVALS`, and `runs=`, `decoding=` of the row's `Method`.

Where a scale has no block, these rows show the printed numbers, so nothing else is to be done for it.
"""

from neuroute.papers.rivals.rival import PAPER as KEY
from neuroute.papers.rivals.scale import RivalsScale
from neuroute.papers.rivals.study import study_runs
from neuroute.papers.rivals.systems import rivals
from neuroute.plan.config import Config, Scale
from neuroute.plan.objects import Labels, Run
from neuroute.plan.paper import Paper


def runs(config: Config, scale: Scale) -> list[Run]:
    return [*(each.run for each in rivals(config, scale)), *study_runs(config, scale)]


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
