"""Bench beside what pip installs: rl4co's POMO, trained and decoded, and solvers at equal time on public instances.

rl4co comes with the extra `bench`: `pip install --constraint constraints.txt -e '.[bench]'`.  One thread and CPU time:
what is compared takes turns.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from statistics import median
from typing import Any

import torch
from rows import ALL, reinforced, seconds_of, spread
from torch import nn

from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.decode import decode
from neuroute.networks.pomo import Pomo, PomoCvrp
from neuroute.specs.objects import Dataset

SHAPES = (("tsp", 20, 64), ("tsp", 50, 16), ("cvrp", 50, 16))  # problem, nodes or customers, instances at a time
TURNS = 5
SECONDS = 5  # of a search
SIZES = ("--min-nodes", "101", "--max-nodes", "125")  # five CVRPs and four TSPs that the package has
SOLVERS = {"x": "cvrp,pyvrp,hgs,savings", "tsplib": "tsp,lkh,savings"}


def of_rl4co(problem: str, n: int, batch: int, network: str = "POMO") -> tuple[Callable[[], Any], Callable[[], Any]]:
    """An update of a network of rl4co, POMO or MVMoE_POMO, and the greedy decoding from all starts."""
    from rl4co.envs import CVRPEnv, MTVRPEnv, TSPEnv
    from rl4co.models import zoo

    torch.set_num_threads(1)  # the import takes all of them
    torch.manual_seed(0)
    kind = {"tsp": TSPEnv, "cvrp": CVRPEnv, "vrp": MTVRPEnv}[problem]
    env = kind(generator_params={"num_loc": n} | ({"variant_preset": "cvrp"} if problem == "vrp" else {}))
    model = getattr(zoo, network)(env)  # six layers of width 128, as ours
    optimizer = torch.optim.Adam(model.policy.parameters(), lr=1e-4)
    instances = env.generator([batch])

    def update() -> None:
        model.train()
        model.shared_step(env.generator([batch]), 0, "train")["loss"].backward()
        nn.utils.clip_grad_norm_(model.policy.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    @torch.inference_mode()
    def build() -> None:
        model.eval()
        model.policy(env.reset(instances.clone()), env, phase="test", decode_type="multistart_greedy", num_starts=n)

    return update, build


def of_neuroute(problem: str, n: int, batch: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    kind, name = (Pomo, "pomo:Pomo") if problem == "tsp" else (PomoCvrp, "pomo:PomoCvrp")
    drawn: Any = torch.rand(batch, n, 2)
    instances = drawn if problem == "tsp" else cvrp_dataset(Dataset(problem="cvrp", n=n, count=batch))
    build = partial(decode, problem, spread(kind()), instances, ALL)
    return reinforced(kind, name, problem, n, batch)("fp32"), build


def bench_peers(device: torch.device, cores: int, compiled: bool) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        bench_rl4co()
    except ImportError:
        print("rl4co is not here: pip install --constraint constraints.txt -e '.[bench]'")
    torch.set_num_threads(threads)
    for library, methods in SOLVERS.items():
        print(f"\n{library}, {SECONDS} CPU seconds for each search:\n", flush=True)
        how = ("--set", library, "--method", methods, "--clock", "cpu", "--seconds", str(SECONDS), *SIZES)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "neuroute", "compare", *how, "--out", folder], check=True)


def bench_rl4co() -> None:
    print(f"| POMO, one thread, fp32 | rl4co {version('rl4co')}, CPU s | neuroute, CPU s | times as fast |")
    print("|---|--:|--:|--:|")
    for problem, n, batch in SHAPES:
        works = ("an update", "greedy, all starts"), of_rl4co(problem, n, batch), of_neuroute(problem, n, batch)
        for work, theirs, ours in zip(*works, strict=True):
            for run in (theirs, ours):  # warm up
                run()
            turns = [(seconds_of(theirs)[0], seconds_of(ours)[0]) for _ in range(TURNS)]
            ratio = median(a / b for a, b in turns)
            print(
                f"| {work}, {problem.upper()}{n}, {batch} instances | {median(a for a, _ in turns):.3f} "
                f"| {median(b for _, b in turns):.3f} | {ratio:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    bench_rl4co()
