"""Figures 5 to 7 of paper `mvmoe`: few-shot training, ablations of experts, and training without OVRPTW."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroute.analysis.intervals import percentile_interval
from neuroute.core.lazy import mpl, pd
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe import tables
from neuroute.pipeline.papers.mvmoe.paper import FEW, SIZES, UNSEEN, MvmoeScale, run_id
from neuroute.pipeline.papers.mvmoe.tables import models_here, references_note, rule_notes
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import (
    MEAN_OF_GAPS,
    printed_gap,
    printed_numbers,
    quoted,
    resampled_mean_of_gaps,
    summary_cell,
)
from neuroute.pipeline.rendering.grid import MEAN_GAP, Grid, Method, Quantity, grid_table, needs_of
from neuroute.pipeline.rendering.render import draw_table, notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, PUBLISHED, Drawing, line, mark, new_figure
from neuroute.pipeline.rendering.table import HERE, Cell, Column, Row, Table, decimal, described, duration
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.objects import Reinforced, Test


def few_shot_stages(scale: Scale) -> tuple[str, ...]:
    """Names of the stages of a few-shot training."""
    return tuple(stage.name for stage in scale[MvmoeScale].few_shot.stages)


def few_shot_needs(scale: Scale) -> Iterator[Need]:
    """The checkpoints before, after each stage and at the end on the problem's test set; of one stage the log."""
    *earlier, _ = few_shot_stages(scale)
    for method in mvmoe.MULTI_TASK:
        for variant in FEW:
            run = run_id(mvmoe.few(method, variant))
            if not earlier:
                yield Log(run)
                continue
            labels = mvmoe.adapted(scale, variant)
            yield from (Test(run=run, labels=labels, decoding=mvmoe.X8, stage=stage) for stage in earlier)
            yield from tested([run, run_id(mvmoe.multi(scale, method, SIZES[0]))], labels, mvmoe.X8)


def few_shot_points(study: Study, method: str, variant: str) -> list[tuple[float, int, int, float]]:
    """Return (epoch, batch, instances, mean of the instances' gaps in %) before training and after each stage."""
    scale, run = study.scale, run_id(mvmoe.few(method, variant))
    dataset = mvmoe.adapted(scale, variant).dataset
    *earlier, _ = few_shot_stages(scale)
    weights = [run_id(mvmoe.multi(scale, method, SIZES[0])), *(f"{run}@{stage}" for stage in earlier), run]
    gaps, epoch, batch, samples = [], 0, 0, 0
    for name, stage in zip(weights, (None, *scale[MvmoeScale].few_shot.stages), strict=True):
        if stage is not None:
            epoch, batch = epoch + stage.epochs, batch + stage.batches
            samples += stage.batches * stage.batch_size
        gap = study.value(MEAN_OF_GAPS, name, dataset, mvmoe.X8)
        if gap is not None:
            gaps.append((float(epoch), batch, samples, gap))
    return gaps


LOOKS = {  # method -> colour and marker
    "POMO-MTL": (style.GREY, "s"),
    "MVMoE/4E": (style.RAMPS["blue"][2], "o"),
    "MVMoE/4E-L": (style.RAMPS["orange"][1], "^"),
}
WITH, WITHOUT = "with OVRPTW", "without OVRPTW"
BOTH = tuple(variant for variant in mvmoe.VARIANTS if SWITCHES[variant].open and SWITCHES[variant].windows)


@dataclass(frozen=True)
class Curve:
    """Validations of one problem in a run's log."""

    run: str
    variant: str
    series: str
    points: tuple[tuple[float, int, int, float], ...]  # epoch, batch, instances, gap in % (ratio of mean lengths)

    @property
    def xy(self) -> tuple[list[float], list[float]]:
        """Epochs and gaps, nan where one is not finite."""
        gaps = (gap if math.isfinite(gap) else math.nan for *_, gap in self.points)
        return [epoch for epoch, *_ in self.points], list(gaps)

    @property
    def last(self) -> float:
        return self.points[-1][3] if self.points else math.nan

    def rows(self) -> list[dict[str, Any]]:
        about = {"side": MEASURED, "series": self.series, "variant": self.variant, "run": self.run}
        return [
            about | {"epoch": round(epoch, 4), "batch": batch, "samples": samples, "gap_pct": gap}
            for epoch, batch, samples, gap in self.points
        ]


def curve(study: Study, run: str, variant: str, series: str) -> Curve:
    """All validations on the problem's validation instances, that before training included."""
    training, dataset = _training(study, run), mvmoe.validation(study.scale, variant, SIZES[0]).dataset
    points = []
    for validation in study.log(run, "validation").to_dict("records"):
        gaps = validation.get("gaps_pct")
        if isinstance(gaps, dict) and dataset.id in gaps:
            batch = int(validation["batch"])
            points.append((epochs(training, batch), batch, int(validation["samples"]), float(gaps[dataset.id])))
    return Curve(run, variant, series, tuple(points))


def epochs(training: Reinforced, batches: int) -> float:
    """How many epochs the first so many batches are."""
    total, remaining = 0.0, batches
    for stage in training.stages:
        total += min(remaining, stage.batches) / stage.batches_per_epoch
        remaining = max(0, remaining - stage.batches)
    return total


@artifact("Few-shot training on two unseen problems", needs=few_shot_needs, printed_files=("table2",))
def figure5(study: Study) -> Drawing:
    """Gaps while models of six problems go on with one that they have not seen."""
    figure = new_figure(height=2.6)
    panels = figure.subplots(1, len(FEW), sharey=True)
    every: list[Curve] = []
    zero: dict[str, dict[str, float]] = {}  # problem -> method -> Table 2's gap, before any training on the problem
    for variant in FEW:
        in_print = {m: printed_numbers(study, "table2", problem=variant, method=m) for m in mvmoe.MULTI_TASK}
        gaps = {method: printed_gap(rows, SIZES[0]) for method, rows in in_print.items()}
        zero[variant] = {method: gap for method, gap in gaps.items() if gap is not None}
    several = len(few_shot_stages(study.scale)) > 1
    for axes, letter, variant in zip(panels, "ab", FEW, strict=True):
        runs = {method: run_id(mvmoe.few(method, variant)) for method in mvmoe.MULTI_TASK}
        curves = [
            Curve(run, variant, method, tuple(few_shot_points(study, method, variant)))
            if several
            else curve(study, run, variant, method)
            for method, run in runs.items()
        ]
        for each in curves:
            colour, marker = LOOKS[each.series]
            x, y = each.xy
            axes.plot(x, y, color=colour, marker=marker, markersize=3, markeredgewidth=0, linewidth=1.1)
        _of_epochs(axes, curves)
        axes.set_title(f"({letter}) {variant}", pad=14)
        text = ", ".join(f"{gap:.3f}" for gap in zero[variant].values())
        axes.text(0, 1.03, f"zero-shot in print (Table 2): {text} %", transform=axes.transAxes, fontsize=6.5)
        every += curves
    scale = study.scale[MvmoeScale]
    count, n, samples = scale.validation_count, scale.sizes[SIZES[0]], _training(study, every[0].run).samples
    panels[0].set_ylabel(f"{'Gap' if several else 'Validation gap'}, n = {n} (%)")
    handles = [line(method, color=colour, marker=marker, markersize=3.5) for method, (colour, marker) in LOOKS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    alt = "Gaps of three models over the epochs of training on one unseen problem, in two panels."
    rows = [row for each in every for row in each.rows()]
    rows += [{"side": PUBLISHED, "series": method, "variant": variant, "epoch": 0.0, "gap_pct": gap}
             for variant, of in zero.items() for method, gap in of.items()]  # fmt: skip
    gaps_text = (
        f"Gaps of one training each are ratios of mean lengths, greedy from many starts without augmentation, on "
        f"{count:,} validation instances, which are not those of Table 2; nothing is selected on them."
    )
    if several:
        count = mvmoe.adapted(study.scale, FEW[0]).dataset.count
        gaps_text = f"Gaps are means over {count:,} test instances, those of Table 2 first, with its 8 images."
    changes = []
    for variant in FEW:
        texts = [
            f"{each.series} {each.points[0][3]:.2f} to {each.last:.2f} %{_gain(study, each)}"
            for each in every
            if each.variant == variant and each.points
        ]
        if texts:
            changes.append(f"{variant} here, from before to after: {'; '.join(texts)}.")
    said = notes(study, n=n, samples=samples, gaps=gaps_text, changes=changes, trouble=_trouble(every))
    return Drawing(figure, rows, said, alt)


AFTER = 0  # in the place of a size, as no such gap is printed


def table_figure5_grids(scale: Scale) -> list[Grid]:
    grids = []
    for variant in FEW:
        test = mvmoe.adapted(scale, variant)
        at = described(test.dataset)
        columns = [
            Quantity(Column("gap_before_pct", "Before", "gap %", at=at), MEAN_GAP, test, SIZES[0]),
            Quantity(Column("gap_after_pct", "After", "gap %", at=at), MEAN_GAP, test, AFTER),
        ]
        methods = []
        for name in mvmoe.MULTI_TASK:
            runs = {SIZES[0]: run_id(mvmoe.multi(scale, name, SIZES[0])), AFTER: run_id(mvmoe.few(name, variant))}
            methods.append(Method(name, {"method": name}, runs=runs, decoding=mvmoe.X8))
        grids.append(Grid(methods, columns, (variant,), {"problem": variant}, "table2", models_here))
    return grids


@artifact("Before and after few-shot training", needs=needs_of(table_figure5_grids), printed_files=("table2",))
def table_figure5(study: Study) -> Table:
    """The ends of Figure 5's curves."""
    grids = table_figure5_grids(study.scale)
    return grid_table(
        study,
        ("Problem", "Method"),
        grids,
        samples=_training(study, grids[0].runs[-1]).samples,
        references=references_note(study.scale, FEW),
        **rule_notes(study, [test for grid in grids for test in grid.tests], grids[0].runs),
    )


def _of_epochs(axes: mpl.axes.Axes, curves: Sequence[Curve]) -> None:
    """Label the epochs, or say that no gap is drawn over them."""
    last = max((epoch for each in curves for epoch, *_ in each.points), default=0.0) or 1.0
    axes.set_xlim(-0.03 * last, 1.02 * last)
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5, integer=last >= 5))
    axes.set_xlabel("Epochs")
    if not any(math.isfinite(gap) for each in curves for gap in each.xy[1]):
        style.empty_axes(axes, "no finite gap to draw")


def _gain(study: Study, each: Curve) -> str:
    """Say how much lower a gap is after than before, with its interval; of trainings in one stage nothing."""
    if len(few_shot_stages(study.scale)) == 1:
        return ""
    dataset = mvmoe.adapted(study.scale, each.variant).dataset
    runs = (run_id(mvmoe.multi(study.scale, each.series, SIZES[0])), each.run)
    before, after = (resampled_mean_of_gaps(study, run, dataset, mvmoe.X8) for run in runs)
    if before is None or after is None:
        return ""
    interval = percentile_interval(before - after)
    return f" (lower by {each.points[0][3] - each.last:.2f} [{interval.low:.2f}, {interval.high:.2f}] points)"


def _training(study: Study, run: str) -> Reinforced:
    training = study.runs[run].training
    assert isinstance(training, Reinforced)
    return training


def _trouble(every: Sequence[Curve]) -> list[str]:
    """What is missing from the curves."""
    lacking = []
    if odd := sum(not math.isfinite(gap) for each in every for *_, gap in each.points):
        lacking.append(f"{odd} of {sum(len(each.points) for each in every)} gaps are not finite and not drawn.")
    if bare := [f"{each.run} ({each.variant})" for each in every if not each.points]:
        lacking.append(f"Without a validation on the problem: {', '.join(bare)}.")
    return lacking


@artifact(
    "POMO-MTL trained with and without OVRPTW",
    needs=lambda scale: [Log(run_id(mvmoe.multi(scale, "POMO-MTL", SIZES[0]))), Log(run_id(mvmoe.WITHOUT_OVRPTW))],
)
def figure7(study: Study) -> Drawing:
    """Validation curves on all 16 problems of POMO-MTL, trained on five or six of them."""
    runs = {WITH: run_id(mvmoe.multi(study.scale, "POMO-MTL", SIZES[0])), WITHOUT: run_id(mvmoe.WITHOUT_OVRPTW)}
    looks: dict[str, Any] = {WITH: style.RAMPS["blue"][2], WITHOUT: style.RAMPS["orange"][1]}
    figure = new_figure(height=6.0)
    panels = figure.subplots(4, 4, sharex=True)
    every: list[Curve] = []
    for axes, variant in zip(panels.flat, mvmoe.VARIANTS, strict=True):
        curves = [curve(study, run, variant, series) for series, run in runs.items()]
        for each in curves:
            later = [(epoch, gap) for epoch, gap in zip(*each.xy, strict=True) if epoch > 0]
            look: dict[str, Any] = {"marker": "o", "markersize": 2, "linewidth": 1.1}
            axes.plot([epoch for epoch, _ in later], [gap for _, gap in later], color=looks[each.series], **look)
        _of_epochs(axes, curves)
        axes.set_xlabel("Epochs" if axes in panels[-1] else "")
        axes.set_title(variant, fontweight="bold" if variant in mvmoe.TRAINED else "normal", fontsize=7, pad=3)
        axes.tick_params(labelsize=6)
        axes.yaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
        every += curves
    figure.supylabel(f"Validation gap, n = {study.scale[MvmoeScale].sizes[SIZES[0]]} (%)", fontsize=7.5)
    handles = [line(f"trained {series}", color=colour) for series, colour in looks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    alt = "Sixteen panels, one for each problem, with two validation curves each."
    rows = [row | {"trained": row["variant"] in mvmoe.TRAINED} for each in every for row in each.rows()]
    scale = study.scale[MvmoeScale]
    count, n = scale.validation_count, scale.sizes[SIZES[0]]
    training = _training(study, every[0].run)
    texts, last = [], {(each.variant, each.series): each.last for each in every}
    others = tuple(v for v in mvmoe.VARIANTS if v not in BOTH)
    for name, variants in {"open routes and time windows": BOTH, "others": others}.items():
        without, with_ = (np.mean([last[v, series] for v in variants]) for series in (WITHOUT, WITH))
        texts.append(f"{name} {without:.2f} % without, {with_:.2f} % with")
    worse = [v for v in BOTH if last[v, WITHOUT] > last[v, WITH]]
    seen_notes = notes(
        study,
        n=n,
        training=training,
        count=count,
        ends="; ".join(texts),
        both=len(BOTH),
        worse=len(worse),
        names=f"{': ' * bool(worse)}{', '.join(worse)}",
        idle=idle_limits(every),
        trouble=_trouble(every),
    )
    return Drawing(figure, rows, seen_notes, alt)


def idle_limits(every: Sequence[Curve]) -> list[str]:
    """Say which problems with a limit have the curves of the one without it: the limit never binds there."""
    of = {(each.variant, each.series): [gap for *_, gap in each.points] for each in every}
    variant_of = {switches: variant for variant, switches in SWITCHES.items()}
    pairs = {v: variant_of[SWITCHES[v]._replace(limit=False)] for v in mvmoe.VARIANTS if SWITCHES[v].limit}
    same = [v for v, other in pairs.items() if all(of[v, series] == of[other, series] for series in (WITH, WITHOUT))]
    text = "each has the curves of the same problem without it."
    return [f"The limit of a route's length never binds here for {', '.join(same)}: {text}"] * bool(same)


PANELS = {
    "a": "position of experts",
    "b": "number of experts",
    "c": "gating",
    "d": "gating in the decoder",
    "e": "time of training",
}
SHORT = {  # labels that are too long for the panel
    "node, expert choice, Enc (all)": "node, expert, Enc only",
    "random hierarchical": "random hier.",
}
BAR, DEFAULT_BAR = style.RAMPS["blue"][0], style.RAMPS["blue"][2]
HOLLOW: dict[str, Any] = {"marker": "D", "linestyle": "None", "markerfacecolor": "white"}
HOLLOW |= {"markeredgecolor": style.INK, "markeredgewidth": 1.0}
SHADES = (style.GREY, DEFAULT_BAR, style.RAMPS["orange"][1], "#8a4fb0", style.GREEN)
METHODS = dict(zip(mvmoe.ABLATIONS["figure6d"], SHADES, strict=True))
MARKS = dict(zip(mvmoe.ABLATIONS["figure6d"], style.MARKERS, strict=False))


@dataclass(frozen=True)
class Setting:
    """One bar: the mean gap over the unseen problems of a run, where it is trained here."""

    panel: str
    label: str
    name: str  # of the run
    cell: Cell
    seconds: float | None  # of a training

    @property
    def gap(self) -> float | None:
        value = self.cell.measured
        return float(value) if isinstance(value, float | int) and np.isfinite(value) else None

    @property
    def printed_gap(self) -> float | None:
        return self.cell.published if isinstance(self.cell.published, float) else None

    def rows(self) -> list[dict[str, Any]]:
        about = {"panel": self.panel, "setting": self.label, "run": run_id(self.name)}
        rows = []
        if self.gap is not None:
            values = {"side": MEASURED, "gap_pct": self.gap, "low_pct": self.cell.low, "high_pct": self.cell.high}
            rows.append(about | values | {"time_s": self.seconds})
        if self.printed_gap is not None:
            rows.append(about | {"side": PUBLISHED, "gap_pct": self.printed_gap})
        return rows


def _runs(scale: Scale) -> list[str]:
    panels = [name for name in mvmoe.ABLATIONS if name.startswith("figure6")]
    return [run_id(name) for panel in panels for name in mvmoe.trained_ablations(scale, panel).values()]


def _bars_needs(scale: Scale) -> Iterator[Need]:
    return tested(_runs(scale), [mvmoe.reference(scale, variant, SIZES[0]) for variant in UNSEEN], mvmoe.X8)


@artifact(
    "Where experts are, how many, and how they are chosen",
    needs=lambda scale: [*_bars_needs(scale), *(Log(run, all_seeds=True) for run in _runs(scale))],
    printed_files=("quoted", "table5"),
)
def figure6(study: Study) -> Drawing:
    """Mean gaps on the ten unseen problems, setting by setting, and the training times of some of them."""
    settings = {letter: _settings(study, letter) for letter in PANELS}
    figure = new_figure(height=4.5)
    panels = figure.subplot_mosaic("aabbcc\ndddeee", height_ratios=(1.15, 1))
    for letter, title in PANELS.items():
        axes = panels[letter]
        axes.set_title(f"({letter}) {title}")
        if letter == "e":
            _draw_times(axes, settings[letter])
        else:
            bars = [s for s in settings[letter] if s.gap is not None or s.printed_gap is not None]
            _draw_bars(axes, bars, METHODS if letter == "d" else {})
    handles = [mark("here", "s", BAR), mark("here, MVMoE/4E (default)", "s", DEFAULT_BAR)]
    handles.append(line("published, where it is printed", **HOLLOW))
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    alt = "Bars of mean gaps on unseen problems for positions, numbers and gates of experts, and gaps against time."
    rows = [row for of in settings.values() for each in of for row in each.rows()]
    columns = ["panel", "setting", "run", "side", "gap_pct", "low_pct", "high_pct", "time_s"]
    scale = study.scale
    names = list(dict.fromkeys(s.name for of in settings.values() for s in of if s.gap is not None))
    runs = [run_id(name) for name in names]
    tests = [mvmoe.reference(scale, variant, SIZES[0]) for variant in UNSEEN]
    missing = list(dict.fromkeys(s.label for of in settings.values() for s in of if s.gap is None))
    every = len({s.name for of in settings.values() for s in of})
    texts = []
    for letter in "abcd":
        ends = sorted(((s.gap, s.label) for s in settings[letter] if s.gap is not None), key=lambda each: each[0])
        if len(ends) > 1:
            texts.append(f"({letter}) {' < '.join(label for _, label in ends)}")
    trends = f"From the smallest gap here: {'; '.join(texts)}. " if texts else ""
    said = notes(
        study,
        scale=scale[mvmoe.MvmoeScale],
        amounts=tables.amounts(study, runs) or "no",
        references=references_note(scale, UNSEEN),
        **rule_notes(study, tests, runs),
        trends=trends,
        seconds=_times(study, settings["e"]),
        missing=f"Of {every} settings not trained at this scale: {'; '.join(missing)}." if missing else "",
    )
    return Drawing(figure, pd.DataFrame(rows, columns=columns), said, alt)


@artifact("Figure 6's bars", needs=_bars_needs, printed_files=("quoted", "table5"))
def table_figure6(study: Study) -> Table:
    every = [setting for letter in "abcd" for setting in _settings(study, letter)]
    rows = [Row((PANELS[s.panel], s.label, models_here(study, run_id(s.name))), (s.cell,)) for s in every]
    column = Column(
        "gap_unseen_pct", f"{len(UNSEEN)} unseen problems", "gap %", at=tables.sets_of(study.scale, SIZES[0])
    )
    runs = [run_id(s.name) for s in every if s.gap is not None]
    return draw_table(
        study,
        ("Panel", "Setting", HERE),
        [column],
        rows,
        trained=tables.trained_note(study, runs, "50 million, and up to 200 million by number of experts,", [SIZES[0]]),
        references=references_note(study.scale, UNSEEN),
        **rule_notes(study, [mvmoe.reference(study.scale, v, SIZES[0]) for v in UNSEEN], runs),
    )


def _settings(study: Study, letter: str) -> list[Setting]:
    """All settings of a panel, whether or not they are trained here."""
    names = mvmoe.trained_ablations(study.scale, f"figure6{letter}")
    tests = [mvmoe.reference(study.scale, variant, SIZES[0]).dataset for variant in UNSEEN]
    # Table 5 has the default; of the others the text quotes one.
    (setting,) = [key for key, run in mvmoe.ABLATIONS["table5"].items() if run == mvmoe.DEFAULT]
    of_default = printed_numbers(study, "table5", method_params=setting, problem=tables.GROUPS["unseen"][1])
    printed = {mvmoe.DEFAULT: printed_gap(of_default, SIZES[0])}
    printed["h_enc_ec"] = quoted(study, "gap_unseen_expert_choice_enc_pct")
    settings = []
    for label, name in mvmoe.ABLATIONS[f"figure6{letter}"].items():
        here, published = label in names, printed.get(name)
        cell = tables.mean_gap_cell(study, run_id(name), tests, published) if here else Cell(None, published)
        seconds = summary_cell(study, run_id(name), "wall_time_s").measured if here and letter == "e" else None
        settings.append(Setting(letter, label, name, cell, seconds if isinstance(seconds, float) else None))
    return settings


def _draw_bars(axes: mpl.axes.Axes, settings: Sequence[Setting], colours: dict[str, str]) -> None:
    reach = max([0.0, *(v for s in settings for v in (s.gap, s.cell.high, s.printed_gap) if v is not None)])
    for i, setting in enumerate(settings):
        if setting.gap is None:
            marked = setting.printed_gap is not None  # whose mark is not to lie on the words
            axes.annotate("not trained here", (0, i), (3, 2.5 * marked), textcoords="offset points", fontsize=5.6,
                          va="bottom" if marked else "center", color=style.GREY)  # fmt: skip
        else:
            colour = colours.get(setting.label, DEFAULT_BAR if setting.name == mvmoe.DEFAULT else BAR)
            axes.barh(i, setting.gap, 0.66, color=colour)
            if setting.cell.low is not None and setting.cell.high is not None:
                axes.plot([setting.cell.low, setting.cell.high], [i, i], color=style.INK, linewidth=0.8, zorder=3)
            axes.text(0.995, i, decimal(setting.gap), transform=axes.get_yaxis_transform(), ha="right", va="center",
                      fontsize=5.8)  # fmt: skip
        if setting.printed_gap is not None:
            axes.plot(setting.printed_gap, i, markersize=4, zorder=4, **HOLLOW)
    axes.set_yticks(range(len(settings)), [SHORT.get(s.label, s.label) for s in settings], fontsize=6)
    axes.set_ylim(max(3, len(settings)) - 0.4, -0.6)
    axes.set_xlim(min([0.0, *(1.1 * s.gap for s in settings if s.gap is not None)]), 1.3 * reach or 1)
    axes.set_xlabel("Mean gap, unseen (%)", labelpad=2)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def _draw_times(axes: mpl.axes.Axes, settings: Sequence[Setting]) -> None:
    """The gap over the training's seconds, in the colours of (d)."""
    there = [s for s in settings if s.gap is not None and s.seconds is not None]
    longest = max((s.seconds for s in there if s.seconds is not None), default=0.0)
    unit, name = next((u, name) for u, name in ((3600, "h"), (60, "min"), (1, "s")) if longest >= 2 * u or u == 1)
    axes.set_xlabel(f"Time of training ({name})", labelpad=2)
    axes.set_ylabel("Mean gap, unseen (%)")
    if not there:
        style.empty_axes(axes, style.NOT_MEASURED)
        return
    for s in there:
        assert s.seconds is not None
        assert s.gap is not None
        axes.plot(s.seconds / unit, s.gap, MARKS[s.label], color=METHODS[s.label], markersize=6.5,
                  markeredgecolor="white", linestyle="none", label=s.label)  # fmt: skip
    gaps = [s.gap for s in there if s.gap is not None]
    spread = max(0.16 * (max(gaps) - min(gaps)), 0.005)  # gaps that differ by rounding alone are to look alike
    axes.set_ylim(min(gaps) - spread, max(gaps) + spread)
    axes.margins(x=0.16)
    axes.set_xlim(left=0)
    axes.legend(loc="best", fontsize=5.8, frameon=True)  # its marks are no points


def _times(study: Study, settings: Sequence[Setting]) -> list[str]:
    seconds = {s.label: s.seconds for s in settings if s.seconds is not None}
    saved = quoted(study, "hierarchical_time_saved_pct")
    if not seconds:
        return [f"(e) In print the hierarchical gate saves around {saved:g} % of the base gate's time."]
    devices = dict.fromkeys(
        str(study.summary(run_id(s.name)).get("device_name")) for s in settings if s.label in seconds
    )
    text = ", ".join(f"{label} {duration(value)}" for label, value in seconds.items())
    base, light = seconds.get("base"), seconds.get("hierarchical")
    words = ""
    if base and light:
        share = 100 * (1 - light / base)
        words = f" The hierarchical gate {'saves' if share >= 0 else 'costs'} {abs(share):.0f} % of the base gate's,"
        words += f" in print it saves around {saved:g} %."
    rest = "What else ran on the machine is in these times."
    return [f"(e) Wall time with validations, {' and '.join(devices)}: {text}.{words} {rest}"]
