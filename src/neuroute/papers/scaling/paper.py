"""Paper `scaling`."""

from neuroute.papers.scaling.artifacts import artifacts
from neuroute.papers.scaling.declare import bundles, evaluations, runs
from neuroute.papers.scaling.roles import reference
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.paper import Paper

PAPER = Paper(
    key="scaling",
    title="Efficient Decoder Scaling Strategy for Neural Routing Solvers",
    scale=ScalingScale,
    runs=runs,
    label_jobs=bundles,
    old_evaluations=evaluations,
    old_artifacts=artifacts,
    headline=True,
    test_set=reference,
)
