"""Paper `pens`."""

from neuroute.papers.pens.declare import label_jobs, runs
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.paper import Paper

PAPER = Paper(
    key="pens",
    title="Solving the Traveling Salesman Problem with Positional Encoding",
    scale=PensScale,
    runs=runs,
    label_jobs=label_jobs,
    group="uniform",
    borrows=("scaling",),
)
