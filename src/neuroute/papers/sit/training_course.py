"""What the logs of self-improved training say round by round (sit, Figure 2, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from neuroute.core.lazy import mpl
from neuroute.plan.objects import Reconstruction, Run
from neuroute.rendering import style
from neuroute.rendering.study import Study
from neuroute.rendering.style import MEASURED

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
    """The logs of the artifact's runs, each after the one that it starts from."""
    rounds: list[dict[str, Any]] = []
    validations: list[dict[str, Any]] = []
    offset = 0
    for run in _in_order(study):
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


def _in_order(study: Study) -> list[Run]:
    remaining = [study.runs[name] for name in study.artifact.runs]
    ordered: list[Run] = []
    while remaining:
        names = {run.id for run in remaining}
        ordered.append(next((run for run in remaining if run.start not in names), remaining[0]))
        remaining.remove(ordered[-1])
    return ordered


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
    gaps = [v["gap_pct"] if v["gap_pct"] > 1e-6 else math.nan for v in validations]
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
    style.log_axis(axes, "y", gaps, pad=0.14)
    finite = [i for i, gap in enumerate(gaps) if math.isfinite(gap)]
    bests = {
        min(some, key=gaps.__getitem__) for some in ([i for i in finite if validations[i]["warm_up"]], finite) if some
    }
    for i in bests:  # the best gap of the warm-up, and the best of all
        late = x[i] > 0.6 * course.epochs  # the curve comes from above
        place = ("right", "top") if late else ("left", "bottom")
        _label(axes, x[i], gaps[i] * (0.97 if late else 1), f" {gaps[i]:.2f} % ", *place)


def _label(axes: mpl.axes.Axes, x: float, y: float, text: str, ha: str, va: str) -> None:
    axes.text(x, y, text, ha=ha, va=va, fontsize=6, zorder=4, linespacing=1.05)
