"""The trained networks that come with the package, as a paper of its own: trained, measured and tabled by the DAG."""

from neuroute.papers.zoo.declare import runs
from neuroute.papers.zoo.scale import ZooScale
from neuroute.plan.paper import Paper

PAPER = Paper(
    key="zoo",
    title="Networks that come with neuroute",
    scale=ZooScale,
    runs=runs,
)
