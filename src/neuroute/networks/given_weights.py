"""Weights that config.yaml gives in place of a training: checked against the run's network, then its checkpoint."""

import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_json, write_text
from neuroute.networks.foreign_weights import Weights, faults, fit, read_weights, write_checkpoint
from neuroute.networks.weights import describe, describe_source, load_checkpoint, weights_digest
from neuroute.plan.objects import GivenRun


def take_weights(run: GivenRun, out: Path, network_code: str) -> None:
    """Write model.safetensors, an empty log.jsonl and run.json into `out`, as a training does.

    What a training has left there of stages and moments goes: it is not of these weights.
    Raises NeurouteError, and writes nothing, if the weights are not of the run's network.
    """
    weights, tensors = tensors_of(run, network_code)
    source = weights.source
    about = {"run": run.id, "network": run.network.model_dump(), "code": network_code, "source": source}
    shutil.rmtree(out / "stages", ignore_errors=True)
    (out / "model.moments.safetensors").unlink(missing_ok=True)
    write_checkpoint(out / "model.safetensors", tensors, about)
    write_text(out / "log.jsonl", "")
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
            f"{'; '.join(differing)}; give others, or change the run's `arguments`"
        )
    if weights.about is not None and weights.about["code"] != network_code:
        raise NeurouteError(
            f"{where}: {weights.file} was written by another version of the network's code; if its arithmetic is the "
            "same, keep the weights with `neuroute import-weights`"
        )
    return weights, fit(weights, run.network)
