"""How systems of other authors lay tensors out, besides what is in `neuroute.networks.layouts`."""

from collections.abc import Iterator

from torch import Tensor

from neuroute.networks.layouts import Rule, linear, rows


def output_from_heads(parts: list[Tensor]) -> Tensor:
    """A projection (heads, d_k, outputs)."""
    return parts[0].flatten(0, 1).T


def batch_norm(ours: str, theirs: str) -> Iterator[Rule]:
    """Our `BatchNorm`, of torch's one."""
    yield from linear(f"{ours}.norm", theirs)
    for buffer in ("running_mean", "running_var", "num_batches_tracked"):
        yield Rule(f"{ours}.norm.{buffer}", (f"{theirs}.{buffer}",), rows)
