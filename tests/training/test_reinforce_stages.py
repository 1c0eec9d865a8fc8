"""Stages of REINFORCE: resuming, one by one as together, and by several processes as by one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from neuroute.core.errors import NeurouteError
from neuroute.networks.weights import build, load_checkpoint, save_checkpoint
from neuroute.plan.objects import Run
from neuroute.plan.reinforced import Elite
from neuroute.training.loop import TrainingLoop
from neuroute.training.reinforce import Reinforcement
from neuroute.training.stages import beside, export_stages, recall_moments
from reinforcing import Alone, close, gradients, same, to_the_end
from tiny_reinforced import STAGES, batches_of, make_run, stage

pytestmark = pytest.mark.usefixtures("one_thread")


def go(
    run: Run, folder: Path, kill_at: int | None = None, start: Path | None = None
) -> tuple[Reinforcement, TrainingLoop]:
    batches = batches_of(run, folder)
    if start is not None:
        batches.net.load_state_dict(load_checkpoint(start)[0].state_dict())
        batches = Reinforcement(batches.scheme, start)
    return batches, to_the_end(batches, run, folder, kill_at)


def test_a_killed_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    """Stopped inside each stage and at their ends (batches 2 and 6 are the last of theirs)."""
    run = make_run(*STAGES, weight_decay=1e-6, clip=1.0)
    whole, loop = go(run, tmp_path / "whole")
    notes = [line for line in map(json.loads, loop.lines) if line["kind"] == "stage"]
    assert [(note["stage"], note["batch"]) for note in notes] == [("warm", 0), ("varying", 3), ("elite", 7)]
    assert [json.loads(line)["batch"] for line in loop.lines if '"validation"' in line] == [0, 3, 7, 10]
    for kill_at in (1, 2, 4, 6, 8):
        folder = tmp_path / str(kill_at)
        with pytest.raises(NeurouteError, match=f"at batch {kill_at + 1} of 10"):
            go(run, folder, kill_at)
        resumed, again = go(run, folder)
        assert same(resumed.net, whole.net)
        assert again.done == 10
        losses = [[json.loads(x)["loss"] for x in each.lines if '"train"' in x] for each in (loop, again)]
        assert losses[0] == losses[1]


def exported(run: Run, batches: Reinforcement, folder: Path, out: Path) -> None:
    """As the training stage leaves a run."""
    about = {"run": run.id, "network": run.network.model_dump(), "code": "c"}
    save_checkpoint(out / "model.safetensors", batches.net, about)
    export_stages(batches.training, folder, out, build(run.network), about)


def test_stages_as_runs_of_their_own_are_one_run(tmp_path: Path) -> None:
    """Weights at the end of each stage, moments and draws carry over: the fork of a stage is that stage."""
    run = make_run(*STAGES)
    whole, _ = go(run, tmp_path / "whole")
    out = tmp_path / "out"
    exported(run, whole, tmp_path / "whole", out)
    assert {path.name for path in out.iterdir()} == {
        f"{name}{end}" for name in ("warm", "varying", "model") for end in (".safetensors", ".moments.safetensors")
    }
    start = None
    for number, (each, name) in enumerate(zip(STAGES, ("warm", "varying", "model"), strict=True)):
        part = make_run(each, batches_before=run.training.ends[number - 1] if number else 0)
        alone, _ = go(part, tmp_path / name, start=start)
        assert same(alone.net, load_checkpoint(out / f"{name}.safetensors")[0])
        start = out / f"{name}.safetensors"
    fork = make_run(STAGES[2].model_copy(update={"elite": Elite(k=5, beta=0.9)}), batches_before=7)
    other, _ = go(fork, tmp_path / "fork", start=out / "varying.safetensors")
    assert not same(other.net, whole.net)


def test_moments_of_other_parameters_are_refused_and_none_are_no_fault(tmp_path: Path) -> None:
    run = make_run(STAGES[0])
    batches, _ = go(run, tmp_path / "state")
    exported(run, batches, tmp_path / "state", tmp_path)
    wider = batches_of(make_run(depth=2), tmp_path)
    recall_moments(
        tmp_path / "model.safetensors", wider.net, wider.optimizer
    )  # two of its parameters' layers have none
    assert len(wider.optimizer.state) == len(list(batches.net.parameters()))
    other = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(other.parameters())
    with pytest.raises(NeurouteError, match="does not fit this network"):
        recall_moments(tmp_path / "model.safetensors", other, optimizer)
    beside(tmp_path / "model.safetensors").unlink()
    recall_moments(tmp_path / "model.safetensors", other, optimizer)
    assert not optimizer.state


# -- several processes ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("rounded_lengths")
@pytest.mark.parametrize("size", [2, 3, 8])
def test_processes_share_a_batch(tmp_path: Path, size: int) -> None:
    """Also more processes than the batch has instances."""
    run = make_run(stage(elite=Elite(k=2)))
    loss, whole = gradients(batches_of(run, tmp_path, double=True))
    ranks = [gradients(batches_of(run, tmp_path, double=True, world=Alone(rank, size))) for rank in range(size)]
    assert sum(value for value, _ in ranks) / size == pytest.approx(loss, rel=1e-11)
    close({name: sum(found[name] for _, found in ranks) for name in whole}, whole, 1e-12)  # type: ignore[misc]


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from tiny_reinforced import STAGES, batches_of, make_run
from neuroute.training.distributed import join
torch.set_num_threads(1)
folder = Path(sys.argv[2])
with join(torch.device("cpu")) as world:
    batches = batches_of(make_run(*STAGES), folder, double=True, world=world)
    for index in range(10):
        batches.train(index)
    torch.save(batches.net.state_dict(), folder / f"{world.rank}.pt")
"""


def test_two_processes_equal_one(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = [str(script), str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run([*launch, *arguments], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    alone = batches_of(make_run(*STAGES), tmp_path / "alone", double=True)
    for index in range(10):
        alone.train(index)
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    for name, value in alone.net.state_dict().items():
        assert torch.equal(first[name], second[name])
        torch.testing.assert_close(first[name], value, rtol=1e-8, atol=1e-8)
