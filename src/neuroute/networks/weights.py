"""Checkpoints: weights as safetensors, with what they are as JSON metadata, and the ends of a run's stages.

Loading never executes code.
"""

import hashlib
import importlib
import inspect
import json
import pickle
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from neuroute.core.digest import locate
from neuroute.core.dotted import roots, search_working_folder
from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, scratch_folder, write_whole
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.specs.objects import Network

ARCHITECTURES = "neuroute.networks."
KEY = "neuroute"  # one metadata key holds everything: several would be stored in no fixed order


def build(network: Network) -> RoutingNetwork:
    """Build a fresh network from its dotted name; initialised from torch's current seed.

    The name must come from the plan, never from a file: its module is imported.
    Raises NeurouteError if there is no such network, it takes other arguments, or torch's default dtype is another.
    """
    kind = network_class(network.kind)
    if torch.get_default_dtype() != torch.float32:
        dtype = str(torch.get_default_dtype()).removeprefix("torch.")
        raise NeurouteError(f"torch's default is {dtype}; networks need torch.set_default_dtype(torch.float32)")
    try:
        net = kind(**network.arguments)
        parameters(net)  # of one that is no module yet, as its constructor calls no other, there are none
    except NeurouteError:
        raise
    except Exception as error:  # whatever a user's constructor raises
        why = str(error) if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: {error}"
        raise NeurouteError(f"{network.kind}: cannot be built with {network.arguments} ({why})") from None
    needs = {"width": "estimates of memory need", "depth": "estimates of memory need", "train_nodes": "decodings need"}
    for name, need in needs.items():
        if not isinstance(value := getattr(net, name, None), int):
            raise NeurouteError(f"{network.kind}: its constructor sets no `{name}`, which {need}")
        if isinstance(value, bool) or value < 1:
            raise NeurouteError(f"{network.kind}: its `{name}` is {value}; give a whole number from 1")
    for name, value in net.state_dict().items():
        if not isinstance(value, Tensor) or value.is_complex():
            raise NeurouteError(f"{network.kind}: its state '{name}' is no tensor of real numbers, as checkpoints hold")
    return net


def network_class(kind: str) -> type[RoutingNetwork]:
    module, _, name = kind.partition(":")
    if is_bundled(kind):
        unknown = NeurouteError(f"network '{kind}' does not exist in this version of neuroute")
    else:
        unknown = NeurouteError(f"network '{kind}': no such class in a module beside the Snakefile or on PYTHONPATH")
        search_working_folder()
    try:
        definition = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        is_absent = isinstance(error, AttributeError) or f"{module}.".startswith(f"{error.name or module}.")
        if not (is_bundled(kind) or is_absent):
            raise NeurouteError(f"network '{kind}': {module} cannot be imported ({error})") from None
        raise unknown from None
    except Exception as error:  # whatever a user's module raises
        raise NeurouteError(f"network '{kind}': {module} cannot be imported ({error!r})") from None
    if not (isinstance(definition, type) and issubclass(definition, RoutingNetwork)):
        bases = "PathNetwork or MultiStartNetwork of neuroute.networks.base"
        raise unknown if is_bundled(kind) else NeurouteError(f"network '{kind}': is no subclass of {bases}")
    if definition.__abstractmethods__:
        lacking = ", ".join(sorted(definition.__abstractmethods__))
        raise NeurouteError(f"network '{kind}': lacks {lacking}, which neuroute.networks.base describes")
    if not is_bundled(kind):
        calls = []
        if issubclass(definition, PathNetwork):
            rows = ("rows",) if definition.problem == "tsp" else ("rows", "remaining")
            calls = [rows, (*rows, "attention_scale")]
        elif issubclass(definition, MultiStartNetwork):
            calls = [("prepared", "context", "current", "mask")]
        for arguments in calls:
            try:
                inspect.signature(definition.decide).bind(None, *arguments)
            except TypeError as error:
                longest = ", ".join(calls[-1]) + ("" if len(calls) == 1 else "=1.0")
                raise NeurouteError(f"network '{kind}': {error}; write it as `def decide(self, {longest})`") from None
    return definition


def is_bundled(kind: str) -> bool:
    """Whether a network is one of this package's, or of an installed system, which a checkpoint may name."""
    return kind.startswith(ARCHITECTURES) or kind.partition(".")[0] in roots()


def save_checkpoint(path: Path, net: nn.Module, about: dict[str, Any]) -> None:
    """`about` must hold "network" (a Network as a dict); equal weights and `about` give equal bytes."""
    data = checkpoint_bytes(net, about)
    write_whole(path, lambda file: file.write(data))


def checkpoint_bytes(net: nn.Module, about: dict[str, Any]) -> bytes:
    """What `save_checkpoint` writes."""
    # Copies: safetensors refuses tensors that share memory, as tied weights do.
    copies = {
        name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in net.state_dict().items()
    }
    return save(copies, metadata={KEY: json.dumps(about, sort_keys=True)})


def weights_digest(net: nn.Module) -> str:
    """Return the sha256 of a network's weights, whatever else their file says."""
    digest = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_about(path: Path) -> dict[str, Any]:
    """What a checkpoint says of itself; raises NeurouteError when it is not one of ours."""
    foreign = "this is not a checkpoint written by neuroute; `neuroute import-weights` converts others' weights"
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except FileNotFoundError:
        raise NeurouteError(f"{path}: no such checkpoint; train it with `neuroute train <run>`") from None
    except (SafetensorError, OSError) as error:
        if path.suffix != ".safetensors":
            raise NeurouteError(f"{path}: {foreign}") from None
        raise NeurouteError(
            f"{path}: not a readable safetensors file ({error}); delete it and make it again: `neuroute train <run>`"
        ) from None
    if KEY not in metadata:
        raise NeurouteError(f"{path}: no '{KEY}' metadata; {foreign}")
    try:
        about = json.loads(metadata[KEY])
        network = Network.model_validate(about["network"])
        search_working_folder()
        about["network"]["kind"] = locate(network.kind)  # its file may have moved since
        return {"run": about["run"], "code": about["code"], **about}
    except (ValueError, KeyError, TypeError):
        raise NeurouteError(f"{path}: its '{KEY}' metadata is damaged or of another version; retrain the run") from None


def load_checkpoint(
    path: Path, expected: Network | None = None, trusted: Collection[str] = ()
) -> tuple[RoutingNetwork, dict[str, Any]]:
    """The network with its weights, and what the checkpoint says of itself.

    A checkpoint may name a network of this package; another one, whose module would be imported, must be `expected` or
    one of the `trusted` kinds, which the plan names.
    Raises NeurouteError when it holds another architecture than `expected`, or tensors that do not fit.
    """
    about = read_about(path)
    network = Network.model_validate(about["network"])
    if expected is not None and network.canonical() != expected.canonical():
        raise NeurouteError(
            f"{path}: holds {describe(network)}, but {describe(expected)} is asked for; "
            "retrain the run or point at its checkpoint"
        )
    if expected is None and not is_bundled(network.kind) and network.kind not in trusted:
        raise NeurouteError(
            f"{path}: holds {describe(network)}, whose code is missing or changed; give {network.kind}={path}, if you "
            "trust its module"
        )
    net = build(network)
    tensors, expected_tensors = load_file(path), net.state_dict()
    wrong = sorted(set(expected_tensors) ^ set(tensors)) + sorted(
        name for name in set(expected_tensors) & set(tensors) if expected_tensors[name].shape != tensors[name].shape
    )
    if wrong:
        raise NeurouteError(
            f"{path}: {len(wrong)} tensors do not fit {describe(network)}, first '{wrong[0]}': another version of the "
            "network"
        )
    net.load_state_dict(tensors)
    return net.eval(), about


def check_weights(checkpoint: Path, net: nn.Module, run: str) -> None:
    """Raises NeurouteError if weights of a run are no finite numbers, or not those that its run.json states."""
    if not all_finite(net):
        raise NeurouteError(
            f"{checkpoint}: weights of {run} are not finite: its training diverged; lower the learning rate and retrain"
        )
    summary = checkpoint.with_name("run.json")
    if checkpoint.name != "model.safetensors" or not summary.exists():  # which states those of no other file
        return
    digest_then, digest = read_json(summary, f"train {run} again").get("weights_sha256"), weights_digest(net)
    if digest_then not in (None, digest):
        raise NeurouteError(
            f"{checkpoint}: weights of {run} (sha256 {digest[:16]}) differ from run.json's "
            f"({digest_then[:16]}); delete them and train anew"
        )


def describe(network: Network) -> str:
    arguments = ", ".join(f"{k}={v}" for k, v in network.arguments.items())
    return f"{network.kind.rpartition(':')[2]}({arguments})"


def describe_source(source: Mapping[str, Any]) -> str:
    """Say where a checkpoint's weights come from, if no training here made them (`import_weights.Weights.source`)."""
    what = "published weights" if source.get("layout") else "weights of a file"
    return f"{what} ({source['file']}, sha256 {source['sha256'][:12]})"


def parameters(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


def all_finite(net: nn.Module) -> bool:
    return are_finite(net.parameters())


@torch.no_grad()
def are_finite(tensors: Iterable[Tensor]) -> bool:
    """Whether all numbers of all tensors are: asked once, as the host waits for a GPU's answer."""
    # The least and the largest number, NaN where there is one: a pass where `isfinite` takes several.
    finite = [torch.stack(tensor.aminmax()).isfinite().all() for tensor in tensors if tensor.numel()]
    return not finite or bool(torch.stack(finite).all())


LAST = "model"


def pack_stages(path: Path, files: Mapping[str, bytes]) -> None:
    """Write them as one file; equal ends give equal bytes."""

    def write(stream: Any) -> None:
        with ZipFile(stream, "w") as packed:
            for name, data in files.items():
                packed.writestr(ZipInfo(name), data)  # of no date

    write_whole(path, write)


@contextmanager
def unpacked_stages(path: Path) -> Iterator[Path]:
    """A folder with the ends of a run's stages, while the block runs.  Raises NeurouteError for a damaged file."""
    with scratch_folder("stages-") as folder:
        try:
            with ZipFile(path) as packed:
                packed.extractall(folder)
        except (OSError, BadZipFile, NotImplementedError) as error:
            raise NeurouteError(
                f"{path}: cannot be read ({error}); delete it and train its run anew: `neuroute train <run>`"
            ) from None
        yield folder


# Keys under which training scripts keep the weights.
HOLDERS = ("model_state_dict", "state_dict", "model", "net", "model_baseline")
WRAPPERS = ("module", "_orig_mod", "policy")  # where DataParallel, torch.compile and Lightning modules keep it
# Numbers of numpy's, which training logs beside the weights may hold, as numpy 2 calls them and as it did before.
SCALARS: list[Any] = [
    np.dtype,
    *((np.float64(0).__reduce__()[0], f"numpy.{core}.multiarray.scalar") for core in ("_core", "core")),
    *(type(np.dtype(kind)) for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")),
]
MEND = 'save the weights alone: torch.save(checkpoint["model_state_dict"], "weights.pt") or as safetensors'


def read_tensors(file: Path) -> dict[str, Tensor]:
    """Names and tensors of a .safetensors file, or of a torch file (.pt, .pth) that holds a state dict.

    The state dict may lie under one of HOLDERS; what all names begin with where a module was wrapped is taken off.
    Raises NeurouteError for any other content, also for pickles that name anything but plain data and tensors.
    """
    if file.suffix == ".safetensors":
        metadata(file)  # says what is wrong with the file
        tensors = load_file(file)
    else:
        tensors = _state_dict(file, _torch_file(file))
    while tensors and (wrapper := next(iter(tensors)).partition(".")[0]) in WRAPPERS:
        if not all(name.startswith(f"{wrapper}.") for name in tensors):
            break
        tensors = {name.removeprefix(f"{wrapper}."): tensor for name, tensor in tensors.items()}
    wrong = sorted(n for n, t in tensors.items() if t.is_complex() or t.layout != torch.strided or t.is_quantized)
    if wrong:
        raise NeurouteError(f"{file}: '{wrong[0]}' holds {tensors[wrong[0]].dtype}, not real numbers; {MEND}")
    return tensors


def metadata(file: Path) -> dict[str, str]:
    """Of a safetensors file."""
    try:
        with safe_open(file, framework="pt") as opened:
            return opened.metadata() or {}
    except FileNotFoundError:
        raise _absent(file) from None
    except (SafetensorError, OSError) as error:
        raise NeurouteError(f"{file}: not a readable safetensors file ({error}); download or export it again") from None


def _torch_file(file: Path) -> Any:
    try:
        with torch.serialization.safe_globals(SCALARS), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pickles that are refused
            return torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise _absent(file) from None
    except pickle.UnpicklingError as error:
        match = re.search(r"GLOBAL ([\w.]+)", str(error))
        if match:
            raise NeurouteError(
                f"{file}: holds {match[1]}, not only tensors, and reading that could execute code; {MEND}"
            ) from None
        raise _unreadable(file, "a pickle that torch did not write") from None
    except Exception as error:  # garbage makes the unpickler raise whatever it stumbles over
        raise _unreadable(file, f"{type(error).__name__} while reading it") from None


def _state_dict(file: Path, content: Any) -> dict[str, Tensor]:
    if isinstance(content, dict) and not any(isinstance(value, Tensor) for value in content.values()):
        content = next((content[key] for key in HOLDERS if isinstance(content.get(key), dict)), content)
    if not isinstance(content, dict) or not content:
        raise NeurouteError(f"{file}: holds a {type(content).__name__}, not tensors by name; {MEND}")
    other = [f"'{name}' ({type(v).__name__})" for name, v in content.items() if not isinstance(v, Tensor)]
    if other:
        raise NeurouteError(f"{file}: {other[0]} is no tensor, and no {', '.join(HOLDERS)} is there; {MEND}")
    return {str(name): tensor for name, tensor in content.items()}


def _absent(file: Path) -> NeurouteError:
    return NeurouteError(f"{file}: no such file; give the path of a .pt, .pth or .safetensors file")


def _unreadable(file: Path, why: str) -> NeurouteError:
    return NeurouteError(f"{file}: not a readable torch file ({why}); give a .pt, .pth or .safetensors file")
