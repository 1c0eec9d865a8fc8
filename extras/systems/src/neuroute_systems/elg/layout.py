"""What the published tensors of ELG become."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from neuroute.networks.layouts import (
    EMBEDDING,
    SPELT_CVRP,
    Rule,
    combined,
    layout,
    linear,
    pomo_routes,
    pomo_tsp,
    residual,
    rows,
    weight,
)

LOCAL = {"tsp": "decoder.local_policy_0", "cvrp": "decoder.local_policies.0"}  # each code in its own words
USUAL = {"heads": 8, "train_nodes": 100}


def read(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return residual(tensors) | {"local": "local.state" in tensors}


def _local(theirs: str) -> Iterator[Rule]:
    yield Rule("local.state", (f"{theirs}.cur_token_emb",), rows)
    yield from linear("local.embed", f"{theirs}.init_emb")
    yield weight("local.query", f"{theirs}.Wq")
    yield weight("local.key_value", f"{theirs}.Wk", f"{theirs}.Wv")
    yield from linear("local.out", f"{theirs}.multi_head_combine")


LAYOUTS = (
    layout(
        "ELG for the TSP",
        "neuroute_systems.elg.network:Elg",
        {EMBEDDING: 2, f"{LOCAL['tsp']}.cur_token_emb": None},
        pomo_tsp(),
        combined(),
        _local(LOCAL["tsp"]),
        usual=USUAL | {"neighbours": 30},
        alias="elg",
        read=read,
    ),
    layout(
        "ELG for the CVRP",
        "neuroute_systems.elg.network:ElgCvrp",
        {SPELT_CVRP: None, f"{LOCAL['cvrp']}.cur_token_emb": None},
        pomo_routes("cvrp"),
        combined(),
        _local(LOCAL["cvrp"]),
        usual=USUAL | {"neighbours": 40},
        alias="elg-cvrp",
        read=read,
    ),
)
