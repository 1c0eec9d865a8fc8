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
from neuroute.papers.rivals.study import problems_of, study_runs
from neuroute.papers.rivals.study import tests as study_tests
from neuroute.papers.rivals.systems import rivals
from neuroute.plan.config import Config, Scale
from neuroute.plan.label_blocks import longest, read_by
from neuroute.plan.objects import LabelJob, Run
from neuroute.plan.paper import Paper


def runs(config: Config, scale: Scale) -> list[Run]:
    return [*(each.run for each in rivals(config, scale)), *study_runs(config, scale)]


def label_jobs(scale: Scale, runs: list[Run]) -> list[LabelJob]:
    """One for what trainings read, one for tests and what nearest neighbour makes of them."""
    tests = [each.test for each in rivals(Config(), scale)]
    tests += [labels.model_copy(update={"solver": "nearest"}) for labels in tests]
    if (s := scale[RivalsScale].study) is not None:
        tests += [labels for problem in problems_of(s) for labels in study_tests(s, problem).values()]
    jobs = {"trainings": read_by(runs), "tests": tests}
    return [LabelJob(paper=KEY, name=name, labels=tuple(longest(labels))) for name, labels in jobs.items() if labels]


PAPER = Paper(
    key=KEY,
    title="Rival systems of the papers' tables",
    scale=RivalsScale,
    runs=runs,
    label_jobs=label_jobs,
    optional=True,
)
