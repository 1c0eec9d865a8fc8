"""Paper `icam`."""

from neuroute.papers.icam.artifacts import artifacts
from neuroute.papers.icam.declare import bundles, runs
from neuroute.papers.icam.measurements import evaluations
from neuroute.papers.icam.scale import IcamScale
from neuroute.plan.paper import Paper

PAPER = Paper(
    key="icam",
    title="Instance-Conditioned Adaptation for Large-scale Generalization of Neural Combinatorial Optimization",
    scale=IcamScale,
    runs=runs,
    label_jobs=bundles,
    old_evaluations=evaluations,
    old_artifacts=artifacts,
    borrows=("scaling", "sit"),
)
