"""Weights from elsewhere as checkpoints, our own after a change of code too.

Those that config.yaml gives in place of a training are checked against the run's network.
"""

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors.torch import save_file
from torch import Tensor

from neuroute.core.digest import code_digest
from neuroute.core.errors import NeurouteError
from neuroute.core.files import sha256, write_json, write_text, write_whole
from neuroute.networks.layouts import (
    Layout,
    layouts,
    published_name,
    read_arguments,
    recognise,
    rename,
    some,
    unsettled,
)
from neuroute.networks.weights import (
    KEY,
    build,
    describe,
    describe_source,
    is_bundled,
    load_checkpoint,
    metadata,
    pack_stages,
    read_about,
    read_tensors,
    weights_digest,
)
from neuroute.specs.objects import GivenRun, Network


@dataclass(frozen=True)
class Weights:
    """Tensors under our names, and what is known besides.

    Attributes:
        file: where they were read from.
        tensors: by our names; of a published layout emptied of what is not ours.
        layout: the published layout of the file; None where tensors are called as here.
        told: arguments that the file tells or its layout fixes.
        about: of a checkpoint of ours, what it says of itself.
    """

    file: Path
    tensors: dict[str, Tensor]
    layout: Layout | None = None
    told: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] | None = None

    @property
    def fixed(self) -> Mapping[str, Any]:
        """Arguments that a network must have, though its tensors would fit with others."""
        if self.about is not None:
            return {name: value for name, value in self.told.items() if name != "train_nodes"}
        if self.layout is None:
            return {}
        names = {*self.layout.trained, *(["heads"] if self.layout.heads else [])}
        return {name: self.told[name] for name in names}

    @property
    def described(self) -> str:
        """What it holds, as far as it says."""
        if self.about is not None:
            return describe(Network.model_validate(self.about["network"]))
        text = ", ".join(f"{name}={value}" for name, value in self.told.items())
        return f"{self.layout.name} ({text})" if self.layout else f"{len(self.tensors)} tensors"

    @property
    def source(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        layout = self.layout.name if self.layout else None
        return {"file": self.file.name, "sha256": sha256(self.file), "layout": layout}


def read_weights(file: Path) -> Weights:
    """Read a checkpoint of ours, a file in a published layout, or one whose tensors are called as here.

    Nothing in the file is executed.  Raises NeurouteError for a file that is none, or whose layout is not as known.
    """
    if file.suffix == ".safetensors" and KEY in metadata(file):
        about = read_about(file)
        return Weights(file, read_tensors(file), told=about["network"]["arguments"], about=about)
    tensors = read_tensors(file)
    layout = recognise(tensors)
    if layout is None:
        return Weights(file, _counted(tensors))
    arguments = dict(layout.trained)
    if layout.heads:
        arguments["heads"] = len(tensors[layout.heads])
    tensors_here, told = _counted(rename(layout, tensors, file)), dict[str, Any]()
    with suppress(KeyError, IndexError):  # what is missing is said when it does not fit
        told = read_arguments(layout.kind, tensors_here)
    return Weights(file, tensors_here, layout, told | arguments)


def faults(weights: Weights, network: Network) -> list[str]:
    """Say which tensors are missing, left over or of another shape than in this network; nothing if none is."""
    expected, tensors, layout = _expected(network), weights.tensors, weights.layout
    missing = [name for name in expected if name not in tensors]
    differences = {
        "missing": [name if layout is None else published_name(layout, name) for name in missing],
        "left over": [name for name in tensors if name not in expected],
        "of another shape": [
            f"{name} {tuple(tensors[name].shape)} for {tuple(expected[name].shape)}"
            for name in expected
            if name in tensors and tensors[name].shape != expected[name].shape
        ],
    }
    return [f"{what}: {some(names)}" for what, names in differences.items() if names]


def fit(weights: Weights, network: Network) -> dict[str, Tensor]:
    """Return the tensors as this network has them.

    Raises NeurouteError that says which are missing, left over, of another shape or not finite.
    """
    if says := faults(weights, network):
        raise NeurouteError(f"{weights.file}: does not fit {describe(network)} ({'; '.join(says)})")
    expected = _expected(network)
    for name, tensor in weights.tensors.items():
        if tensor.is_floating_point() != expected[name].is_floating_point():
            raise NeurouteError(
                f"{weights.file}: '{name}' holds {tensor.dtype}, not {expected[name].dtype}; export it again"
            )
        if not bool(tensor.isfinite().all()):
            raise NeurouteError(
                f"{weights.file}: has weights that are not finite ('{name}'); download or export it again"
            )
    return {name: weights.tensors[name].to(expected[name].dtype).contiguous() for name in expected}


def write_checkpoint(out: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write what `weights.save_checkpoint` writes, without a copy of the tensors in memory."""

    def write(file: BinaryIO) -> None:
        save_file(dict(tensors), file.name, metadata={KEY: json.dumps(about, sort_keys=True)})
        os.chmod(file.name, os.fstat(file.fileno()).st_mode)  # it is another file now, which the user alone may read
        with open(file.name, "rb") as reopened:
            os.fsync(reopened.fileno())

    write_whole(out, write)


def _expected(network: Network) -> dict[str, Tensor]:
    """Shapes and types of its tensors."""
    with torch.device("meta"):
        return build(network).state_dict()


def _counted(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """With the counters that files of before PyTorch 0.4.1 lack beside means of norms: 0, as torch fills them in."""
    norms = [name.removesuffix("running_mean") for name in tensors if name.endswith("running_mean")]
    return {f"{norm}num_batches_tracked": torch.tensor(0) for norm in norms} | tensors


NETWORKS = {
    "lehd": "neuroute.networks.lehd:Lehd",
    "lehd-cvrp": "neuroute.networks.lehd:LehdCvrp",
    "bq": "neuroute.networks.bq:Bq",
    "bq-cvrp": "neuroute.networks.bq:BqCvrp",
    "sit": "neuroute.networks.sit:Sit",
    "sit-cvrp": "neuroute.networks.sit:SitCvrp",
    "pomo": "neuroute.networks.pomo:Pomo",
    "pomo-cvrp": "neuroute.networks.pomo:PomoCvrp",
    "icam": "neuroute.networks.icam:Icam",
    "icam-cvrp": "neuroute.networks.icam:IcamCvrp",
    "mvmoe": "neuroute.networks.mvmoe:MvMoe",
    "decoder-only": "neuroute.networks.decoder_only:DecoderOnly",
} | {layout.alias: layout.kind for layout in layouts() if layout.alias}
log = logging.getLogger("neuroute.import")


def import_weights(file: Path, out: Path, network: str | None, arguments: Mapping[str, Any]) -> str:
    """Write the weights in `file` to the checkpoint `out`; returns a line that says what they are.

    A published layout says what network it is; of tensors that are called as here `network` does: a key of NETWORKS, or
    module:Class of a network outside this package, whose module is imported.
    `arguments` are the network's; what neither it nor a tensor tells is as published.  A checkpoint of ours
    needs neither: see `_stamp_anew`.
    Raises NeurouteError, and writes nothing, when a tensor is missing, left over, of another shape or not finite.
    """
    if out.suffix != ".safetensors":
        raise NeurouteError(f"--out {out}: a checkpoint's name must end in .safetensors")
    if network is not None and network not in NETWORKS and ":" not in network:
        raise NeurouteError(f"no network '{network}'; give --network {', '.join(NETWORKS)}")
    weights = read_weights(file)
    if weights.about is not None:
        return _stamp_anew(weights, out, network, arguments)
    described = _described(weights, network, arguments)
    tensors = fit(weights, described)
    about = {
        "run": f"imported/{file.stem}",
        "code": code_digest(described.kind),
        "network": described.model_dump(),
        "source": weights.source,
    }
    write_checkpoint(out, tensors, about)
    count = sum(tensor.numel() for tensor in tensors.values() if tensor.is_floating_point())
    layout = f", laid out as {weights.layout.name}" if weights.layout else ""
    return f"{out}: {describe(described)}, {count:,} parameters from {file}{layout}"


def _described(weights: Weights, network: str | None, arguments: Mapping[str, Any]) -> Network:
    """What network the weights are, and its arguments; what is given goes first."""
    file, layout = weights.file, weights.layout
    kind_of_name = None if network is None else NETWORKS.get(network, network)
    kind = layout.kind if layout else kind_of_name
    if kind is None:
        raise NeurouteError(
            f"{file}: unknown layout ({len(weights.tensors)} tensors: {some(sorted(weights.tensors))}); for neuroute's "
            f"own names give --network {', '.join(NETWORKS)}, or module:Net"
        )
    if layout and kind_of_name not in (None, kind):
        raise NeurouteError(f"{file}: is laid out as {layout.name}, not as {network}; leave out --network")
    if not is_bundled(kind):  # its class says the rest
        return Network(kind=kind, arguments=dict(arguments))
    usual = dict(layout.usual) if layout else next((dict(each.usual) for each in layouts() if each.kind == kind), {})
    try:
        file_arguments = weights.told or read_arguments(kind, weights.tensors)
    except (KeyError, IndexError) as error:
        raise NeurouteError(
            f"{file}: no tensor {error} among its {len(weights.tensors)} ({some(sorted(weights.tensors))}); a "
            f"{kind.partition(':')[2]} needs neuroute's tensor names"
        ) from None
    if variants := () if "inputs" in arguments else unsettled(kind, weights.tensors):
        raise NeurouteError(
            f"{file}: its tensors do not tell whether it is for {' or '.join(variants)}; give --argument "
            f"inputs={variants[0]}"
        )
    assumed = {name: value for name, value in usual.items() if name not in (*file_arguments, *arguments)}
    if not layout and kind == NETWORKS["decoder-only"] and "heads" not in arguments:
        raise NeurouteError(f"{file}: its tensors do not tell the number of heads; state it: --argument heads=8")
    if assumed:
        log.info("%s: %s, as published; not told by tensors", file, ", ".join(f"{k}={v}" for k, v in assumed.items()))
    return Network(kind=kind, arguments={**file_arguments, **assumed, **arguments})


def _stamp_anew(weights: Weights, out: Path, network: str | None, arguments: Mapping[str, Any]) -> str:
    """Keep a checkpoint of ours under the present network code, for when only the code's form has changed.

    That the arithmetic is still the same is the user's word; the tensors are checked.
    """
    file, about = weights.file, dict(weights.about or {})
    described = Network.model_validate(about["network"])
    if not is_bundled(described.kind) and network != described.kind:
        raise NeurouteError(f"{file}: is a {described.kind}; give --network {described.kind} if you trust its module")
    if arguments or NETWORKS.get(network or "", described.kind) != described.kind:
        raise NeurouteError(f"{file}: is a checkpoint of {describe(described)}; leave out --network and --argument")
    tensors = fit(weights, described)
    code = code_digest(described.kind)
    if code != about["code"]:
        same = "you say that it computes the same (check a gap)"
        log.info("%s: the network's code was %s and is %s; %s", file, about["code"], code, same)
        about |= {"code": code, "earlier_code": [*about.get("earlier_code", []), about["code"]]}
    write_checkpoint(out, tensors, about)
    return f"{out}: {describe(described)} of {about['run']}, stamped with network code {code}"


def take_weights(run: GivenRun, out: Path, network_code: str) -> None:
    """Write model.safetensors, an empty log.jsonl, a stages.zip of nothing and run.json into `out`, as a training does.

    Raises NeurouteError, and writes nothing, if the weights are not of the run's network.
    """
    weights, tensors = tensors_of(run, network_code)
    source = weights.source
    about = {"run": run.id, "network": run.network.model_dump(), "code": network_code, "source": source}
    write_checkpoint(out / "model.safetensors", tensors, about)
    write_text(out / "log.jsonl", "")
    pack_stages(out / "stages.zip", {})
    summary: dict[str, Any] = {
        "run": run.id,
        "code": network_code,
        "weights_sha256": weights_digest(load_checkpoint(out / "model.safetensors", expected=run.network)[0]),
        "weights": describe_source(source),
        "source": source,
        "parameters": sum(tensor.numel() for tensor in tensors.values() if tensor.is_floating_point()),
    }
    write_json(out / "run.json", summary)


def tensors_of(run: GivenRun, network_code: str, where: str = "config.yaml") -> tuple[Weights, dict[str, Tensor]]:
    """Read the run's weights.  Raises NeurouteError that says how they differ from its network."""
    where = f"{where}: runs.{run.id}.weights"
    try:
        weights = read_weights(Path(run.weights))
    except NeurouteError as error:
        raise NeurouteError(f"{where}: {error}") from None
    arguments = run.network.arguments
    differing = [
        f"{name} is {value}, not {arguments[name]}"
        for name, value in weights.fixed.items()
        if name in arguments and arguments[name] != value
    ]
    differing += faults(weights, run.network)
    if differing:
        raise NeurouteError(
            f"{where}: {weights.file} holds {weights.described}, but the run is {describe(run.network)}: "
            f"{'; '.join(differing)}; give others, or change its `arguments`"
        )
    if weights.about is not None and weights.about["code"] != network_code:
        raise NeurouteError(
            f"{where}: {weights.file} was written by another version of the network; run `neuroute import-weights`, if "
            "its arithmetic is the same"
        )
    return weights, fit(weights, run.network)
