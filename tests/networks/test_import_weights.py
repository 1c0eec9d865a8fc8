"""Weights from elsewhere: LEHD's published layout against a forward pass written from its description, and refusals."""

import hashlib
import logging
import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from typer.testing import CliRunner

from neuroute.cli import app
from neuroute.core.errors import NeurouteError
from neuroute.networks.bq import Bq
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.networks.import_weights import KINDS, import_weights
from neuroute.networks.lehd import Lehd
from neuroute.networks.weights import build, load_checkpoint, read_about, save_checkpoint
from neuroute.plan.digest import code_digest
from neuroute.plan.objects import Network

DEPTH, WIDTH, HEADS, FFN = 2, 16, 2, 24
NONE: dict[str, int | None] = {}


class PublishedLayer(nn.Module):
    """Names and registration order of the released code, as recalled; the computation from its description."""

    def __init__(self) -> None:
        super().__init__()
        self.Wq, self.Wk, self.Wv = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.multi_head_combine = nn.Linear(WIDTH, WIDTH)
        self.feedForward = nn.ModuleDict({"W1": nn.Linear(WIDTH, FFN), "W2": nn.Linear(FFN, WIDTH)})

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (w(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for w in (self.Wq, self.Wk, self.Wv))
        weights = torch.softmax(q @ k.transpose(2, 3) / (WIDTH / HEADS) ** 0.5, dim=-1)
        x = x + self.multi_head_combine((weights @ v).transpose(1, 2).flatten(2))
        return x + self.feedForward["W2"](self.feedForward["W1"](x).relu())


class Published(nn.Module):
    """Decoder tokens in the published order: [first, not yet visited by index, last]."""

    def __init__(self) -> None:
        super().__init__()
        layers = nn.ModuleList([PublishedLayer()])
        self.encoder = nn.ModuleDict({"embedding": nn.Linear(2, WIDTH), "layers": layers})
        self.decoder = nn.ModuleDict(
            {
                "embedding_first_node": nn.Linear(WIDTH, WIDTH),
                "embedding_last_node": nn.Linear(WIDTH, WIDTH),
                "layers": nn.ModuleList(PublishedLayer() for _ in range(DEPTH)),
                "k_1": nn.Linear(WIDTH, WIDTH),
                "Linear_final": nn.Linear(WIDTH, 1),
            }
        )

    def forward(self, coords: Tensor, visited: list[int]) -> Tensor:
        """Probabilities (batch, nodes) of the next node, after visited[0] ... visited[-1]."""
        nodes = self.encoder["layers"][0](self.encoder["embedding"](coords))
        left = [i for i in range(coords.shape[1]) if i not in visited]
        first = self.decoder["embedding_first_node"](nodes[:, visited[:1]])
        last = self.decoder["embedding_last_node"](nodes[:, visited[-1:]])
        x = torch.cat([first, nodes[:, left], last], dim=1)
        for layer in self.decoder["layers"]:
            x = layer(x)
        scores = self.decoder["Linear_final"](x)[..., 0]
        scores[:, [0, -1]] = -torch.inf
        result = torch.zeros(coords.shape[:2], dtype=coords.dtype)
        result[:, left] = torch.softmax(scores, dim=-1)[:, 1:-1]
        return result


def published() -> Published:
    torch.manual_seed(3)
    return Published()


def imported(tmp_path: Path, content: Any, network: str = "lehd", **shape: int) -> tuple[Any, dict[str, Any]]:
    torch.save(content, tmp_path / "weights.pt")
    out = tmp_path / "model.safetensors"
    import_weights(tmp_path / "weights.pt", out, network, {"heads": HEADS} | shape)
    return load_checkpoint(out)


def refused(tmp_path: Path, content: Any, match: str, network: str = "lehd", **shape: int) -> None:
    """One line, and nothing written."""
    with pytest.raises(NeurouteError, match=match) as error:
        imported(tmp_path, content, network, **shape)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "model.safetensors").exists()


# -- what comes in --------------------------------------------------------------------------------------------------


def test_published_lehd_computes_the_same_here(tmp_path: Path) -> None:
    theirs = published()
    net, _ = imported(tmp_path, {"epoch": 150, "model_state_dict": theirs.state_dict(), "losses": [0.1]})
    assert isinstance(net, Lehd)
    net, theirs = net.double(), theirs.double()
    coords = torch.rand(7, 11, 2, dtype=torch.float64)
    for visited in ([0], [0, 4, 7], [3, 9, 1, 0, 2, 10]):
        left = [i for i in range(11) if i not in visited]
        rows = net.encode(coords)[:, [visited[-1], *left, visited[0]]]
        probabilities = torch.softmax(net.decide(rows), dim=-1)
        torch.testing.assert_close(probabilities, theirs(coords, visited)[:, left], rtol=1e-10, atol=1e-10)


def test_no_tensor_is_lost(tmp_path: Path) -> None:
    theirs = published().state_dict()
    net, _ = imported(tmp_path, theirs)
    assert sum(t.numel() for t in theirs.values()) == sum(p.numel() for p in net.parameters())
    assert torch.equal(net.unused.weight, theirs["decoder.k_1.weight"])
    assert torch.equal(net.unused.bias, theirs["decoder.k_1.bias"])


def test_the_checkpoint_says_where_it_comes_from(tmp_path: Path) -> None:
    _, about = imported(tmp_path, published().state_dict(), train_nodes=20)
    assert about["run"] == "imported/weights"
    assert about["code"] == code_digest(KINDS["lehd"])
    digest = hashlib.sha256((tmp_path / "weights.pt").read_bytes()).hexdigest()
    assert about["source"] == {"file": "weights.pt", "sha256": digest}
    arguments = {"depth": DEPTH, "width": WIDTH, "heads": HEADS, "feed_forward": FFN, "train_nodes": 20}
    assert about["network"] == {"kind": KINDS["lehd"], "arguments": arguments}


@pytest.mark.parametrize("holder", [None, "model_state_dict", "state_dict", "model"])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_where_the_state_dict_may_lie(tmp_path: Path, holder: str | None, prefix: str) -> None:
    state = OrderedDict((prefix + name, tensor) for name, tensor in published().state_dict().items())
    net, _ = imported(tmp_path, {holder: state, "epoch": 3} if holder else state)
    assert torch.equal(net.head.bias, state[f"{prefix}decoder.Linear_final.bias"])


@pytest.mark.parametrize(
    ("name", "net"),
    [
        ("lehd", Lehd(DEPTH, WIDTH, HEADS, FFN)),
        ("bq", Bq(DEPTH, WIDTH, HEADS, FFN)),
        ("decoder-only", DecoderOnly(DEPTH, WIDTH, HEADS)),
        ("decoder-only", DecoderOnly(DEPTH, WIDTH, HEADS, gate=False, rezero=False)),
    ],
)
def test_our_own_names_of_every_network(tmp_path: Path, name: str, net: nn.Module) -> None:
    """Also from safetensors without a word about themselves."""
    save_file(net.state_dict(), tmp_path / "plain.safetensors")
    import_weights(tmp_path / "plain.safetensors", tmp_path / "b.safetensors", name, {"heads": HEADS})
    for found in (imported(tmp_path, net.state_dict(), name)[0], load_checkpoint(tmp_path / "b.safetensors")[0]):
        assert type(found) is type(net)
        for key, tensor in net.state_dict().items():
            assert torch.equal(found.state_dict()[key], tensor), key


def test_heads_are_the_published_ones_unless_given(tmp_path: Path) -> None:
    net = Lehd(1, 16, 2, 8)
    torch.save(net.state_dict(), tmp_path / "a.pt")
    import_weights(tmp_path / "a.pt", tmp_path / "a.safetensors", "lehd", NONE)
    assert read_about(tmp_path / "a.safetensors")["network"]["arguments"]["heads"] == 8
    torch.save(DecoderOnly(1, 16, 2).state_dict(), tmp_path / "b.pt")
    with pytest.raises(NeurouteError, match="give --heads"):
        import_weights(tmp_path / "b.pt", tmp_path / "b.safetensors", "decoder-only", NONE)


# -- a checkpoint of ours -------------------------------------------------------------------------------------------


def of_other_code(path: Path) -> nn.Module:
    network = Network(kind=KINDS["bq"], arguments={"depth": 1, "width": 8, "heads": 2, "feed_forward": 8})
    net = build(network)
    about = {"run": "scaling/bq", "spec": {"seed": 3}, "network": network.model_dump(), "code": "before"}
    save_checkpoint(path, net, about)
    return net


def test_ours_is_stamped_anew_and_keeps_what_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    net, path = of_other_code(tmp_path / "model.safetensors"), tmp_path / "model.safetensors"
    with caplog.at_level(logging.INFO, "neuroute.import"):
        import_weights(path, path, None, NONE)  # in place
    assert "before" in caplog.text
    loaded, about = load_checkpoint(path)
    assert (about["run"], about["spec"]) == ("scaling/bq", {"seed": 3})
    assert (about["code"], about["earlier_code"]) == (code_digest(KINDS["bq"]), ["before"])
    assert all(torch.equal(loaded.state_dict()[name], t) for name, t in net.state_dict().items())
    stamped = path.read_bytes()
    import_weights(path, path, "bq", NONE)  # nothing more to say
    assert path.read_bytes() == stamped


def test_ours_of_another_shape_or_kind_is_not_stamped(tmp_path: Path) -> None:
    path, out = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    of_other_code(path)
    for network, shape in (("lehd", NONE), (None, {"heads": 4})):
        with pytest.raises(NeurouteError, match="leave out --network"):
            import_weights(path, out, network, shape)
    wider = {"kind": KINDS["bq"], "arguments": {"depth": 2, "width": 8, "heads": 2, "feed_forward": 8}}
    save_checkpoint(path, build(Network.model_validate(wider | {"arguments": wider["arguments"] | {"depth": 1}})), {
        "run": "x", "network": wider, "code": "before"
    })  # fmt: skip
    with pytest.raises(NeurouteError, match=r"does not fit .*missing: layers\.1\.alpha1"):
        import_weights(path, out, None, NONE)
    assert not out.exists()


# -- refusals -------------------------------------------------------------------------------------------------------


def test_missing_and_left_over_names(tmp_path: Path) -> None:
    state = published().state_dict()
    refused(
        tmp_path, {k: t for k, t in state.items() if k != "decoder.layers.1.Wk.weight"}, r"missing decoder.layers.1"
    )
    refused(tmp_path, state | {"decoder.more.weight": torch.zeros(3)}, "left over .*decoder.more.weight")
    without = {k: t for k, t in state.items() if ".k_1." not in k}
    refused(tmp_path, without, "unused layer is missing")
    refused(
        tmp_path, without | {"a.weight": torch.zeros(WIDTH, WIDTH), "b.bias": torch.zeros(WIDTH)}, "left over a.weig"
    )
    many = {f"x{i}": torch.zeros(1) for i in range(10)}
    refused(tmp_path, state | many, "and 9 more")
    refused(tmp_path, many, "missing", "lehd")
    refused(tmp_path, many, "no matrix 'embed.weight' .*x0, x1, x2 and 7 more", "bq")
    own = Bq(DEPTH, WIDTH, HEADS, FFN).state_dict()
    refused(tmp_path, own | {"y": torch.zeros(1)}, r"left over: y\b", "bq")
    refused(tmp_path, Lehd(DEPTH, WIDTH, HEADS, FFN).state_dict(), "does not fit Bq", "bq")


def test_wrong_shapes(tmp_path: Path) -> None:
    state = published().state_dict()
    name = "decoder.layers.0.multi_head_combine.bias"
    refused(tmp_path, state | {name: torch.zeros(5)}, r"layers.0.out.bias \(5,\) for \(16,\)")
    refused(tmp_path, state | {"decoder.layers.0.Wq.weight": torch.zeros(4, 4)}, "do not fit each other")
    refused(tmp_path, state, "of another shape", width=32)
    refused(tmp_path, state, "missing: layers.2", depth=3)
    refused(tmp_path, state, "not divisible", heads=3)


def test_numbers_that_are_none(tmp_path: Path) -> None:
    state = published().state_dict()
    refused(tmp_path, state | {"decoder.Linear_final.bias": torch.tensor([torch.nan])}, "not finite")
    refused(tmp_path, state | {"decoder.Linear_final.bias": torch.tensor([1])}, "int64, not real numbers")


class Malicious:
    def __init__(self, touched: Path) -> None:
        self.touched = touched

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.touched}",)


@pytest.mark.parametrize("archive", [True, False])
def test_a_pickle_that_would_execute_code_is_refused(tmp_path: Path, archive: bool) -> None:
    torch.save(
        {"model_state_dict": published().state_dict(), "x": Malicious(tmp_path / "touched")},
        tmp_path / "a.pt",
        _use_new_zipfile_serialization=archive,
    )
    with pytest.raises(NeurouteError, match=r"system, not only tensors.*save the weights alone") as error:
        import_weights(tmp_path / "a.pt", tmp_path / "b.safetensors", "lehd", NONE)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "touched").exists()
    assert not (tmp_path / "b.safetensors").exists()


def test_what_is_no_state_dict(tmp_path: Path) -> None:
    refused(tmp_path, {"result_log": np.float64(1), "model_state_dict": published().state_dict()}, "not only tensors")
    refused(tmp_path, published(), "not only tensors")  # a whole module
    refused(tmp_path, [torch.zeros(1)], "holds a list")
    refused(tmp_path, {"epoch": 3}, r"'epoch' \(int\) is no tensor")
    refused(tmp_path, published().state_dict() | {"epoch": 3}, r"'epoch' \(int\) is no tensor")


@pytest.mark.parametrize("content", [b"", b"hello world", b"PK\x03\x04 cut", b"\x80\x04\x95junkjunk"])
@pytest.mark.parametrize("name", ["a.pt", "a.safetensors"])
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_files_that_are_no_weights(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NeurouteError, match="not a readable") as error:
        import_weights(tmp_path / name, tmp_path / "b.safetensors", "lehd", NONE)
    assert "\n" not in str(error.value)


def test_asking_for_the_impossible(tmp_path: Path) -> None:
    for name in ("absent.pt", "absent.safetensors"):
        with pytest.raises(NeurouteError, match="no such file"):
            import_weights(tmp_path / name, tmp_path / "b.safetensors", "lehd", NONE)
    torch.save(published().state_dict(), tmp_path / "a.pt")
    with pytest.raises(NeurouteError, match=r"end in \.safetensors"):
        import_weights(tmp_path / "a.pt", tmp_path / "b.pt", "lehd", NONE)
    with pytest.raises(NeurouteError, match="give --network lehd, bq, decoder-only"):
        import_weights(tmp_path / "a.pt", tmp_path / "b.safetensors", None, NONE)


def test_from_the_command_line(tmp_path: Path) -> None:
    torch.save(published().state_dict(), tmp_path / "a.pt")
    out = tmp_path / "new" / "model.safetensors"
    arguments = ["import-weights", str(tmp_path / "a.pt"), "--network", "lehd", "--out", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--heads", "2"])
    assert done.exit_code == 0, done.output
    assert "Lehd(depth=2, width=16, heads=2, feed_forward=24" in done.output
    assert read_about(out)["run"] == "imported/a"
    assert CliRunner().invoke(app, [*arguments, "--depth", "9"]).exit_code == 2
