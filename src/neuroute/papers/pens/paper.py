"""Paper `pens`."""

from neuroute.papers.pens.declare import bundles, runs
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.paper import Paper

PAPER = Paper(
    key="pens",
    title="Solving the Traveling Salesman Problem with Positional Encoding",
    scale=PensScale,
    runs=runs,
    label_jobs=bundles,
    group="uniform",
    borrows=("scaling",),
)
