"""Figures of paper `icam`: how near the next node is, the adaptation function, the network, its module and POMO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.evaluation.snapshot import NetworkSnapshot
from neuroute.pipeline.papers.icam import paper as icam
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering import diagram as dg
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.render import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, Drawing


@dataclass(frozen=True)
class Structure(NetworkSnapshot):
    """A run, its modules and the arrays of its structure evaluation."""

    name, weight = "structure", "layers.0.qkv.weight"

    @classmethod
    def of_icam(cls, study: Study) -> Structure:
        return cls.read(study, icam.run_id(icam.OWN["tsp"]))

    @property
    def n(self) -> int:
        return len(self.array("coords"))

    @property
    def coords(self) -> maps.Array:
        return self.array("coords", float)

    @property
    def decision(self) -> maps.Decision:
        """The tour's first node is where it will end."""
        visited = self.array("visited", int)
        return maps.Decision.of_tour(self.coords, visited, self.array("probabilities", float), int(visited[0]))

    @property
    def order(self) -> maps.Array:
        """(n,) nodes along the greedy tour from node 0: near ones are neighbours in matrices."""
        return np.asarray(self.array("tours")[0], int)

    @property
    def alphas(self) -> dict[str, float]:
        """What ICAM has learnt, by where it is used."""
        layers = {f"layer {i}": float(alpha) for i, alpha in enumerate(self.array("layer_alphas"), 1)}
        return layers | {where: self.number(f"{where}_alpha") for where in ("decoder", "compatibility")}

    def alpha_rows(self, panel: str) -> list[dict[str, Any]]:
        about = {"panel": panel, "side": MEASURED}
        return [about | {"where": where, "alpha": alpha} for where, alpha in self.alphas.items()]

    def decision_rows(self) -> list[dict[str, Any]]:
        stop = {int(node): i for i, node in enumerate(self.array("visited"))}
        names = ("logits", "probabilities", "fits", "bias")
        numbers = {name: self.arrays[name] for name in names if name in self.arrays}
        return maps.node_rows(self.coords, {"panel": "decision", "side": MEASURED}, {"stop": stop, **numbers})

    def distances(self) -> maps.Array:
        """(n, n) of the instance, nodes along the greedy tour."""
        return maps.pairwise_distances(self.coords[self.order])


def adaptation_slope(alpha: float, nodes: int) -> float:
    """The adaptation function is this times the distance: -alpha log2(N) (icam, Eq. 12)."""
    return -alpha * float(np.log2(nodes))


def draw_alphas(axes: mpl.axes.Axes, alphas: dict[str, float]) -> None:
    """What was learnt, layer by layer, then in the decoder; the line is where all started."""
    values, layers = list(alphas.values()), len(alphas) - 2
    colours = [style.RAMPS["blue"][1]] * layers + [style.RAMPS["orange"][1], style.RAMPS["orange"][2]]
    step = 1 if layers <= 6 else 3
    labels = [str(i + 1) if i % step == 0 else "" for i in range(layers)]
    maps.draw_bars(axes, values, [*labels, "D", "C"], color=colours)
    axes.axhline(1, color=style.GREY, linewidth=0.7, linestyle=(0, (2, 2)))
    if min(values) < 0:
        axes.axhline(0, color=style.INK, linewidth=0.6)
    axes.tick_params(axis="x", length=0)


STARTS = 3  # tours that are drawn
LAYER = "layers.0"
POMO = icam.run_id(icam.ORIGINAL["tsp"])


@artifact("The network, drawn from its modules", needs=icam.structure_needs)
def figure3(study: Study) -> Drawing:
    net = Structure.of_icam(study)
    model, alpha = net.model, {key: maps.short(net.alphas[key]) for key in ("decoder", "compatibility")}
    sheet = _sheet(study, net, layer_alphas=alphas_of_layers(net, "α: "), log_n=net.number("log_n"), **alpha)
    maps.draw_matrix(sheet.axes["distances"], net.distances(), colours="Greys")
    draw_alphas(sheet.axes["alphas"], net.alphas)
    rows = [*model.rows(), *net.decision_rows(), *net.alpha_rows("α")]
    alt = "The encoder and the decoder of ICAM with their shapes between an instance and the next node's probabilities."
    return Drawing(sheet.figure, rows, notes(study, net=net, visited=len(net.decision.path), bias=_bias_note(net)), alt)


def alphas_of_layers(net: Structure, several: str = "α = ") -> str:
    """α = 0.5 where all are alike, else their range."""
    values = net.array("layer_alphas")
    text = maps.format_range(values)
    low, _, high = text.partition(" … ")
    return f"α = {low}" if low == high or not high else several + text


def _sheet(study: Study, net: Structure, **values: Any) -> dg.Sheet:
    sheet = dg.Sheet.of(study, net.model, net=net, clipping=net.number("clipping"), **values)
    maps.draw_state(sheet.axes["instance"], net.decision)
    maps.draw_probabilities(sheet.axes["probabilities"], net.decision)
    return sheet


def _bias_note(net: Structure) -> str:
    """What the bias does to this decision."""
    choice = net.decision.choice
    open_nodes = np.flatnonzero(np.isfinite(net.array("logits", float)))
    fits, bias = (net.array(name, float)[open_nodes] for name in ("fits", "bias"))
    if not len(open_nodes) or not np.isfinite(fits).all() or choice is None:
        return "The logits of this decision are not finite."
    without, nearest = int(open_nodes[fits.argmax()]), int(open_nodes[bias.argmax()])
    preferred = "also prefer the chosen node" if without == choice else "prefer another node than the chosen one"
    return (
        f"At this decision the products alone, without their bias, {preferred}; the chosen node "
        f"{'is' if nearest == choice else 'is not'} the one that the bias favours."
    )


@artifact("POMO, drawn from its modules", needs=lambda scale: [icam.structure(scale, POMO)])
def figure6(study: Study) -> Drawing:
    """POMO with its shapes (a), where its heads look (b), and tours from several starts with all lengths (c, d)."""
    net = Structure.read(study, POMO)
    model, lengths = net.model, net.array("lengths", float)
    order = np.argsort(lengths, kind="stable")
    places = np.linspace(0, len(order) - 1, min(STARTS, len(order))).round().astype(int)
    starts = [int(order[place]) for place in places]  # of the shortest tour, the median and the longest
    titles = {start: f"{'best: ' if start == lengths.argmin() else ''}{lengths[start]:.3f}" for start in starts}
    tours = [dg.panel(f"tour{s}", 0.92, 0.92, text, bold=text.startswith("best")) for s, text in titles.items()]
    sheet = _sheet(study, net, tours=tours, drawn=len(starts))
    _draw_heads(sheet.axes["heads"], net)
    for start in starts:
        axes = sheet.axes[f"tour{start}"]
        tour, colour = net.array("tours")[start], style.GREEN if start == lengths.argmin() else style.GREY
        axes.plot(*net.coords[[*tour, tour[0]]].T, color=colour, linewidth=0.8)
        maps.draw_mark(axes, net.coords[start], "destination", 7)
        maps.frame_square(axes, net.coords)
    axes = sheet.axes["lengths"]
    axes.hist(lengths, bins=min(15, max(4, len(lengths) // 3)), color=style.RAMPS["blue"][1])
    axes.axvline(lengths.min(), color=style.GREEN, linewidth=1.2)
    maps.label_small(axes, "tour length", "starts")
    rows: list[dict[str, Any]] = [*model.rows(), *net.decision_rows()]
    rows += [{"panel": "d", "side": MEASURED, "start": i, "length": float(length)} for i, length in enumerate(lengths)]
    for start in starts:
        about = {"panel": "c", "side": MEASURED, "start": start}
        rows += [about | {"stop": i, "node": int(node)} for i, node in enumerate(net.array("tours")[start])]
    for head, weights in enumerate(net.array("attention"), 1):
        about = {"panel": "b", "side": MEASURED, "head": head}
        rows += [about | {"node": node, "weight": float(weight)} for node, weight in enumerate(weights)]
    alt = "POMO's encoder and decoder with their shapes; the heads' attention; tours from several starts."
    of_tours = {"first": lengths[0], "best": lengths.min(), "mean": lengths.mean()}
    return Drawing(sheet.figure, rows, notes(study, net=net, visited=len(net.decision.path), **of_tours), alt)


def _draw_heads(axes: mpl.axes.Axes, net: Structure) -> None:
    """A row for each head, the nodes that are left from near to far."""
    attention = net.array("attention", float)
    nodes = [node for node in net.decision.nearest_first() if np.isfinite(net.array("logits")[node])]
    if not nodes:
        style.empty_axes(axes, "not finite")
        return
    maps.draw_matrix(axes, attention[:, nodes], colours="Blues")
    maps.label_small(axes, "unvisited nodes, near to far", "head")
    axes.set_yticks([0, len(attention) - 1], ["1", str(len(attention))])
    axes.tick_params(length=0)


NODES, CHANNELS = 24, 16  # of the matrices, that are drawn
TITLES = {  # of the calculation's matrices
    "query": "Q", "sigmoid_query": "σ(Q)", "output": "Y", "value": "V", "weighed_value": "exp(K) ⊙ V",
    "numerator": "exp(A)·\n(exp(K) ⊙ V)", "ratio": "ratio", "key": "K", "exp_key": "exp(K)",
    "denominator": "exp(A)·exp(K)", "adaptation": "A", "exp_adaptation": "exp(A)",
}  # fmt: skip
GRID = (  # matrices, and where they meet
    ("query", "", "sigmoid_query", "", "", "", "", "", "", "⊙ output", "output"),
    ("value", "", "", "⊙ value", "weighed_value", "· value", "numerator", "÷ ratio", "ratio", "", ""),
    ("key", "", "exp_key", "", "", "· key", "denominator", "", "", "", ""),
    ("adaptation", "", "exp_adaptation", "", "", "", "", "", "", "", ""),
)


@artifact("The module's calculation, with its own numbers", needs=icam.structure_needs)
def figure5(study: Study) -> Drawing:
    """Every term of Eq. 3 on a real instance."""
    net = Structure.of_icam(study)
    terms = calculation_terms(net)

    def cell(name: str, i: int) -> dg.Element:
        if name in TITLES:
            return dg.panel(name, 0.72, 0.6, TITLES[name], below=0.12, bold=True)
        return dg.sign(name, name[0]) if name else dg.space(0.15 if i % 2 else 0.72)

    grid = [dg.row(*map(cell, names, range(len(names))), gap=0.07) for names in GRID]
    sheet = dg.Sheet.of(study, net.model, rows=grid)
    nodes = net.order[:NODES]
    for name, values in terms.items():
        part = values[np.ix_(nodes, nodes)] if name.endswith("adaptation") else values[nodes, :CHANNELS]
        palette = "Oranges" if name == "exp_adaptation" else ""
        maps.draw_matrix(sheet.axes[name], part, maps.format_range(values), colours=palette)
    text, look = "matrix product: a sum over the nodes, weighed by how far they are", {"ha": "left", "fontsize": 6}
    x, y = sheet.places["· key"].x + 0.08, sheet.places["exp_adaptation"].y
    sheet.write(x, y, text, color=dg.COLOURS["orange"], **look)
    alt = (
        "Queries, keys, values and adaptation bias of a real instance, and what the module makes of them step by step."
    )
    with np.errstate(invalid="ignore"):
        difference = float(np.abs(terms["sigmoid_query"] * terms["ratio"] - terms["output"]).max())
    width = net.model.width
    drawn = {"nodes": len(nodes), "channels": min(CHANNELS, width), "width": width}
    texts = notes(study, net=net, layer=int(net.number("layer")) + 1, difference=difference, **drawn)
    rows = [
        {"side": MEASURED, "matrix": name, "node": int(i), "column": int(j), "value": float(values[i, j])}
        for name, values in terms.items()
        for i in nodes
        for j in (nodes if name.endswith("adaptation") else range(min(CHANNELS, width)))
    ]
    return Drawing(sheet.figure, rows, texts, alt)


def calculation_terms(net: Structure) -> dict[str, maps.Array]:
    """(n, W) or (n, n) of each term.

    Of each channel's keys the largest is subtracted: that cancels, and exp(K) has 1 as its largest.
    """
    names = ("query", "value", "key", "adaptation", "numerator", "denominator", "output")
    t = {name: net.array(name, float) for name in names}
    keys = np.exp(t["key"] - t["key"].max(axis=0))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return {
            **{name: t[name] for name in names[:4]},
            "sigmoid_query": 1 / (1 + np.exp(-t["query"])),
            "exp_key": keys,
            "exp_adaptation": np.exp(t["adaptation"]),
            "weighed_value": keys * t["value"],
            "numerator": t["numerator"],
            "denominator": t["denominator"],
            "ratio": t["numerator"] / t["denominator"],
            "output": t["output"],
        }


MOST_NODES = 100  # nodes of a distance matrix at most, along the tour


@artifact("Adaptation to an instance, drawn from a trained model", needs=icam.structure_needs)
def figure2(study: Study) -> Drawing:
    """From instance to bias at two sizes (a), where the bias enters (b), and what was learnt of it (c)."""
    net = Structure.of_icam(study)
    model, alpha = net.model, net.number("decoder_alpha")
    # Coordinates (n, 2) and tour (n,), smallest first: of instances with optimal tours, else of the decision's.
    sizes = sorted(int(n) for n in net.array("sizes")) if "sizes" in net.arrays else []
    instances = [(n, net.array(f"coords_{n}", float), net.array(f"tour_{n}", int)) for n in sizes]
    instances = instances or [(net.n, net.coords, net.order)]
    learnt = {"AAFM": net.alphas["decoder"], "compatibility": net.alphas["compatibility"]}
    alphas = [f"{name}: α = {maps.short(value)}" for name, value in learnt.items()]
    layers = f"{model.depth} layer{'s' * (model.depth > 1)}: AAFM, FFN"
    first, last = instances[0][0], instances[-1][0]

    def panel(name: str, n: int, title: str) -> dg.Element:
        return dg.panel(f"{name}{n}", 1.15, 1.15, title if n == first else "")

    sheet = dg.Sheet(
        dg.column(
            dg.heading("(a) What an instance tells: its distances and its number of nodes"),
            dg.row(
                dg.column(*(dg.row(dg.words(f"N = {n:,}", 6.3, bold=True), panel("instance", n, "instance"),
                             panel("distances", n, "distance matrix"), gap=0.3) for n, *_ in instances), gap=0.2),
                dg.panel("function", 1.15, 0.84, "f(N, d) = −α log₂(N) d", before=0.2, below=0.25),
                dg.column(*(panel("weights", n, "weight exp(A) of the nodes") for n, *_ in instances), gap=0.2),
            ),
            dg.row(
                dg.column(
                    dg.heading("(b) Where the bias enters"),
                    dg.row(
                        dg.space(1.0), dg.words("in every layer", above=True),
                        dg.box("A", "A = f(N, d)", fill="representatives"),
                        dg.words("twice per decision", above=True), dg.space(0.3), tight=True, gap=0.1,
                    ),
                    dg.row(
                        dg.box("instance", "instance", "N × 2"),
                        dg.box("encoder", "encoder", layers, alphas_of_layers(net), fill="nodes", width=1.1),
                        dg.box("H", "H", f"N × {model.width}"),
                        dg.box("decoder", "decoder", *alphas, fill="nodes", width=1.3),
                    ),
                    top=True, width=4.6,
                ),
                dg.column(
                    dg.heading("(c) Learnt α"), dg.panel("alphas", 1.45, 0.75, before=0.25, below=0.25), top=True
                ),
            ),
        )
    )  # fmt: skip
    for n, coords, tour in instances:
        axes = {name: sheet.axes[f"{name}{n}"] for name in ("instance", "distances", "weights")}
        maps.draw_nodes(axes["instance"], coords, slice(None), style.INK, s=min(9.0, max(0.8, 700 / n)), linewidths=0)
        maps.frame_square(axes["instance"])
        maps.draw_matrix(axes["distances"], maps.pairwise_distances(coords[tour[:MOST_NODES]]), colours="Greys")
        _draw_weights(axes["weights"], coords, alpha)
        sheet.chain(f"instance{n}", f"distances{n}")
        shift = 0 if first == last else 0.25 if n == first else -0.25
        sheet.arrow(f"distances{n}", "function", enter=shift, bend="across")
        sheet.arrow("function", f"weights{n}", leave=shift, bend="across")
    chart = sheet.axes["function"]
    sizes = [n for n, *_ in instances]
    reach = np.array([0, np.sqrt(2)])
    for n, colour in zip(sizes, style.ramp("orange", len(sizes) + 1)[1:], strict=True):
        chart.plot(reach, adaptation_slope(alpha, n) * reach, color=colour, label=f"N = {n:,}")
    chart.set_xlim(0, 1.42)
    maps.label_small(chart, "distance d")
    chart.grid(visible=True)
    chart.legend(fontsize=5.8, loc="best", handlelength=1.2)
    sheet.chain("instance", "encoder", "H", "decoder")
    sheet.arrow("A", "encoder")
    sheet.arrow("A", "decoder")
    draw_alphas(sheet.axes["alphas"], net.alphas)
    maps.label_small(sheet.axes["alphas"], "layer; D: decoder, C: compatibility")
    alt = "Two instances, their distance matrices, the learnt adaptation function and the weights that it gives nodes."
    rows = []
    for n, coords, tour in instances:
        distances = maps.pairwise_distances(coords)[middle_node(coords)]
        of_nodes = {"stop": np.argsort(tour), "distance": distances, "bias": adaptation_slope(alpha, n) * distances}
        rows += maps.node_rows(coords, {"panel": "a", "side": MEASURED, "n": n}, of_nodes)
    counts = " and ".join(f"TSP{n:,}" for n in sizes)
    cut = f"; of larger ones the first {MOST_NODES} nodes" if any(n > MOST_NODES for n in sizes) else ""
    fall = "; ".join(f"N = {n:,}: {np.log(2) / max(-adaptation_slope(alpha, n), 1e-9):.3f}" for n in sizes)
    halves = f" exp(A) halves every so far: {fall}." if alpha > 0 else " As α is not above 0, far nodes do not fade."
    texts = notes(study, net=net, counts=counts, cut=cut, alpha=alpha, halves=halves)
    return Drawing(sheet.figure, [*net.alpha_rows("c"), *rows], texts, alt)


def middle_node(coords: maps.Array) -> int:
    """The node nearest to the mean of all."""
    return int(np.square(coords - coords.mean(axis=0)).sum(axis=1).argmin())


def _draw_weights(axes: mpl.axes.Axes, coords: maps.Array, alpha: float) -> None:
    """Nodes by exp(A) of the node in the middle: what they count."""
    current = middle_node(coords)
    weights = np.exp(adaptation_slope(alpha, len(coords)) * maps.pairwise_distances(coords)[current])
    weights /= weights.max() or 1
    order = np.argsort(weights, kind="stable")
    colours = maps.color_values("Oranges", (weights[order] + 0.12) / 1.12)
    maps.draw_nodes(axes, coords, order, colours, s=min(15.0, max(1.6, 1100 / len(coords))), edgecolors="#b5651d66")
    maps.draw_mark(axes, coords[current], "current", 6)
    maps.frame_square(axes)


@artifact("The adaptation attention-free module", needs=icam.structure_needs)
def figure4(study: Study) -> Drawing:
    """The module in the encoder, where all nodes ask all (a), and in the decoder, where tours do (b)."""
    net = Structure.of_icam(study)
    model, n, layer = net.model, net.n, int(net.number("layer"))
    width, module = model.width, "adaptation attention-free module"
    decoder_count = model.count("context.") + model.count("key_value.") + 1

    def function(name: str, title: str, alpha: float) -> dg.Element:
        text = f"{maps.short(-alpha)} × {net.number('log_n'):.2f} × d"
        return dg.box(name, title, text, fill="representatives", width=0.9, height=0.36)

    def linear(name: str, shape: str) -> dg.Element:
        return dg.box(name, "linear", shape, fill="nodes", height=0.36)

    linears = [
        dg.column(dg.panel(name, 0.54, 0.54, before=0.15), linear(f"linear_{name}", f"{width} × {width}"))
        for name in ("query", "key", "value")
    ]
    of = f"nodes after layer {layer}" if layer else "embedded nodes"
    encoder_count = model.count(f"{LAYER}.qkv") + 1
    wide: dict[str, Any] = {"fill": "nodes", "stretch": True}
    encoder = dg.column(
        dg.heading("(a) In a layer of the encoder"),
        dg.box("output", f"Y: {n:,} × {width}", fill="output", width=1.2),
        dg.box("module", module, f"no heads, no projection behind it; {encoder_count:,} parameters", **wide),
        dg.row(
            dg.column(dg.row(*linears, tight=True, gap=0.1), dg.box("nodes", f"{of}: {n:,} × {width}", width=2.0)),
            dg.column(
                dg.panel("adaptation", 0.54, 0.54, before=0.15),
                function("function", "f(N, d)", float(net.array("layer_alphas")[layer])),
                dg.box("X", f"X: {n:,} × 2"),
            ),
        ),
        top=True,
    )
    decoder = dg.column(
        dg.heading("(b) In the decoder, at each step"),
        dg.box("context", f"new context: {n:,} × {width}", fill="output", width=1.4),
        dg.box("module2", module, f"one for all decisions; {decoder_count:,} parameters", **wide),
        dg.row(
            dg.column(
                dg.space(0.7, 0.54), linear("of_query", f"2 × {width} × {width}"),
                dg.box("ends", "first, current", f"of {n:,} tours"),
            ),
            dg.column(
                dg.space(0.7, 0.54), linear("of_key", model.shape("key_value")), dg.box("H", f"H: {n:,} × {width}")
            ),
            dg.column(
                dg.column(dg.words("A of one tour; grey: −∞", name="row_title"), dg.panel("row", 0.95, 0.34), gap=0.05),
                function("masked", "f(N, d) + mask", net.number("decoder_alpha")),
                dg.box("distances", "distances", "from the current node"),
            ),
        ),
        top=True,
    )  # fmt: skip
    sheet = dg.Sheet(dg.row(encoder, decoder))
    sheet.arrow("module", "output")
    matrices = {name: net.array(name, float)[net.order] for name in ("query", "key", "value", "adaptation")}
    for (name, matrix), letter in zip(matrices.items(), "QKVA", strict=True):
        way = ("X", "function") if name == "adaptation" else ("nodes", f"linear_{name}")
        sheet.chain(*way, name, "module")
        maps.draw_matrix(sheet.axes[name], matrix[:, net.order if name == "adaptation" else slice(CHANNELS)])
        place = sheet.places[name]
        sheet.write(place.left - 0.08, place.y, letter, fontweight="bold", fontsize=6.5)
    sheet.chain("distances", "masked", "row")
    sheet.arrow("row_title", "module2")
    for start, through, what in (("ends", "of_query", "query"), ("H", "of_key", "key, value")):
        sheet.chain(start, through)
        sheet.arrow(through, "module2", label=f"{what}\n{n:,} × {width}")
    sheet.arrow("module2", "context")
    decision = net.decision
    bias = adaptation_slope(net.number("decoder_alpha"), n) * maps.pairwise_distances(net.coords)[decision.current]
    bias[decision.path] = np.nan
    maps.draw_matrix(sheet.axes["row"], bias[net.order][None])
    rows = [*model.rows("a, b"), *net.alpha_rows("a, b")]
    texts = notes(study, net=net, layer=layer + 1, n=n, path=len(decision.path))
    alt = "The attention-free module with its linears and shapes, on matrices of a real instance."
    return Drawing(sheet.figure, rows, texts, alt)


CHOOSERS = {"optimal": "optimal tours", "model": "ICAM, greedy"}
DASHES: dict[str, Any] = {"optimal": "-", "model": (0, (1.2, 1))}
SHOWN_RANKS = 8
NEAR, FAR, TOUR = style.RAMPS["blue"][1], "#aeb5c0", "#cdd2da"


@artifact("Where optimal tours go, in small and large instances", needs=icam.structure_needs)
def figure1(study: Study) -> Drawing:
    """Instances of two sizes with the region of preferred nodes (a), distances and ranks of all choices (b, c)."""
    net = Structure.of_icam(study)
    sizes = [int(n) for n in np.sort(net.array("sizes"))]
    colours = dict(zip(sizes, style.ramp("blue", len(sizes) + 1)[1:], strict=True))
    titles = {
        n: f"{n:,} nodes: radius {net.number(f'radius_{n}_optimal'):.3f}, "
        f"{net.number(f'within_{n}_optimal'):.1f} others inside"
        for n in sizes
    }
    side = min(1.95, 6.2 / len(sizes))
    point = maps.MARKS["candidate"] | {"markeredgecolor": "none"}
    marks = {
        "current node": point | {"color": maps.RED},
        "nodes within the circle": point | {"color": NEAR},
        "other nodes": point | {"color": FAR},
        "optimal tour": {"color": TOUR},
    }
    charts = {"distances": "(b) Distance to the next node", "ranks": "(c) Its rank among unvisited nodes"}
    sheet = dg.Sheet(
        dg.column(
            dg.heading(f"(a) Within the circle: {100 * icam.SHARE:.0f} % of all next nodes in optimal tours"),
            dg.row(dg.space(), *(dg.panel(f"map{n}", side, side, title) for n, title in titles.items()), dg.space()),
            dg.legend(marks, across=True),
            dg.row(*(dg.panel(name, 2.75, 1.05, before=0.4, below=0.3) for name in charts)),
            gap=0.2,
        )
    )
    for n in sizes:
        _draw_region(sheet.axes[f"map{n}"], net, n)
    _draw_distances(sheet.axes["distances"], net, colours)
    _draw_ranks(sheet.axes["ranks"], net, colours)
    for name, title in charts.items():
        sheet.axes[name].set_title(title, pad=4)
    alt = "Instances of two sizes with a circle around the current node; below, how far away next nodes are chosen."
    counts, solved, solvers = (
        dict(zip(net.array("sizes"), net.array(key), strict=True)) for key in ("counts", "solved", "solvers")
    )
    sets = ", ".join(f"{counts[n]:,} of TSP{n:,} by {solvers[n]}" for n in sizes)
    solved_text = ", ".join(f"{solved[n]:,} of TSP{n:,}" for n in sizes)
    ratio = ""
    if len(sizes) > 1:
        first, last = sizes[0], sizes[-1]
        change = net.number(f"radius_{last}_optimal") / net.number(f"radius_{first}_optimal")
        ratio = (
            f"From {first:,} to {last:,} nodes the radius changes by a factor of {change:.2f}; (n1/n2)^0.5, which "
            f"keeps the number of nodes inside, is {(first / last) ** 0.5:.2f}."
        )
    texts = notes(
        study, net=net, sets=sets, solved=solved_text, quantile=100 * icam.SHARE, most=icam.RANKS - 1, ratio=ratio
    )
    rows: list[dict[str, Any]] = []
    for n in sizes:
        coords = net.array(f"coords_{n}", float)
        place = np.where(_inside(net, n), "within", "other").astype(object)
        place[middle_node(coords)] = "current"
        columns = {"stop": np.argsort(net.array(f"tour_{n}")), "place": place}
        rows += maps.node_rows(coords, {"panel": "a", "side": MEASURED, "n": n}, columns)
        for who in CHOOSERS:
            about = {"side": MEASURED, "n": n, "chooser": who}
            rows.append(about | {"panel": "a"} | {k: net.number(f"{k}_{n}_{who}") for k in ("radius", "within")})
            rows += [
                about | {"panel": "b", "level": round(float(level), 4), "distance": float(distance)}
                for level, distance in zip(net.array("levels"), net.array(f"quantiles_{n}_{who}"), strict=True)
            ]
            by_rank = enumerate(net.array(f"ranks_{n}_{who}"), 1)
            rows += [about | {"panel": "c", "rank": k, "decisions": int(count)} for k, count in by_rank]
    return Drawing(sheet.figure, rows, texts, alt)


def _inside(net: Structure, n: int) -> Any:
    """(n,) whether nodes lie within the circle around the middle node, which is drawn as the current one."""
    coords = net.array(f"coords_{n}", float)
    return maps.pairwise_distances(coords)[middle_node(coords)] <= net.number(f"radius_{n}_optimal")


def _draw_region(axes: mpl.axes.Axes, net: Structure, n: int) -> None:
    coords, tour, inside = net.array(f"coords_{n}", float), net.array(f"tour_{n}"), _inside(net, n)
    current, area = coords[middle_node(coords)], float(np.clip(1400 / n, 1.2, 16))
    axes.plot(*coords[np.append(tour, tour[0])].T, color=TOUR, linewidth=0.6, zorder=1)
    maps.draw_nodes(axes, coords, ~inside, FAR, s=area, linewidths=0, zorder=2)
    maps.draw_nodes(axes, coords, inside, NEAR, s=area, linewidths=0)
    radius = net.number(f"radius_{n}_optimal")
    axes.add_patch(
        mpl.patches.Circle(tuple(current), radius, facecolor="#3f8fc622", edgecolor="#1c5a9c", linewidth=0.9, zorder=2)
    )
    axes.plot(*current, "o", color=maps.RED, markersize=max(3.0, area**0.5 + 1), zorder=5, markeredgecolor="white")
    maps.frame_square(axes, margin=0.02)


def _draw_distances(axes: mpl.axes.Axes, net: Structure, colours: dict[int, str]) -> None:
    """The share of choices that are not farther away, by size: solid the optimal tours', dotted the model's."""
    levels, reach = net.array("levels"), 0.0
    for n, colour in colours.items():
        for who, dash in DASHES.items():
            quantiles = net.array(f"quantiles_{n}_{who}")
            axes.plot(quantiles, 100 * levels, color=colour, linestyle=dash)
            reach = max(reach, float(np.interp(0.985, levels, quantiles)))
        radius = net.number(f"radius_{n}_optimal")
        axes.plot([radius, radius], [0, 100 * icam.SHARE], color=colour, linewidth=0.7, linestyle="--")
        axes.plot([], [], color=colour, label=f"{n:,} nodes")
    for who, name in CHOOSERS.items():
        axes.plot([], [], color=style.INK, linestyle=DASHES[who], label=name)
    axes.axhline(100 * icam.SHARE, color=style.GREY, linewidth=0.6, linestyle="--")
    axes.set_xlim(0, 1.4 * reach or 1)  # room for the legend beside all radii
    axes.set_ylim(0, 102)
    axes.set_xlabel("distance in the unit square", labelpad=2)
    axes.set_ylabel("choices within (%)", labelpad=2)
    axes.legend(loc="lower right", fontsize=6)


def _draw_ranks(axes: mpl.axes.Axes, net: Structure, colours: dict[int, str]) -> None:
    """Optimal tours' shares by rank, sizes side by side; what is beyond is the last."""
    width = 0.8 / len(colours)
    for k, (n, colour) in enumerate(colours.items()):
        x = np.arange(1, SHOWN_RANKS + 2) - 0.4 + (k + 0.5) * width
        shares = {}
        for who in CHOOSERS:
            ranks = net.array(f"ranks_{n}_{who}")
            shares[who] = 100 * np.append(ranks[:SHOWN_RANKS], ranks[SHOWN_RANKS:].sum()) / ranks.sum()
        axes.bar(x, shares["optimal"], width, color=colour, label=f"{n:,} nodes")
        size = 72 * 2.75 / (SHOWN_RANKS + 1.4) * width * 0.8
        axes.plot(x, shares["model"], "_", color=maps.RED, markeredgewidth=1.3, markersize=size)
    axes.plot([], [], color=maps.RED, linewidth=1.3, label=CHOOSERS["model"])
    axes.set_xticks(range(1, SHOWN_RANKS + 2), [*map(str, range(1, SHOWN_RANKS + 1)), f"≥ {SHOWN_RANKS + 1}"])
    axes.set_xlabel("1: the nearest", labelpad=2)
    axes.set_ylabel("choices (%)", labelpad=2)
    axes.grid(visible=False, axis="x")
    axes.legend(fontsize=6)
