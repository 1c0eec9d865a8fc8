"""Stages of REINFORCE: what they leave, one by one as together, by several processes as by one; fresh starts."""

import shutil
from pathlib import Path

import pytest
import torch
from refusals import one_line

import tiny_reinforced_vrp as vrp
from neuroute.core.errors import NeurouteError
from neuroute.networks.weights import build, load_checkpoint, pack_stages, save_checkpoint, unpacked_stages
from neuroute.specs.trainings import Elite, Reinforced
from neuroute.training.train import _weights_to_start, recall_moments
from reinforcing import Alone, close, gradients
from tiny import Weights, label_store, log_lines, run_training, same_weights
from tiny_reinforced import STAGES, batches_of, make_run, stage

pytestmark = pytest.mark.usefixtures("one_thread")


STAGE_NAMES = ("warm", "varying", "model")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, store: Path) -> Path:
    """What a training leaves, and the ends of its stages beside it."""
    out = run_training(make_run(*STAGES), tmp_path_factory.mktemp("whole"), store)
    with unpacked_stages(out / "stages.zip") as folder:
        for file in folder.glob("*.safetensors"):
            shutil.copy(file, out)
    return out


def checkpoint_in(folder: Path, name: str = "model") -> Path:
    """Of a run, or of one of its stages but the last."""
    return folder / f"{name}.safetensors"


def beside(checkpoint: Path) -> Path:
    """The moments of the same stage."""
    return checkpoint.with_suffix(".moments.safetensors")


def weights_of(folder: Path, name: str = "model") -> Weights:
    return load_checkpoint(checkpoint_in(folder, name))[0].state_dict()


def test_it_leaves_what_the_plan_says(whole: Path) -> None:
    checkpoints = [checkpoint_in(whole, name) for name in STAGE_NAMES]
    assert set(whole.rglob("*.safetensors")) == {file for each in checkpoints for file in (each, beside(each))}
    stages, validations = (log_lines(whole, kind) for kind in ("stage", "validation"))
    assert [(line["stage"], line["batch"]) for line in stages] == [("warm", 0), ("varying", 3), ("elite", 7)]
    assert [line["batch"] for line in validations] == [0, 3, 7, 10]
    for name in STAGE_NAMES[:2]:
        net, about = load_checkpoint(checkpoint_in(whole, name))
        assert (about["run"], about["stage"]) == ("icam/tiny", name)
        assert not same_weights(net.state_dict(), weights_of(whole))


def test_stages_as_runs_of_their_own_are_one_run(tmp_path: Path, store: Path, whole: Path) -> None:
    """Weights at the end of each stage, moments and draws carry over: the fork of a stage is that stage."""
    ends = (0, *make_run(*STAGES).training.ends)
    other = STAGES[2].model_copy(update={"elite": Elite(k=5, beta=0.9)})
    for part, number, name in (*zip(STAGES, range(3), STAGE_NAMES, strict=True), (other, 2, "other")):
        run, start = make_run(part, batches_before=ends[number]), None
        if number:
            start = checkpoint_in(whole, STAGE_NAMES[number - 1])
            run = run.model_copy(update={"start": f"icam/tiny@{start.stem}"})
        alone = run_training(run, tmp_path / name, store, start, start and beside(start))
        assert same_weights(weights_of(alone), weights_of(whole, STAGE_NAMES[number])) is (name != "other")


def test_a_damaged_file_of_stages_is_refused(tmp_path: Path, whole: Path) -> None:
    pack_stages(tmp_path / "stages.zip", {"warm.safetensors": checkpoint_in(whole, "warm").read_bytes()})
    content = bytearray((tmp_path / "stages.zip").read_bytes())
    content[1000] ^= 1
    (tmp_path / "stages.zip").write_bytes(content)
    with one_line("cannot be read", "train its run anew"), unpacked_stages(tmp_path / "stages.zip"):
        pass


def test_moments_of_other_parameters_are_refused_and_none_are_no_fault(tmp_path: Path, whole: Path) -> None:
    checkpoint = checkpoint_in(Path(shutil.copytree(whole, tmp_path / "copy")), "warm")
    wider = batches_of(make_run(depth=2), tmp_path)
    recall_moments(beside(checkpoint), wider.net, wider.optimizer)  # two of its parameters' layers have none
    assert len(wider.optimizer.state) == len(weights_of(whole))
    other = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(other.parameters())
    with pytest.raises(NeurouteError, match="does not fit this network"):
        recall_moments(beside(checkpoint), other, optimizer)
    beside(checkpoint).unlink()
    recall_moments(beside(checkpoint), other, optimizer)
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


def test_a_local_policy_joins(tmp_path: Path, store: Path) -> None:
    """ELG: a run with it starts from the weights of one without, and with moments of its own."""
    without = make_run(kind="elg")
    network = without.network.model_copy(update={"arguments": without.network.arguments | {"local": False}})
    first = run_training(without.model_copy(update={"network": network}), tmp_path / "first", store)
    then = make_run(kind="elg", batches_before=2, fresh=True).model_copy(update={"start": "icam/tiny"})
    start = checkpoint_in(first)
    net = build(then.network)
    found = _weights_to_start(then, net, start)
    shared = weights_of(first)
    assert {name for name in found if name not in shared} == {name for name in found if name.startswith("local.")}
    assert all(torch.equal(found[name], tensor) for name, tensor in shared.items())
    joined = weights_of(run_training(then, tmp_path / "then", store, start))
    assert joined.keys() == net.state_dict().keys()
    network_damaged, about = load_checkpoint(start)
    torch.nn.init.zeros_(next(network_damaged.parameters()))
    save_checkpoint(start, network_damaged, about)
    with pytest.raises(NeurouteError, match=r"differ from run\.json"):
        _weights_to_start(then, net, start)
    other = make_run(kind="pomo").model_copy(update={"start": "icam/tiny"})
    with pytest.raises(NeurouteError, match="start from the same network"):
        _weights_to_start(other, build(other.network), start)


def test_a_fresh_start_takes_weights_but_no_moments(tmp_path: Path, vrp_store: Path) -> None:
    """Few-shot training on a problem that was not trained on, of 16."""
    out = run_training(vrp.make_run(vrp.stage(batches_per_epoch=6)), tmp_path, vrp_store)
    few, steps = vrp.stage(variants=("VRPBLTW",)), {}
    for fresh in (False, True):
        net, run = load_checkpoint(out / "model.safetensors")[0].train(), vrp.make_run(few, fresh=fresh)
        with unpacked_stages(out / "stages.zip") as ends:
            moments = ends / "model.moments.safetensors"
            batches = vrp.batches_of(run, tmp_path, double=False, net=net, moments=moments)
        batches.train(0)
        (step,) = {int(state["step"]) for state in batches.optimizer.state.values()}
        steps[fresh] = step
    assert steps == {False: 7, True: 1}


def test_a_run_is_validated_on_two_problems_and_gone_on_from(tmp_path: Path, vrp_store: Path) -> None:
    """Exports too; then a few-shot run from its weights."""
    pytest.importorskip("ortools")
    plain = vrp.make_run(vrp.stage(batches_per_epoch=3), network={"hierarchy": "step"}, balance=0.01)
    other = vrp.validation("VRPTW").model_copy(update={"solver": "ortools-short"})
    label_store(vrp_store, other)
    run = plain.model_copy(update={"also_validation": (other,)})
    few = Reinforced(stages=(vrp.stage(variants=("OVRPB",)),), fresh=True)
    out = run_training(run, tmp_path / "whole", vrp_store)
    gaps = [line["gaps_pct"] for line in log_lines(out, "validation")]
    assert [set(each) for each in gaps] == [{run.validation.dataset.id, other.dataset.id}] * 2
    start = out / "model.safetensors"
    assert start.read_bytes() == (run_training(run, tmp_path / "again", vrp_store) / start.name).read_bytes()
    few_run = run.model_copy(update={"name": "few", "start": run.id, "training": few})
    after = run_training(few_run, tmp_path / "few", vrp_store, start) / "model.safetensors"
    weights = [load_checkpoint(path)[0].state_dict() for path in (after, start)]
    assert not same_weights(*weights)
