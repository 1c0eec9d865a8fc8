"""A fabricated work folder of paper `icam`, at the micro scale, with two trainings of the model.

The laws are the paper's in outline: POMO falls off beyond the size of its training, less so in the three stages, ICAM
least; more starts and images help; each stage helps.
"""

from fabricated import MICRO, Fabric
from neuroute.pipeline.papers.icam.paper import PAPER
from neuroute.specs.objects import Dataset, Decoding, Run

BEYOND = {"pomo_tsp": 4.0, "pomo_cvrp": 5.0, "pomo3_tsp": 1.5, "pomo3_cvrp": 1.4}  # powers of n


def realistic(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    """Small, positive, growing with the nodes; less with more starts, images, iterations and beams."""
    start = {"abl_afm": 6.0, "abl_afm_cab": 5.0, "abl_aafm": 3.0}.get(run.name, 2.0) + sum(map(ord, run.id)) % 7 / 10
    gap = start * (dataset.n / 8) ** BEYOND.get(run.name.partition("-s")[0], 1.0)
    gap *= 0.6 if decoding.starts == "all" else 1.0
    return float(gap * (0.8 if decoding.augment else 1.0) * (1 + decoding.iterations) ** -0.3 / decoding.beam)


SOLVERS = {"insertion": 12.0, "insertion-published": 55.0, "nearest": 25.0, "lkh": 0.01}  # gaps in %
SEEDS = {"icam/icam_tsp": 2}
FABRIC = Fabric(PAPER, MICRO.model_copy(update={"seeds": SEEDS}), realistic, solvers=SOLVERS, logged=("icam",))
SCALE, ARTIFACTS, study = FABRIC.scale, FABRIC.artifacts, FABRIC.study
