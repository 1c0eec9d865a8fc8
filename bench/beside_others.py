"""What `solve` and `train` give while other work holds the cores: `python bench/beside_others.py [CALLS] [LOOPS]`.

Busy loops run beside each call.  Printed: the worst gap of a network's search on berlin52, how often each solver of a
VRPTW of ten customers gives an answer of its own, and samples a second of a training with threads chosen and fixed.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BERLIN = Path(__file__).parents[1] / "src/neuroute/datasets/instances/tsplib/berlin52.tsp"
SECONDS, ROUTES_SECONDS = 10, 5
MOST_GAP = 2.5  # %
SOLVERS = ("ortools", "pyvrp", "lkh3")
TRAINING = """
import sys, time, neuroute
shape = {"depth": 2, "width": 128}
threads = int(sys.argv[1]) or None
batches = int(sys.argv[3])
began = []
class Follow(neuroute.Callback):
    def after_batch(self, progress):
        began.append(time.perf_counter())
model = neuroute.train("neuroute.networks.pomo:Pomo", n=20, arguments=shape, batches=batches, validate_on=4,
                       threads=threads, work=sys.argv[2], name=f"t{threads}", callbacks=[Follow()])
print(64 * (batches - 1) / (began[-1] - began[0]))
"""


@contextmanager
def busy(loops: int) -> Iterator[None]:
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def solve_berlin(calls: int) -> None:
    gaps = []
    for _ in range(calls):
        command = [sys.executable, "-m", "neuroute", "solve", str(BERLIN), "--seconds", str(SECONDS)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        gaps.append(float(said.partition("gap ")[2].split()[0]))
    within = sum(gap <= MOST_GAP for gap in gaps)
    told = f"{within} of {calls} within {MOST_GAP} % | worst {max(gaps):.2f} %"
    print(f"| network, berlin52, {SECONDS} s | {told} |", flush=True)


def solve_routes(calls: int) -> None:
    code = (
        "import sys, neuroute\n"
        f"answer = neuroute.solve(neuroute.generate('vrptw', 10, 1)[0], sys.argv[1], seconds={ROUTES_SECONDS})\n"
        "print(bool(answer.fallback), answer.cost)"
    )
    for solver in SOLVERS:
        command = [sys.executable, "-c", code, solver]
        rows = [subprocess.run(command, capture_output=True, text=True) for _ in range(calls)]
        words = [row.stdout.split() for row in rows]
        own = sum(row[:1] == ["False"] for row in words)
        costs = sorted({row[1] for row in words if len(row) > 1})
        told = f"{own} of {calls} its own | lengths {chr(44).join(costs)}"
        print(f"| {solver}, VRPTW of 10, {ROUTES_SECONDS} s | {told} |", flush=True)


def train() -> None:
    rates = {}
    for threads, batches in ((0, 30), (1, 30), (2, 4)):
        with tempfile.TemporaryDirectory() as work:
            command = [sys.executable, "-c", TRAINING, str(threads), work, str(batches)]
            said = subprocess.run(command, capture_output=True, text=True, check=True)
            rates[threads] = float(said.stdout.split()[-1])
    best = max(rates[1], rates[2])
    print(
        f"| training, TSP20, two layers | {rates[0]:.0f} samples/s by default, {rates[1]:.0f} in 1 thread, "
        f"{rates[2]:.0f} in 2 | {rates[0] / best:.2f} of the best |"
    )


if __name__ == "__main__":
    calls, loops = (int(text) for text in [*sys.argv[1:], *("10", "4")[len(sys.argv) - 1 :]])
    with busy(loops):
        train()
        solve_berlin(calls)
        solve_routes(calls)
