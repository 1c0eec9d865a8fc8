"""Paper `mvmoe`."""

from neuroute.papers.mvmoe.declare import label_jobs, runs
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.plan.paper import Paper

PAPER = Paper(
    key="mvmoe",
    title="MVMoE: Multi-Task Vehicle Routing Solver with Mixture-of-Experts",
    scale=MvmoeScale,
    runs=runs,
    label_jobs=label_jobs,
    borrows=("scaling",),
)
