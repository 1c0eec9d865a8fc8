"""What the published tensors of Pointerformer become."""

from collections.abc import Iterator

from neuroute.networks.layouts import Rule, layout, linear, rows, weight
from neuroute_systems.joins import batch_norm


def _rules() -> Iterator[Rule]:
    ours, theirs = "layers.{i}", "encoder.sequence.reversible_blocks.{i}"
    yield from batch_norm(f"{ours}.attention_norm", f"{theirs}.f_block.mixing_layer_norm")
    yield Rule(f"{ours}.qkv.weight", (f"{theirs}.f_block.mha.in_proj_weight",), rows)
    yield weight(f"{ours}.out", f"{theirs}.f_block.mha.out_proj")
    yield from batch_norm(f"{ours}.feed_forward_norm", f"{theirs}.g_block.output_layer_norm")
    yield from linear(f"{ours}.up", f"{theirs}.g_block.feed_forward")
    yield from linear(f"{ours}.down", f"{theirs}.g_block.output_dense")
    yield from linear("embed", "encoder.init_projection_layer")
    yield weight("parts", *(f"decoder.{name}" for name in ("Wq_graph", "Wq_first", "Wq_last", "W_visited")))
    yield weight("query", "decoder.wq")
    yield weight("key", "decoder.Wk")


LAYOUTS = (
    layout(
        "Pointerformer for the TSP",
        "neuroute_systems.pointerformer.network:Pointerformer",
        {"encoder.init_projection_layer.weight": 24, "decoder.W_visited.weight": None},
        _rules(),
        alias="pointerformer",
    ),
)
