"""Paper `icam`."""

from neuroute.papers.icam.declare import label_jobs, runs
from neuroute.papers.icam.scale import IcamScale
from neuroute.plan.paper import Paper

PAPER = Paper(
    key="icam",
    title="Instance-Conditioned Adaptation for Large-scale Generalization of Neural Combinatorial Optimization",
    scale=IcamScale,
    runs=runs,
    label_jobs=label_jobs,
    borrows=("scaling", "sit"),
)
