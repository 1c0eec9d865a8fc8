"""H-TSP beside numbers of its authors' code (e44daa1): both networks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute_systems.htsp.decoding import PathBatch
from neuroute_systems.htsp.network import Htsp, PathPomo, Upper, place_of
from neuroute_systems.htsp.training import log_density
from published_numbers import differ, state

pytestmark = pytest.mark.usefixtures("one_thread")
POINTS = [0, 1, 6, 7, 8, 9, 10, 11, 2, 3, 4, 5]  # theirs: coordinates, from the middle, from the mean, the rest
ACTOR = {"net.0.0": 0, "net.0.2": 2, "net.1": 4, "net.3": 6}
CRITIC = {"net.0.0": 0, "net.1": 2, "net.3": 4, "net.5": 6}


def linear(ours: str, theirs: str, found: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for kind in ("weight", "bias"):
        yield f"{ours}.{kind}", found[f"{theirs}.{kind}"]


def heads(actor: dict[str, Tensor], critic: dict[str, Tensor]) -> dict[str, Tensor]:
    """Actor and critic under our names."""
    new = {"log_deviation": actor["a_std_log"][0]}
    for name, numbers, found in (("actor", ACTOR, actor), ("critic", CRITIC, critic)):
        for theirs, ours in numbers.items():
            new.update(linear(f"{name}.{ours}", theirs, found))
    return new


def image(weight: Tensor) -> Tensor:
    """Rows are columns there."""
    return weight.transpose(2, 3) if weight.dim() == 4 else weight


def upper_of(numbers: dict[str, np.ndarray]) -> Upper:
    upper = Upper(cells=10, channels=(4, 6), width=32, critic_width=48)
    found = state(numbers, "enc/")
    new = {"encoder.embed.weight": found["input_transform.0.weight"][:, :, 0][:, POINTS]}
    new |= dict(linear("encoder.norm", "input_transform.1", found))
    for block in range(2):
        new |= dict(linear(f"encoder.blocks.{4 * block}", f"cnn.feat_convs.{block}.0", found))
        for part in (1, 2):
            for place, layer in ((1, "first"), (3, "second")):
                ours, theirs = f"encoder.blocks.{4 * block + 1 + part}.{layer}", f"cnn.resnet{part}.{block}.{place}"
                new |= dict(linear(ours, theirs, found))
    new |= dict(linear("encoder.out", "cnn.fc", found))
    new["encoder.out.weight"] = new["encoder.out.weight"].view(32, 6, 3, 3).transpose(2, 3).flatten(1)
    new |= heads(state(numbers, "act/"), state(numbers, "cri/"))
    for name, weight in upper.named_parameters():
        theirs = image(new[name])
        whole = torch.zeros_like(weight)  # a node has half the width there, 64 channels here: the rest is idle
        whole[tuple(slice(size) for size in theirs.shape)] = theirs
        weight.data.copy_(whole)
    return upper


@pytest.fixture(scope="module")
def numbers(public: Callable[[str], Path]) -> dict[str, np.ndarray]:
    return dict(np.load(public("refdata/systems/htsp.npz")))


def test_the_upper_level_is_the_published_one(numbers: dict[str, np.ndarray]) -> None:
    upper, given = upper_of(numbers), torch.from_numpy(numbers["up_state"])
    with torch.no_grad():
        means, values = upper(given)
        features = upper.encoder(given)
    for ours, theirs in (
        (features, "up_feat"),
        (means, "up_mean"),
        (2 * place_of(means) - 1, "up_place"),
        (values[:, None], "up_value"),
        (log_density(torch.from_numpy(numbers["up_action"]), means, upper.log_deviation), "up_logp"),
    ):
        assert differ(ours, numbers[theirs]) < 1e-5, theirs


def test_sizes_are_the_published_ones(numbers: dict[str, np.ndarray]) -> None:
    upper = Htsp().upper
    parts = (upper.encoder, upper.actor, upper.critic)
    sizes = [sum(p.numel() for p in part.parameters()) for part in parts]
    assert [sizes[0], sizes[1] + upper.log_deviation.numel(), sizes[2]] == numbers["counts"].tolist()
    lower = [sum(p.numel() for p in Htsp(depth=depth).lower.parameters()) for depth in (12, 6)]
    assert lower == numbers["count_low"].tolist()


def lower_of(numbers: dict[str, np.ndarray]) -> PathPomo:
    net = PathPomo(depth=3, width=32, heads=4, feed_forward=128, clipping=10.0, train_nodes=25)
    encoder, decoder = state(numbers, "lowenc/"), state(numbers, "lowdec/")
    new = dict(linear("embed", "init_projection_layer", encoder))
    for i in range(3):
        ours, theirs = f"layers.{i}", f"attn_layers.{i}"
        new[f"{ours}.qkv.weight"] = torch.cat([encoder[f"{theirs}.W{kind}.weight"] for kind in "qkv"])
        for name, there in (("out", "multi_head_combine"), ("up", "feed_forward.0"), ("down", "feed_forward.2")):
            new |= dict(linear(f"{ours}.{name}", f"{theirs}.{there}", encoder))
        for name, there in (("attention_norm", "norm1"), ("feed_forward_norm", "norm2")):
            before = f"{theirs}.{there}."
            tensors = {key.removeprefix(before): value for key, value in encoder.items() if key.startswith(before)}
            new |= {f"{ours}.{name}.norm.{key}": value for key, value in tensors.items()}
    new["context.ends.weight"] = torch.cat([decoder["Wq_first.weight"], decoder["Wq_last.weight"]])
    whole = [decoder[f"Wq_{name}.weight"] for name in ("graph", "source", "target")]
    new["context.whole.weight"] = torch.cat(whole, dim=1)
    new["key_value.weight"] = torch.cat([decoder["Wk.weight"], decoder["Wv.weight"]])
    new |= dict(linear("combine", "multi_head_combine", decoder))
    net.load_state_dict(new)
    return net


def test_the_lower_level_is_the_published_one(numbers: dict[str, np.ndarray]) -> None:
    """Encoder in training and evaluation, the first decisions, lengths of the greedy paths from all starts."""
    net, points, m = lower_of(numbers), torch.from_numpy(numbers["low_x"]), 25
    net.train()
    with torch.no_grad():
        assert differ(lower_of(numbers).train().encode(points), numbers["low_train"]) < 1e-5
        net = lower_of(numbers).eval()
        nodes = net.encode(points)
        assert differ(nodes, numbers["low_eval"]) < 1e-5
        prepared, batch = net.prepare(nodes), PathBatch(points)
        rollout = batch.rollout(torch.arange(m).expand(4, m), torch.float32)
        first = net.decide(prepared, rollout.context, rollout.current, rollout.action_mask).softmax(-1)[:, 1:-1]
        assert float((first - torch.from_numpy(numbers["low_P"][0])[:, 1:-1]).abs().max()) < 1e-5
        while not rollout.done():
            rollout.step(net.decide(prepared, rollout.context, rollout.current, rollout.action_mask).argmax(-1))
    lengths = batch.lengths(rollout.solutions()).float() - (points[:, 0] - points[:, -1]).norm(dim=-1)[:, None]
    assert differ(lengths, -numbers["low_r"]) < 1e-5
