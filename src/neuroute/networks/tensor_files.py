"""Tensors by name out of files that others wrote.  Reading never executes code."""

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from neuroute.core.errors import NeurouteError

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
    tensors = _safetensors(file) if file.suffix == ".safetensors" else _state_dict(file, _torch_file(file))
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


def _safetensors(file: Path) -> dict[str, Tensor]:
    metadata(file)  # says what is wrong with the file
    return load_file(file)


def _torch_file(file: Path) -> Any:
    try:
        with torch.serialization.safe_globals(SCALARS):
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
