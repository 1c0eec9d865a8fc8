"""Figures 8 and 9 of paper `mvmoe`: when the light decoder runs its experts, and how evenly experts are loaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.cells import quoted
from neuroute.pipeline.papers.mvmoe.snapshot import Routing, shares
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, PUBLISHED, Drawing, line, new_figure

SPARSE, DENSE = style.RAMPS["orange"][1], "#dfe4ea"
NO_DECISION = -1
WHITE_EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.4}
LEAST_REACH = 0.05  # of the colours, about their middle: less would draw rounding
OVER, HATCH = "#aeb6c1", "//////"  # of what was not decided any more


@artifact("When MVMoE/4E-L runs its experts", needs=mvmoe.light_routing)
def figure8(study: Study) -> Drawing:
    """How probable experts are at the first decisions, by problem (a), and at which share of all they ran (b)."""
    net = Routing.of_model(study, "MVMoE/4E-L")
    names, chances = net.variants, net.array("sparse_chance", float)
    figure = new_figure(height=0.7 + 0.165 * len(names) + 0.3)
    first, second = figure.subplots(1, 2, width_ratios=(1.75, 1))
    _draw_chances(figure, first, chances, names)
    _draw_branches(second, _sparse_shares(net))
    first.set_title(f"(a) Probability of the experts at the first {chances.shape[1]} decisions")
    second.set_title("(b) What ran at all decisions")
    squares = {"(b) experts": SPARSE, "(b) dense layer": DENSE}
    handles = [_square(label, facecolor=colour, edgecolor="#5a6270") for label, colour in squares.items()]
    if np.isnan(chances).any():
        handles.append(_square("(a) all is served", facecolor="white", edgecolor=OVER, hatch=HATCH))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    alt = "By problem: at which of the first decisions the light decoder ran its experts, and at what share of all."
    return Drawing(figure, _decision_rows(net), _decision_notes(study, net), alt)


def _square(label: str, **look: Any) -> mpl.patches.Patch:
    """An entry of a legend."""
    return mpl.patches.Patch(label=label, linewidth=0.4, **look)


def _sparse_shares(net: Routing) -> maps.Array:
    """(v,) percent of the decisions with experts."""
    ran, decisions = (net.array(name, float) for name in ("sparse_decisions", "decisions"))
    return 100 * ran / np.maximum(decisions, 1)


def _draw_chances(figure: mpl.figure.Figure, axes: mpl.axes.Axes, chances: maps.Array, names: list[str]) -> None:
    """A square for each decision, as dark as experts are probable (v, steps); hatched where all was over (nan)."""
    steps, finite = chances.shape[1], chances[np.isfinite(chances)]
    if not len(finite):
        style.empty_axes(axes, style.NOT_MEASURED)
        return
    middle, half = (finite.min() + finite.max()) / 2, max((finite.max() - finite.min()) / 2, LEAST_REACH)
    colours = mpl.colors.LinearSegmentedColormap.from_list("probable", ["white", *style.RAMPS["orange"]])
    squares = axes.pcolormesh(
        np.arange(steps + 1) + 0.5, np.arange(len(names) + 1) - 0.5, np.ma.masked_invalid(chances), cmap=colours,
        vmin=max(0.0, middle - half), vmax=min(1.0, middle + half), edgecolors="#c3c8d0", linewidth=0.4,
    )  # fmt: skip
    bar = figure.colorbar(squares, ax=axes, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=6)
    axes.patch.set(hatch=HATCH, edgecolor=OVER)  # masked squares show what is behind them
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names, fontsize=6.3)
    axes.set_xticks([1, *range(5, steps + 1, 5)] if steps >= 5 else range(1, steps + 1))
    axes.set_xlabel("decision")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)


def _draw_branches(axes: mpl.axes.Axes, percent: maps.Array) -> None:
    places = range(len(percent))
    axes.barh(places, percent, 0.72, color=SPARSE)
    axes.barh(places, 100 - percent, 0.72, left=percent, color=DENSE)
    for i, share in enumerate(percent):
        inside = share > 50
        axes.annotate(f"{share:.0f} %", (share, i), (-3 if inside else 3, 0), textcoords="offset points",
                      ha="right" if inside else "left", va="center", fontsize=5.8,
                      color="white" if inside else style.INK)  # fmt: skip
    axes.set_ylim(len(percent) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_yticks([])
    axes.set_xlabel("share of the decisions (%)")
    axes.grid(visible=False)


def _decision_rows(net: Routing) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    sparse, chances = net.array("sparse", int), net.array("sparse_chance", float)
    counts, ran = net.array("decisions"), net.array("sparse_decisions")
    for i, (name, percent) in enumerate(zip(net.variants, _sparse_shares(net), strict=True)):
        about = {"side": MEASURED, "variant": name, "trained": name in mvmoe.TRAINED}
        rows.append(about | {"panel": "b", "decisions": int(counts[i]), "sparse_decisions": int(ran[i]),
                             "sparse_pct": float(percent)})  # fmt: skip
        rows += [
            about
            | {"panel": "a", "decision": step, "layer": "sparse" if is_sparse else "dense", "probability": float(p)}
            for step, (is_sparse, p) in enumerate(zip(sparse[i], chances[i], strict=True), 1)
            if is_sparse != NO_DECISION
        ]
    return rows


def _decision_notes(study: Study, net: Routing) -> tuple[str, ...]:
    percent, names = _sparse_shares(net), net.variants
    low, high = int(percent.argmin()), int(percent.argmax())
    chances = net.array("sparse_chance", float)
    chances = chances[np.isfinite(chances)]
    chances_text = ""
    if len(chances):
        chances_text = f" Probabilities of the sparse layer in (a): {chances.min():.2f} to {chances.max():.2f}."
    return notes(
        study,
        net=net,
        batches=_batches(net),
        chances_text=chances_text,
        mean=percent.mean(),
        low=(names[low], percent[low]),
        high=(names[high], percent[high]),
    )


def _batches(net: Routing) -> str:
    counts = sorted({int(count) for count in net.array("counts")})
    many = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"one batch of {many} instance{'s' * (counts != [1])} of each problem"


@artifact("Load of the experts of MVMoE/4E", needs=mvmoe.experts_routing, printed_files=("quoted",))
def figure9(study: Study) -> Drawing:
    """The mean share of nodes on each expert by problem (a), and layer by layer (b)."""
    net = Routing.of_model(study)
    by_layer = layer_shares(net)
    by_variant = np.asarray(np.ma.masked_invalid(by_layer).mean(axis=1).filled(0))  # over layers that routed anything
    figure = new_figure(height=3.7)
    top, bottom = figure.subplots(2, 1, height_ratios=(1.35, 1))
    even, quoted_share = 100 / net.experts, quoted(study, "largest_expert_share_pct")
    colours = style.ramp("cool-warm", net.experts)
    _draw_shares(top, by_variant, net.variants, colours, even)
    top.axhline(quoted_share, color=style.GREY, linewidth=0.8, linestyle=(0, (1, 1.5)))
    _draw_layers(bottom, by_layer, layer_names(net), colours, even)
    handles: list[Any] = [mpl.patches.Patch(fc=colour, label=f"expert {j}") for j, colour in enumerate(colours, 1)]
    handles.append(line("all alike", color=style.INK, linewidth=0.8))
    handles.append(line("largest in print", color=style.GREY, linewidth=0.8, linestyle=(0, (1, 1.5))))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), columnspacing=1.2)
    top.set_title("(a) Mean over layers")
    bottom.set_title("(b) Each layer, mean over problems; line: range over problems")
    alt = "Shares of the nodes that each expert gets, by problem and by layer, around the line where all are alike."
    every, layers = layer_shares(net), layer_names(net)
    rows: list[dict[str, Any]] = []
    for i, name in enumerate(net.variants):
        about = {"side": MEASURED, "variant": name, "trained": name in mvmoe.TRAINED}
        for j in range(every.shape[2]):
            rows.append(about | {"panel": "a", "expert": j + 1, "pct": float(by_variant[i, j])})
            rows += [
                about | {"panel": "b", "layer": layer, "expert": j + 1, "pct": float(every[i, k, j])}
                for k, layer in enumerate(layers)
            ]
    rows = [*rows, {"panel": "a", "side": PUBLISHED, "variant": "largest", "pct": quoted_share}]
    return Drawing(figure, rows, _share_notes(study, net, by_variant, by_layer), alt)


def layer_names(net: Routing) -> list[str]:
    return [*(f"enc {int(str(name).removeprefix('enc')) + 1}" for name in net.array("mixtures")), "dec"]


def layer_shares(net: Routing) -> maps.Array:
    """(v, layers, m) percent of a mixture's choices on each expert, the decoder's last."""
    loads = np.concatenate([net.array("encoder_load"), net.array("decoder_load")[:, None]], axis=1)
    return shares(loads)


def _draw_shares(axes: mpl.axes.Axes, percent: maps.Array, names: list[str], colours: list[str], even: float) -> None:
    places = np.arange(len(names))
    axes.vlines(places, percent.min(axis=1), percent.max(axis=1), color=style.GREY, linewidth=0.8, zorder=1)
    for j, colour in enumerate(colours):
        axes.plot(places, percent[:, j], "o", color=colour, markersize=4.5, **WHITE_EDGE)
    axes.axhline(even, color=style.INK, linewidth=0.8, zorder=3)
    axes.set_xticks(range(len(names)), [name.replace("VRP", "VRP\n", 1) for name in names], fontsize=5.8)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylabel("nodes (%)")
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="x", length=0, pad=2)


def _draw_layers(axes: mpl.axes.Axes, every: maps.Array, names: list[str], colours: list[str], even: float) -> None:
    for j, colour in enumerate(colours):
        for i in range(every.shape[1]):
            finite = every[:, i, j][np.isfinite(every[:, i, j])]
            if not len(finite):
                continue
            x = i + (j - (len(colours) - 1) / 2) * 0.16
            axes.plot([x, x], [finite.min(), finite.max()], color=colour, linewidth=1.0)
            axes.plot(x, finite.mean(), "o", color=colour, markersize=4, **WHITE_EDGE)
    axes.axhline(even, color=style.INK, linewidth=0.8, zorder=1)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("nodes (%)")
    axes.grid(visible=False, axis="x")


def _share_notes(study: Study, net: Routing, by_variant: maps.Array, by_layer: maps.Array) -> tuple[str, ...]:
    names, layers = net.variants, layer_names(net)
    largest_share, uneven = "", ""
    if np.isfinite(by_layer).any():
        i, j = np.unravel_index(int(by_variant.argmax()), by_variant.shape)
        v, layer, k = np.unravel_index(int(np.nanargmax(by_layer)), by_layer.shape)
        trained = np.array([name in mvmoe.TRAINED for name in names])
        kinds = {"trained": by_variant[trained], "unseen": by_variant[~trained]}
        groups = ", ".join(f"{kind} problems {of.max():.1f} %" for kind, of in kinds.items() if len(of))
        largest_share = (
            f"The largest mean share is {by_variant[i, j]:.1f} % (expert {j + 1}, {names[i]}); largest by kind: "
            f"{groups}. In a single layer it is {by_layer[v, layer, k]:.1f} % ({layers[layer]}, {names[v]})."
        )
    steps = shares(net.array("step_load"))
    if np.isfinite(steps).any():
        v, step, _ = np.unravel_index(int(np.nanargmax(steps)), steps.shape)
        worst = ", ".join(f"{percent:.1f}" for percent in steps[v, step])
        example = ", ".join(f"{quoted(study, f'step_load_n500_expert_{j}_pct'):.1f}" for j in range(1, 5))
        uneven = (
            f"Of the first {steps.shape[1]} decisions the most uneven one is number {step + 1} of {names[v]}: {worst} "
            f"%. The paper has an example at n = 500: {example} % (Appendix D)."
        )
    return notes(
        study,
        net=net,
        batches=_batches(net),
        layers=len(layers),
        largest_share=largest_share,
        uneven=uneven,
        most=quoted(study, "largest_expert_share_pct"),
    )
