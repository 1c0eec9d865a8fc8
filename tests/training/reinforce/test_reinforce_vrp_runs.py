"""REINFORCE on 16 VRPs from begin to end: fresh starts, that it learns, and as the training stage runs it."""

from pathlib import Path

import pytest
import torch

from neuroute.networks.blocks.mixture import LinearExperts, Mixture
from neuroute.networks.blocks.routing import Routing
from neuroute.networks.weights import load_checkpoint, unpacked_stages
from neuroute.specs.trainings import Reinforced
from tiny import label_store, log_lines, run_training, same_weights
from tiny_reinforced_vrp import batches_of, make_run, stage, validation

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_fresh_start_takes_weights_but_no_moments(tmp_path: Path, vrp_store: Path) -> None:
    """Few-shot training on a problem that was not trained on."""
    out = run_training(make_run(stage(batches_per_epoch=6)), tmp_path, vrp_store)
    few, steps = stage(variants=("VRPBLTW",)), {}
    for fresh in (False, True):
        net, run = load_checkpoint(out / "model.safetensors")[0].train(), make_run(few, fresh=fresh)
        with unpacked_stages(out / "stages.zip") as ends:
            moments = ends / "model.moments.safetensors"
            batches = batches_of(run, tmp_path, double=False, net=net, moments=moments)
        batches.train(0)
        (step,) = {int(state["step"]) for state in batches.optimizer.state.values()}
        steps[fresh] = step
    assert steps == {False: 7, True: 1}


# -- as the training stage runs it ----------------------------------------------------------------------------------


def test_a_run_is_validated_on_two_problems_and_gone_on_from(tmp_path: Path, vrp_store: Path) -> None:
    """Exports too; then a few-shot run from its weights."""
    pytest.importorskip("ortools")
    plain = make_run(stage(batches_per_epoch=3), network={"hierarchy": "step"}, balance=0.01)
    other = validation("VRPTW").model_copy(update={"solver": "ortools-short"})
    label_store(vrp_store, other)
    run = plain.model_copy(update={"also_validation": (other,)})
    few = Reinforced(stages=(stage(variants=("OVRPB",)),), fresh=True)
    out = run_training(run, tmp_path / "whole", vrp_store)
    gaps = [line["gaps_pct"] for line in log_lines(out, "validation")]
    assert [set(each) for each in gaps] == [{run.validation.dataset.id, other.dataset.id}] * 2
    start = out / "model.safetensors"
    assert start.read_bytes() == (run_training(run, tmp_path / "again", vrp_store) / start.name).read_bytes()
    few_run = run.model_copy(update={"name": "few", "start": run.id, "training": few})
    after = run_training(few_run, tmp_path / "few", vrp_store, start) / "model.safetensors"
    weights = [load_checkpoint(path)[0].state_dict() for path in (after, start)]
    assert not same_weights(*weights)


# -- the loss that balances experts does what it is for (MVMoE, Eq. 2 and 3) ------------------------------------------

WIDTH, EXPERTS, TOP = 8, 4, 2


def shares(mixture: Mixture, x: torch.Tensor) -> torch.Tensor:
    """Of the load, by expert, with the noise that training has: what the loss is about."""
    routing = Routing(balance=True)
    with torch.no_grad():
        mixture(x, routing)
    (report,) = routing.reports
    return (report.load / report.load.sum()).flatten()


def test_learning_from_it_spreads_the_nodes() -> None:
    """From a gate that sends every node to the same two experts, each of which so has half of the load."""
    torch.manual_seed(0)
    mixture = Mixture(LinearExperts(EXPERTS, WIDTH, WIDTH), WIDTH, TOP, "input-choice", "node")
    x = torch.randn(1, 400, WIDTH) + 1
    with torch.no_grad():
        dict(mixture.named_parameters())["gate.weight"][:TOP] += 0.5
    before = shares(mixture, x)
    assert before.max() > 0.4
    optimizer = torch.optim.Adam(mixture.parameters(), lr=1e-2)
    for _ in range(150):
        routing = Routing(balance=True)
        mixture(x, routing)
        optimizer.zero_grad()
        routing.loss().backward()
        optimizer.step()
    after = shares(mixture, x)
    assert after.max() < 0.3
    assert after.min() > 0.2
