"""Bench of MVMoE: what experts cost, in whole roll-outs of 8 instances from 50 starts.

On a CPU all of it runs on one thread and is timed in CPU seconds, as `pens.py` does; ratios are of pairs in turn.
"""

from functools import partial
from typing import Any

import torch
from pens import in_turn, paired_ratio
from torch import nn

from neuroute.datasets.streams import vrp_dataset
from neuroute.decoding.multi_start import multi_start
from neuroute.decoding.vrp import VRP
from neuroute.networks.mvmoe import MvMoe
from neuroute.specs.objects import Dataset

INSTANCES, CUSTOMERS, ROUNDS = 8, 50, 5


def bench_mvmoe(device: torch.device, cores: int, compiled: bool) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    nets: dict[str, Any] = {
        "POMO-MTL": MvMoe(experts=0),
        "MVMoE/4E": _spread(MvMoe()),
        "MVMoE/4E-L": _spread(MvMoe(hierarchy="step")),
    }
    print(f"| {INSTANCES} instances of {CUSTOMERS} from all starts, paper's shape | CVRP, s | OVRPBLTW, s | "
          "of POMO-MTL's time (range) |\n|---|---|---|---|")  # fmt: skip
    found: dict[str, dict[str, list[float]]] = {}
    for variant in ("CVRP", "OVRPBLTW"):
        batch = vrp_dataset(Dataset(problem="vrp", variant=variant, n=CUSTOMERS, count=INSTANCES))
        ways = {name: partial(multi_start, VRP, net.to(device).eval(), batch) for name, net in nets.items()}
        for way in ways.values():
            way()
        found[variant] = in_turn(ways, ROUNDS, device)
    both = {name: [a + b for a, b in zip(*(of[name] for of in found.values()), strict=True)] for name in nets}
    for name in nets:
        seconds = [f"{sorted(of[name])[ROUNDS // 2]:.2f}" for of in found.values()]
        print(f"| {name} | {' | '.join(seconds)} | {paired_ratio(both[name], both['POMO-MTL'])} |", flush=True)
    torch.set_num_threads(threads)


def _spread(net: MvMoe) -> MvMoe:
    """Gates begin at zero, where all scores are alike; trained ones spread the nodes."""
    for name, parameter in net.named_parameters():
        if "gate" in name:
            nn.init.normal_(parameter, std=0.3)
    return net
