"""Checkpoints: round trip, equal bytes, and refusing what does not fit."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from neuroute.core.errors import NeurouteError
from neuroute.networks.import_weights import import_weights
from neuroute.networks.weights import build, load_checkpoint, save_checkpoint
from neuroute.specs.objects import Network

KIND = "neuroute.networks.decoder_only:DecoderOnly"
SMALL = Network(kind=KIND, arguments={"depth": 2, "width": 8, "heads": 2, "train_nodes": 20})


def written(path: Path) -> torch.nn.Module:
    torch.manual_seed(1)
    net = build(SMALL)
    save_checkpoint(path, net, {"run": "scaling/x", "network": SMALL.model_dump(), "code": "c"})
    return net


def test_round_trip_and_equal_bytes(tmp_path: Path) -> None:
    net = written(tmp_path / "a.safetensors")
    written(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    loaded, about = load_checkpoint(tmp_path / "a.safetensors", expected=SMALL)
    assert about["run"] == "scaling/x"
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name])


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "a.safetensors")
    other = Network(kind=KIND, arguments={**SMALL.arguments, "depth": 3})
    with pytest.raises(NeurouteError, match="depth=2.*depth=3"):
        load_checkpoint(tmp_path / "a.safetensors", expected=other)


def test_a_checkpoint_outlives_the_file_that_held_its_network(tmp_path: Path) -> None:
    """A network's class may move to another file of `networks`: the run's spec and old checkpoints still fit."""
    moved = SMALL.model_copy(update={"kind": "neuroute.networks.older_name:DecoderOnly"})
    net = written(tmp_path / "a.safetensors")
    save_checkpoint(tmp_path / "old", net, {"run": "scaling/x", "network": moved.model_dump(), "code": "c"})
    loaded, about = load_checkpoint(tmp_path / "old", expected=SMALL)
    assert about["network"]["kind"] == KIND
    assert torch.equal(loaded.state_dict()["head.bias"], net.state_dict()["head.bias"])
    assert moved.canonical() == SMALL.canonical()


def test_missing_or_extra_tensors_are_named(tmp_path: Path) -> None:
    net = build(SMALL)
    tensors = dict(net.state_dict())
    tensors.pop("head.bias")
    about = {"neuroute": json.dumps({"network": SMALL.model_dump(), "run": "x", "code": "c"})}
    save_file(tensors, tmp_path / "a.safetensors", metadata=about)
    with pytest.raises(NeurouteError, match=r"head\.bias"):
        load_checkpoint(tmp_path / "a.safetensors")


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "garbage.safetensors").write_bytes(b"\x80\x04pickle")
    with pytest.raises(NeurouteError, match="not a readable safetensors file .*; delete it and make it again"):
        load_checkpoint(tmp_path / "garbage.safetensors")
    torch.save(build(SMALL).state_dict(), tmp_path / "theirs.pt")
    with pytest.raises(NeurouteError, match="theirs.pt: this is not a checkpoint .*import-weights"):
        load_checkpoint(tmp_path / "theirs.pt")
    save_file({"w": torch.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(NeurouteError, match="not a checkpoint written by neuroute"):
        load_checkpoint(tmp_path / "foreign")
    with pytest.raises(NeurouteError, match="no such checkpoint"):
        load_checkpoint(tmp_path / "absent")


@pytest.mark.parametrize(
    "kind", ["os:system", "neuroute.pipeline.cli:app", "neuroute.networks.weights:build", "subprocess:run"]
)
def test_a_checkpoint_cannot_call_anything_but_a_network(tmp_path: Path, kind: str) -> None:
    network = {"kind": kind, "arguments": {"command": f"touch {tmp_path}/called"}}
    save_checkpoint(tmp_path / "a", build(SMALL), {"run": "x", "network": network, "code": "c"})
    with pytest.raises(NeurouteError, match="does not exist|code is missing or changed"):
        load_checkpoint(tmp_path / "a")
    with pytest.raises(NeurouteError, match="does not exist|no subclass"):
        load_checkpoint(tmp_path / "a", trusted=[kind])
    (tmp_path / "a").rename(tmp_path / "a.safetensors")
    with pytest.raises(NeurouteError, match="does not exist|if you trust its module"):
        import_weights(tmp_path / "a.safetensors", tmp_path / "b.safetensors", None, {})
    assert not (tmp_path / "called").exists()


def test_a_network_of_ones_own_says_how_it_is_trusted(tmp_path: Path) -> None:
    about = {"run": "x", "network": {"kind": "mine:Net", "arguments": {}}, "code": "c"}
    save_checkpoint(tmp_path / "a.safetensors", build(SMALL), about)
    with pytest.raises(NeurouteError, match="give mine:Net=.*/a.safetensors, if you trust"):
        load_checkpoint(tmp_path / "a.safetensors")
