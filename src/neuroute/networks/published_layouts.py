"""How the tensors of other authors' checkpoints are called, and the same tensors under the names here."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError

MOST_NAMES = 3  # names in a message

LEHD_LAYER = {  # published: (here, its place among the fused parts)
    "Wq.weight": ("qkv.weight", 0),
    "Wk.weight": ("qkv.weight", 1),
    "Wv.weight": ("qkv.weight", 2),
    "multi_head_combine.weight": ("out.weight", 0),
    "multi_head_combine.bias": ("out.bias", 0),
    "feedForward.W1.weight": ("up.weight", 0),
    "feedForward.W1.bias": ("up.bias", 0),
    "feedForward.W2.weight": ("down.weight", 0),
    "feedForward.W2.bias": ("down.bias", 0),
}
LEHD_OUTSIDE = {
    "encoder.embedding": "embed",
    "decoder.embedding_first_node": "start",
    "decoder.embedding_last_node": "current",
    "decoder.Linear_final": "head",
}


def lehd_names(depth: int) -> dict[str, tuple[str, int]]:
    """Published name -> (name here, place among its parts), without the projection that is never used."""
    layers = {"encoder.layers.0": "encoder"} | {f"decoder.layers.{i}": f"layers.{i}" for i in range(depth)}
    names = {
        f"{theirs}.{name}": (f"{ours}.{target}", place)
        for theirs, ours in layers.items()
        for name, (target, place) in LEHD_LAYER.items()
    }
    for theirs, ours in LEHD_OUTSIDE.items():
        names |= {f"{theirs}.{part}": (f"{ours}.{part}", 0) for part in ("weight", "bias")}
    return names


def from_lehd(tensors: Mapping[str, Tensor], file: Path) -> dict[str, Tensor]:
    """The tensors of a published LEHD checkpoint under the names of `networks.lehd`.

    The one projection that no computation uses goes by exclusion: it is the single (W, W), (W,) pair of weight and
    bias that is left over.  Raises NeurouteError naming what is missing or left over besides.
    """
    names = lehd_names(depth_of(tensors, "decoder.layers"))
    missing, extra = sorted(set(names) - set(tensors)), sorted(set(tensors) - set(names))
    width = tensors["encoder.embedding.bias"].numel() if "encoder.embedding.bias" in tensors else 0
    stem = extra[0].rpartition(".")[0] if extra else ""
    unused = {f"{stem}.weight": (width, width), f"{stem}.bias": (width,)}
    if missing or {name: tuple(tensors[name].shape) for name in extra} != unused:
        says = [f"{what} {some(names)}" for what, names in (("missing", missing), ("left over", extra)) if names]
        raise NeurouteError(
            f"{file}: not the published layout of LEHD for the TSP ({'; '.join(says) or 'its unused layer is missing'})"
            "; rename the tensors, or save them under neuroute's own names"
        )
    parts: dict[str, dict[int, Tensor]] = {"unused.weight": {0: tensors[f"{stem}.weight"]}}
    parts["unused.bias"] = {0: tensors[f"{stem}.bias"]}
    for theirs, (ours, place) in names.items():
        parts.setdefault(ours, {})[place] = tensors[theirs]
    return {
        name: _joined(file, name, [parts_of_one[i] for i in sorted(parts_of_one)])
        for name, parts_of_one in parts.items()
    }


def _joined(file: Path, name: str, parts: list[Tensor]) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    try:
        return torch.cat(parts)
    except RuntimeError:
        shapes = ", ".join(str(tuple(p.shape)) for p in parts)
        raise NeurouteError(f"{file}: the parts of {name} do not fit each other ({shapes}); export it again") from None


def depth_of(names: Iterable[str], stem: str) -> int:
    """Number of layers `<stem>.<i>.` among the names."""
    return len({match[1] for name in names if (match := re.match(rf"{re.escape(stem)}\.(\d+)\.", name))})


def some(names: list[str]) -> str:
    """The first few names, and how many more."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
