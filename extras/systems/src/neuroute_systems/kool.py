"""What the tensors of Kool's attention model become: of the model itself, and of a reviser of GLOP's, one in a file."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from neuroute.networks.layouts import Rule, depth_of, linear, rows, rows_of_heads, weight
from neuroute_systems.joins import batch_norm, output_from_heads

QUERY = "embedder.layers.0.0.module.W_query"  # whose first axis is the heads


def attention_rules(stem: str) -> Iterator[Rule]:
    """Of the `PathAttention` that is called so."""
    ours, theirs = f"{stem}.layers.{{i}}", "embedder.layers.{i}"
    projections = tuple(f"{theirs}.0.module.W_{name}" for name in ("query", "key", "val"))
    yield Rule(f"{ours}.qkv.weight", projections, rows_of_heads)
    yield Rule(f"{ours}.out.weight", (f"{theirs}.0.module.W_out",), output_from_heads)
    yield from linear(f"{ours}.up", f"{theirs}.2.module.0")
    yield from linear(f"{ours}.down", f"{theirs}.2.module.2")
    yield from batch_norm(f"{ours}.attention_norm", f"{theirs}.1.normalizer")
    yield from batch_norm(f"{ours}.feed_forward_norm", f"{theirs}.3.normalizer")
    yield from linear(f"{stem}.embed", "init_embed")
    yield weight(f"{stem}.project_nodes", "project_node_embeddings")
    yield weight(f"{stem}.project_mean", "project_fixed_context")
    yield weight(f"{stem}.project_step", "project_step_context")
    yield weight(f"{stem}.project_glimpse", "project_out")
    yield Rule(f"{stem}.placeholder", ("W_placeholder",), rows)


def read_attention(stem: str, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Its arguments, of our tensors."""
    return {
        "depth": depth_of(tensors, f"{stem}.layers"),
        "width": len(tensors[f"{stem}.embed.weight"]),
        "feed_forward": len(tensors[f"{stem}.layers.0.up.weight"]),
    }
