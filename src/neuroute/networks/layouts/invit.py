"""What INViT's tensors are made of."""

from collections.abc import Iterator

from neuroute.networks.layouts.joins import linear, weight
from neuroute.networks.layouts.rules import Rule


def invit(views: int = 8) -> Iterator[Rule]:
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
