"""What the logs of self-improved training say round by round (sit, Figure 2, Algorithm 1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

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


def course(study: Study) -> Course:
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
    left = [study.runs[name] for name in study.artifact.runs]
    ordered: list[Run] = []
    while left:
        names = {run.id for run in left}
        nxt = next((run for run in left if run.start not in names), left[0])
        ordered.append(nxt)
        left.remove(nxt)
    return ordered


def draw_lengths(axes: Axes, found: Course) -> None:
    """The labels' mean length: what each round began with, and what it trained on."""
    x = [r["round"] for r in found.rounds]
    if not x:
        style.empty_axes(axes, "no rounds in the logs")
        return
    for r in found.rounds:
        colour = COLOURS[not r["warm_up"]]
        axes.plot([r["round"]] * 2, [r["length_before"], r["length_after"]], color=colour, linewidth=1.6, alpha=0.45)
        axes.plot(r["round"], r["length_after"], "o", color=colour, markeredgecolor="white", zorder=3)
    for earlier, later in pairwise(found.rounds):
        axes.plot(
            [earlier["round"], later["round"]], [earlier["length_after"], later["length_before"]], color=style.GREY,
            linewidth=0.7, linestyle=":",
        )  # fmt: skip
    low, high = (f(v for r in found.rounds for v in (r["length_before"], r["length_after"])) for f in (min, max))
    room = 0.14 * (high - low) or 0.1 * abs(high) or 1.0
    if math.isfinite(room):
        axes.set_ylim(low - 2.4 * room, high + 1.2 * room)
    axes.set_xlim(-0.5, len(x) - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    first, last = found.rounds[0], found.rounds[-1]
    _label(
        axes, first["round"], first["length_before"] + 0.35 * room, f"{first['length_before']:.3f}", "center", "bottom"
    )
    if len(x) > 1:
        share = 100 * (last["length_after"] / first["length_before"] - 1)
        text = f"{last['length_after']:.3f}\n({share:+.1f} %)".replace("-", "−")
        _label(axes, last["round"], last["length_after"] - 0.45 * room, text, "center", "top")


def draw_gaps(axes: Axes, found: Course) -> None:
    """The greedy validation gap over all epochs, a band for each round."""
    gaps = [v["gap_pct"] if v["gap_pct"] > 1e-6 else math.nan for v in found.validations]
    if not any(math.isfinite(gap) for gap in gaps):
        style.empty_axes(axes, "no positive gap to draw")
        return
    edges = [*(r["epoch"] for r in found.rounds), found.epochs]
    for k, (left, right) in enumerate(pairwise(edges)):
        if k % 2:
            axes.axvspan(left, right, color="#f3f4f6", zorder=0, linewidth=0)
        name = "warm-up" if found.rounds[k]["warm_up"] and right - left > 0.2 * found.epochs else str(k)
        axes.text(
            (left + right) / 2, 0.985, name, transform=axes.get_xaxis_transform(), ha="center", va="top", fontsize=6,
            color=style.GREY,
        )  # fmt: skip
    x = [v["epoch"] for v in found.validations]
    axes.plot(x, gaps, color=COLOURS[1], linewidth=0.8, alpha=0.6)
    size, edge = (3.2, 0.4) if len(x) <= 50 else (2, 0)
    for warm in (True, False):
        mine = [i for i, v in enumerate(found.validations) if v["warm_up"] is warm]
        axes.plot(
            [x[i] for i in mine], [gaps[i] for i in mine], "o", color=COLOURS[not warm], markersize=size,
            markeredgecolor="white", markeredgewidth=edge, zorder=3,
        )  # fmt: skip
    axes.set_xlim(0, found.epochs * 1.02)
    style.log_axis(axes, "y", gaps, pad=0.14)
    for i, text in _ends_of(found.validations, gaps):
        late = x[i] > 0.6 * found.epochs  # the curve comes from above
        _label(
            axes, x[i], gaps[i] * (0.97 if late else 1), text, "right" if late else "left", "top" if late else "bottom"
        )


def _ends_of(validations: Sequence[dict[str, Any]], gaps: Sequence[float]) -> list[tuple[int, str]]:
    """The best gap of the warm-up, and the best of all: (position, words)."""
    out: list[tuple[int, str]] = []
    warm = [i for i, v in enumerate(validations) if v["warm_up"] and math.isfinite(gaps[i])]
    every = [i for i, gap in enumerate(gaps) if math.isfinite(gap)]
    for mine in (warm, every):
        best = min(mine, key=lambda i: gaps[i], default=None)
        if best is not None and best not in [i for i, _ in out]:
            out.append((best, f" {gaps[best]:.2f} % "))
    return out


def best_gaps(found: Course) -> tuple[float | None, float | None]:
    """The least validation gap of the warm-up, and of the rounds after it."""
    parts = [[v["gap_pct"] for v in found.validations if v["warm_up"] is warm] for warm in (True, False)]
    least = [min((gap for gap in gaps if math.isfinite(gap)), default=None) for gaps in parts]
    return least[0], least[1]


def _label(axes: Axes, x: float, y: float, text: str, ha: str, va: str) -> None:
    axes.text(x, y, text, ha=ha, va=va, fontsize=6, zorder=4, linespacing=1.05)
