"""The published layouts: LEHD, BQ-NCO, SIT, DGL, POMO, ELG, ICAM and MVMoE, for the problems that their code is for.

Left what a tensor is called here, right what it is made of.  Names and shapes are facts about the released code; what
none of a file's tensors tells (heads, say) is as its authors trained it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from neuroute.networks.layouts.rules import Arguments, Join, Layout, Rule

# -- how tensors become one -------------------------------------------------------------------------------------------


def _of_heads(weight: Tensor) -> Tensor:
    """(heads, inputs, d_k) -> (heads d_k, inputs)."""
    return weight.transpose(1, 2).flatten(0, 1)


def _chunks(tensor: Tensor, heads: int, parts: int) -> list[Tensor]:
    """(parts heads d_k, ...) -> parts of (heads, d_k, ...)."""
    return [part.unflatten(0, (heads, -1)) for part in tensor.chunk(parts)]


def _below(tensor: Tensor, arguments: Arguments, parts: int) -> list[Tensor]:
    return list(tensor.chunk(parts))


ROWS = Join(lambda parts: parts[0] if len(parts) == 1 else torch.cat(parts), _below)
REPEATED = Join(torch.cat, lambda tensor, arguments, _: tensor.chunk(arguments["representatives"]))
STACKED = Join(torch.stack, lambda tensor, *_: tensor.unbind())
SCALAR = Join(lambda parts: parts[0].reshape(()), lambda tensor, *_: [tensor.reshape(1)])
TRANSPOSED = Join(lambda parts: parts[0].T, lambda tensor, *_: [tensor.T])
REVERSED = Join(lambda parts: parts[0].flip(0), lambda tensor, *_: [tensor.flip(0)])
HEADS = Join(
    lambda parts: torch.cat([_of_heads(part) for part in parts]),
    lambda tensor, arguments, parts: [p.transpose(1, 2) for p in _chunks(tensor, arguments["heads"], parts)],
)
OF_HEADS = Join(  # the output projection, whose inputs are the heads' channels
    lambda parts: _of_heads(parts[0]).T,
    lambda tensor, arguments, _: [_chunks(tensor.T, arguments["heads"], 1)[0].transpose(1, 2)],
)
HEAD_BIAS = Join(
    lambda parts: torch.cat([part.flatten() for part in parts]),
    lambda tensor, arguments, parts: _chunks(tensor, arguments["heads"], parts),
)


def _weight(ours: str, *theirs: str, how: Join = ROWS) -> Rule:
    return Rule(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), how)


def _linear(ours: str, *theirs: str, how: Join = ROWS) -> Iterator[Rule]:
    """A linear layer with its bias."""
    yield _weight(ours, *theirs, how=how)
    yield Rule(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs), how)


# -- LEHD and SIT: one kind of layer ----------------------------------------------------------------------------------


def _attention(ours: str, theirs: str) -> Iterator[Rule]:
    yield _weight(f"{ours}.qkv", *(f"{theirs}.{name}" for name in ("Wq", "Wk", "Wv")))
    yield from _linear(f"{ours}.out", f"{theirs}.multi_head_combine")


def _feed_forward(ours: str, theirs: str) -> Iterator[Rule]:
    yield from _linear(f"{ours}.up", f"{theirs}.W1")
    yield from _linear(f"{ours}.down", f"{theirs}.W2")


def _lehd_layers() -> Iterator[Rule]:
    for ours, theirs in (("encoder", "encoder.layers.0"), ("layers.{i}", "decoder.layers.{i}")):
        yield from _attention(ours, theirs)
        yield from _feed_forward(ours, f"{theirs}.feedForward")
    yield from _linear("embed", "encoder.embedding")
    yield from _linear("current", "decoder.embedding_last_node")
    yield from _linear("head", "decoder.Linear_final")


def _lehd() -> Iterator[Rule]:
    yield from _lehd_layers()
    yield from _linear("start", "decoder.embedding_first_node")


def _sit() -> Iterator[Rule]:
    for half, suffix in (("gather", ""), ("spread", "_2")):
        ours, theirs = f"decoder.layers.{{i}}.{half}", "decoder.layers.{i}"
        yield _weight(f"{ours}.query", f"{theirs}.Wq{suffix}")
        yield _weight(f"{ours}.key_value", f"{theirs}.Wk{suffix}", f"{theirs}.Wv{suffix}")
        yield from _linear(f"{ours}.out", f"{theirs}.multi_head_combine{suffix}")
        yield from _feed_forward(ours, f"{theirs}.feedForward{suffix}")
    yield from _linear("embed", "encoder.embedding")
    yield from _linear("decoder.start", "decoder.embedding_first_node")
    yield from _linear("decoder.current", "decoder.embedding_last_node{s}", how=REPEATED)
    yield from _linear("head", "decoder.Linear_final")


# -- BQ ---------------------------------------------------------------------------------------------------------------


def _bq() -> Iterator[Rule]:
    ours, theirs = "layers.{i}", "encoder.{i}.attn"
    yield Rule(f"{ours}.qkv.weight", tuple(f"{theirs}.{name}" for name in ("lambda2", "lambda1", "theta1")), HEADS)
    yield Rule(f"{ours}.key_value_bias", (f"{theirs}.bias_lambda", f"{theirs}.bias_theta"), HEAD_BIAS)
    yield Rule(f"{ours}.out.weight", (f"{theirs}.theta2",), OF_HEADS)
    for number in (1, 2):
        yield Rule(f"{ours}.alpha{number}", (f"encoder.{{i}}.res_norm{number}.alpha",), SCALAR)
    yield from _linear(f"{ours}.up", "encoder.{i}.linear1")
    yield from _linear(f"{ours}.down", "encoder.{i}.linear2")
    yield from _linear("embed", "input_emb")
    yield _weight("ends", "begin_end_tokens")
    yield from _linear("head", "scores_projection")


# -- POMO, ICAM, MVMoE: one encoder -----------------------------------------------------------------------------------

NORM = {"tsp": "addAndNormalization{}.norm", "cvrp": "add_n_normalization_{}.norm"}
FEED = {"tsp": "feedForward", "cvrp": "feed_forward"}


def _encoder(spelling: str) -> Iterator[Rule]:
    """Projections, norms and FFNs; POMO and ICAM spell those of the CVRP otherwise."""
    ours, theirs = "layers.{i}", "encoder.layers.{i}"
    yield _weight(f"{ours}.qkv", *(f"{theirs}.{name}" for name in ("Wq", "Wk", "Wv")))
    yield from _linear(f"{ours}.attention_norm", f"{theirs}.{NORM[spelling].format(1)}")
    yield from _linear(f"{ours}.feed_forward_norm", f"{theirs}.{NORM[spelling].format(2)}")
    yield from _feed_forward(ours, f"{theirs}.{FEED[spelling]}")
    yield _weight("key_value", "decoder.Wk", "decoder.Wv")


def _tsp() -> Iterator[Rule]:
    yield from _encoder("tsp")
    yield from _linear("embed", "encoder.embedding")
    yield _weight("context.ends", "decoder.Wq_first", "decoder.Wq_last")


def _routes(spelling: str) -> Iterator[Rule]:
    yield from _encoder(spelling)
    yield from _linear("embed.depot", "encoder.embedding_depot")
    yield from _linear("embed.customers", "encoder.embedding_node")
    yield _weight("context.project", "decoder.Wq_last")


def _combined() -> Iterator[Rule]:
    """What POMO has and ICAM has not: projections of what attention gives."""
    yield from _linear("layers.{i}.out", "encoder.layers.{i}.multi_head_combine")
    yield from _linear("combine", "decoder.multi_head_combine")


def _adaptation() -> Iterator[Rule]:
    yield Rule("layers.{i}.alpha", ("encoder.layers.{i}.alpha",), SCALAR)
    yield Rule("alpha", ("decoder.alpha1",), SCALAR)
    yield Rule("compatibility_alpha", ("decoder.alpha2",), SCALAR)


def _local(theirs: str) -> Iterator[Rule]:
    """ELG's local policy."""
    yield Rule("local.state", (f"{theirs}.cur_token_emb",), ROWS)
    yield from _linear("local.embed", f"{theirs}.init_emb")
    yield _weight("local.query", f"{theirs}.Wq")
    yield _weight("local.key_value", f"{theirs}.Wk", f"{theirs}.Wv")
    yield from _linear("local.out", f"{theirs}.multi_head_combine")


def _mixture(ours: str, theirs: str, *layers: tuple[str, str]) -> Iterator[Rule]:
    """Gates and experts, whose layers are called so here and there."""
    yield Rule(f"{ours}.gate.weight", (f"{theirs}.w_gate",), TRANSPOSED)
    yield Rule(f"{ours}.gate.noise", (f"{theirs}.w_noise",), TRANSPOSED)
    for here, there in layers or (("", ""),):
        yield from _linear(f"{ours}.experts{here}", f"{theirs}.experts.{{j}}{there}", how=STACKED)


def _mvmoe() -> Iterator[Rule]:
    yield from _routes("tsp")
    experts = "encoder.layers.{i}.feedForward"
    yield from _mixture("layers.{i}.mixture", experts, (".up", ".fc1"), (".down", ".fc2"))
    yield from _mixture("embed.depot", "encoder.embedding_depot")
    yield from _mixture("embed.customers", "encoder.embedding_node")


def _light() -> Iterator[Rule]:
    yield from _mixture("combine.sparse", "decoder.multi_head_combine_moe")
    yield from _linear("combine.dense", "decoder.multi_head_combine_dense")
    yield _weight("combine.gate", "decoder.dense_or_moe", how=REVERSED)


# -- all of them ------------------------------------------------------------------------------------------------------

EMBEDDING, DEPOT = "encoder.embedding.weight", "encoder.embedding_depot.weight"
FIRST, SPREAD = "decoder.embedding_first_node.weight", "decoder.layers.0.Wq_2.weight"
LAST, COMBINE, LIGHT = (
    "decoder.Wq_last.weight",
    "encoder.layers.0.multi_head_combine.weight",
    "decoder.dense_or_moe.weight",
)
DGL_IDLE = tuple(f"decoder.{name}.{part}" for name in ("embedding_last_node_pos", "k_1") for part in ("weight", "bias"))
SPELT_CVRP = "encoder.layers.0.add_n_normalization_1.norm.weight"
LOCAL = {"tsp": "decoder.local_policy_0", "cvrp": "decoder.local_policies.0"}  # of ELG, each code in its own words
ELG = {"heads": 8, "train_nodes": 100}
MVMOE = {"constants": {"mean": 0.0, "std": 1.0}, "usual": {"heads": 8, "top": 2, "train_nodes": 100}}  # of its noise


def _layout(name: str, network: str, marks: Mapping[str, int | None], *tables: Iterator[Rule], **more: Any) -> Layout:
    rules = tuple(rule for table in tables for rule in table)
    options = {"lacks": (), "usual": {"heads": 8, "train_nodes": 100}} | more
    return Layout(name=name, kind=f"neuroute.networks.{network}", marks=marks, rules=rules, **options)


def _path(problem: str, columns: int) -> Iterator[Layout]:
    """Networks that see what is left: of nodes so many numbers."""
    net, where, lehd = problem.capitalize() if problem == "cvrp" else "", f"for the {problem.upper()}", [_lehd()]
    if problem == "tsp":
        lehd.append(_linear("unused", "decoder.k_1"))
    yield _layout(f"LEHD {where}", f"lehd:Lehd{net}", {EMBEDDING: columns, FIRST: None}, *lehd, lacks=(SPREAD,))
    sit = {EMBEDDING: columns, SPREAD: None}
    yield _layout(f"SIT {where}", f"sit:Sit{net}", sit, _sit(), usual={"heads": 8, "train_nodes": 1000})
    marks = {"input_emb.weight": 2 if problem == "tsp" else 4, "encoder.0.attn.lambda1": None}
    bq = {"holder": "net", "heads": "encoder.0.attn.lambda1", "usual": {"heads": 12, "train_nodes": 100}}
    yield _layout(f"BQ {where}", f"bq:Bq{net}", marks, _bq(), **bq)


LAYOUTS: tuple[Layout, ...] = (
    *_path("tsp", 2),
    *_path("cvrp", 3),
    _layout(
        "ELG for the TSP", "elg:Elg", {EMBEDDING: 2, f"{LOCAL['tsp']}.cur_token_emb": None},
        _tsp(), _combined(), _local(LOCAL["tsp"]), usual=ELG | {"neighbours": 30},
    ),
    _layout(
        "ELG for the CVRP", "elg:ElgCvrp", {SPELT_CVRP: None, f"{LOCAL['cvrp']}.cur_token_emb": None},
        _routes("cvrp"), _combined(), _local(LOCAL["cvrp"]), usual=ELG | {"neighbours": 40},
    ),
    _layout(
        "DGL for the TSP", "dgl:Dgl", {EMBEDDING: 7, "decoder.embedding_last_node.weight": None}, _lehd_layers(),
        lacks=(FIRST,), usual={"heads": 8, "nearest": 30, "train_nodes": 100}, idle=DGL_IDLE,
    ),
    _layout("POMO for the TSP", "pomo:Pomo", {EMBEDDING: 2, LAST: None, COMBINE: None}, _tsp(), _combined()),
    _layout("POMO for the CVRP", "pomo:PomoCvrp", {SPELT_CVRP: None, COMBINE: None}, _routes("cvrp"), _combined()),
    _layout(
        "ICAM for the TSP", "icam:Icam", {EMBEDDING: 2, LAST: None}, _tsp(), _adaptation(),
        lacks=(COMBINE,), usual={"train_nodes": 100},
    ),
    _layout(
        "ICAM for the CVRP", "icam:IcamCvrp", {SPELT_CVRP: None}, _routes("cvrp"), _adaptation(),
        lacks=(COMBINE,), usual={"train_nodes": 100},
    ),
    _layout(
        "MVMoE, POMO-MTL and POMO for one VRP", "mvmoe:MvMoe", {LAST: None, COMBINE: None},
        _mvmoe(), _combined(), _mixture("combine", "decoder.multi_head_combine"),
        lacks=(EMBEDDING, SPELT_CVRP, LIGHT), **MVMOE,
    ),
    _layout(
        "MVMoE with a light decoder", "mvmoe:MvMoe", {LAST: None, COMBINE: None, LIGHT: None},
        _mvmoe(), _linear("layers.{i}.out", "encoder.layers.{i}.multi_head_combine"), _light(), lacks=(EMBEDDING,),
        trained={"hierarchy": "episode"}, **MVMOE,
    ),
)  # fmt: skip


def recognise(tensors: Mapping[str, Tensor]) -> Layout | None:
    """Return the layout whose marks a file's tensors bear."""
    return next((layout for layout in LAYOUTS if layout.fits(tensors)), None)
