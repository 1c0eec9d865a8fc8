"""What the published tensors of GLOP's revisers and of GLOP-G's partition become."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from neuroute.networks.layouts.arguments import depth_of
from neuroute.networks.layouts.joins import FROM_HEADS, HEADS, ROWS, batch_norm, linear, weight
from neuroute.networks.layouts.rules import Rule
from neuroute.networks.layouts.tables import layout

QUERY = "embedder.layers.0.0.module.W_query"


def _read_reviser(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Of one reviser; a file does not tell for which block."""
    first = "revisers.0"
    return {
        "depth": depth_of(tensors, f"{first}.layers"),
        "width": len(tensors[f"{first}.embed.weight"]),
        "feed_forward": len(tensors[f"{first}.layers.0.up.weight"]),
    }


def _read_partition(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {"depth": depth_of(tensors, "graph.layers"), "width": len(tensors["graph.embed_nodes.weight"])}


def _reviser() -> Iterator[Rule]:
    """Kool's attention model; a file holds one reviser and does not tell of which block."""
    ours, theirs = "revisers.0.layers.{i}", "embedder.layers.{i}"
    projections = tuple(f"{theirs}.0.module.W_{name}" for name in ("query", "key", "val"))
    yield Rule(f"{ours}.qkv.weight", projections, HEADS)
    yield Rule(f"{ours}.out.weight", (f"{theirs}.0.module.W_out",), FROM_HEADS)
    yield from linear(f"{ours}.up", f"{theirs}.2.module.0")
    yield from linear(f"{ours}.down", f"{theirs}.2.module.2")
    yield from batch_norm(f"{ours}.attention_norm", f"{theirs}.1.normalizer")
    yield from batch_norm(f"{ours}.feed_forward_norm", f"{theirs}.3.normalizer")
    yield from linear("revisers.0.embed", "init_embed")
    yield weight("revisers.0.project_nodes", "project_node_embeddings")
    yield weight("revisers.0.project_mean", "project_fixed_context")
    yield weight("revisers.0.project_step", "project_step_context")
    yield weight("revisers.0.project_glimpse", "project_out")
    yield Rule("revisers.0.placeholder", ("W_placeholder",), ROWS)


def _partition() -> Iterator[Rule]:
    ours, theirs = "graph.layers.{i}", "emb_net"
    for number, name in enumerate(("node", "message", "tail", "head"), start=1):
        yield from linear(f"{ours}.{name}", f"{theirs}.v_lins{number}.{{i}}")
    yield from linear(f"{ours}.edge", f"{theirs}.e_lins0.{{i}}")
    yield from batch_norm(f"{ours}.node_norm", f"{theirs}.v_bns.{{i}}.module")
    yield from batch_norm(f"{ours}.edge_norm", f"{theirs}.e_bns.{{i}}.module")
    yield from linear("graph.embed_nodes", f"{theirs}.v_lin0")
    yield from linear("graph.embed_edges", f"{theirs}.e_lin0")
    yield from linear("head.{i}", "par_net_heu.lins.{i}")


LAYOUTS = (
    layout(
        "GLOP's reviser",
        "neuroute.systems.glop.network:Glop",
        {QUERY: None, "init_embed.weight": 2},
        _reviser(),
        holder="model",
        heads=QUERY,
        usual={"blocks": [100], "train_nodes": 100},
        constants={"pe": 0.0},
        alias="glop",
        read=_read_reviser,
    ),
    layout(
        "GLOP-G's partition",
        "neuroute.systems.glop.network:GlopPartition",
        {"emb_net.v_lin0.weight": 3},
        _partition(),
        usual={"neighbours": 100, "near": False, "train_nodes": 1000},
        constants={"_dummy": 0.0},
        alias="glop-g",
        read=_read_partition,
    ),
)
