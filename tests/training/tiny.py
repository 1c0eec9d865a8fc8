"""Runs that are small enough for a test, their labels, and how they are trained."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from neuroute.datasets.labels import make_labels
from neuroute.networks.weights import build
from neuroute.pipeline.papers.rivals.paper import rivals
from neuroute.pipeline.plan.config import Config, load_scale
from neuroute.problems.registry import PARTS
from neuroute.specs.objects import Dataset, Labels, Network, Reinforced, Run, SelfImprovement, Supervised
from neuroute.training.batches import Batches, Scheme, World
from neuroute.training.train import DECISION, Settings, train
from neuroute_systems.dgl.system import BeamPool

N = 10
CPU = torch.device("cpu")


def labels(split: str, count: int) -> Labels:
    return Labels(dataset=Dataset(split=split, n=N, count=count), solver="concorde")  # type: ignore[arg-type]


def cvrp_labels(split: str, count: int) -> Labels:
    return Labels(dataset=Dataset(problem="cvrp", split=split, n=N, count=count), solver="hgs-short")  # type: ignore[arg-type]


def label_store(folder: Path, *wanted: Labels) -> Path:
    for each in wanted:
        make_labels(each, folder, [], workers=1)
    return folder


def run_of(
    name: str, kind: str, arguments: dict[str, Any], training: Any, validation: Labels, like: type = Run, **more: Any
) -> Any:
    """A run "paper/name" of a network of this package, or of a system."""
    paper, _, short = name.partition("/")
    dotted = kind if kind.startswith("neuroute_systems.") else f"neuroute.{kind}"
    network, n = Network(kind=dotted, arguments=arguments), validation.dataset.n
    fields = {"paper": paper, "name": short, "network": network, "training": training, "n": n, "data": ()} | more
    return like(validation=validation, **fields)


def make_run(**training: object) -> Run:
    arguments = {"depth": 2, "width": 16, "heads": 2, "gate": True, "rezero": True, "train_nodes": N}
    settings = {"samples": 120, "batch_size": 32, "learning_rate": 2e-3, "validations": 3} | training
    how, data = Supervised.model_validate(settings), (labels("train", 120),)
    return run_of("scaling/tiny", "networks.decoder_only:DecoderOnly", arguments, how, labels("val", 16), data=data)


def pens_run(positions: str = "alibi", initial: str = "gaussian", **training: object) -> Run:
    arguments = {"depth": 2, "width": 32, "heads": 4, "feed_forward": 64, "train_nodes": N}
    arguments |= {"positions": positions, "initial": initial}
    settings = {"samples": 120, "batch_size": 32, "learning_rate": 2e-3, "final_learning_rate": 2e-4, "validations": 3}
    how = Supervised.model_validate({"sub_paths": "pairs", "step": "decision"} | settings | training)
    sets = {"data": (labels("train", 120),), "also_validation": (labels("val", 8),)}
    name = f"pens/tiny_{positions}_{initial}"
    return run_of(name, "networks.pens:Pens", arguments, how, labels("val", 16), **sets)


def cvrp_run(kind: str = "LehdCvrp", **training: object) -> Run:
    settings = {"samples": 96, "batch_size": 32, "learning_rate": 2e-3, "weight_decay": 0.0, "validations": 2}
    arguments = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 32, "train_nodes": N}
    how, data = Supervised.model_validate(settings | training), (cvrp_labels("train", 96),)
    return run_of("scaling/tiny_cvrp", f"networks.lehd:{kind}", arguments, how, cvrp_labels("val", 16), data=data)


def self_improving(problem: str = "tsp", **training: object) -> Run:
    settings = {"epochs": 3, "instances": 40, "beam": 4, "rounds": 2, "batch_size": 16, "learning_rate": 2e-3}
    settings |= {"passes": 2, "validations": 3, "step": "sub-path"}
    spec = SelfImprovement.model_validate(settings | training)
    like = make_run() if problem == "tsp" else cvrp_run()
    return like.model_copy(update={"training": spec, "data": ()})


def every_training() -> set[tuple[str, str]]:
    """(problem, scheme) of all that there are, those of systems as smoke trains them."""
    runs = [each.run for each in rivals(Config(), load_scale("smoke"))]
    own = {(run.validation.dataset.problem, run.training.scheme) for run in runs if ":" in run.training.scheme}
    return own | {
        (problem, part)
        for problem, parts in PARTS.items()
        for part, entry in parts.items()
        if entry.startswith("neuroute.training.") and part != "decision"  # which is what some of them train
    }


def scheme_of(run: Run, net: Any = None, folder: Path | None = None, *, double: bool = False, **more: Any) -> Scheme:
    """What a run is trained from: a network of its seed, no labels, nothing that asks to stop."""
    torch.manual_seed(run.seed)
    net = build(run.network) if net is None else net
    net = net.double() if double else net
    reinforced = isinstance(run.training, BeamPool | Reinforced)
    settings: dict[str, Any] = {
        "model": net if reinforced else DECISION.of(run.validation.dataset.problem)(net),
        "label_dirs": [],
        "best": net.state_dict,
        "stopping": lambda: False,
        "state_dir": folder or Path(tempfile.mkdtemp()),
        "device": CPU,
        "world": World(),
        "memory_gb": 4.0,
    }
    return Scheme(run=run, net=net, **(settings | more))


def pooled(**training: object) -> Run:
    """DGL on a pool that is renewed within four loops."""
    settings = {"pool": 8, "epochs": 2, "loops": 3, "renewed": 2, "beam": 2, "starts": 3, "learning_rate": 2e-3}
    spec = BeamPool.model_validate(settings | {"decay_every": 1, "validations": 2} | training)
    arguments = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 24, "nearest": 5, "train_nodes": N}
    network = Network(kind="neuroute_systems.dgl.network:Dgl", arguments=arguments)
    return make_run().model_copy(update={"network": network, "training": spec, "data": ()})


def run_training(run: Run, folder: Path, store: Path, start: Path | None = None, moments: Path | None = None) -> Path:
    """As the training stage does it, in one thread; where the results are."""
    settings, more = Settings("cpu", threads=1), {"start": start, "moments": moments}
    train(run, folder / "out", folder / "state", [store], settings, code="c", network_code="n", **more)
    return folder / "out"


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tiny import Run, run_training
from neuroute.training import loop
loop.SAVE_EVERY_S = loop.SHARE = 0.0
run_training(Run.model_validate_json(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
"""


def killed_training(run: Run, folder: Path, store: Path, least: int = 1) -> int:
    """Trains in a process of its own, which is killed once so many batches are kept; how many are."""
    state = folder / "state" / "state.pt"
    arguments = [str(Path(__file__).parent), run.model_dump_json(), str(folder), str(store)]
    process = subprocess.Popen([sys.executable, "-c", KILLED, *arguments], start_new_session=True)
    while not state.exists() or torch.load(state, weights_only=True)["done"] < least:
        assert process.poll() is None, "the training ended before it could be killed"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done: int = torch.load(state, weights_only=True)["done"]
    return done


def log_lines(out: Path, kind: str) -> list[dict]:
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


# -- weights, and validations that give chosen gaps, whatever weights are worth on this CPU ----------------------------

Weights = dict[str, torch.Tensor]


def copy_weights(net: torch.nn.Module) -> Weights:
    return {name: value.clone() for name, value in net.state_dict().items()}


def same_weights(a: Weights, b: Weights) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def set_gaps(monkeypatch: pytest.MonkeyPatch, gaps: Sequence[float]) -> list[Weights]:
    """Let the validations of each training give `gaps` in turn.  Returns a list that gets the weights at each."""
    weights: list[Weights] = []

    def validation(batches: Batches) -> Callable[[], dict[str, float]]:
        following = iter(gaps)

        def validate() -> dict[str, float]:
            weights.append(copy_weights(batches.scheme.net))
            return {batches.run.validation.dataset.id: next(following)}

        return validate

    monkeypatch.setattr("neuroute.training.train._validation", validation)
    return weights
