"""GLOP's published files: what they hold is the network here, and comes back as it was."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.networks.import_weights import export_weights, import_weights
from neuroute.networks.weights import load_checkpoint

DEPTH, WIDTH, HEADS, FFN = 2, 16, 2, 24
State = dict[str, Tensor]


def norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}.{part}": (WIDTH,) for part in ("weight", "bias", "running_mean", "running_var")}


def reviser() -> State:
    shapes: dict[str, tuple[int, ...]] = {"W_placeholder": (2 * WIDTH,), "pe": (20, 1, WIDTH)}
    shapes |= {"init_embed.weight": (WIDTH, 2), "init_embed.bias": (WIDTH,)}
    for i in range(DEPTH):
        at = f"embedder.layers.{i}"
        shapes |= {f"{at}.0.module.W_{name}": (HEADS, WIDTH, WIDTH // HEADS) for name in ("query", "key", "val")}
        shapes |= {f"{at}.0.module.W_out": (HEADS, WIDTH // HEADS, WIDTH)}
        shapes |= {f"{at}.2.module.0.weight": (FFN, WIDTH), f"{at}.2.module.0.bias": (FFN,)}
        shapes |= {f"{at}.2.module.2.weight": (WIDTH, FFN), f"{at}.2.module.2.bias": (WIDTH,)}
        shapes |= norm(f"{at}.1.normalizer") | norm(f"{at}.3.normalizer")
    shapes |= {"project_node_embeddings.weight": (3 * WIDTH, WIDTH), "project_step_context.weight": (WIDTH, 2 * WIDTH)}
    shapes |= {f"project_{name}.weight": (WIDTH, WIDTH) for name in ("fixed_context", "out")}
    return filled(shapes)


def partition() -> State:
    shapes: dict[str, tuple[int, ...]] = {"par_net_heu._dummy": (0,)}
    linear = {"v_lin0": 3, "e_lin0": 2} | {f"e_lins0.{i}": WIDTH for i in range(DEPTH)}
    linear |= {f"v_lins{k}.{i}": WIDTH for k in range(1, 5) for i in range(DEPTH)}
    for name, inputs in linear.items():
        shapes |= {f"emb_net.{name}.weight": (WIDTH, inputs), f"emb_net.{name}.bias": (WIDTH,)}
    for i in range(DEPTH):
        shapes |= norm(f"emb_net.v_bns.{i}.module") | norm(f"emb_net.e_bns.{i}.module")
    for i, outputs in enumerate((WIDTH, WIDTH, 1)):
        shapes |= {f"par_net_heu.lins.{i}.weight": (outputs, WIDTH), f"par_net_heu.lins.{i}.bias": (outputs,)}
    return filled(shapes)


def filled(shapes: dict[str, tuple[int, ...]]) -> State:
    torch.manual_seed(0)
    state = {name: torch.rand(shape) + 0.1 for name, shape in shapes.items()}
    means = [name for name in state if name.endswith("running_mean")]
    return state | {name.replace("running_mean", "num_batches_tracked"): torch.tensor(7) for name in means}


@pytest.mark.parametrize(
    ("state", "holder", "constant"),
    [(reviser(), "model", "pe"), (partition(), "model_state_dict", "par_net_heu._dummy")],
    ids=["reviser", "partition"],
)
def test_files_go_in_and_come_out(tmp_path: Path, state: State, holder: str, constant: str) -> None:
    torch.save({holder: state}, tmp_path / "theirs.pt")
    import_weights(tmp_path / "theirs.pt", tmp_path / "ours.safetensors", None, {})
    export_weights(tmp_path / "ours.safetensors", tmp_path / "back.pt")
    back = torch.load(tmp_path / "back.pt", weights_only=True)[holder]
    assert set(back) == set(state) - {constant}
    assert all(torch.equal(back[name], state[name]) for name in back)


def test_a_reviser_attends_as_the_published_one(tmp_path: Path) -> None:
    """The first layer's attention, head by head from the published tensors."""
    state = reviser()
    torch.save({"model": state}, tmp_path / "theirs.pt")
    import_weights(tmp_path / "theirs.pt", tmp_path / "ours.safetensors", None, {"blocks": [50]})
    net, _ = load_checkpoint(tmp_path / "ours.safetensors")
    assert net.blocks == (50,)
    layer, x = net.revisers[0].layers[0], torch.rand(1, 5, WIDTH)
    found = torch.zeros(5, WIDTH)
    at = "embedder.layers.0.0.module"
    for head in range(HEADS):
        q, k, v = (x[0] @ state[f"{at}.W_{name}"][head] for name in ("query", "key", "val"))
        found += torch.softmax(q @ k.T / (WIDTH // HEADS) ** 0.5, -1) @ v @ state[f"{at}.W_out"][head]
    qkv = layer.qkv(x).view(1, 5, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    mixed = torch.nn.functional.scaled_dot_product_attention(*qkv).transpose(1, 2).reshape(1, 5, WIDTH)
    torch.testing.assert_close(layer.out(mixed)[0], found, rtol=1e-4, atol=1e-4)


def test_a_file_without_a_tensor_is_refused(tmp_path: Path) -> None:
    state = reviser()
    del state["project_out.weight"]
    torch.save({"model": state}, tmp_path / "theirs.pt")
    with pytest.raises(NeurouteError, match="project_out"):
        import_weights(tmp_path / "theirs.pt", tmp_path / "ours.safetensors", None, {})
