"""Weights from elsewhere as checkpoints: published ones, exported ones, and our own after a change of code."""

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from neuroute.core.errors import NeurouteError
from neuroute.networks.published_layouts import depth_of, from_lehd, some
from neuroute.networks.tensor_files import metadata, read_tensors
from neuroute.networks.weights import (
    KEY,
    all_finite,
    build,
    describe,
    is_bundled,
    parameters,
    read_about,
    save_checkpoint,
)
from neuroute.plan.digest import code_digest
from neuroute.plan.objects import Network

KINDS = {
    "lehd": "neuroute.networks.lehd:Lehd",
    "bq": "neuroute.networks.bq:Bq",
    "decoder-only": "neuroute.networks.decoder_only:DecoderOnly",
}
PUBLISHED_HEADS = {"lehd": 8, "bq": 12}  # no tensor tells
TRAIN_NODES = 100
log = logging.getLogger("neuroute.import")


def import_weights(file: Path, out: Path, network: str | None, shape: Mapping[str, int | None]) -> str:
    """Write the weights in `file` to the checkpoint `out`; returns a line that says what they are.

    `shape` holds what the user says of depth, width, heads, feed_forward and train_nodes; None is read from the
    tensors, heads and train_nodes are the published ones.  A checkpoint of ours needs neither: see `_stamp_anew`.
    Raises NeurouteError, and writes nothing, when a tensor is missing, left over, of another shape or not finite.
    """
    if out.suffix != ".safetensors":
        raise NeurouteError(f"--out {out}: a checkpoint's name must end in .safetensors")
    given = {name: value for name, value in shape.items() if value is not None}
    if file.suffix == ".safetensors" and KEY in metadata(file):
        return _stamp_anew(file, out, network, given)
    if network not in KINDS:
        raise NeurouteError(f"{file}: does not say what it is; give --network {', '.join(KINDS)}")
    tensors = read_tensors(file)
    if network == "lehd" and "embed.weight" not in tensors:
        tensors = from_lehd(tensors, file)
    described = Network(kind=KINDS[network], arguments=_arguments(network, tensors, given, file))
    net = _filled(described, tensors, file)
    with file.open("rb") as opened:
        sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
    about = {
        "run": f"imported/{file.stem}",
        "code": code_digest(described.kind),
        "network": described.model_dump(),
        "source": {"file": file.name, "sha256": sha256},
    }
    save_checkpoint(out, net, about)
    return f"{out}: {describe(described)}, {parameters(net):,} parameters from {file}"


def _stamp_anew(file: Path, out: Path, network: str | None, given: Mapping[str, int]) -> str:
    """Keep a checkpoint of ours under the present network code, for when only the code's form has changed.

    That the arithmetic is still the same is the user's word; the tensors are checked.
    """
    about = read_about(file)
    described = Network.model_validate(about["network"])
    if not is_bundled(described.kind) and network != described.kind:
        raise NeurouteError(f"{file}: is a {described.kind}; give --network {described.kind} if you trust its module")
    if given or KINDS.get(network or "", described.kind) != described.kind:
        raise NeurouteError(f"{file}: is a checkpoint of {describe(described)}; leave out --network and its shape")
    net = _filled(described, read_tensors(file), file)
    code = code_digest(described.kind)
    if code != about["code"]:
        log.info(
            "%s: the network's code was %s and is %s; you say that it computes the same (check a gap)",
            file, about["code"], code,
        )  # fmt: skip
        about = about | {"code": code, "earlier_code": [*about.get("earlier_code", []), about["code"]]}
    save_checkpoint(out, net, about)
    return f"{out}: {describe(described)} of {about['run']}, stamped with network code {code}"


def _arguments(network: str, tensors: Mapping[str, Tensor], given: Mapping[str, int], file: Path) -> dict[str, Any]:
    """The network's arguments, from its own tensor names and shapes; what is given goes first."""
    needed = ["embed.weight", "layers.0.up.weight"]
    absent = [name for name in needed if name not in tensors or tensors[name].dim() != 2]
    if absent:
        raise NeurouteError(
            f"{file}: no matrix '{absent[0]}' among its {len(tensors)} tensors ({some(sorted(tensors))}); "
            f"for {network} they must be called as neuroute calls them"
        )
    width, feed_forward = tensors["embed.weight"].shape[0], tensors["layers.0.up.weight"].shape[0]
    heads = given.get("heads", PUBLISHED_HEADS.get(network))
    if heads is None:
        raise NeurouteError(f"{file}: no tensor tells the number of heads; give --heads")
    if "heads" not in given:
        log.info("%s: %d heads, as published; no tensor tells (--heads)", file, heads)
    arguments: dict[str, Any] = {"depth": depth_of(tensors, "layers"), "width": width, "heads": heads}
    if network == "decoder-only":
        if "feed_forward" in given:
            raise NeurouteError("--feed-forward: the decoder-only FFN is always four times as wide; leave it out")
        arguments |= {"gate": "layers.0.gate.weight" in tensors, "rezero": "layers.0.alpha1" in tensors}
    else:
        arguments |= {"feed_forward": feed_forward}
    return arguments | {"train_nodes": TRAIN_NODES, **given}


def _filled(described: Network, tensors: Mapping[str, Tensor], file: Path) -> nn.Module:
    """The network with these weights; raises NeurouteError with the first few names that do not fit."""
    net = build(described)
    own = net.state_dict()
    problems = {
        "missing": sorted(set(own) - set(tensors)),
        "left over": sorted(set(tensors) - set(own)),
        "of another shape": [
            f"{name} {tuple(tensors[name].shape)} for {tuple(own[name].shape)}"
            for name in own
            if name in tensors and tensors[name].shape != own[name].shape
        ],
    }
    says = [f"{what}: {some(names)}" for what, names in problems.items() if names]
    if says:
        raise NeurouteError(f"{file}: does not fit {describe(described)} ({'; '.join(says)})")
    net.load_state_dict(dict(tensors))
    if not all_finite(net):
        raise NeurouteError(f"{file}: holds weights that are not finite; get it again")
    return net
