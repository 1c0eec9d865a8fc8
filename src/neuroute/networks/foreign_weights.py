"""What a file of weights holds, whoever wrote it, and whether it is the network that is asked for."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors.torch import save_file
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.networks.layouts.arguments import read_arguments
from neuroute.networks.layouts.rules import Layout, published_name, rename, some
from neuroute.networks.layouts.tables import recognise
from neuroute.networks.weights import KEY, build, describe, metadata, read_about, read_tensors
from neuroute.specs.objects import Network


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
        return {"file": self.file.name, "sha256": digest(self.file), "layout": layout}


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
    tensors_here = _counted(rename(layout, tensors, file))
    return Weights(file, tensors_here, layout, _read_arguments(layout.kind, tensors_here) | arguments)


def faults(weights: Weights, network: Network) -> list[str]:
    """Say which tensors are missing, left over or of another shape than in this network; nothing if none is."""
    expected, tensors = _expected(network), weights.tensors
    differences = {
        "missing": [_as_there(weights.layout, name) for name in expected if name not in tensors],
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


def digest(file: Path) -> str:
    """SHA-256 of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _expected(network: Network) -> dict[str, Tensor]:
    """Shapes and types of its tensors."""
    with torch.device("meta"):
        return build(network).state_dict()


def _counted(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """With the counters that files of before PyTorch 0.4.1 lack beside means of norms: 0, as torch fills them in."""
    norms = [name.removesuffix("running_mean") for name in tensors if name.endswith("running_mean")]
    return {f"{norm}num_batches_tracked": torch.tensor(0) for norm in norms} | tensors


def _as_there(layout: Layout | None, name: str) -> str:
    """A tensor's name in the file."""
    return name if layout is None else published_name(layout, name)


def _read_arguments(kind: str, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    try:
        return read_arguments(kind, tensors)
    except (KeyError, IndexError):  # what is missing is said when it does not fit
        return {}
