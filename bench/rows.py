"""The rows that speed is judged by: decodings and trainings in the papers' shapes, each small enough to repeat.

A row is a name and a function that makes it ready; the result runs once and returns what it found.  As a program it
runs rows on demand for `pair.py`, which may be that of another checkout: a line in is a row's name and precision, a
line out its CPU seconds, MiB resident at its peak, and a digest of what it found.
"""

import hashlib
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from neuroute.core import device as devices
from neuroute.datasets.streams import cvrp_dataset, vrp_dataset
from neuroute.decoding.decode import decode
from neuroute.decoding.memory import inference
from neuroute.decoding.tsp import rebuild
from neuroute.networks.bq import Bq
from neuroute.networks.icam import Icam, IcamCvrp
from neuroute.networks.lehd import Lehd
from neuroute.networks.mvmoe import MvMoe
from neuroute.networks.pomo import Pomo
from neuroute.networks.sit import Sit
from neuroute.specs.objects import Dataset, Decoding, Labels, Network, Reinforced, Run, Stage, Supervised
from neuroute.training.batches import Scheme, World
from neuroute.training.reinforce import reinforce
from neuroute.training.reinforce_vrp import reinforce as reinforce_vrp
from neuroute.training.supervised import PathDecision, SupervisedBatches

Ready = Callable[[str], Callable[[], Tensor]]  # precision -> what is run
CPU = torch.device("cpu")
ALL = Decoding(starts="all")


def spread(net: nn.Module) -> nn.Module:
    """Weights of a training's kind: what starts at zero, and hides branches or makes all experts alike, does not."""
    torch.manual_seed(0)
    for name, parameter in net.named_parameters():
        if "alpha" in name:
            parameter.data.fill_(0.1)
        elif "gate" in name:
            nn.init.normal_(parameter, std=0.3)
    return net.eval()


def decoded(
    net: Callable[[], nn.Module], problem: str, n: int, instances: Callable[[], Any], decoding: Decoding
) -> Ready:
    def ready(precision: str) -> Callable[[], Tensor]:
        torch.manual_seed(0)
        own, given = spread(net()), instances()
        return partial(decode, problem, own, given, decoding, precision=precision)

    return ready


def greedy(net: Callable[[], nn.Module], nodes: int, count: int) -> Ready:
    return decoded(net, "tsp", nodes, lambda: torch.rand(count, nodes, 2), Decoding(batch_size=count))


def first_decisions(nodes: int, count: int, kind: Callable[[], Sit] = Sit) -> Ready:
    """SIT's, at sizes along the way: a whole construction takes minutes."""

    def ready(precision: str) -> Callable[[], Tensor]:
        torch.manual_seed(0)
        net, rows = spread(kind()), torch.rand(count, nodes + 1, 2)

        def run() -> Tensor:
            with inference(CPU, precision):
                sizes = np.linspace(nodes + 1, 10, 8).astype(int)
                return torch.cat([net.decide(rows[:, -size:]).argmax(dim=1) for size in sizes])

        return run

    return ready


def blocks(length: int, count: int, kind: Callable[[], Sit] = Sit, nodes: int = 1000) -> Ready:
    """One iteration of SIT's parallel re-construction."""

    def ready(precision: str) -> Callable[[], Tensor]:
        torch.manual_seed(0)
        net, coords = spread(kind()), torch.rand(count, nodes, 2)
        tours = torch.stack([torch.randperm(nodes) for _ in range(count)])

        def run() -> Tensor:
            with inference(CPU, precision):
                return rebuild(net.decide, net.encode, coords, tours, length, 8192 // length)

        return run

    return ready


def run_of(network: str, n: int, training: Any, validation: Labels) -> Run:
    return Run(
        paper="scaling",
        name="bench",
        network=Network(kind=f"neuroute.networks.{network}", arguments={}),
        n=n,
        data=(),
        training=training,
        validation=validation,
    )


def scheme_of(run: Run, net: nn.Module, model: nn.Module, folder: str) -> Scheme:
    return Scheme(run, net, model, [], net.state_dict, lambda: False, Path(folder), CPU, World(), 4.0)  # type: ignore[arg-type]


def trained_on_labels(net: Callable[[], nn.Module], batch: int, n: int = 100) -> Ready:
    """Every tenth decision of a sub-path: forward, backward, update."""

    class Stored:
        def batch(self, epoch: int, start: int, size: int) -> tuple[np.ndarray, ...]:
            draw = np.random.default_rng(0)
            tours = np.stack([draw.permutation(n) for _ in range(size)])
            return draw.random((size, n, 2), dtype=np.float32), tours

    class Tenth(SupervisedBatches):
        def _rows(self, path: Any) -> range:
            return super()._rows(path)[::10]

    def ready(precision: str) -> Callable[[], Tensor]:
        own = spread(net()).train()
        training = Supervised(samples=batch, batch_size=batch, learning_rate=1e-4, precision=precision)  # type: ignore[arg-type]
        labels = Labels(dataset=Dataset(split="val", n=n, count=1), solver="lkh")
        run = run_of("lehd:Lehd", n, training, labels)
        batches = Tenth(scheme_of(run, own, PathDecision(own), tempfile.mkdtemp()), Stored())  # type: ignore[arg-type]
        return lambda: batches.train(0)[0]

    return ready


def reinforced(net: Callable[[], nn.Module], kind: str, problem: str, n: int, batch: int) -> Ready:
    def ready(precision: str) -> Callable[[], Tensor]:
        more: dict[str, Any] = {"variants": ("CVRP",)} if problem == "vrp" else {}
        stage = Stage(name="one", epochs=1, batches_per_epoch=1, sizes=(n, n), batch_size=batch, **more)
        of = Dataset(problem=problem, split="val", n=n, count=1, **({"variant": "CVRP"} if more else {}))  # type: ignore[arg-type]
        labels = Labels(dataset=of, solver="nearest" if more else "lkh")
        torch.manual_seed(0)
        own = spread(net()).train()
        begin = {name: weight.clone() for name, weight in own.state_dict().items()}
        run = run_of(kind, n, Reinforced(stages=(stage,), precision=precision), labels)  # type: ignore[arg-type]
        make = reinforce_vrp if more else reinforce
        batches = make(scheme_of(run, own, own, tempfile.mkdtemp()))

        def update() -> Tensor:
            own.load_state_dict(begin)  # how many experts run, and how many moves there are, hangs on the weights
            return batches.train(0)[0]

        return update

    return ready


def variants_of(variant: str, n: int = 50) -> Callable[[], Any]:
    return lambda: vrp_dataset(Dataset(problem="vrp", variant=variant, n=n, count=8))


MIXTURES: dict[str, Callable[[], nn.Module]] = {
    "POMO-MTL": partial(MvMoe, experts=0),
    "4E": MvMoe,
    "4E-L": partial(MvMoe, hierarchy="step"),
}
ROWS: dict[str, Ready] = {
    "greedy LEHD TSP100, 16 at once": greedy(Lehd, 100, 16),
    "greedy LEHD TSP200, 8 at once": greedy(Lehd, 200, 8),
    "greedy LEHD TSP500, one at a time": greedy(Lehd, 500, 1),
    "greedy BQ TSP100, 16 at once": greedy(Bq, 100, 16),
    "greedy BQ TSP200, 4 at once": greedy(Bq, 200, 4),
    "decisions of SIT TSP1000, 4 at once": first_decisions(1000, 4),
    "PRC of SIT TSP1000, blocks of 10, 4 at once": blocks(10, 4),
    "PRC of SIT TSP1000, blocks of 50, 4 at once": blocks(50, 4),
    "PRC of SIT TSP1000, blocks of 200, 1 at once": blocks(200, 1),
    "starts ICAM TSP100, 8 at once": decoded(Icam, "tsp", 100, lambda: torch.rand(8, 100, 2), ALL),
    "starts ICAM CVRP100, 8 at once": decoded(
        IcamCvrp, "cvrp", 100, lambda: cvrp_dataset(Dataset(problem="cvrp", n=100, count=8)), ALL
    ),
    "starts POMO TSP100, 8 at once": decoded(Pomo, "tsp", 100, lambda: torch.rand(8, 100, 2), ALL),
    **{
        f"starts {name} {variant}50, 8 at once": decoded(net, "vrp", 50, variants_of(variant), ALL)
        for name, net in MIXTURES.items()
        for variant in ("CVRP", "OVRPBLTW")
    },
    "training LEHD TSP100, batch 64": trained_on_labels(Lehd, 64),
    "training LEHD TSP100, batch 256": trained_on_labels(Lehd, 256),
    "training ICAM TSP100, batch 16": reinforced(Icam, "icam:Icam", "tsp", 100, 16),
    "training POMO TSP100, batch 16": reinforced(Pomo, "pomo:Pomo", "tsp", 100, 16),
    **{
        f"training {name} CVRP50, batch 16": reinforced(net, "mvmoe:MvMoe", "vrp", 50, 16)
        for name, net in MIXTURES.items()
    },
}


def seconds_of(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = run()
    return time.process_time() - began, found


def main() -> None:
    torch.set_num_threads(1)
    ready: dict[tuple[str, str], Callable[[], Tensor]] = {}
    for line in sys.stdin:
        name, precision = line.rstrip("\n").split("\t")
        if (name, precision) not in ready:
            ready[name, precision] = ROWS[name](precision)
            ready[name, precision]()  # warms up
        devices.reset_peak_memory(CPU)
        seconds, found = seconds_of(ready[name, precision])
        digest = hashlib.sha256(found.float().numpy().tobytes()).hexdigest()[:12]
        print(seconds, devices.peak_memory_mb(CPU), digest, sep="\t", flush=True)


if __name__ == "__main__":
    main()
