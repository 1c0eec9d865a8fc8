"""Figure 2 of paper `sit`: self-improved training on a real instance, and what it does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.pipeline.papers.sit.snapshot import Iteration, Round
from neuroute.pipeline.plan.needs import Log, artifact
from neuroute.pipeline.rendering import diagram as dg
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.columns import decimal, described
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, Drawing, drawable, hidden_note
from neuroute.problems.longest import longest_sub_path
from neuroute.specs.objects import Reconstruction, Run

STARTS = {
    "greedy": "the model's greedy tour",
    "nearest": "nearest neighbour",
    "insertion": "random insertion",
    "insertion-angle": "insertion by angle",
    "insertion-published": "random insertion",
}
FAINT, IMPROVED, WAS = "#b9bfc8", "#dd6b20", "#f0b98a"
CUT = ("#1c5a9c", "#5fa8d6")  # blocks in turn, so that neighbours are told apart
EDGES_ONLY = 300  # nodes from which on edges alone say where they are


@artifact(
    "Self-improved training, drawn from a real round",
    needs=lambda scale: [*sit.round_needs(scale), Log(sit.run_id("warm_tsp")), Log(sit.run_id("tsp_1k"))],
)
def figure2(study: Study) -> Drawing:
    """The loop of self-improved training on a real instance (a), and what it does to tours and gaps (b to d)."""
    net = Round.of_sit(study)
    it, course = net.iteration, read_course(study)
    training = net.run.training
    assert isinstance(training, Reconstruction)
    rounds = "round (0: warm-up)" if course.rounds and course.rounds[0]["warm_up"] else "round"
    charts = {
        "iterations": ("(b) Length of this tour", "iterations of re-construction"),
        "lengths": ("(c) Mean length of labels", rounds),
        "gaps": ("(d) Validation gap (%)", "training epochs"),
    }
    panels = [
        dg.column(dg.heading(title), dg.panel(name, 1.66, 1.42, before=0.4, below=0.34), top=True, gap=0.1)
        for name, (title, _) in charts.items()
    ]
    sheet = dg.Sheet(
        dg.column(
            dg.heading("(a) One iteration of re-construction, and the training that follows"),
            _loop(it, training, net.run.n),
            dg.space(height=0.3),
            dg.row(*panels),
        )
    )
    for name, draw in (("tour", _draw_tour), ("cut", _draw_cut), ("rebuilt", _draw_rebuilt)):
        draw(sheet.axes[name], it)
    # The arrows, and the way back to the next round.
    sheet.chain("tour", "cut", "rebuilt", "training")
    cut, after = sheet.places["cut"], sheet.places["training"]
    level = cut.low - 0.25
    sheet.draw_line((after.x, after.low), (after.x, level), (cut.x, level), (cut.x, cut.low))
    text = f"the next of {training.rounds} rounds: the better network improves the same tours further"
    sheet.write((cut.x + after.x) / 2, level, text, ground=True, fontsize=6)
    _draw_iterations(sheet.axes["iterations"], it)
    draw_lengths(sheet.axes["lengths"], course)
    draw_gaps(sheet.axes["gaps"], course)
    for name, (_, label) in charts.items():
        sheet.axes[name].set_xlabel(label)
    alt = (
        "Maps of a tour before it is cut, cut into blocks and re-constructed, with arrows to the training and back; "
        "below the tour's length by iteration, the labels' mean length by round and the validation gap by epoch."
    )
    rows = [*it.rows(), *course.rounds, *course.validations]
    return Drawing(sheet.figure, rows, _notes(study, net.run, it, course), alt)


def _loop(it: Iteration, training: Reconstruction, nodes: int) -> dg.Element:
    """Three maps and the training."""
    blocks, better, lengths = len(it.first), int(it.improved.sum()), it.all_lengths
    titles = {
        "tour": f"{STARTS.get(it.start, it.start)}: {lengths[0]:.3f}",
        "cut": f"cut: {blocks} block{'s' * (blocks != 1)} of {it.length} stops",
        "rebuilt": f"{better} of {blocks} shorter: {lengths[it.number]:.3f}",
    }
    maps = {name: dg.panel(name, 1.38, 1.38, title, bold=name == "rebuilt") for name, title in titles.items()}
    lines = (
        f"{training.epochs_per_round} epoch{'s' * (training.epochs_per_round > 1)}",
        f"on {training.samples:,} tours,",
        "sub-paths of",
        f"4 to {longest_sub_path(training.longest, nodes):,} stops",  # l_max (sit, Section 5)
    )
    return dg.row(
        maps["tour"], dg.words("draw start,\nlength and\ndirection", 5.2, above=True),
        maps["cut"], dg.words("all blocks\nrebuilt at\nonce", 5.2, above=True),
        maps["rebuilt"], dg.words(f"×{training.reconstructions:,}:\npseudo-\nlabels", 5.2, above=True),
        dg.box("training", "training", *lines, fill="output", width=1.1, height=1.0), gap=0.04,
    )  # fmt: skip


def _draw_tour(axes: mpl.axes.Axes, it: Iteration) -> None:
    """The tour that is to be improved."""
    _draw_edges(axes, it, it.before, range(len(it.before)), style.INK, 0.9)
    _draw_frame(axes, it)


def _draw_cut(axes: mpl.axes.Axes, it: Iteration) -> None:
    """Blocks in two blues in turn, between them the edges that stay; the ends of a block are filled."""
    ends = np.concatenate([it.first, it.first + it.length - 1])
    blocks = [range(first, first + it.length - 1) for first in it.first]
    between = np.setdiff1d(np.arange(len(it.before)), np.concatenate(blocks))
    _draw_edges(axes, it, it.before, between, FAINT, 0.7)
    for i, block in enumerate(blocks):
        _draw_edges(axes, it, it.before, block, CUT[i % 2], 1.1)
    _draw_frame(axes, it)
    maps.draw_nodes(axes, it.coords, it.before[ends], style.INK, s=1.3 * _area(it), linewidths=0, zorder=4)


def _draw_rebuilt(axes: mpl.axes.Axes, it: Iteration) -> None:
    """Blocks that became shorter in colour, over what they were; the rest in grey."""
    blocks = [range(first, first + it.length - 1) for first in it.first[it.improved]]
    rest = np.setdiff1d(np.arange(len(it.after)), [i for block in blocks for i in block])
    _draw_edges(axes, it, it.after, rest, FAINT, 0.8)
    for block in blocks:
        _draw_edges(axes, it, it.before, block, WAS, 0.6, linestyle=(0, (1.5, 1.2)))
        _draw_edges(axes, it, it.after, block, IMPROVED, 1.2, zorder=3)
    _draw_frame(axes, it)


def _draw_edges(
    axes: mpl.axes.Axes, it: Iteration, tour: Any, places: Any, colour: str, width: float, **how: Any
) -> None:
    """The edges from these places of a tour to the next ones."""
    here = np.asarray(list(places), int)
    legs = it.coords[np.stack([tour[here], tour[(here + 1) % len(tour)]], axis=1)]
    thin = 1 if len(tour) <= EDGES_ONLY else 0.7
    axes.add_collection(
        mpl.collections.LineCollection(list(legs), colors=colour, linewidths=width * thin, **{"zorder": 2, **how})
    )


def _draw_frame(axes: mpl.axes.Axes, it: Iteration) -> None:
    if len(it.coords) <= EDGES_ONLY:
        maps.draw_nodes(axes, it.coords, slice(None), "white", s=_area(it), linewidths=0.4, zorder=3.5)
    maps.frame_square(axes, it.coords, margin=0.04)


def _area(it: Iteration) -> float:
    """Of a node's mark, in square points."""
    return float(np.clip(400 / len(it.coords), 0.4, 9))


def _draw_iterations(axes: mpl.axes.Axes, it: Iteration) -> None:
    """The tour's length before and after each iteration, the drawn one marked."""
    lengths = it.all_lengths
    axes.step(range(len(lengths)), lengths, where="post", color=style.RAMPS["blue"][2], linewidth=1.1)
    axes.plot(it.number, lengths[it.number], "o", color=IMPROVED, markeredgecolor="white", zorder=3, clip_on=False)
    late = it.number > len(it.lengths) / 2
    axes.annotate(
        "drawn above", (it.number, lengths[it.number]), (-5 if late else 6, 3), textcoords="offset points", fontsize=6,
        color=IMPROVED, va="bottom", ha="right" if late else "left",
    )  # fmt: skip
    share = f"{decimal(100 * (lengths[-1] / lengths[0] - 1), 1)} % after {len(it.lengths):,}"
    axes.text(0.98, 0.97, share, transform=axes.transAxes, ha="right", va="top", fontsize=6)
    axes.locator_params(axis="x", nbins=6, integer=True)
    margin = 0.12 * float(np.ptp(lengths)) or 0.05 * float(lengths[0]) or 1.0
    axes.set_ylim(lengths.min() - 0.5 * margin, lengths.max() + 1.6 * margin)
    axes.set_xlim(0, max(len(lengths) - 1, 1))


def _notes(study: Study, run: Run, it: Iteration, course: Course) -> tuple[str, ...]:
    n = len(it.before)
    gains = [it.gain(int(block)) for block in np.flatnonzero(it.improved)]
    some = {0: "no stops are left over", 1: "one stop behind the last block stays (grey)"}
    tail = some.get(it.tail, f"{it.tail} stops behind the last block stay (grey)")
    which = "the first that finds a shorter block" if it.improved.any() else "as none finds a shorter block"
    gained = f" {len(gains)} of {len(it.first)} became shorter, by up to {max(gains):.4f}." if gains else ""
    dataset = run.validation.dataset
    validated = f"(d) {described(dataset)}, greedy, after {len(course.validations)} validations; bands are rounds."
    warm, best = course.least_gap(warm_up=True), course.least_gap(warm_up=False)
    if warm is not None and best is not None:
        trend = "below" if best < warm else "not below"
        validated += f" Best gap of the rounds {best:.3f} %, {trend} the warm-up's {warm:.3f} %."
    validated = " ".join([validated, *hidden_note(v["gap_pct"] for v in course.validations)])
    return notes(study, run=run, it=it, n=n, which=which, tail=tail, gained=gained, validated=validated)


# -- what the logs of self-improved training say round by round (sit, Figure 2, Algorithm 1) -------------------------

COLOURS = (style.GREY, style.RAMPS["blue"][2])  # the warm-up, the rounds after it


@dataclass(frozen=True)
class Course:
    """Trainings that continue each other, as one: epochs and rounds count through."""

    rounds: list[dict[str, Any]]  # run, round, warm_up, epoch it begins at, length_before, length_after
    validations: list[dict[str, Any]]  # run, warm_up, epoch, gap_pct
    epochs: float

    def least_gap(self, *, warm_up: bool) -> float | None:
        """Of the warm-up's validations, or of those after it."""
        gaps = [v["gap_pct"] for v in self.validations if v["warm_up"] is warm_up]
        return min((gap for gap in gaps if math.isfinite(gap)), default=None)


def read_course(study: Study) -> Course:
    """The logs of the artifact's runs, which its needs name each after the one that it starts from."""
    rounds: list[dict[str, Any]] = []
    validations: list[dict[str, Any]] = []
    offset = 0
    for run in (study.runs[name] for name in study.artifact.runs):
        training = run.training
        assert isinstance(training, Reconstruction)
        lines = study.log(run.id).to_dict("records")
        for line in (each for each in lines if each["kind"] in ("round", "validation")):
            epoch = offset + line["batch"] / training.batches_per_epoch
            about = {"side": MEASURED, "run": run.id, "epoch": round(epoch, 4)}
            if line["kind"] == "round":
                about |= {"panel": "c", "round": len(rounds), "iterations": int(line["iterations"])}
                about |= {name: float(line[name]) for name in ("length_before", "length_after")}
                rounds.append(about | {"warm_up": not line["iterations"]})
            else:
                of_run = [r for r in rounds if r["run"] == run.id]
                begins_warm = training.warm_up or not training.reconstructions
                warm = of_run[-1]["warm_up"] if of_run else begins_warm or run.start is not None
                validations.append(about | {"panel": "d", "gap_pct": float(line["gap_pct"]), "warm_up": warm})
        offset += training.epochs
    return Course(rounds, validations, offset)


def draw_lengths(axes: mpl.axes.Axes, course: Course) -> None:
    """The labels' mean length: what each round began with, and what it trained on."""
    rounds = course.rounds
    if not rounds:
        style.empty_axes(axes, "no rounds in the logs")
        return
    for r in rounds:
        colour = COLOURS[not r["warm_up"]]
        axes.plot([r["round"]] * 2, [r["length_before"], r["length_after"]], color=colour, linewidth=1.6, alpha=0.45)
        axes.plot(r["round"], r["length_after"], "o", color=colour, markeredgecolor="white", zorder=3)
    for earlier, later in pairwise(rounds):
        ends = [earlier["length_after"], later["length_before"]]
        axes.plot([earlier["round"], later["round"]], ends, color=style.GREY, linewidth=0.7, linestyle=":")
    low, high = (f(v for r in rounds for v in (r["length_before"], r["length_after"])) for f in (min, max))
    margin = 0.14 * (high - low) or 0.1 * abs(high) or 1.0
    if math.isfinite(margin):
        axes.set_ylim(low - 2.4 * margin, high + 1.2 * margin)
    axes.set_xlim(-0.5, len(rounds) - 0.5)
    axes.locator_params(axis="x", nbins=8, integer=True)
    begin, end = rounds[0]["length_before"], rounds[-1]["length_after"]
    _label(axes, rounds[0]["round"], begin + 0.35 * margin, f"{begin:.3f}", "center", "bottom")
    if len(rounds) > 1:
        text = f"{end:.3f}\n({100 * (end / begin - 1):+.1f} %)".replace("-", "−")
        _label(axes, rounds[-1]["round"], end - 0.45 * margin, text, "center", "top")


def draw_gaps(axes: mpl.axes.Axes, course: Course) -> None:
    """The greedy validation gap over all epochs, a band for each round."""
    validations = course.validations
    gaps = [drawable(v["gap_pct"]) for v in validations]
    if not any(math.isfinite(gap) for gap in gaps):
        style.empty_axes(axes, "no positive gap to draw")
        return
    edges = [*(r["epoch"] for r in course.rounds), course.epochs]
    for k, (start, end) in enumerate(pairwise(edges)):
        if k % 2:
            axes.axvspan(start, end, color="#f3f4f6", zorder=0, linewidth=0)
        name = "warm-up" if course.rounds[k]["warm_up"] and end - start > 0.2 * course.epochs else str(k)
        axes.text(
            (start + end) / 2, 0.985, name, transform=axes.get_xaxis_transform(), ha="center", va="top", fontsize=6,
            color=style.GREY,
        )  # fmt: skip
    x = [v["epoch"] for v in validations]
    axes.plot(x, gaps, color=COLOURS[1], linewidth=0.8, alpha=0.6)
    size, edge = (3.2, 0.4) if len(x) <= 50 else (2, 0)
    points: dict[str, Any] = {"markersize": size, "markeredgecolor": "white", "markeredgewidth": edge, "zorder": 3}
    for warm in (True, False):
        mine = [(a, gap) for a, gap, v in zip(x, gaps, validations, strict=True) if v["warm_up"] is warm]
        axes.plot([a for a, _ in mine], [gap for _, gap in mine], "o", color=COLOURS[not warm], **points)
    axes.set_xlim(0, course.epochs * 1.02)
    style.log_axis(axes, "y", gaps, pad=0.18)
    finite = [i for i, gap in enumerate(gaps) if math.isfinite(gap)]
    bests = {
        min(some, key=gaps.__getitem__) for some in ([i for i in finite if validations[i]["warm_up"]], finite) if some
    }
    for i in bests:  # the best gap of the warm-up, and the best of all: below the curve, which comes from above
        side = "right" if x[i] > 0.6 * course.epochs else "left"
        axes.annotate(f"{gaps[i]:.2f} %", (x[i], gaps[i]), (0, -4), textcoords="offset points", ha=side, va="top",
                      fontsize=6, zorder=4)  # fmt: skip


def _label(axes: mpl.axes.Axes, x: float, y: float, text: str, ha: str, va: str) -> None:
    axes.text(x, y, text, ha=ha, va=va, fontsize=6, zorder=4, linespacing=1.05)
