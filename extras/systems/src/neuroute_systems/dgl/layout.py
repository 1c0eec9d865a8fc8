"""What the published tensors of DGL become."""

from neuroute.networks.layouts import EMBEDDING, FIRST, layout, lehd_layers

IDLE = tuple(f"decoder.{name}.{part}" for name in ("embedding_last_node_pos", "k_1") for part in ("weight", "bias"))

LAYOUTS = (
    layout(
        "DGL for the TSP",
        "neuroute_systems.dgl.network:Dgl",
        {EMBEDDING: 7, "decoder.embedding_last_node.weight": None},
        lehd_layers(),
        lacks=(FIRST,),
        usual={"heads": 8, "nearest": 30, "train_nodes": 100},
        idle=IDLE,
        alias="dgl",
    ),
)
