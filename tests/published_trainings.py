"""Trainings as they were published, which scales and tables are compared with."""

from collections.abc import Sequence

from neuroute.specs.data import Problem
from neuroute.specs.trainings import Elite, Reinforced, Stage
from neuroute_systems.glop.system import Phase


def three_stages(problem: Problem) -> Reinforced:
    """As published (icam, Section 4 and Table 5); elites are of stage 3, whose rate is a tenth."""
    tsp = problem == "tsp"

    def stage(number: int, epochs: int, rate: float = 1e-4, elite: Elite | None = None) -> Stage:
        varying = number > 1
        return Stage(
            name=f"stage{number}",
            epochs=epochs,
            sizes=(100, 500 if varying else 100),
            batch_size=(160 if varying else 256) if tsp else 128,
            batch_nodes=100 if varying else None,
            capacities=None if tsp else (50, 100 if varying else 50),
            learning_rate=rate,
            elite=elite,
        )

    stages = (stage(1, 100), stage(2, 2200 if tsp else 700), stage(3, 200, 1e-5, Elite()))
    return Reinforced(stages=stages, clip=None if tsp else 5.0)


def single_size(problem: Problem) -> Reinforced:
    """POMO on instances of 100 nodes, as in its published code (NEW_py_ver), where an epoch ends with a smaller batch.

    100,000 instances an epoch for the TSP, 10,000 for the CVRP; the TSP's rate falls at the start of epoch 3001.  The
    code trains the CVRP for 8,100 epochs, with drops 100 and 50 before the end, and evaluates epoch 30,500: so long
    here, with drops as far from its end.
    """
    tsp = problem == "tsp"
    stage = Stage(
        name="single",
        epochs=3100 if tsp else 30_500,
        batches_per_epoch=1563 if tsp else 157,
        sizes=(100, 100),
        batch_size=64,
        drops=(3000,) if tsp else (30_400, 30_450),
    )
    return Reinforced(stages=(stage,), weight_decay=1e-6)


def published_phases(blocks: Sequence[int]) -> tuple[Phase, ...]:
    """Stage 1 of each reviser, then stage 2 of each from the largest on, as published."""
    drawn = [Phase(block=block, epochs=200, samples=1_280_000) for block in blocks]
    revised = [
        Phase(block=block, source="revised", epochs=300, samples=1_000_000, decay=0.99)
        for block in sorted(blocks, reverse=True)
    ]
    return (*drawn, *revised)
