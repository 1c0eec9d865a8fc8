"""What the published tensors of MDAM become, for both problems."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from neuroute.networks.layouts import Rule, depth_of, layout, linear, rows, rows_of_heads, weight
from neuroute_systems.joins import output_from_heads

# What tells of which problem a file is, beside what both have.
MARKS = {
    "tsp": ("W_placeholder", "embedder.BN1.normalizer.weight"),
    "cvrp": ("init_embed_depot.weight", "embedder.BN1.normalizer.weight"),
}
QUERY = "embedder.attention_layer.W_query"
MOST_LAYERS = 8  # before the last one, which lies apart
# What batch norms remember: nothing computes with it, as their batch's statistics are taken always.
REMEMBERED = ("running_mean", "running_var", "num_batches_tracked")


def read(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {
        "depth": depth_of(tensors, "layers") + 1,
        "width": len(tensors["last.out.weight"]),
        "feed_forward": len(tensors["last.up.weight"]),
        "decoders": depth_of(tensors, "decoders"),
    }


def _rules(problem: str) -> Iterator[Rule]:
    for i in range(MOST_LAYERS):
        norms = tuple(f"embedder.layers.{4 * i + place}.normalizer" for place in (1, 3))
        attention, feed = (f"embedder.layers.{4 * i + place}.module" for place in (0, 2))
        yield from _layer(f"layers.{i}", attention, feed, norms)
    norms = ("embedder.BN1.normalizer", "embedder.BN2.normalizer")
    yield from _layer("last", "embedder.attention_layer", "embedder.projection.module", norms)
    parts = {"nodes": "node_embeddings", "mean": "fixed_context", "step": "step_context", "glimpse": "out"}
    for ours, theirs in parts.items():
        yield weight(f"decoders.{{i}}.project_{ours}", f"project_{theirs}.{{i}}")
    if problem == "tsp":
        yield from linear("embed", "init_embed")
        yield Rule("placeholder", ("W_placeholder",), rows)
    else:
        yield from linear("embed.depot", "init_embed_depot")
        yield from linear("embed.customers", "init_embed")


def _layer(ours: str, attention: str, feed: str, norms: tuple[str, ...]) -> Iterator[Rule]:
    yield Rule(f"{ours}.qkv.weight", tuple(f"{attention}.W_{name}" for name in ("query", "key", "val")), rows_of_heads)
    yield Rule(f"{ours}.out.weight", (f"{attention}.W_out",), output_from_heads)
    yield from linear(f"{ours}.up", f"{feed}.0")
    yield from linear(f"{ours}.down", f"{feed}.2")
    for name, theirs in zip(("attention_norm", "feed_forward_norm"), norms, strict=True):
        yield from linear(f"{ours}.{name}.norm", theirs)


LAYOUTS = tuple(
    layout(
        f"MDAM for the {problem.upper()}",
        f"neuroute_systems.mdam.network:{network}",
        dict.fromkeys(MARKS[problem]),
        _rules(problem),
        usual={"glimpse_every": 2, "train_nodes": 100},
        idle=REMEMBERED,
        heads=QUERY,
        alias=alias,
        read=read,
    )
    for problem, network, alias in (("tsp", "Mdam", "mdam"), ("cvrp", "MdamCvrp", "mdam-cvrp"))
)
