"""A fabricated work folder for the figures of paper `icam`: the structure of tiny networks that were never trained.

`fabricate(work)` measures ICAM and POMO with random weights and alphas that differ; tours by insertion stand for
optimal ones.  `study(name, work)` looks at it as one artifact does.
"""

from pathlib import Path
from typing import Any

import torch
import untrained

from fabricated import CONFIG, measure
from fabricated_icam import ARTIFACTS, SCALE
from neuroute.datasets.labels import make_labels
from neuroute.pipeline.papers.icam import paper as icam
from neuroute.pipeline.papers.icam.paper import StructureEvaluation
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.objects import Dataset, Labels, Network, Run

N, DECISION = 30, 9
SIZES = {20: 12, 60: 6}  # nodes of labelled instances -> how many
OPTIMAL = tuple(Labels(dataset=Dataset(split="test", n=n, count=c), solver="insertion") for n, c in SIZES.items())
ICAM, POMO = (icam.run_id(names["tsp"]) for names in (icam.OWN, icam.ORIGINAL))
SHAPE = {"depth": 3, "width": 16, "feed_forward": 24}


def run_of(run: str, **arguments: Any) -> Run:
    kind, own = ("icam:Icam", {}) if run == ICAM else ("pomo:Pomo", {"heads": 4})
    network = Network(kind=f"neuroute.networks.{kind}", arguments={**SHAPE, **own, **arguments})
    return untrained.run_of(network, OPTIMAL[0], run).model_copy(update={"n": N})


RUNS = {run: run_of(run) for run in (ICAM, POMO)}


def small(run: Run) -> Any:
    """A network with random weights; ICAM's alphas are others than the first ones."""
    net = untrained.ready(run.network, 3)
    with torch.no_grad():
        for i, (name, parameter) in enumerate(net.named_parameters()):
            if name.endswith("alpha"):
                parameter.fill_(0.5 + 0.07 * (i % 9))
    return net


def fabricate(work: Path) -> Path:
    for labels in OPTIMAL:
        make_labels(labels, work / "labels", [], workers=1)
    for run_id, run in RUNS.items():
        dataset, optimal = Dataset(split="val", n=N, count=1), OPTIMAL if run_id == ICAM else ()
        evaluation = StructureEvaluation(run=run_id, dataset=dataset, decision=DECISION, optimal=optimal)
        measure(evaluation, run, small(run), work)
    return work


def study(name: str, work: Path) -> Study:
    return Study.load(ARTIFACTS[name], CONFIG, SCALE, RUNS.values(), work)
