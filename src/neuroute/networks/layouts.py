"""The published layouts: LEHD, BQ-NCO, SIT, POMO, ICAM and MVMoE, for all their problems; and those of systems.

A layout is a table: left what a tensor is called here, right what it is made of; and what the tensors of a network,
under our names, tell of its arguments.  Names and shapes are facts about the released code; what none of a file's
tensors tells (heads, say) is as its authors trained it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neuroute.core.dotted import parts
from neuroute.core.errors import NeurouteError
from neuroute.networks.mvmoe import ALL, POSITIONS

Arguments = Mapping[str, Any]  # of our network
Join = Callable[[list[Tensor]], Tensor]  # how some tensors of a published file become one of ours
MOST_NAMES = 3  # names in a message
# What stands in names: {i} a layer, {j} an expert, {s} a repetition: nothing, _2, _3, ...
PLACES = {"i": r"(?P<i>\d+)", "j": r"(?P<j>\d+)", "s": r"(?P<s>(?:_\d+)?)"}


class Rule(NamedTuple):
    """One of our tensors, and the published ones that it is made of, in this order."""

    ours: str
    theirs: tuple[str, ...]
    how: Join

    @property
    def counts(self) -> bool:
        """Whether there are as many published tensors as experts or repetitions."""
        return "{j}" in self.theirs[0] or "{s}" in self.theirs[0]

    def parts(self, i: str, count: int) -> list[str]:
        """Published names of layer i; count: of experts or repetitions."""
        numbers = range(count if self.counts else 1)
        return [name.format(i=i, j=j, s=f"_{j + 1}" if j else "") for name in self.theirs for j in numbers]


class Layout(NamedTuple):
    """What a published training script writes of one network."""

    name: str
    kind: str  # our network
    marks: Mapping[str, int | None]  # tensors that are there, with so many columns
    lacks: tuple[str, ...]  # tensors that are not
    rules: tuple[Rule, ...]
    usual: Arguments  # arguments that no tensor tells, as published
    trained: Arguments = {}  # arguments that the code fixes: with others these weights are another network
    idle: tuple[str, ...] = ()  # tensors, or last parts of their names, that nothing computes with
    heads: str = ""  # a tensor whose first axis is the heads
    alias: str = ""  # what the network is called where no layout tells; those of this package have theirs already
    read: Callable[[Mapping[str, Tensor]], dict[str, Any]] | None = None  # our tensors -> arguments; None: LEHD's

    def fits(self, tensors: Mapping[str, Tensor]) -> bool:
        """Whether a file has this layout, as far as its marks tell."""
        return not any(name in tensors for name in self.lacks) and all(
            name in tensors and (columns is None or tensors[name].shape[-1:] == (columns,))
            for name, columns in self.marks.items()
        )


def rename(layout: Layout, tensors: dict[str, Tensor], file: Path) -> dict[str, Tensor]:
    """Return a published file's tensors under our names; `tensors` is emptied, so that none is held twice.

    Raises NeurouteError that names what is missing, left over or does not fit its neighbours.
    """
    for name in [name for name in tensors if name.rpartition(".")[2] in layout.idle or name in layout.idle]:
        del tensors[name]
    renamed: dict[str, Tensor] = {}
    missing: list[str] = []
    for rule in layout.rules:
        for i, count in _layers_of(rule, tensors):
            names = rule.parts(i, count)
            if absent := [name for name in names if name not in tensors]:
                missing += absent
                continue
            parts = [tensors.pop(name) for name in names]
            try:
                renamed[rule.ours.format(i=i)] = rule.how(parts)
            except (RuntimeError, IndexError, ValueError):
                shapes = ", ".join(str(tuple(part.shape)) for part in parts[:MOST_NAMES])
                raise NeurouteError(
                    f"{file}: {some(names)} do not fit each other ({shapes}); export them again"
                ) from None
    if missing or tensors:
        both = (("missing", missing), ("left over", sorted(tensors)))
        says = "; ".join(f"{what}: {some(names)}" for what, names in both if names)
        raise NeurouteError(
            f"{file}: looks like {layout.name}, but differs ({says}); rename the tensors, or save under neuroute's "
            "names"
        )
    return renamed


def published_name(layout: Layout, ours: str) -> str:
    """Return the first of the published names of one of our tensors; of one that has none ours."""
    for rule in layout.rules:
        if match := pattern(rule.ours).fullmatch(ours):
            return rule.parts(match.groupdict().get("i", ""), 1)[0]
    return ours


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def pattern(name: str) -> re.Pattern[str]:
    """Return an expression that matches a name and its numbers."""
    text = re.escape(name)
    for place, expression in PLACES.items():
        text = text.replace(rf"\{{{place}\}}", expression, 1)
    return re.compile(text)


def _layers_of(rule: Rule, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, int]]:
    """Layers (or "") that have any of the rule's tensors, and how many of the first."""
    layers: dict[str, int] = {}
    for number, theirs in enumerate(rule.theirs):
        expression = pattern(theirs)
        for match in filter(None, map(expression.fullmatch, tensors)):
            i = match.groupdict().get("i", "")
            layers[i] = layers.get(i, 0) + (number == 0)
    yield from sorted(layers.items(), key=lambda item: int(item[0] or 0))


def rows(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def scalar(parts: list[Tensor]) -> Tensor:
    return parts[0].reshape(())


def transposed(parts: list[Tensor]) -> Tensor:
    return parts[0].T


def rows_of_heads(parts: list[Tensor]) -> Tensor:
    """Of (heads, inputs, d_k) each."""
    return torch.cat([part.transpose(1, 2).flatten(0, 1) for part in parts])


def weight(ours: str, *theirs: str, how: Join = rows) -> Rule:
    return Rule(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), how)


def linear(ours: str, *theirs: str, how: Join = rows) -> Iterator[Rule]:
    """A linear layer with its bias."""
    yield weight(ours, *theirs, how=how)
    yield Rule(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs), how)


def _attention(ours: str, theirs: str) -> Iterator[Rule]:
    yield weight(f"{ours}.qkv", *(f"{theirs}.{name}" for name in ("Wq", "Wk", "Wv")))
    yield from linear(f"{ours}.out", f"{theirs}.multi_head_combine")


def _feed_forward(ours: str, theirs: str) -> Iterator[Rule]:
    yield from linear(f"{ours}.up", f"{theirs}.W1")
    yield from linear(f"{ours}.down", f"{theirs}.W2")


def lehd_layers() -> Iterator[Rule]:
    for ours, theirs in (("encoder", "encoder.layers.0"), ("layers.{i}", "decoder.layers.{i}")):
        yield from _attention(ours, theirs)
        yield from _feed_forward(ours, f"{theirs}.feedForward")
    yield from linear("embed", "encoder.embedding")
    yield from linear("current", "decoder.embedding_last_node")
    yield from linear("head", "decoder.Linear_final")


def _lehd() -> Iterator[Rule]:
    yield from lehd_layers()
    yield from linear("start", "decoder.embedding_first_node")


def _sit() -> Iterator[Rule]:
    for half, suffix in (("gather", ""), ("spread", "_2")):
        ours, theirs = f"decoder.layers.{{i}}.{half}", "decoder.layers.{i}"
        yield weight(f"{ours}.query", f"{theirs}.Wq{suffix}")
        yield weight(f"{ours}.key_value", f"{theirs}.Wk{suffix}", f"{theirs}.Wv{suffix}")
        yield from linear(f"{ours}.out", f"{theirs}.multi_head_combine{suffix}")
        yield from _feed_forward(ours, f"{theirs}.feedForward{suffix}")
    yield from linear("embed", "encoder.embedding")
    yield from linear("decoder.start", "decoder.embedding_first_node")
    yield from linear("decoder.current", "decoder.embedding_last_node{s}")
    yield from linear("head", "decoder.Linear_final")


def _bq() -> Iterator[Rule]:
    ours, theirs = "layers.{i}", "encoder.{i}.attn"
    yield Rule(
        f"{ours}.qkv.weight", tuple(f"{theirs}.{name}" for name in ("lambda2", "lambda1", "theta1")), rows_of_heads
    )
    biases = f"{theirs}.bias_lambda", f"{theirs}.bias_theta"
    yield Rule(f"{ours}.key_value_bias", biases, lambda parts: torch.cat([part.flatten() for part in parts]))
    # The output projection, whose inputs are the heads' channels: (heads, outputs, d_k)
    yield Rule(f"{ours}.out.weight", (f"{theirs}.theta2",), lambda parts: rows_of_heads(parts).T)
    for number in (1, 2):
        yield Rule(f"{ours}.alpha{number}", (f"encoder.{{i}}.res_norm{number}.alpha",), scalar)
    yield from linear(f"{ours}.up", "encoder.{i}.linear1")
    yield from linear(f"{ours}.down", "encoder.{i}.linear2")
    yield from linear("embed", "input_emb")
    yield weight("ends", "begin_end_tokens")
    yield from linear("head", "scores_projection")


NORM = {"tsp": "addAndNormalization{}.norm", "cvrp": "add_n_normalization_{}.norm"}
FEED = {"tsp": "feedForward", "cvrp": "feed_forward"}


def _encoder(spelling: str) -> Iterator[Rule]:
    """Projections, norms and FFNs; POMO and ICAM spell those of the CVRP otherwise."""
    ours, theirs = "layers.{i}", "encoder.layers.{i}"
    yield weight(f"{ours}.qkv", *(f"{theirs}.{name}" for name in ("Wq", "Wk", "Wv")))
    yield from linear(f"{ours}.attention_norm", f"{theirs}.{NORM[spelling].format(1)}")
    yield from linear(f"{ours}.feed_forward_norm", f"{theirs}.{NORM[spelling].format(2)}")
    yield from _feed_forward(ours, f"{theirs}.{FEED[spelling]}")
    yield weight("key_value", "decoder.Wk", "decoder.Wv")


def pomo_tsp() -> Iterator[Rule]:
    yield from _encoder("tsp")
    yield from linear("embed", "encoder.embedding")
    yield weight("context.ends", "decoder.Wq_first", "decoder.Wq_last")


def pomo_routes(spelling: str) -> Iterator[Rule]:
    yield from _encoder(spelling)
    yield from linear("embed.depot", "encoder.embedding_depot")
    yield from linear("embed.customers", "encoder.embedding_node")
    yield weight("context.project", "decoder.Wq_last")


def combined() -> Iterator[Rule]:
    """What POMO has and ICAM has not: projections of what attention gives."""
    yield from linear("layers.{i}.out", "encoder.layers.{i}.multi_head_combine")
    yield from linear("combine", "decoder.multi_head_combine")


def _adaptation() -> Iterator[Rule]:
    yield Rule("layers.{i}.alpha", ("encoder.layers.{i}.alpha",), scalar)
    yield Rule("alpha", ("decoder.alpha1",), scalar)
    yield Rule("compatibility_alpha", ("decoder.alpha2",), scalar)


def _mixture(ours: str, theirs: str, *layers: tuple[str, str]) -> Iterator[Rule]:
    """Gates and experts, whose layers are called so here and there."""
    yield Rule(f"{ours}.gate.weight", (f"{theirs}.w_gate",), transposed)
    yield Rule(f"{ours}.gate.noise", (f"{theirs}.w_noise",), transposed)
    for here, there in layers or (("", ""),):
        yield from linear(f"{ours}.experts{here}", f"{theirs}.experts.{{j}}{there}", how=torch.stack)


def _mvmoe() -> Iterator[Rule]:
    yield from pomo_routes("tsp")
    experts = "encoder.layers.{i}.feedForward"
    yield from _mixture("layers.{i}.mixture", experts, (".up", ".fc1"), (".down", ".fc2"))
    yield from _mixture("embed.depot", "encoder.embedding_depot")
    yield from _mixture("embed.customers", "encoder.embedding_node")


def _light() -> Iterator[Rule]:
    yield from _mixture("combine.sparse", "decoder.multi_head_combine_moe")
    yield from linear("combine.dense", "decoder.multi_head_combine_dense")
    yield weight("combine.gate", "decoder.dense_or_moe", how=lambda parts: parts[0].flip(0))


EMBEDDING, DEPOT = "encoder.embedding.weight", "encoder.embedding_depot.weight"
FIRST, SPREAD = "decoder.embedding_first_node.weight", "decoder.layers.0.Wq_2.weight"
LAST, LIGHT = "decoder.Wq_last.weight", "decoder.dense_or_moe.weight"
COMBINE = "encoder.layers.0.multi_head_combine.weight"
SPELT_CVRP = "encoder.layers.0.add_n_normalization_1.norm.weight"
MVMOE = {"idle": ("mean", "std"), "usual": {"heads": 8, "top": 2, "train_nodes": 100}}  # of its noise


def layout(name: str, kind: str, marks: Mapping[str, int | None], *tables: Iterator[Rule], **more: Any) -> Layout:
    """The layout of the network `kind` (dotted), with rules of these tables; more: its other fields."""
    rules = tuple(rule for table in tables for rule in table)
    options = {"lacks": (), "usual": {"heads": 8, "train_nodes": 100}} | more
    return Layout(name=name, kind=kind, marks=marks, rules=rules, **options)


def _layout(name: str, network: str, marks: Mapping[str, int | None], *tables: Iterator[Rule], **more: Any) -> Layout:
    return layout(name, f"neuroute.networks.{network}", marks, *tables, **more)


def _path(problem: str, columns: int) -> Iterator[Layout]:
    """Networks that see what is left: of nodes so many numbers."""
    net, where, lehd = problem.capitalize() if problem == "cvrp" else "", f"for the {problem.upper()}", [_lehd()]
    if problem == "tsp":
        lehd.append(linear("unused", "decoder.k_1"))
    yield _layout(f"LEHD {where}", f"lehd:Lehd{net}", {EMBEDDING: columns, FIRST: None}, *lehd, lacks=(SPREAD,))
    sit = {EMBEDDING: columns, SPREAD: None}
    yield _layout(f"SIT {where}", f"sit:Sit{net}", sit, _sit(), usual={"heads": 8, "train_nodes": 1000})
    marks = {"input_emb.weight": 2 if problem == "tsp" else 4, "encoder.0.attn.lambda1": None}
    bq = {"heads": "encoder.0.attn.lambda1", "usual": {"heads": 12, "train_nodes": 100}}
    yield _layout(f"BQ {where}", f"bq:Bq{net}", marks, _bq(), **bq)


LAYOUTS: tuple[Layout, ...] = (
    *_path("tsp", 2),
    *_path("cvrp", 3),
    _layout("POMO for the TSP", "pomo:Pomo", {EMBEDDING: 2, LAST: None, COMBINE: None}, pomo_tsp(), combined()),
    _layout("POMO for the CVRP", "pomo:PomoCvrp", {SPELT_CVRP: None, COMBINE: None}, pomo_routes("cvrp"), combined()),
    _layout(
        "ICAM for the TSP", "icam:Icam", {EMBEDDING: 2, LAST: None}, pomo_tsp(), _adaptation(),
        lacks=(COMBINE,), usual={"train_nodes": 100},
    ),
    _layout(
        "ICAM for the CVRP", "icam:IcamCvrp", {SPELT_CVRP: None}, pomo_routes("cvrp"), _adaptation(),
        lacks=(COMBINE,), usual={"train_nodes": 100},
    ),
    _layout(
        "MVMoE, POMO-MTL and POMO for one VRP", "mvmoe:MvMoe", {LAST: None, COMBINE: None},
        _mvmoe(), combined(), _mixture("combine", "decoder.multi_head_combine"),
        lacks=(EMBEDDING, SPELT_CVRP, LIGHT), **MVMOE,
    ),
    _layout(
        "MVMoE with a light decoder", "mvmoe:MvMoe", {LAST: None, COMBINE: None, LIGHT: None},
        _mvmoe(), linear("layers.{i}.out", "encoder.layers.{i}.multi_head_combine"), _light(), lacks=(EMBEDDING,),
        trained={"hierarchy": "episode"}, **MVMOE,
    ),
)  # fmt: skip


@cache
def layouts() -> tuple[Layout, ...]:
    """All of them; those of systems first, as their tensors may be those of a network here, and more."""
    return (*(each for _, theirs in parts("layout", "LAYOUTS") for each in theirs), *LAYOUTS)


def recognise(tensors: Mapping[str, Tensor]) -> Layout | None:
    """Return the layout whose marks a file's tensors bear."""
    return next((layout for layout in layouts() if layout.fits(tensors)), None)


Tensors = Mapping[str, Tensor]
# Whether customers come with windows, and how many numbers of a route a decision reads -> the variants that do.
INPUTS = {
    (False, 1): ("CVRP",),
    (False, 2): ("OVRP", "VRPL"),
    (False, 3): ("OVRPL",),
    (True, 2): ("VRPTW",),
    (True, 3): ("OVRPTW", "VRPLTW"),
    (True, 4): (ALL,),
}


def read_arguments(network: str, tensors: Tensors) -> dict[str, Any]:
    """Return what tensors tell: depth and width, and what else the network (module:Class) has of its own.

    Raises KeyError or IndexError if a tensor is missing, or has fewer axes, that would tell.
    """
    module = network.partition(":")[0].rpartition(".")[2]
    readers = {"sit": _read_sit, "icam": _read_icam, "mvmoe": _read_mvmoe, "decoder_only": _read_decoder_only}
    of_layout = next((layout.read for layout in layouts() if layout.kind == network), None)
    return (of_layout or readers.get(module, residual))(tensors)


def unsettled(network: str, tensors: Tensors) -> tuple[str, ...]:
    """Variants that have the same tensors, where these are of one VRP and do not tell of which."""
    if not network.endswith(":MvMoe"):
        return ()
    variants = INPUTS.get(_inputs(tensors), ())
    return variants if len(variants) > 1 else ()


def residual(tensors: Tensors) -> dict[str, Any]:
    """LEHD, BQ, POMO."""
    width = len(tensors["key_value.weight"]) // 2 if "key_value.weight" in tensors else len(tensors["embed.weight"])
    return {"depth": depth_of(tensors, "layers"), "width": width, "feed_forward": len(tensors["layers.0.up.weight"])}


def _read_decoder_only(tensors: Tensors) -> dict[str, Any]:
    flags = {"gate": "layers.0.gate.weight" in tensors, "rezero": "layers.0.alpha1" in tensors}
    return {"depth": depth_of(tensors, "layers"), "width": len(tensors["embed.weight"])} | flags


def _read_sit(tensors: Tensors) -> dict[str, Any]:
    width, cross = len(tensors["embed.weight"]), "decoder.layers.0.gather.up.weight" in tensors
    return {
        "depth": depth_of(tensors, "decoder.layers"),
        "width": width,
        "feed_forward": len(tensors[f"decoder.layers.0.{'gather.' * cross}up.weight"]),
        "representatives": len(tensors["decoder.current.weight"]) // width,
        "attention": "cross" if cross else "self",
    }


def _read_icam(tensors: Tensors) -> dict[str, Any]:
    has = {"adaptation": "alpha" in tensors, "compatibility": "compatibility_alpha" in tensors}
    return residual(tensors) | has


def _read_mvmoe(tensors: Tensors) -> dict[str, Any]:
    depth, width = depth_of(tensors, "layers"), len(tensors["key_value.weight"]) // 2
    arguments: dict[str, Any] = {"depth": depth, "width": width, "experts": 0}
    mixed = {f"enc{i}": f"layers.{i}.mixture.experts.up.weight" for i in range(depth)}
    mixed |= {"raw": "embed.depot.experts.weight", "dec": "combine.experts.weight"}
    if "combine.sparse.experts.weight" in tensors:
        mixed["dec"] = "combine.sparse.experts.weight"
    experts = {place: tensors[name] for place, name in mixed.items() if name in tensors}
    if experts:
        places = set(experts)
        layers = {f"enc{i}" for i in range(depth)}
        if layers <= places:
            places = (places - layers) | {POSITIONS[0]}
        positions = sorted(places, key=lambda place: (place == "dec", place != "raw", place))
        arguments |= {"experts": len(next(iter(experts.values()))), "positions": positions}
    for i in range(depth):
        if f"layers.{i}.up.weight" in tensors:
            arguments["feed_forward"] = len(tensors[f"layers.{i}.up.weight"])
        elif f"enc{i}" in experts:
            arguments["feed_forward"] = experts[f"enc{i}"].shape[1]
    variants = INPUTS.get(_inputs(tensors), ())
    return arguments | ({"inputs": variants[0]} if len(variants) == 1 else {})


def _inputs(tensors: Tensors) -> tuple[bool, int]:
    of_experts, project = "embed.customers.experts.weight", tensors["context.project.weight"]
    customers = tensors[of_experts if of_experts in tensors else "embed.customers.weight"]
    return customers.shape[-1] == 5, project.shape[1] - project.shape[0]


def depth_of(names: Iterable[str], stem: str) -> int:
    """Number of layers `<stem>.<i>.` among the names."""
    start = f"{stem}."
    return len({name.removeprefix(start).partition(".")[0] for name in names if name.startswith(start)})
