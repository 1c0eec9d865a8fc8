"""Paper `pens`."""

from neuroute.papers.pens.artifacts import artifacts
from neuroute.papers.pens.declare import bundles, evaluations, runs
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.papers import Paper

PAPER = Paper(
    key="pens",
    title="Solving the Traveling Salesman Problem with Positional Encoding",
    scale=PensScale,
    runs=runs,
    label_jobs=bundles,
    evaluations=evaluations,
    artifacts=artifacts,
    borrows=("scaling",),
)
