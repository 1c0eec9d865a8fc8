"""What the published tensors of the attention model become; a file of GLOP's has a buffer more."""

from functools import partial

from neuroute.networks.layouts import layout
from neuroute_systems.kool import QUERY, attention_rules, read_attention

LAYOUTS = (
    layout(
        "the attention model for the TSP",
        "neuroute_systems.attention_model.network:AttentionModel",
        {QUERY: None, "init_embed.weight": 2},
        attention_rules("paths"),
        lacks=("embedder.pe.pe",),
        heads=QUERY,
        usual={"train_nodes": 100},
        alias="attention-model",
        read=partial(read_attention, "paths"),
    ),
)
