"""A fabricated work folder for the figures of paper `mvmoe`: tiny networks that were never trained, and made-up logs.

`write_routings(work)` measures two MVMoEs with random weights, whose gates are no longer zero; `write_logs(work)` is of
what trainings leave.  `study(name, work)` looks at it as one artifact does.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from untrained import ready

from fabricated import CONFIG, measure
from fabricated_mvmoe import FABRIC, SCALE, changed
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.paper import PAPER, MvmoeScale, RoutingEvaluation
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.objects import Dataset, Network, Reinforced, Run

N, COUNT, STEPS = 14, 3, 20
SHAPE = {"depth": 3, "width": 16, "heads": 4, "feed_forward": 24, "experts": 4, "top": 2}
BASE, LIGHT = (mvmoe.run_id(mvmoe.multi(SCALE, method, 50)) for method in ("MVMoE/4E", "MVMoE/4E-L"))
HIERARCHY = {BASE: "none", LIGHT: "step"}
ABLATIONS = ["h_4eL", "h_mtl", "h_soft", "h_enc_all", "h_8e", "h_enc_ec"]  # trained here besides the default
LogLaw = Callable[[Run, str, float], float]  # (run, variant, share of the training) -> gap in %


def lengthened(training: Reinforced, epochs: int) -> Reinforced:
    """More epochs, each with a validation."""
    stages = tuple(s.model_copy(update={"epochs": epochs, "validations": epochs}) for s in training.stages)
    return training.model_copy(update={"stages": stages})


MVMOE = SCALE[MvmoeScale]
TRAININGS = {size: lengthened(training, 12) for size, training in MVMOE.trainings.items()}
FIGURES: Scale = changed(trainings=TRAININGS, few_shot=lengthened(MVMOE.few_shot, 6), ablations=ABLATIONS)


def falling(run: Run, variant: str, share: float) -> float:
    """Unseen problems are harder; with OVRPTW in the training, problems with open routes and windows end lower."""
    last = 4.0 if variant in mvmoe.TRAINED else 8.0
    last += 3.0 if run.name == mvmoe.WITHOUT_OVRPTW and "O" in variant[:1] and "TW" in variant else 0.0
    return last + sum(map(ord, run.name + variant)) % 7 / 10 + 60 * (1 - share) ** 4


def runs() -> list[Run]:
    """Those of the scale, the two that are looked at closely with the shape that is measured here."""
    return [_shaped(run) if run.id in HIERARCHY else run for run in PAPER.runs(CONFIG, FIGURES)]


def run_of(run_id: str) -> Run:
    return next(run for run in runs() if run.id == run_id)


def _shaped(run: Run) -> Run:
    arguments = {**SHAPE, "hierarchy": HIERARCHY[run.id]}
    return run.model_copy(update={"network": Network(kind=run.network.kind, arguments=arguments), "n": N})


def small(run: Run) -> Any:
    """A network with random weights, gates among them."""
    net = ready(run.network, 5)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if "gate" in name:
                parameter.normal_(0, 0.3)
    return net


def write_routings(work: Path) -> Path:
    datasets = tuple(Dataset(problem="vrp", variant=v, split="val", n=N, count=COUNT) for v in mvmoe.VARIANTS)
    for run in runs():
        if run.id in HIERARCHY:
            measure(RoutingEvaluation(run=run.id, datasets=datasets, steps=STEPS), run, small(run), work)
    return work


def write_logs(work: Path, law: LogLaw = falling) -> Path:
    for run in runs():
        if not isinstance(run.training, Reinforced):
            continue
        folder = work / "runs" / run.id
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for batch in sorted({0, *run.training.validate_after}):
            share = batch / run.training.batches
            sets = (labels.dataset for labels in (run.validation, *run.also_validation))
            gaps = {d.id: law(run, str(d.variant), share) for d in sets}
            line = {"kind": "validation", "batch": batch, "samples": 4 * batch, "gap_pct": next(iter(gaps.values()))}
            lines.append(json.dumps(line | {"gaps_pct": gaps, "seconds": 1.0}))
        (folder / "log.jsonl").write_text("".join(f"{line}\n" for line in lines))
        summary = {"wall_time_s": seconds(run), "device_name": "a CPU", "threads": 1, "torch": "2"}
        (folder / "run.json").write_text(json.dumps(summary))
    return work


def seconds(run: Run) -> float:
    """Of a training: the light decoder takes three quarters of the default's."""
    return {mvmoe.DEFAULT: 400.0, "h_4eL": 300.0, "h_mtl": 150.0}.get(run.name, 500.0)


def fabricate(work: Path) -> Path:
    FABRIC.by(scale=FIGURES).write(work)
    return write_logs(write_routings(work))


def study(name: str, work: Path) -> Study:
    return Study.load(FABRIC.by(scale=FIGURES).artifacts[name], CONFIG, FIGURES, runs(), work)
