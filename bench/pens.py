"""Bench of PENS: attention that knows places, what caching saves, and the memory of the largest instance.

On a CPU all of it runs on one thread, as jobs of the DAG do, and is timed in CPU seconds: other work on the machine
hardly shows.  What is compared is measured in turn; a ratio is the median of the pairs'.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial

import torch
import torch.nn.functional as F

from neuroute.core import device as devices
from neuroute.decoding.decode import decode
from neuroute.decoding.greedy import closed_tour_rows
from neuroute.decoding.memory import pair_floats
from neuroute.networks.blocks.attention import attend, axial_frequencies, axial_rotation, rotate
from neuroute.networks.pens import Pens
from neuroute.specs.objects import Decoding

TOKENS, HEADS, HEAD_WIDTH = 1000, 12, 16  # the published shape's attention on TSP-1000
TOURS, FIRST_DECISIONS = (200, 500), (1000, 2000)
LARGEST, DECISIONS = 10_000, 1


def bench_pens(device: torch.device, cores: int, compiled: bool) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    _attention(device)
    print()
    _cached(device)
    print()
    _largest(device)
    torch.set_num_threads(threads)


def seconds_of(run: Callable[[], object], device: torch.device) -> float:
    devices.synchronize(device)
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    began = clock()
    run()
    devices.synchronize(device)
    return clock() - began


def in_turn(ways: Mapping[str, Callable[[], object]], rounds: int, device: torch.device) -> dict[str, list[float]]:
    """Seconds of each way in each round; every other round runs backwards, so that none always goes first."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            found[name].append(seconds_of(ways[name], device))
    return found


def paired_ratio(a: list[float], b: list[float]) -> str:
    """Median and range."""
    ratios = sorted(x / y for x, y in zip(a, b, strict=True))
    return f"{ratios[len(ratios) // 2]:.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"


@torch.inference_mode()
def _attention(device: torch.device) -> None:
    """One layer's attention.  Bias and rotations are made once per decision, or tour, for all layers: timed apart."""
    torch.manual_seed(0)
    qkv = torch.randn(1, TOKENS, 3, HEADS, HEAD_WIDTH, device=device)
    q, k, v = qkv.permute(2, 0, 3, 1, 4)  # laid out as a layer has them
    net = Pens(1, HEADS * HEAD_WIDTH, HEADS, 16).to(device)
    coords, frequencies = torch.rand(1, TOKENS, 2, device=device), axial_frequencies(HEAD_WIDTH)
    scale = HEAD_WIDTH**-0.5
    bias, rotation = net.pairs(coords), axial_rotation(coords, frequencies)
    assert bias is not None
    kept = F.pad(bias, (1, 0, 1, 0))[:, :, 1:, 1:]  # a corner, as in decoding after its first step

    def turned(bias: torch.Tensor | None) -> torch.Tensor:
        return attend(rotate(q, rotation), rotate(k, rotation), v, scale, bias)

    ways: dict[str, Callable[[], object]] = {
        "plain": partial(attend, q, k, v, scale),
        "ALiBi's bias": partial(attend, q, k, v, scale, bias),
        "ALiBi's bias, a corner of what is kept": partial(attend, q, k, v, scale, kept),
        "axial RoPE": partial(turned, None),
        "both": partial(turned, kept),
        "once: distances and biases": partial(net.pairs, coords),
        "once: rotations": partial(axial_rotation, coords, frequencies),
    }
    in_turn(ways, 3, device)
    found = in_turn(ways, 21, device)
    print(f"| attention, n = {TOKENS}, {HEADS} heads of {HEAD_WIDTH} | ms | of plain: median (range) |")
    print("|---|---|---|")
    for name, seconds in found.items():
        print(f"| {name} | {1e3 * min(seconds):.2f} | {paired_ratio(seconds, found['plain'])} |", flush=True)


def _cached(device: torch.device) -> None:
    """The published shape, untrained: as many operations as after training."""
    print("| greedy, 9 layers of width 192 | n | cached, s | computed anew, s | speed-up: median (range) |")
    print("|---|---|---|---|---|")
    for positions in ("alibi", "both"):
        torch.manual_seed(0)
        net = Pens(positions=positions).to(device).eval()  # type: ignore[arg-type]
        decode("tsp", net, torch.rand(1, 20, 2), Decoding())
        for nodes in TOURS:
            coords = torch.rand(1, nodes, 2)
            decodings = {name: Decoding(cached=name == "cached") for name in ("cached", "anew")}
            found = in_turn({name: partial(decode, "tsp", net, coords, d) for name, d in decodings.items()}, 4, device)
            print(_comparison(f"{positions}, a tour", nodes, found), flush=True)
        for nodes in FIRST_DECISIONS:
            with torch.inference_mode():
                rows = net.encode(torch.rand(1, nodes, 2, device=device))
                ways = {
                    "cached": partial(net.decide, rows, pairs=net.pairs(rows, pair_floats(4.0))),
                    "anew": partial(net.decide, rows),
                }
                found = in_turn(ways, 4, device)
            print(_comparison(f"{positions}, its first decision", nodes, found), flush=True)


def _comparison(what: str, nodes: int, found: Mapping[str, list[float]]) -> str:
    cached, anew = found["cached"], found["anew"]
    return f"| {what} | {nodes} | {min(cached):.2f} | {min(anew):.2f} | {paired_ratio(anew, cached)} |"


def _largest(device: torch.device) -> None:
    """In a process of its own: what came before would count."""
    done = subprocess.run([sys.executable, __file__, device.type], check=True, capture_output=True, text=True)
    print(f"| n = {LARGEST}, 9 layers of width 192 | s a decision | peak of the process, GiB | below 4 GiB |")
    print("|---|---|---|---|")
    for line in done.stdout.splitlines():
        what, seconds, memory = line.split(";")
        gib = float(memory) / 1024
        print(f"| {what} | {float(seconds):.1f} | {gib:.2f} | {'yes' if gib < 4 else 'NO'} |")


@torch.inference_mode()
def measure_largest(device: torch.device) -> None:
    """The first decisions of greedy decoding, as `decode` makes them with its default of 4 GB; CPU: resident size."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    coords = torch.rand(1, LARGEST, 2, device=device)
    for positions, cached in (("alibi", True), ("alibi", False), ("both", True)):
        net = Pens(positions=positions).to(device).eval()  # type: ignore[arg-type]
        devices.reset_peak_memory(device)
        rows = closed_tour_rows(net.encode(coords))
        pairs = net.pairs(rows, pair_floats(4.0)) if cached else None
        seconds = []
        for step in range(DECISIONS):
            seen = rows[:, step:], 1.0, None if pairs is None else pairs[:, :, step:, step:]
            seconds.append(seconds_of(partial(net.decide, *seen), device))
        what = f"{positions}{'' if cached else ', nothing kept'}"
        print(f"{what};{min(seconds)};{devices.peak_memory_mb(device)}", flush=True)


if __name__ == "__main__":
    measure_largest(torch.device(sys.argv[1]))
