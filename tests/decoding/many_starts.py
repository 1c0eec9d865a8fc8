"""Networks of many starts with tiny instances, a vehicle by definitions, and a network that sees all of a VRP."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neuroute.datasets.problem_spec import SPEC
from neuroute.datasets.streams import cvrp_dataset, vrp_dataset
from neuroute.decoding.environment import ENVIRONMENT, Batch, Environment
from neuroute.decoding.multi_start import multi_start
from neuroute.networks.base import MultiStartNetwork
from neuroute.networks.blocks.routing import Routing
from neuroute.networks.icam import Icam, IcamCvrp
from neuroute.networks.pomo import Pomo, PomoCvrp
from neuroute.problems import cvrp, tsp, vrp
from neuroute.problems.vrp import Vrp, valid
from neuroute.specs.objects import Dataset

N = 11
EPS = 1e-5
CPU = torch.device("cpu")
NETWORKS: dict[str, tuple[str, type, dict[str, Any]]] = {
    "pomo": ("tsp", Pomo, {"heads": 2}),
    "icam": ("tsp", Icam, {}),
    "pomo_cvrp": ("cvrp", PomoCvrp, {"heads": 2}),
    "icam_cvrp": ("cvrp", IcamCvrp, {}),
}


@dataclass(frozen=True)
class Case:
    problem: str
    net: Any
    variant: str | None = None  # of a VRP

    @property
    def environment(self) -> Environment[Any]:
        return ENVIRONMENT.of(self.problem)

    def instances(self, count: int = 4, n: int = N) -> Any:
        """In double precision, but for the VRPs."""
        if self.problem == "tsp":
            return np.random.default_rng(5).random((count, n, 2))
        dataset = Dataset(problem=self.problem, variant=self.variant, n=n, count=count, capacity=20)  # type: ignore[arg-type]
        if self.problem == "vrp":
            return vrp_dataset(dataset)
        one = cvrp_dataset(dataset)
        return Vrp(one.coords.astype(np.float64), one.demand, one.capacity)

    def batch(self, instances: Any) -> Batch:
        return self.environment.batch(instances, CPU)

    def prepare(self, batch: Batch) -> Any:
        return self.environment.prepare(self.net, batch, 0)

    def solve(self, instances: Any, starts: int | None = None, **how: Any) -> Tensor:
        return multi_start(self.environment, self.net, instances, starts, **how)

    def lengths(self, instances: Any, solutions: Tensor) -> np.ndarray:
        return SPEC.of(self.problem).lengths(instances, solutions.numpy())

    def valid(self, instances: Any, solutions: Tensor) -> bool:
        if self.problem == "vrp":
            return bool(valid(instances, solutions.numpy(), "in order").all())
        return bool(SPEC.of(self.problem).valid(instances, solutions.numpy()).all())

    def same(self, one: Tensor, other: Tensor) -> bool:
        """Whether solutions are the same, however they are written down.

        Two starts of one tour are equally long, but for rounding, which decides between them.
        """
        form = {"tsp": tsp.canonical, "cvrp": cvrp.canonical, "vrp": vrp.canonical}[self.problem]
        return np.array_equal(form(one.numpy()), form(other.numpy()))


def case_of(name: str) -> Case:
    """Of a network's name, or of a VRP's variant."""
    if name not in NETWORKS:
        return Case("vrp", Taste(), name)
    problem, kind, shape = NETWORKS[name]
    torch.manual_seed(0)
    return Case(problem, kind(depth=1, width=16, feed_forward=24, **shape).double().eval())


class Vehicle:
    """One solution that is being built: after each move what is known and what is open, one condition at a time."""

    def __init__(self, batch: Vrp, row: int) -> None:
        self.on, self.row, self.batch = batch.switches, row, batch
        self.coords = batch.coords[row].astype(float)
        self.demand, self.capacity = batch.demand[row].tolist(), int(batch.capacity[row])
        self.waiting, self.at = set(range(1, batch.customers + 1)), 0
        self.load, self.time, self.length = self.filled(), 0.0, 0.0

    def filled(self) -> int:
        return 0 if self.on.backhaul and all(self.demand[c] <= 0 for c in self.waiting) else self.capacity

    def way(self, a: int, b: int) -> float:
        return float(np.linalg.norm(self.coords[a] - self.coords[b]))

    def window(self, node: int) -> tuple[float, float, float]:
        return *self.batch.windows[self.row, node].astype(float).tolist(), float(self.batch.service[self.row, node])

    def move(self, to: int) -> None:
        if to == 0:
            self.load, self.time, self.length = self.filled(), 0.0, 0.0
        else:
            way = self.way(self.at, to)
            self.load, self.length = self.load - self.demand[to], self.length + way
            if self.on.windows:
                opens, _, service = self.window(to)
                self.time = max(self.time + way, opens) + service
            self.waiting.discard(to)
        self.at = to

    def context(self) -> list[float]:
        return [self.load / self.capacity, self.time, self.length, float(self.on.open)]

    def may_go(self, to: int) -> bool:
        if to == 0:
            if self.at == 0:
                return not self.waiting
        elif to not in self.waiting:
            return False
        load = self.load / self.capacity
        if load + EPS < self.demand[to] / self.capacity:
            return False
        if self.on.backhaul and to and load - self.demand[to] / self.capacity > 1 + EPS:
            return False
        way, home = self.way(self.at, to), self.way(to, 0)
        if self.on.limit:
            limit = float(self.batch.limit[self.row]) + EPS
            if self.on.open:
                if to and self.length + way > limit:
                    return False
            elif self.length + way + home > limit:
                return False
        if self.on.windows:
            opens, closes, service = self.window(to)
            begins = max(self.time + way, opens)
            if (to or not self.on.open) and begins > closes + EPS:
                return False
            if not self.on.open and begins + service + home > self.window(0)[1] + EPS:
                return False
        return True


class Prepared(NamedTuple):
    nodes: Tensor
    routing: Routing


class Taste(MultiStartNetwork):
    """A network of a few lines that sees what networks for VRPs see, and every number of it matters."""

    problem, width = "vrp", 4

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.of_nodes, self.of_context = torch.nn.Linear(5, 8), torch.nn.Linear(12, 8)
        self.double()

    def encode(self, coords: Tensor, demand: Tensor, windows: Tensor) -> Tensor:
        return self.of_nodes(torch.cat([coords, demand[..., None], windows], dim=-1).double()).tanh()

    def prepare(self, encoded: Tensor) -> Prepared:
        return Prepared(encoded, Routing())

    def decide(self, prepared: Any, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        here = prepared.nodes[torch.arange(len(current))[:, None], current]
        query = self.of_context(torch.cat([here, context], dim=-1)).tanh()
        return 5 * query @ prepared.nodes.transpose(1, 2) + mask


class AnyLogits:
    """A network without an opinion, which fails where nothing is open; `choose` sees only what is masked."""

    nodes = torch.zeros(1, 1, 1)
    decide_best = MultiStartNetwork.decide_best
    sees_served = False

    def decide(self, prepared: Any, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        assert (mask == 0).any(-1).all()
        assert ((mask == 0) | (mask == -torch.inf)).all()
        share = context[..., 0] if context.dim() > mask.dim() - 1 else context
        assert ((share >= 0) & (share <= 1)).all()
        return torch.randn_like(mask) + mask
