"""Rows against an earlier commit: a row's CPU time is that of so many GFLOP of this machine's own matrix product.

    python bench/ratios.py          keeps what it measures as the baseline, for `bench.py rows` to compare with

One thread, fp32.  Rows and products take turns, so that what else runs hits both; a share of time that is lost to
memory is not the same on every machine, so a baseline is of this kind of CPU.
"""

import json
import subprocess
from pathlib import Path
from statistics import median

import torch
from rows import CPU, ROWS, seconds_of

from neuroute.core import device as devices

BASELINE = Path(__file__).with_name("baseline.json")
SIZE = 1024  # of the matrices
ROUNDS = 3
LONG = 2.0  # seconds of a row that is run once
LEFT_OUT = "training LEHD TSP100, batch 256"  # four times the time of batch 64, for the same
SLOWER = 1.15  # times the baseline, from which on a row is marked: ratios on a busy machine range over 10 %


def gflop_of(row: str) -> float:
    """GFLOP of matrix products in whose time the row runs: the median of a few turns."""
    run, factor = ROWS[row]("fp32"), torch.randn(SIZE, SIZE)
    warming_up, _ = seconds_of(run)
    ratios = []
    for _ in range(ROUNDS if warming_up < LONG else 1):
        product = median(seconds_of(lambda: factor @ factor)[0] for _ in range(5))
        ratios.append(seconds_of(run)[0] / product)
    return 2e-9 * SIZE**3 * median(ratios)


def measure() -> dict[str, float]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {row: gflop_of(row) for row in ROWS if row != LEFT_OUT}
    finally:
        torch.set_num_threads(threads)


def bench_rows(device: torch.device, cores: int, compiled: bool) -> None:
    kept = json.loads(BASELINE.read_text())
    print(f"Rows against {kept['commit']}, measured on {kept['machine']}; on another kind of CPU this says little\n")
    print("| row, fp32, one thread | GFLOP of products in its time | then | now over then |\n|---|---|---|---|")
    for row, now in measure().items():
        then = kept["gflop"].get(row)
        ratio = "new" if then is None else f"{now / then:.2f}{' SLOWER' if now > SLOWER * then else ''}"
        print(f"| {row} | {now:.1f} | {'' if then is None else f'{then:.1f}'} | {ratio} |", flush=True)


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
    kept = {"commit": commit.stdout.strip(), "machine": devices.name(CPU)}
    gflop = {row: round(each, 2) for row, each in measure().items()}
    BASELINE.write_text(json.dumps(kept | {"gflop": gflop}, indent=1) + "\n")


if __name__ == "__main__":
    main()
