"""Paper `sit`."""

from neuroute.papers.sit.declare import label_jobs, runs
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.paper import Paper

PAPER = Paper(
    key="sit",
    title="Boosting Neural Combinatorial Optimization for Large-Scale Vehicle Routing Problems",
    scale=SitScale,
    runs=runs,
    label_jobs=label_jobs,
    borrows=("scaling",),
)
