"""What the published tensors of GLOP's revisers and of GLOP-G's partition become."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from neuroute.networks.layouts import Rule, depth_of, layout, linear
from neuroute_systems.joins import batch_norm
from neuroute_systems.kool import QUERY, attention_rules, read_attention


def _read_partition(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {"depth": depth_of(tensors, "graph.layers"), "width": len(tensors["graph.embed_nodes.weight"])}


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
        "neuroute_systems.glop.network:Glop",
        {QUERY: None, "init_embed.weight": 2, "embedder.pe.pe": None},
        attention_rules("revisers.0"),
        heads=QUERY,
        usual={"blocks": [100], "train_nodes": 100},
        idle=("pe",),
        alias="glop",
        read=partial(read_attention, "revisers.0"),
    ),
    layout(
        "GLOP-G's partition",
        "neuroute_systems.glop.network:GlopPartition",
        {"emb_net.v_lin0.weight": 3},
        _partition(),
        usual={"neighbours": 100, "near": False, "train_nodes": 1000},
        idle=("_dummy",),
        alias="glop-g",
        read=_read_partition,
    ),
)
