"""Paper `mvmoe`."""

from neuroute.papers.mvmoe.declare import bundles, runs
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.plan.paper import Paper

PAPER = Paper(
    key="mvmoe",
    title="MVMoE: Multi-Task Vehicle Routing Solver with Mixture-of-Experts",
    scale=MvmoeScale,
    runs=runs,
    label_jobs=bundles,
    borrows=("scaling",),
)
