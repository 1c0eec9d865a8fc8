"""Weights from elsewhere: where they lie in a file, our own names, our own checkpoints, and refusals."""

import hashlib
import logging
import os
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import call, done
from refusals import one_line
from safetensors.torch import save_file
from torch import Tensor, nn

import published_code
from neuroute.core.digest import code_digest
from neuroute.core.errors import NeurouteError
from neuroute.networks.bq import Bq
from neuroute.networks.decoder_only import DecoderOnly
from neuroute.networks.import_weights import NETWORKS, import_weights
from neuroute.networks.lehd import Lehd
from neuroute.networks.mvmoe import MvMoe
from neuroute.networks.sit import Sit
from neuroute.networks.weights import build, load_checkpoint, read_about, save_checkpoint
from neuroute.specs.objects import Network

HEADS = 2
SIZE = {"depth": 2, "width": 16, "heads": HEADS, "feed_forward": 24}
SHALLOW = {name: SIZE[name] for name in ("depth", "width", "heads")}
NONE: dict[str, Any] = {}


def published() -> dict[str, Tensor]:
    """LEHD's tensors as its authors call them."""
    return published_code.weights(dict(published_code.lehd("tsp", published_code.Size())))


def imported(tmp_path: Path, content: Any, network: str | None = None, **given: Any) -> tuple[Any, dict[str, Any]]:
    torch.save(content, tmp_path / "weights.pt")
    out = tmp_path / "model.safetensors"
    import_weights(tmp_path / "weights.pt", out, network, {"heads": HEADS} | given)
    return load_checkpoint(out)


def refused(tmp_path: Path, content: Any, match: str, network: str | None = None, **given: Any) -> None:
    """One line, and nothing written."""
    with one_line(match):
        imported(tmp_path, content, network, **given)
    assert not (tmp_path / "model.safetensors").exists()


# -- what comes in --------------------------------------------------------------------------------------------------


def test_the_checkpoint_says_where_it_comes_from(tmp_path: Path) -> None:
    _, about = imported(tmp_path, published(), train_nodes=20)
    assert about["run"] == "imported/weights"
    assert about["code"] == code_digest(NETWORKS["lehd"])
    digest = hashlib.sha256((tmp_path / "weights.pt").read_bytes()).hexdigest()
    assert about["source"] == {"file": "weights.pt", "sha256": digest, "layout": "LEHD for the TSP"}
    arguments = SIZE | {"train_nodes": 20}
    assert about["network"] == {"kind": NETWORKS["lehd"], "arguments": arguments}


@pytest.mark.parametrize("holder", [None, "model_state_dict", "state_dict", "model"])
@pytest.mark.parametrize(
    "prefix", ["", "module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.", "policy.", "policy._orig_mod."]
)
def test_where_the_state_dict_may_lie(tmp_path: Path, holder: str | None, prefix: str) -> None:
    state = OrderedDict((prefix + name, tensor) for name, tensor in published().items())
    net, _ = imported(tmp_path, {holder: state, "epoch": 3} if holder else state)
    assert torch.equal(net.head.bias, state[f"{prefix}decoder.Linear_final.bias"])


@pytest.mark.parametrize(
    ("name", "net"),
    [
        ("lehd", Lehd(**SIZE)),
        ("bq", Bq(**SIZE)),
        ("sit", Sit(**SIZE, attention="self", representatives=2)),
        ("mvmoe", MvMoe(**SIZE, inputs="VRPTW", experts=0)),
        ("decoder-only", DecoderOnly(**SHALLOW)),
        ("decoder-only", DecoderOnly(**SHALLOW, gate=False, rezero=False)),
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
    torch.save(Bq(1, 24, 2, 8).state_dict(), tmp_path / "a.pt")
    import_weights(tmp_path / "a.pt", tmp_path / "a.safetensors", "bq", NONE)
    assert read_about(tmp_path / "a.safetensors")["network"]["arguments"]["heads"] == 12
    torch.save(DecoderOnly(1, 16, 2).state_dict(), tmp_path / "b.pt")
    with pytest.raises(NeurouteError, match="--argument heads"):
        import_weights(tmp_path / "b.pt", tmp_path / "b.safetensors", "decoder-only", NONE)


def test_a_network_of_ones_own_takes_the_tensors_that_its_class_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its module is called, and only where it is named."""
    module = "from neuroute.networks.bq import Bq\n\n\nclass MvMoe(Bq):\n    pass\n"
    (tmp_path / "lehd.py").write_text(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    state = {f"module.{name}": tensor for name, tensor in Bq(**SIZE).state_dict().items()}
    torch.save({"state_dict": state, "epoch": 3}, "a.ckpt")
    arguments = [f"{name}={value}" for name, value in SIZE.items()]
    options = ("--network", "lehd:MvMoe", *(part for each in arguments for part in ("--argument", each)))
    said = done("import-weights", "a.ckpt", "--out", "a.safetensors", *options)
    assert "MvMoe(depth=2" in said
    assert load_checkpoint(Path("a.safetensors"), trusted=["lehd:MvMoe"])[0].width == SIZE["width"]
    refused(tmp_path, state, r"does not fit MvMoe\(.*depth=3", "lehd:MvMoe", **SIZE | {"depth": 3})
    refused(tmp_path, published(), "is laid out as .*, not as lehd:MvMoe", "lehd:MvMoe")
    refused(tmp_path, state, "no such class in a module", "lehd:Net")
    refused(tmp_path, state, "or module:Net")


# -- a checkpoint of ours -------------------------------------------------------------------------------------------


def of_other_code(path: Path) -> nn.Module:
    network = Network(kind=NETWORKS["bq"], arguments={"depth": 1, "width": 8, "heads": 2, "feed_forward": 8})
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
    assert (about["code"], about["earlier_code"]) == (code_digest(NETWORKS["bq"]), ["before"])
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
    wider = {"kind": NETWORKS["bq"], "arguments": {"depth": 2, "width": 8, "heads": 2, "feed_forward": 8}}
    save_checkpoint(path, build(Network.model_validate(wider | {"arguments": wider["arguments"] | {"depth": 1}})), {
        "run": "x", "network": wider, "code": "before"
    })  # fmt: skip
    with pytest.raises(NeurouteError, match=r"does not fit .*missing: layers\.1\."):
        import_weights(path, out, None, NONE)
    assert not out.exists()


# -- refusals -------------------------------------------------------------------------------------------------------


def test_missing_and_left_over_names(tmp_path: Path) -> None:
    state = published()
    without = {k: t for k, t in state.items() if ".k_1." not in k}
    refused(tmp_path, without, r"does not fit Lehd\(.*missing: decoder.k_1.weight, decoder.k_1.bias")
    many = {f"x{i}": torch.zeros(1) for i in range(10)}
    refused(tmp_path, state | many, "x0, x1, x2 and 7 more")
    refused(tmp_path, many, "unknown layout .*x0, x1, x2 and 7 more.*give --network lehd, ")
    refused(tmp_path, many, "no tensor 'embed.weight' among its 10", "bq")
    own = Bq(**SIZE).state_dict()
    refused(tmp_path, own | {"y": torch.zeros(1)}, r"left over: y\b", "bq")
    refused(tmp_path, Lehd(**SIZE).state_dict(), "does not fit Bq", "bq")
    refused(tmp_path, own, "no network 'pointer'", "pointer")


def test_numbers_that_are_none(tmp_path: Path) -> None:
    state = published()
    refused(tmp_path, state | {"decoder.Linear_final.bias": torch.tensor([1])}, "int64, not torch.float32")
    refused(tmp_path, state | {"decoder.Linear_final.bias": torch.tensor([1j])}, "complex64, not real numbers")


class Malicious:
    def __init__(self, touched: Path) -> None:
        self.touched = touched

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.touched}",)


@pytest.mark.parametrize("archive", [True, False])
def test_a_pickle_that_would_execute_code_is_refused(tmp_path: Path, archive: bool) -> None:
    torch.save(
        {"model_state_dict": published(), "x": Malicious(tmp_path / "touched")},
        tmp_path / "a.pt",
        _use_new_zipfile_serialization=archive,
    )
    with one_line(r"system, not only tensors.*save the weights alone"):
        import_weights(tmp_path / "a.pt", tmp_path / "b.safetensors", "lehd", NONE)
    assert not (tmp_path / "touched").exists()
    assert not (tmp_path / "b.safetensors").exists()


def test_logs_of_numpy_before_version_2_are_read(tmp_path: Path) -> None:
    """Their scalars name numpy.core, not numpy._core."""
    content = {"result_log": {"val_gap": [np.float64(1.5)]}, "model_state_dict": published()}
    torch.save(content, tmp_path / "weights.pt", _use_new_zipfile_serialization=False)
    raw = (tmp_path / "weights.pt").read_bytes()
    assert b"cnumpy._core.multiarray\n" in raw
    (tmp_path / "old.pt").write_bytes(raw.replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"))
    import_weights(tmp_path / "old.pt", tmp_path / "model.safetensors", None, {"heads": HEADS})
    assert isinstance(load_checkpoint(tmp_path / "model.safetensors")[0], Lehd)


@pytest.mark.parametrize("content", [b"", b"hello world", b"PK\x03\x04 cut", b"\x80\x04\x95junkjunk"])
@pytest.mark.parametrize("name", ["a.pt", "a.safetensors"])
def test_files_that_are_no_weights(tmp_path: Path, name: str, content: bytes, recwarn: pytest.WarningsRecorder) -> None:
    (tmp_path / name).write_bytes(content)
    with one_line("not a readable"):
        import_weights(tmp_path / name, tmp_path / "b.safetensors", "lehd", NONE)
    assert not recwarn.list


def test_from_the_command_line(tmp_path: Path) -> None:
    torch.save(published(), tmp_path / "a.pt")
    out = tmp_path / "new" / "model.safetensors"
    arguments = ("import-weights", tmp_path / "a.pt", "--out", out, "--argument")
    said = done(*arguments, "heads=2")
    assert "Lehd(depth=2, width=16, feed_forward=24, train_nodes=100, heads=2)" in said
    assert read_about(out)["run"] == "imported/a"
    for wrong in ("depth=9", "heads"):
        assert call(*arguments, wrong)[0] == 2
