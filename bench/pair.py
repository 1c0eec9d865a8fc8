"""Compare the speed of two checkouts, row by row, in pairs of processes that take turns: what else runs hits both.

    python bench/pair.py OLD NEW [--rows greedy PRC] [--precision bf16] [--against fp32] [--rounds 7]

OLD and NEW are folders with a checkout; each runs its own `bench/rows.py`, on one thread, and is timed in CPU seconds.
A ratio is OLD's time over NEW's (above 1 NEW is faster): the median of the rounds, and their range.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from rows import ROWS


class Worker:
    """A checkout's rows in a process of its own."""

    def __init__(self, checkout: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(checkout / "bench" / "rows.py")]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)

    def run(self, row: str, precision: str) -> tuple[float, float, str]:
        """CPU seconds, MiB resident at the peak, and a digest of what was found."""
        assert self._process.stdin
        assert self._process.stdout
        print(row, precision, sep="\t", file=self._process.stdin, flush=True)
        seconds, memory, digest = self._process.stdout.readline().split()
        return float(seconds), float(memory), digest

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def compare(old: Path, new: Path, row: str, precision: str, rounds: int, against: str | None) -> str:
    """A line of the table: new processes for each row, so that the peak of memory is its own."""
    workers = [Worker(old.resolve()), Worker(new.resolve())]
    ratios, found = [], []
    for number in range(rounds):
        order = workers[:: -1 if number % 2 else 1]
        pair = {
            worker: worker.run(row, precision if worker is workers[1] else against or precision) for worker in order
        }
        found = [pair[worker] for worker in workers]
        ratios.append(found[0][0] / found[1][0])
    for worker in workers:
        worker.close()
    (_, before, one), (seconds, after, other) = found
    same = "same" if one == other else "differs"
    ratio = f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    return f"| {row} | {precision} | {seconds:.2f} | {ratio} | {same} | {before:.0f} -> {after:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rows", nargs="*", default=[""], help="rows whose names hold one of these; default: all")
    parser.add_argument("--precision", nargs="*", default=["fp32"], choices=["fp32", "bf16"])
    parser.add_argument("--against", help="OLD's precision; default: the same")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(
        "| row | precision | CPU s | old to new: median (range) | result | MiB at the peak |\n|---|---|---|---|---|---|"
    )
    for row in ROWS:
        if any(part in row for part in options.rows):
            for precision in options.precision:
                print(compare(options.old, options.new, row, precision, options.rounds, options.against), flush=True)


if __name__ == "__main__":
    main()
