"""Bench of the rival systems: CPU seconds in the published shapes, with random weights, on one thread."""

import time
from functools import partial

import torch

from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.decode import decode
from neuroute.networks.base import RoutingNetwork
from neuroute.specs.objects import Dataset, Decoding, Problem
from neuroute_systems.dgl.network import Dgl
from neuroute_systems.elg.network import Elg, ElgCvrp
from neuroute_systems.glop.network import Glop
from neuroute_systems.invit.network import Invit, InvitCvrp
from neuroute_systems.mdam.network import Mdam

PATHS = 100  # of GLOP at a time
HUNDRED, ALL, ONE = Decoding(starts=100), Decoding(starts="all"), Decoding()
TWO_VIEWS, THREE_VIEWS = partial(Invit, views=(35, 50)), partial(Invit, action_depth=4)
# Network, problem, nodes or customers, instances at a time, how they are decoded.
ROWS = (
    ("ELG, 100 starts", Elg, "tsp", 100, 1, HUNDRED),
    ("ELG, 100 starts, eight images", Elg, "tsp", 100, 1, Decoding(starts=100, augment=True)),
    ("ELG, 100 starts", Elg, "tsp", 200, 1, HUNDRED),
    ("ELG, 200 starts", Elg, "tsp", 200, 1, ALL),
    ("ELG, 100 starts", ElgCvrp, "cvrp", 100, 1, ALL),
    ("ELG, 200 starts", ElgCvrp, "cvrp", 200, 1, ALL),
    ("INViT-2V", TWO_VIEWS, "tsp", 100, 1, ONE),
    ("INViT-2V", TWO_VIEWS, "tsp", 1000, 1, ONE),
    ("INViT-2V, 64 images", TWO_VIEWS, "tsp", 100, 1, Decoding(images=64)),
    ("INViT-3V", THREE_VIEWS, "tsp", 100, 1, ONE),
    ("INViT-3V", THREE_VIEWS, "tsp", 1000, 1, ONE),
    ("INViT-3V, 64 images", THREE_VIEWS, "tsp", 100, 1, Decoding(images=64)),
    ("INViT-2V", partial(InvitCvrp, views=(35, 50)), "cvrp", 100, 2, ONE),
    ("DGL", Dgl, "tsp", 100, 1, ONE),
    ("DGL", Dgl, "tsp", 1000, 1, ONE),
    ("MDAM, five decoders", Mdam, "tsp", 100, 16, Decoding(method=Mdam.own_method)),
    ("MDAM, five decoders", Mdam, "tsp", 200, 16, Decoding(method=Mdam.own_method)),
)


def bench_rivals(device: torch.device, cores: int, compiled: bool) -> None:
    """One thread of the CPU, whatever the device is: as the published implementations were timed."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    print("| rivals, one thread | instance | at a time | CPU seconds for all |\n|---|---|---|---|")
    for name, kind, problem, n, count, decoding in ROWS:
        torch.manual_seed(0)
        seconds = cpu_seconds(kind().eval(), problem, n, count, decoding)
        print(f"| {name} | {problem.upper()}{n} | {count} | {seconds:.2f} |", flush=True)
    for nodes in (100, 50, 20):
        print(f"| GLOP, from either end | path of {nodes} | {PATHS} | {reviser_seconds(nodes):.2f} |", flush=True)
    torch.set_num_threads(threads)


def cpu_seconds(net: RoutingNetwork, problem: Problem, n: int, count: int, decoding: Decoding) -> float:
    """The smaller of two, after a small one that warms up."""
    seconds = []
    for nodes in (20, n, n):
        if problem == "tsp":
            instances = torch.rand(count, nodes, 2)
        else:
            instances = cvrp_dataset(Dataset(problem="cvrp", split="test", n=nodes, count=count))
        how = decoding if decoding.starts in ("all", 1) else decoding.model_copy(update={"starts": min(100, nodes)})
        began = time.process_time()
        decode(problem, net, instances, how)
        seconds.append(time.process_time() - began)
    return min(seconds[1:])


@torch.inference_mode()
def reviser_seconds(nodes: int) -> float:
    """Of GLOP's reviser: paths encoded and built from either end."""
    torch.manual_seed(0)
    net, points, seconds = Glop().eval(), torch.rand(PATHS, nodes, 2), []
    for _ in range(4):
        began = time.process_time()
        net.build(net.encode(points))
        seconds.append(time.process_time() - began)
    return min(seconds[1:])
