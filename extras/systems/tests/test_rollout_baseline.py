"""REINFORCE with a greedy rollout as baseline: its gradient, its draws, the frozen copy, what is left and refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import tiny_reinforced
from neuroute.core.errors import NeurouteError
from neuroute.decoding.multi_start import draw_images, images_of, roll_out
from neuroute.networks.weights import load_checkpoint
from neuroute.specs.objects import Network
from neuroute.specs.trainings import Reinforced
from neuroute.training.sampling_streams import Draw, noise, sampling
from neuroute_systems.rollouts import training as rollouts
from neuroute_systems.rollouts.spec import GreedyBaseline, Rollouts
from neuroute_systems.rollouts.training import RolloutBaseline, is_shorter
from reinforcing import assert_alike, backward, gradients
from tiny import N, copy_weights, run_training, same_weights
from tiny_reinforced import ROLLOUTS, make_run, rollout_run, rollouts_of, stage

pytestmark = pytest.mark.usefixtures("one_thread")


# -- the gradient ---------------------------------------------------------------------------------------------------


def plain_gradient(batches: RolloutBaseline, index: int) -> tuple[float, dict[str, Tensor]]:
    """With one graph through each image's whole construction, one image at a time."""
    spec, total = batches.batch_spec(index), torch.zeros((), dtype=torch.float64)
    batch, images, cvrp = batches.batch(spec), spec.stage.images, batches.problem == "cvrp"
    moves = 2 * spec.n - 1 if cvrp else spec.n - 2
    for row in range(spec.size):
        one = batch[slice(row, row + 1)]
        for image in range(images):
            at = [row * images + image]
            turns = [noise(0, index, [row * images + i], (1,), Draw.IMAGE) for i in range(images)]
            seen = one.at(images_of(one.coords, torch.cat(turns))[image])
            starts = [
                (noise(0, index, at, (1,), what) * (0 if cvrp else spec.n)).long()
                for what in (Draw.START, Draw.BASELINE)
            ]
            choose, log_p = sampling(noise(0, index, at, (1, moves))), list[Tensor]()

            def sample(logits: Tensor) -> Tensor:
                chosen = choose(logits.detach())  # noqa: B023
                log_p.append(logits.log_softmax(-1).gather(2, chosen[..., None]).squeeze())  # noqa: B023
                return chosen

            found = roll_out(batches.net, batches.net.encode(*seen.features), one, starts[0], sample)
            with torch.no_grad():
                greedy = roll_out(
                    batches.baseline.frozen, batches.baseline.frozen.encode(*seen.features), one, starts[1]
                )
            advantage = float(one.lengths(greedy) - one.lengths(found))
            total = total - advantage * torch.stack(log_p).sum() / (spec.size * images)
    return backward(batches.net, total)


@pytest.mark.parametrize("kind", ROLLOUTS)
@pytest.mark.parametrize("images", [1, 3])
def test_the_gradient_is_that_of_a_plain_loop(tmp_path: Path, kind: str, images: int) -> None:
    """The copy has other weights, and lengths are those of the instance, whatever its image."""
    batches = rollouts_of(rollout_run(kind, images=images), tmp_path, double=True)
    for parameter in batches.baseline.frozen.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    wanted = plain_gradient(batches, 1)
    assert max(float(g.abs().max()) for g in wanted[1].values()) > 1e-3
    assert_alike(gradients(batches, 1), wanted, 1e-9)


@pytest.mark.parametrize("kind", ROLLOUTS)
def test_little_memory_makes_no_difference(tmp_path: Path, kind: str) -> None:
    run = rollout_run(kind)
    whole = gradients(rollouts_of(run, tmp_path, double=True))
    assert_alike(gradients(rollouts_of(run, tmp_path, double=True, memory_gb=1e-9)), whole, 1e-9)


# -- draws ----------------------------------------------------------------------------------------------------------


def test_sampled_and_greedy_tours_start_elsewhere(tmp_path: Path) -> None:
    batches = rollouts_of(rollout_run(), tmp_path)
    spec = batches.batch_spec(0)
    sampled, greedy = (batches._draw_starts(spec, range(200), what) for what in (Draw.START, Draw.BASELINE))
    assert set(sampled.flatten().tolist()) == set(greedy.flatten().tolist()) == set(range(8))
    assert 0.05 < float((sampled == greedy).double().mean()) < 0.25
    assert not rollouts_of(rollout_run("invit_cvrp"), tmp_path)._draw_starts(spec, range(200), Draw.START).any()


def test_images_are_turned_instances() -> None:
    """Distances are those of the instance times a factor; the first is itself, odd ones are reflected."""
    coords = torch.rand(3, 7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    images = images_of(coords, draw_images(5, range(3), 6)[0])
    assert torch.equal(images[0], coords)
    apart = torch.cdist(coords, coords)
    for number, image in enumerate(images):
        scale = torch.cdist(image, image).amax((1, 2), keepdim=True) / apart.amax((1, 2), keepdim=True)
        torch.testing.assert_close(torch.cdist(image, image), apart * scale, rtol=1e-9, atol=1e-9)
        if number:
            ranges = image.amax(1) - image.amin(1)
            torch.testing.assert_close(ranges.amax(1), torch.ones(3, dtype=torch.float64))
            assert image.amin() == 0
        sides = torch.stack([image[:, 1] - image[:, 0], image[:, 2] - image[:, 0]], -1).det()
        before = torch.stack([coords[:, 1] - coords[:, 0], coords[:, 2] - coords[:, 0]], -1).det()
        assert torch.equal(sides.sign(), before.sign() * (-1) ** number)
    few = draw_images(5, [1], 3)
    assert torch.equal(few[:, :, 0], draw_images(5, range(3), 6)[:, :3, 1])  # of its number alone
    assert not images_of(torch.ones(1, 4, 2), torch.rand(3, 1))[1:].any()  # nothing to scale by


# -- the frozen copy ------------------------------------------------------------------------------------------------


def test_when_lengths_are_shorter() -> None:
    best = np.array([4.0, 5.0, 6.0, 7.0])
    for margin, wanted in ((0.0, True), (0.05, True), (0.2, False)):
        assert is_shorter(best - 0.1, best, None, margin) == wanted
    assert not is_shorter(best, best, None)
    assert is_shorter(best - 0.1, best, 0.05)  # all by as much
    uneven = best - np.array([0.1, -1.0, 1.2, -0.1])  # shorter on average, by chance as likely as not
    assert is_shorter(uneven, best, None)
    assert not is_shorter(uneven, best, 0.05)
    assert is_shorter(best - np.array([0.1, 0.11, 0.09, 0.1]), best, 0.05)


def test_shorter_weights_take_the_copys_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of an epoch; then on other instances.  The learning rate falls by an epoch."""
    asked = list[tuple[bool, int]]()
    lengths = iter([5.0, 4.0, 5.0, 6.0, 4.9])  # copy, net; copy, net; net

    def greedy(self: RolloutBaseline, net: Any, number: int, one: Any) -> np.ndarray:
        asked.append((net is self.baseline.frozen, number))
        return np.full(6, next(lengths))

    monkeypatch.setattr(RolloutBaseline, "_greedy_lengths", greedy)
    batches = rollouts_of(rollout_run(), tmp_path)
    replaced = []
    for index in range(6):
        before = copy_weights(batches.baseline.frozen)
        batches.train(index)
        if index % 2 == 0:
            assert same_weights(batches.baseline.frozen.state_dict(), before)
        notes = [note for note in batches.notes() if note["kind"] == "baseline"]
        replaced += [note["replaced"] for note in notes]
        nets = batches.net.state_dict(), batches.baseline.frozen.state_dict()
        assert same_weights(*nets) == (index % 2 == 1 and replaced[-1])
    assert replaced == [True, False, True]
    assert asked == [(True, 0), (False, 0), (True, 1), (False, 1), (False, 1)]
    assert [batches.learning_rate(i) for i in (0, 2, 4)] == [1e-2, 5e-3, 2.5e-3]


def test_the_copy_is_compared_on_instances_of_its_own(tmp_path: Path) -> None:
    batches = rollouts_of(rollout_run(), tmp_path)
    one = batches.training.stages[0]
    first, again = (batches._greedy_lengths(batches.net.eval(), 0, one) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.isclose(first, batches._greedy_lengths(batches.net, 1, one)).any()


@pytest.mark.parametrize("kind", ROLLOUTS)
def test_the_copy_is_what_is_left(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    store = request.getfixturevalue("cvrp_store" if kind.endswith("cvrp") else "store")
    kept = dict[str, Any]()
    with pytest.MonkeyPatch.context() as patch:
        end = RolloutBaseline._end_batch

        def watch(self: RolloutBaseline, spec: Any, within: int) -> None:
            end(self, spec, within)
            kept.update(frozen=copy_weights(self.baseline.frozen), net=copy_weights(self.net))

        patch.setattr(RolloutBaseline, "_end_batch", watch)
        patch.setattr(rollouts, "is_shorter", lambda *_: False)
        out = run_training(rollout_run(kind), tmp_path, store)
    left = load_checkpoint(out / "model.safetensors")[0].state_dict()
    assert same_weights(left, kept["frozen"])
    assert not same_weights(left, kept["net"])


# -- what is refused ------------------------------------------------------------------------------------------------


def test_decay_beside_the_gradient(tmp_path: Path) -> None:
    assert type(rollouts_of(rollout_run(), tmp_path).optimizer) is torch.optim.AdamW
    assert type(rollouts_of(rollout_run(decoupled=False), tmp_path).optimizer) is torch.optim.Adam


def test_stages_that_do_not_fit_the_baseline() -> None:
    for more in ({"starts": 1}, {"starts": 3, "images": 2}):
        with pytest.raises(ValueError, match="single start, or images"):
            Reinforced(stages=(stage(**more),))
    with pytest.raises(ValueError, match="give `starts`"):
        Rollouts(stages=(stage(),), baseline=GreedyBaseline())


def test_a_path_network_is_refused(tmp_path: Path) -> None:
    lehd = Network(kind="neuroute.networks.lehd:Lehd", arguments={"train_nodes": N})
    with pytest.raises(NeurouteError, match="many starts"):
        rollouts_of(rollout_run().model_copy(update={"network": lehd}), tmp_path)


def test_texts_of_other_trainings_stay_as_they_were() -> None:
    """What is new is left out where it says nothing."""
    text = make_run(*tiny_reinforced.STAGES).canonical()
    assert not {"baseline", "decoupled", "images", "decay"} & set(text.replace('"', " ").split())
