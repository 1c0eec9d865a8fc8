"""Rival systems of the papers' tables, trained and measured here: their common home.  No paper prints numbers of it.

`plan/systems.py` says how one is added.
"""

from neuroute.papers.rivals.scale import RivalsScale, rivals
from neuroute.papers.rivals.study import study_runs
from neuroute.plan.config import Config, Scale
from neuroute.plan.objects import Labels, Run
from neuroute.plan.paper import Paper
from neuroute.plan.systems import PAPER as KEY


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
