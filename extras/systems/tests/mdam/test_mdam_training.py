"""Training of MDAM: its gradient by plain loops, the divergence, the baseline, what is left and refused."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.networks.weights import load_checkpoint
from neuroute.specs.objects import Dataset, Network, Run
from neuroute.training.sampling_streams import noise, sampling
from neuroute_systems.mdam import training as mdam
from neuroute_systems.mdam.decoding import Steps, build_all
from neuroute_systems.mdam.system import MdamTraining, WarmBaseline
from neuroute_systems.mdam.training import DecoderBatches, decoders, divergence
from neuroute_systems.rollouts.training import CHALLENGES, reinforce
from reinforcing import assert_alike, backward, gradients
from tiny import N, copy_weights, run_training, same_weights, scheme_of
from tiny_reinforced import stage
from tiny_systems import mdam_run as make_run

pytestmark = pytest.mark.usefixtures("one_thread")
PROBLEMS = ("tsp", "cvrp")


def batches_of(run: Run, folder: Path, **more: Any) -> DecoderBatches:
    return decoders(scheme_of(run, None, folder, double=True, **more))


def plain_gradient(
    batches: DecoderBatches, index: int, means: list[Tensor] | None = None
) -> tuple[float, dict[str, Tensor]]:
    """One graph through all decoders' constructions of all instances."""
    spec = batches.batch_spec(index)
    net, batch, n = batches.net, batches.batch(spec), spec.n
    cvrp = batches.problem == "cvrp"
    moves = 2 * n - 1 if cvrp else n - 1
    encoded, total, first = net.encode(*batch.features), torch.zeros((), dtype=torch.float64), list[Tensor]()
    with torch.no_grad():
        greedy = build_all(batches.baseline.frozen, batches.baseline.frozen.encode(*batch.features), batch)
        best = batch.lengths(greedy).min(dim=1).values
    for decoder in range(3):
        steps, log_p, number = Steps(net, decoder, encoded, batch), torch.zeros(spec.size), 0
        choose = sampling(noise(0, index, range(spec.size), (3, moves))[:, decoder : decoder + 1])
        while not steps.rollout.done():
            logs = steps.logits().log_softmax(-1)
            if not number:
                first.append(logs[:, 0, 1:] if cvrp else logs[:, 0])
            chosen = choose(logs.detach())
            log_p = log_p + logs.gather(2, chosen[..., None]).flatten()
            steps.rollout.step(chosen)
            number += 1
        lengths = batch.lengths(steps.rollout.solutions())[:, 0]
        compared = best if means is None else means[decoder].expand_as(best)
        total = total - ((compared - lengths) * log_p).mean() / 3
    for one, other in itertools.permutations(first, 2):
        total = total - 0.5 * (one.exp() * (one - other)).sum(-1).mean() / 6
    return backward(net, total)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_gradient_is_that_of_a_plain_loop(tmp_path: Path, problem: str) -> None:
    batches = batches_of(make_run(problem), tmp_path)
    for parameter in batches.baseline.frozen.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    wanted = plain_gradient(batches, 1)
    assert min(float(g.abs().max()) for name, g in wanted[1].items() if "decoders" in name) > 1e-4
    assert_alike(gradients(batches, 1), wanted, 1e-9)


def test_little_memory_splits_a_batch(tmp_path: Path) -> None:
    """Whose parts have batch norms of their own: what is learnt is another gradient."""
    batches = batches_of(make_run("tsp"), tmp_path)
    assert batches._instances_per_part(batches.batch_spec(0), 8) == 8
    assert batches_of(make_run("tsp"), tmp_path, memory_gb=1e-9)._instances_per_part(batches.batch_spec(0), 8) == 1


def test_divergences_of_pairs() -> None:
    """By hand for two and for one decoder; what no decoder can choose counts for nothing."""
    p, q = torch.tensor([[0.2, 0.8, 0.0]]), torch.tensor([[0.5, 0.5, 0.0]])
    both = 0.2 * torch.log(torch.tensor(0.4)) + 0.8 * torch.log(torch.tensor(1.6))
    back = 0.5 * torch.log(torch.tensor(2.5)) + 0.5 * torch.log(torch.tensor(0.625))
    torch.testing.assert_close(divergence(torch.stack([p, q]).log()), (both + back)[None] / 2)
    assert divergence(torch.stack([p, p, p]).log()).tolist() == [0.0]
    assert divergence(p.log()[None]).tolist() == [0.0]


def test_in_the_first_epoch_lengths_are_compared_with_a_mean(tmp_path: Path) -> None:
    """Of each decoder's own, and it goes on where a killed run was; the copy is asked from the second epoch on."""
    run = make_run("tsp", baseline=WarmBaseline(instances=8, alpha=0.05, warm_up=0.75))
    batches = batches_of(run, tmp_path)
    batches.train(0)
    first = batches.state()["means"]
    assert len({float(mean) for mean in first}) == 3
    resumed = batches_of(run, tmp_path)
    resumed.net.load_state_dict(batches.net.state_dict())
    resumed.restore(batches.state())
    found = gradients(resumed, 1)
    assert all(abs(new - old) > 1e-6 for new, old in zip(resumed._means, first, strict=True))
    assert_alike(found, plain_gradient(batches, 1, resumed._means), 1e-9)
    gradients(batches, 2)
    assert batches._means == first


def test_weights_are_compared_by_the_best_decoder(tmp_path: Path) -> None:
    batches = batches_of(make_run("tsp"), tmp_path)
    net, dataset = batches.net.float().eval(), Dataset(problem="tsp", split="val", n=8, first=CHALLENGES, count=8)
    one = batches.environment.batch(SPEC.of("tsp").instances(dataset), batches.device).to(torch.float32)
    with torch.no_grad():
        of_decoders = one.lengths(build_all(net, net.encode(*one.features), one))
    assert len(set(of_decoders.argmin(dim=1).tolist())) > 1
    found = batches._greedy_lengths(net, 0, batches.training.stages[0])
    torch.testing.assert_close(torch.from_numpy(found), of_decoders.amin(dim=1), rtol=1e-6, atol=0)
    assert batches._moves(batches.batch_spec(0)) == N - 3  # instances of a stage have 8 nodes


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_run_leaves_the_weights_that_were_trained(
    tmp_path: Path, problem: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neuroute_systems.rollouts.training.is_shorter", lambda *_: False)
    store = request.getfixturevalue("cvrp_store" if problem == "cvrp" else "store")
    kept = dict[str, Tensor]()

    class Watched(DecoderBatches):
        def train(self, index: int) -> tuple[Tensor, int]:
            found = super().train(index)
            kept.update(copy_weights(self.net))
            return found

    monkeypatch.setattr(mdam, "DecoderBatches", Watched)
    out = run_training(make_run(problem), tmp_path, store)
    assert same_weights(load_checkpoint(out / "model.safetensors")[0].state_dict(), kept)
    assert '"kind": "validation"' in (out / "log.jsonl").read_text()


# -- what is refused ------------------------------------------------------------------------------------------------


def test_settings_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="baseline"):
        MdamTraining.model_validate({"stages": (stage(),), "divergence": 0.1})


def test_stages_and_networks_that_do_not_fit(tmp_path: Path) -> None:
    for more in ({"starts": 2}, {"images": 2}):
        with pytest.raises(NeurouteError, match="give stages `starts: 1`"):
            batches_of(make_run("tsp", stage=more), tmp_path)
    run = make_run("tsp")
    pomo = Network(kind="neuroute.networks.pomo:Pomo", arguments={"depth": 1, "width": 16, "heads": 2})
    with pytest.raises(NeurouteError, match="is for Mdam, not Pomo"):
        batches_of(run.model_copy(update={"network": pomo}), tmp_path)
    with pytest.raises(NeurouteError, match="a network with many starts"):
        reinforce(scheme_of(run, None, tmp_path))
