"""Paper `scaling`."""

from neuroute.papers.scaling.declare import label_jobs, on_demand, runs
from neuroute.papers.scaling.roles import group, reference
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.paper import Paper

PAPER = Paper(
    key="scaling",
    title="Efficient Decoder Scaling Strategy for Neural Routing Solvers",
    scale=ScalingScale,
    runs=runs,
    label_jobs=label_jobs,
    group=group,
    on_demand=on_demand,
    headline=True,
    test_set=reference,
)
