"""Bench of ICAM and POMO: roll-outs from all starts, what an attention-free module keeps, and a batch of training.

On a CPU all of it runs on one thread and is timed in CPU seconds, as `pens.py` does.
"""

import multiprocessing
import resource
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pens import seconds_of
from sit import matmul_rate_on_one_thread
from torch import Tensor, nn

from neuroute.decoding.environment import complete
from neuroute.decoding.tsp import TspRollout
from neuroute.evaluation.efficiency import measure_memory
from neuroute.evaluation.flops import counts
from neuroute.networks.blocks.attention import pairwise_distances
from neuroute.networks.blocks.layers import AafmLayer
from neuroute.networks.icam import Icam
from neuroute.networks.pomo import Pomo
from neuroute.specs.objects import Dataset, Labels, Network, Reinforced, Run, Stage
from neuroute.training.batches import Scheme, World
from neuroute.training.reinforce import reinforce

INSTANCES, NODES, WIDTH, FEED_FORWARD = 32, 100, 128, 512
LARGE, FEW = 500, 6  # of the last batches that ICAM is trained on
KINDS: dict[str, type[nn.Module]] = {"ICAM": Icam, "POMO": Pomo}


def bench_icam(device: torch.device, cores: int, compiled: bool) -> None:
    matmul = matmul_rate_on_one_thread(device)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    print(f"matrix product: {matmul / 1e12:.3f} TFLOP/s; copying: {_copied(device) / 1e9:.1f} GB/s\n")
    print(f"| TSP{NODES}, {INSTANCES} at once, all starts | encoder, what decisions share, s | TFLOP/s | of a matrix "
          "product | decisions, s | TFLOP/s | GB/s at least |\n|---|---|---|---|---|---|---|")  # fmt: skip
    with torch.inference_mode():
        for name in KINDS:
            _roll_out(name, device, matmul)
    print()
    with torch.no_grad():
        _memory(device)
    torch.set_num_threads(threads)
    print()
    for name in KINDS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, peak = pool.apply(measure_training, (name, str(device)))
        print(f"a batch of {name}'s training, {FEW} x TSP{LARGE}, all starts: {seconds:.1f} s, {peak:.2f} GiB resident "
              "at the peak", flush=True)  # fmt: skip


def _roll_out(name: str, device: torch.device, matmul: float) -> None:
    torch.manual_seed(0)
    net: Any = KINDS[name]().to(device).eval()
    coords = torch.rand(INSTANCES, NODES, 2, device=device)
    starts = torch.arange(NODES, device=device).expand(INSTANCES, -1)

    def encode() -> Any:
        return net.prepare(net.encode(coords))

    prepared = encode()
    encoded = min(seconds_of(encode, device) for _ in range(5))
    decided = min(seconds_of(partial(_decide, net, prepared, starts), device) for _ in range(3))
    count = counts(Network(kind=f"{type(net).__module__}:{type(net).__name__}", arguments={}))
    layers, scores = (12, 1) if name == "ICAM" else (6, 8)
    flop = count.encoder(NODES) - layers * (scores * NODES**2 + FEED_FORWARD * NODES)  # of matrix products alone
    rate = INSTANCES * flop / encoded
    each = count.decision(NODES + 1)
    decisions = INSTANCES * NODES * (NODES - 2)
    # What is closed is read and logits are written; ICAM also reads the distances from where each tour is.
    moved = decisions * NODES * 4 * (3 if name == "ICAM" else 2)
    print(f"| {name} | {encoded:.3f} | {rate / 1e12:.3f} | {rate / matmul:.0%} | {decided:.3f} | "
          f"{decisions * each / decided / 1e12:.3f} | {moved / decided / 1e9:.1f} |", flush=True)  # fmt: skip


def _decide(net: Any, prepared: Any, starts: Tensor) -> Tensor:
    return complete(net, prepared, TspRollout(starts, NODES, prepared.nodes.dtype))


def _memory(device: torch.device) -> None:
    """Numbers that one layer holds at its peak, per n d + n n."""
    print("| one AAFM layer, one instance | MiB at the peak | floats per (n d + n n) |\n|---|---|---|")
    layer = AafmLayer(WIDTH, FEED_FORWARD).to(device).eval()
    for n in (250, 500, 1000, 2000, 4000):
        x, coords = torch.rand(1, n, WIDTH, device=device), torch.rand(1, n, 2, device=device)
        apart = pairwise_distances(coords, coords)
        _, peak, _ = measure_memory(lambda x=x, apart=apart: layer(x, apart, 10.0), device)
        print(f"| n = {n:,} | {peak / 2**20:.1f} | {peak / 4 / (n * WIDTH + n * n):.2f} |", flush=True)


def measure_training(name: str, place: str) -> tuple[float, float]:
    """(seconds, GiB resident at the peak) of one batch, in a process of its own."""
    torch.set_num_threads(1)
    device = torch.device(place)
    kind = f"{KINDS[name].__module__}:{KINDS[name].__name__}"
    stage = Stage(name="large", epochs=1, batches_per_epoch=1, sizes=(LARGE, LARGE), batch_size=FEW)
    validation = Labels(dataset=Dataset(split="val", n=LARGE, count=1), solver="lkh")
    run = Run(paper="icam", name="bench", network=Network(kind=kind, arguments={}), n=LARGE, data=(),
              training=Reinforced(stages=(stage,)), validation=validation)  # fmt: skip
    net = KINDS[name]().to(device)
    with tempfile.TemporaryDirectory() as folder:
        scheme = Scheme(run, net, net, [], net.state_dict, lambda: False, Path(folder), device, World(), 4.0)
        batches = reinforce(scheme)
        seconds = seconds_of(lambda: batches.train(0), device)
    if device.type == "cuda":
        return seconds, torch.cuda.max_memory_allocated() / 2**30
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _copied(device: torch.device) -> float:
    """Bytes a second that are read and written by copying 64 MiB."""
    a = torch.rand(1 << 24, device=device)
    b = torch.empty_like(a)
    return 8 * a.numel() / min(seconds_of(lambda: b.copy_(a), device) for _ in range(5))
