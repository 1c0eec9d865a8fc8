"""Figures 2, 4 and 5 of paper `icam`: the adaptation function, its module, and the module's calculation."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.papers.icam.figures_network import alphas_of_layers
from neuroute.papers.icam.roles import structure_needs
from neuroute.papers.icam.snapshot import Structure, adaptation_slope, draw_alphas
from neuroute.plan.needs import artifact
from neuroute.rendering import diagram as dg
from neuroute.rendering import maps, style
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.style import MEASURED, Drawing

MOST_NODES = 100  # nodes of a distance matrix at most, along the tour
CHANNELS = 16  # of the maps of queries, keys and values
LAYER = "layers.0"


# -- Figure 2 -------------------------------------------------------------------------------------------------------


@artifact("Adaptation to an instance, drawn from a trained model", needs=structure_needs)
def figure2(study: Study) -> Drawing:
    """From instance to bias at two sizes (a), where the bias enters (b), and what was learnt of it (c)."""
    net = Structure.of_icam(study)
    model, alpha, instances = net.model, net.number("decoder_alpha"), labelled_instances(net)
    alphas = [
        f"{name}: α = {maps.short(net.alphas[key])}"
        for name, key in (("AAFM", "decoder"), ("compatibility", "compatibility"))
    ]
    layers = f"{model.depth} layer{'s' * (model.depth > 1)}: AAFM, FFN"
    first, last = instances[0][0], instances[-1][0]

    def panel(name: str, n: int, title: str) -> dg.Panel:
        return dg.Panel(f"{name}{n}", 1.15, 1.15, title if n == first else "")

    sheet = dg.Sheet(
        dg.column(
            dg.heading("(a) What an instance tells: its distances and its number of nodes"),
            dg.row(
                dg.column(*(dg.row(dg.words(f"N = {n:,}", 6.3, bold=True), panel("instance", n, "instance"),
                             panel("distances", n, "distance matrix"), gap=0.3) for n, *_ in instances), gap=0.2),
                dg.Panel("function", 1.15, 0.84, "f(N, d) = −α log₂(N) d", before=0.2, below=0.25),
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
                    dg.heading("(c) Learnt α"), dg.Panel("alphas", 1.45, 0.75, before=0.25, below=0.25), top=True
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
    _draw_function(sheet.axes["function"], [n for n, *_ in instances], alpha)
    sheet.chain("instance", "encoder", "H", "decoder")
    sheet.arrow("A", "encoder")
    sheet.arrow("A", "decoder")
    draw_alphas(sheet.axes["alphas"], net.alphas)
    maps.label_small(sheet.axes["alphas"], "layer; D: decoder, C: compatibility")
    alt = "Two instances, their distance matrices, the learnt adaptation function and the weights that it gives nodes."
    return dg.drawing(
        sheet.figure, [*net.alpha_rows("c"), *_idea_rows(alpha, instances)], _idea_notes(study, net, instances), alt
    )


def labelled_instances(net: Structure) -> list[tuple[int, maps.Array, maps.Array]]:
    """(n, coords (n, 2), tour (n,)), smallest first: those with optimal tours, else the one of the decision."""
    if "sizes" not in net.arrays:
        return [(net.n, net.coords, net.order)]
    sizes = sorted(int(n) for n in net.array("sizes"))
    return [(n, net.array(f"coords_{n}", float), net.array(f"tour_{n}", int)) for n in sizes]


def middle_node(coords: maps.Array) -> int:
    """The node nearest to the mean of all."""
    return int(np.square(coords - coords.mean(axis=0)).sum(axis=1).argmin())


def _draw_function(axes: mpl.axes.Axes, sizes: list[int], alpha: float) -> None:
    """f(N, d) of each size with a learnt alpha."""
    reach = np.array([0, np.sqrt(2)])
    for n, colour in zip(sizes, style.ramp("orange", len(sizes) + 1)[1:], strict=True):
        axes.plot(reach, adaptation_slope(alpha, n) * reach, color=colour, label=f"N = {n:,}")
    axes.set_xlim(0, 1.42)
    maps.label_small(axes, "distance d")
    axes.grid(visible=True)
    axes.legend(fontsize=5.8, loc="best", handlelength=1.2)


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


def _idea_rows(alpha: float, instances: list[tuple[int, maps.Array, maps.Array]]) -> list[dict[str, Any]]:
    rows = []
    for n, coords, tour in instances:
        distances = maps.pairwise_distances(coords)[middle_node(coords)]
        columns = {"stop": np.argsort(tour), "distance": distances, "bias": adaptation_slope(alpha, n) * distances}
        rows += maps.node_rows(coords, {"panel": "a", "side": MEASURED, "n": n}, columns)
    return rows


def _idea_notes(study: Study, net: Structure, instances: list[tuple[int, maps.Array, maps.Array]]) -> tuple[str, ...]:
    alpha, sizes = net.number("decoder_alpha"), [n for n, *_ in instances]
    counts = " and ".join(f"TSP{n:,}" for n in sizes)
    cut = f"; of larger ones the first {MOST_NODES} nodes" if any(n > MOST_NODES for n in sizes) else ""
    fall = "; ".join(f"N = {n:,}: {np.log(2) / max(-adaptation_slope(alpha, n), 1e-9):.3f}" for n in sizes)
    halves = f" exp(A) halves every so far: {fall}." if alpha > 0 else " As α is not above 0, far nodes do not fade."
    return notes(study, net=net, counts=counts, cut=cut, alpha=alpha, halves=halves)


# -- Figure 4 -------------------------------------------------------------------------------------------------------


@artifact("The adaptation attention-free module", needs=structure_needs)
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
        dg.column(dg.Panel(name, 0.54, 0.54, before=0.15), linear(f"linear_{name}", f"{width} × {width}"))
        for name in ("query", "key", "value")
    ]
    of = f"nodes after layer {layer}" if layer else "embedded nodes"
    encoder_count = model.count(f"{LAYER}.qkv") + 1
    encoder = dg.column(
        dg.heading("(a) In a layer of the encoder"),
        dg.box("output", f"Y: {n:,} × {width}", fill="output", width=1.2),
        dg.box(
            "module",
            module,
            f"no heads, no projection behind it; {encoder_count:,} parameters",
            fill="nodes",
            stretch=True,
        ),
        dg.row(
            dg.column(dg.row(*linears, tight=True, gap=0.1), dg.box("nodes", f"{of}: {n:,} × {width}", width=2.0)),
            dg.column(
                dg.Panel("adaptation", 0.54, 0.54, before=0.15),
                function("function", "f(N, d)", float(net.array("layer_alphas")[layer])),
                dg.box("X", f"X: {n:,} × 2"),
            ),
        ),
        top=True,
    )
    decoder = dg.column(
        dg.heading("(b) In the decoder, at each step"),
        dg.box("context", f"new context: {n:,} × {width}", fill="output", width=1.4),
        dg.box("module2", module, f"one for all decisions; {decoder_count:,} parameters", fill="nodes", stretch=True),
        dg.row(
            dg.column(
                dg.space(0.7, 0.54), linear("of_query", f"2 × {width} × {width}"),
                dg.box("ends", "first, current", f"of {n:,} tours"),
            ),
            dg.column(
                dg.space(0.7, 0.54), linear("of_key", model.shape("key_value")), dg.box("H", f"H: {n:,} × {width}")
            ),
            dg.column(
                dg.column(dg.words("A of one tour; grey: −∞", name="row_title"), dg.Panel("row", 0.95, 0.34), gap=0.05),
                function("masked", "f(N, d) + mask", net.number("decoder_alpha")),
                dg.box("distances", "distances", "from the current node"),
            ),
        ),
        top=True,
    )  # fmt: skip
    sheet = dg.Sheet(dg.row(encoder, decoder))
    sheet.arrow("module", "output")
    for name, letter in (("query", "Q"), ("key", "K"), ("value", "V")):
        sheet.chain("nodes", f"linear_{name}", name, "module")
        maps.draw_matrix(sheet.axes[name], net.array(name, float)[net.order, :CHANNELS])
        _write_letter(sheet, name, letter)
    sheet.chain("X", "function", "adaptation", "module")
    maps.draw_matrix(sheet.axes["adaptation"], net.array("adaptation", float)[np.ix_(net.order, net.order)])
    _write_letter(sheet, "adaptation", "A")
    sheet.chain("distances", "masked", "row")
    sheet.arrow("row_title", "module2")
    sheet.chain("ends", "of_query")
    sheet.chain("H", "of_key")
    sheet.arrow("of_query", "module2", label=f"query\n{n:,} × {width}")
    sheet.arrow("of_key", "module2", label=f"key, value\n{n:,} × {width}")
    sheet.arrow("module2", "context")
    decision = net.decision
    bias = adaptation_slope(net.number("decoder_alpha"), n) * maps.pairwise_distances(net.coords)[decision.current]
    bias[decision.path] = np.nan
    maps.draw_matrix(sheet.axes["row"], bias[net.order][None])
    rows = [*model.rows("a, b"), *net.alpha_rows("a, b")]
    texts = notes(study, net=net, layer=layer + 1, n=n, path=len(decision.path))
    alt = "The attention-free module with its linears and shapes, on matrices of a real instance."
    return dg.drawing(sheet.figure, rows, texts, alt)


def _write_letter(sheet: dg.Sheet, name: str, letter: str) -> None:
    """Before a matrix."""
    place = sheet.places[name]
    sheet.write(place.left - 0.08, place.y, letter, fontweight="bold", fontsize=6.5)
