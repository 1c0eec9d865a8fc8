"""What the published tensors of INViT become."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from neuroute.networks.layouts import Rule, depth_of, layout, linear, weight

ACTION_VIEW = "action_encoder.input_emb.weight"


def read(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """How many nodes the views have is as published: 15 to choose from, and 35, 50, 65."""
    return {
        "depth": depth_of(tensors, "views.0.layers"),
        "action_depth": depth_of(tensors, "action_view.layers"),
        "width": len(tensors["pointer.weight"]),
        "feed_forward": len(tensors["action_view.layers.0.up.weight"]),
        "views": [35 + 15 * view for view in range(depth_of(tensors, "views"))],
    }


def _rules(views: int = 8) -> Iterator[Rule]:
    """Up to so many views."""
    encoders = {"action_view": "action_encoder"} | {f"views.{v}": f"state_encoders.{v}" for v in range(views)}
    for ours, theirs in encoders.items():
        for here, there in (("nodes", ""), ("here", "_for_last"), ("other", "_for_first")):
            yield from linear(f"{ours}.{here}", f"{theirs}.input_emb{there}")
        layer, attention = f"{ours}.layers.{{i}}", f"{theirs}.encoder.MHA_layers.{{i}}"
        yield weight(f"{layer}.qkv", *(f"{attention}.{name}" for name in ("w_qs", "w_ks", "w_vs")))
        yield weight(f"{layer}.out", f"{attention}.fc")
        yield from linear(f"{layer}.inner_norm", f"{attention}.layer_norm")
        yield from linear(f"{layer}.attention_norm", f"{theirs}.encoder.norm1_layers.{{i}}")
        yield from linear(f"{layer}.feed_forward_norm", f"{theirs}.encoder.norm2_layers.{{i}}")
        yield from linear(f"{layer}.up", f"{theirs}.encoder.linear1_layers.{{i}}")
        yield from linear(f"{layer}.down", f"{theirs}.encoder.linear2_layers.{{i}}")
    glimpse = {"query": "Wq_att", "out": "W0_att", "up": "W1_MLP", "down": "W2_MLP"}
    glimpse |= {"attention_norm": "BN_att", "feed_forward_norm": "BN_MLP"}
    for here, there in glimpse.items():
        yield from linear(f"glimpses.{{i}}.{here}", f"decoder.decoder_layers.{{i}}.{there}")
    for here, there in {
        "pointer": "decoder.Wq_final",
        "key": "WK_att_decoder",
        "value": "WV_att_decoder",
        "query": "query_mlp",
    }.items():
        yield from linear(here, there)


LAYOUTS = (
    layout(
        "INViT for the TSP",
        "neuroute_systems.invit.network:Invit",
        {ACTION_VIEW: 2},
        _rules(),
        alias="invit",
        read=read,
    ),
    layout(
        "INViT for the CVRP",
        "neuroute_systems.invit.network:InvitCvrp",
        {ACTION_VIEW: 3},
        _rules(),
        usual={"heads": 8, "strict": True, "copies": True, "train_nodes": 100},
        alias="invit-cvrp",
        read=read,
    ),
)
