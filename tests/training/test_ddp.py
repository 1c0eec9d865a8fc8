"""Two processes under torchrun learn what one does, in every kind of training."""

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook

import tiny
import tiny_reinforced
import tiny_reinforced_vrp
import tiny_rounds
import tiny_systems
from neuroute.specs.objects import Run
from neuroute.specs.trainings import Elite
from neuroute.training import self_improvement
from neuroute.training.train import Settings, train
from neuroute_systems.mdam.system import WarmBaseline
from neuroute_systems.rollouts.spec import GreedyBaseline

pytestmark = pytest.mark.slow  # two processes of thirty trainings

STILL = 1e-12  # a learning rate that leaves weights as they are, but for rounding


def runs() -> dict[str, Run]:
    """One of each kind; batches of odd sizes, so that the two have unequal parts; a clip would hide factors."""
    rounds = {"rounds": 2, "epochs_per_round": 1, "reconstructions": 2, "batch_size": 9, "samples": 24}
    rounds |= {"step": "decision", "validations": 2}
    stages = (
        tiny_reinforced.stage(batches_per_epoch=1, batch_size=5),
        tiny_reinforced.stage("varying", batches_per_epoch=1, sizes=(6, 9), batch_size=5),
        tiny_reinforced.stage("elite", batches_per_epoch=1, batch_size=5, elite=Elite(k=3)),
    )
    of_16 = tiny_reinforced_vrp.stage(batches_per_epoch=1)
    rollouts = tiny_reinforced.stage(batches_per_epoch=2, batch_size=5, starts=2, images=3)
    improving = {"epochs": 2, "instances": 20, "passes": 1, "batch_size": 9, "validations": 2}
    whole = {
        "experts": {},
        "hierarchy": {"hierarchy": "step"},
        "random hierarchy": {"hierarchy": "random", "method": "random"},
        "expert choice": {"method": "expert-choice"},
        "soft": {"method": "soft"},
        "batch norm": {"norm": "batch", "experts": 0},
        "dense": {"experts": 0},
    }
    return {
        "supervised": tiny.make_run(batch_size=31, step="decision", validations=1),
        "summed": tiny.make_run(batch_size=31, step="summed", validations=1),
        "path-tsp": tiny.pens_run("both", batch_size=31, validations=1),
        "cvrp": tiny.cvrp_run(batch_size=31, step="summed", validations=1),
        "cvrp experts": tiny.cvrp_run("LehdCvrpLight", batch_size=31, step="decision", validations=1),
        "self-improvement": tiny.self_improving(**improving),
        "self-improvement cvrp": tiny.self_improving("cvrp", **improving),
        "beam-pool": tiny.pooled(pool=7),
        "partitioning": tiny_systems.partitioning_run(batch_size=3),
        **{f"map {kind}": tiny_systems.map_run(kind, batch_size=17, validations=1) for kind in tiny_systems.MAP_KINDS},
        "map Dimes": tiny_systems.dimes_run(),
        "paths": tiny_systems.htsp_run(upper=False, clip=None),
        "decoders tsp": tiny_systems.mdam_run("tsp", stage={"batch_size": 5}, clip=None),
        "decoders cvrp": tiny_systems.mdam_run("cvrp", baseline=WarmBaseline(instances=8, warm_up=0.8), clip=None),
        **{
            f"rollouts {kind}": tiny_reinforced.make_run(rollouts, kind=kind, baseline=GreedyBaseline(instances=6))
            for kind in tiny_reinforced.ROLLOUTS
        },
        "revising": tiny_systems.revising_run(tiny_systems.phase(batch_size=7, samples=15, learning_rate=STILL)),
        "revising revised": tiny_systems.revising_run(
            tiny_systems.phase(source="revised", block=4, samples=13, nodes=9, batch_size=7),
            tiny_systems.phase(source="revised", samples=20, nodes=9),
            baseline_samples=25,
        ),
        **{f"reconstruction {p}": tiny_rounds.make_run(p, **rounds) for p in tiny_rounds.PROBLEMS},
        "reinforce tsp": tiny_reinforced.make_run(*stages, kind="icam"),
        "reinforce cvrp": tiny_reinforced.make_run(*stages, kind="pomo_cvrp"),
        "reinforce elg": tiny_reinforced.make_run(*stages, kind="elg", scaled="largest"),
        "reinforce pointerformer": tiny_reinforced.make_run(*stages, kind="pointerformer", scaled="deviation"),
        **{
            f"reinforce vrp, {name}": tiny_reinforced_vrp.make_run(of_16, network=network, balance=0.1)
            for name, network in whole.items()
        },
    }


def gradients(
    run: Run, folder: Path, stores: list[Path], threads: int = 1, *, compiles: bool = False
) -> dict[str, Tensor]:
    """What the first update of a whole training is made of, by parameter; all of them where weights stay as they are.

    (Adam makes a step of any gradient, so after an update those of parameters without one differ by rounding's signs.)
    """
    still = any(phase.learning_rate == STILL for phase in getattr(run.training, "phases", ()))
    seen: dict[str, Tensor] = {}
    updates = count()

    def note(optimizer: torch.optim.Optimizer, _args: object, _kwargs: object) -> None:
        if not isinstance(optimizer.param_groups[0]["params"][0], torch.nn.Parameter):
            return  # steps on one instance, which are no updates
        update = next(updates)
        if not update or still:
            for number, p in enumerate(optimizer.param_groups[0]["params"]):
                seen[f"{update} {number}"] = torch.zeros_like(p) if p.grad is None else p.grad.clone()

    hook = register_optimizer_step_pre_hook(note)
    self_improvement.INSTANCES_PER_PAGE = 8
    folder.mkdir(exist_ok=True)
    start = tiny_systems.revisers(folder) if run.start else None
    how = Settings("cpu", threads=threads, compile=compiles)
    try:
        train(run, folder / "out", folder / "state", stores, how, code="c", network_code="n", start=start)
    finally:
        hook.remove()
    return seen


SCRIPT = """
import contextlib, faulthandler, os, sys
from pathlib import Path
faulthandler.dump_traceback_later(900, exit=True)  # processes that wait for each other would wait for days
sys.path.insert(0, sys.argv[1])
import torch
import torch.distributed as dist
from neuroute.training import train
from neuroute.training.batches import World
from test_ddp import gradients, runs
folder, rank = Path(sys.argv[2]), int(os.environ["RANK"])
for number, (name, run) in enumerate(runs().items()):
    if number == 1:  # the first joins as trainings do, once a process; the others go on together
        dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
        train.join = lambda device: contextlib.nullcontext(World(rank, 2))
    found = gradients(run, folder / name, [Path(store) for store in sys.argv[3:]], 1 if number else 2)
    torch.save(found, folder / f"{name}.{rank}.pt")
"""


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory, stores: list[Path]) -> Path:
    """What two processes have left of all kinds."""
    folder = tmp_path_factory.mktemp("two")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = [str(script), str(Path(__file__).parent), str(folder), *map(str, stores)]
    done = subprocess.run(
        [*launch, *arguments], capture_output=True, text=True, timeout=1200, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return folder


def test_every_training_is_compared() -> None:
    compared = {(run.validation.dataset.problem, run.training.scheme) for run in runs().values()}
    assert compared == tiny.every_training()


@pytest.mark.parametrize("name", runs())
def test_two_processes_learn_what_one_does(name: str, together: Path, stores: list[Path], tmp_path: Path) -> None:
    threads = 2 if name == "supervised" else 1  # two wait for each other longer than such small networks take
    alone = gradients(runs()[name], tmp_path, stores, threads)
    found = [torch.load(together / f"{name}.{rank}.pt", weights_only=True) for rank in range(2)]
    scale = max(float(gradient.norm()) for gradient in alone.values())
    assert scale > 0
    for key, gradient in alone.items():
        assert torch.equal(found[0][key], found[1][key])
        assert float((found[0][key] - gradient).norm()) < 1e-5 * scale, key
    summaries = [json.loads((folder / "out" / "run.json").read_text()) for folder in (tmp_path, together / name)]
    assert [summary["world_size"] for summary in summaries] == [1, 2]
    assert [summary["threads"] for summary in summaries] == [threads, 1]
    for key in ("batches", "updates", "samples"):
        assert summaries[0][key] == summaries[1][key]
