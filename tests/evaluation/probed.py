"""A tiny run with random weights, and what a probe measures of it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuroute.evaluation.driver import evaluate
from neuroute.evaluation.loaded import RunContext
from neuroute.networks.weights import build, save_checkpoint
from neuroute.plan.objects import Labels, Network, Run, Supervised

CONTEXT = RunContext(scale="test", code="c", network_code="n", device="cpu", threads=1)
Arrays = dict[str, np.ndarray]


def tiny_run(paper: str, kind: str, labels: Labels, **arguments: Any) -> Run:
    """`labels` are not read; their size is the run's."""
    return Run(
        paper=paper,
        name="tiny",
        network=Network(kind=f"neuroute.networks.{kind}", arguments=arguments),
        training=Supervised(samples=1),
        n=labels.dataset.n,
        data=(labels,),
        validation=labels,
    )


def random_network(run: Run, seed: int) -> Any:
    torch.manual_seed(seed)
    return build(run.network).eval()


def probe_arrays(evaluation: Any, run: Run, net: Any, folder: Path, context: RunContext = CONTEXT) -> Arrays:
    """What an evaluation keeps of a run with these weights; records are in <folder>/<group>.csv."""
    save_checkpoint(folder / "m", net, {"run": run.id, "network": run.network.model_dump(), "code": "n"})
    out = folder / f"{evaluation.group}.csv"
    evaluate(evaluation, run, folder / "m", out, context)
    with np.load(out.with_suffix(".npz"), allow_pickle=False) as file:
        return dict(file)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x.astype(float) - x.max(axis=axis, keepdims=True))
    return np.asarray(e / e.sum(axis=axis, keepdims=True))
