"""Weights from elsewhere as checkpoints, our own after a change of code too.

Those that config.yaml gives in place of a training are checked against the run's network.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from neuroute.core.digest import code_digest
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_json, write_text
from neuroute.networks.foreign_weights import Weights, faults, fit, read_weights, write_checkpoint
from neuroute.networks.layouts.arguments import read_arguments, unsettled
from neuroute.networks.layouts.rules import some
from neuroute.networks.layouts.tables import layouts
from neuroute.networks.weights import (
    describe,
    describe_source,
    is_bundled,
    load_checkpoint,
    pack_stages,
    weights_digest,
)
from neuroute.specs.objects import GivenRun, Network

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
    file_arguments = weights.told or _read_arguments(kind, weights)
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


def _read_arguments(kind: str, weights: Weights) -> dict[str, Any]:
    """The arguments of tensors that are called as here."""
    try:
        return read_arguments(kind, weights.tensors)
    except (KeyError, IndexError) as error:
        raise NeurouteError(
            f"{weights.file}: no tensor {error} among its {len(weights.tensors)} ({some(sorted(weights.tensors))}); "
            f"a {kind.partition(':')[2]} needs neuroute's tensor names"
        ) from None


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
