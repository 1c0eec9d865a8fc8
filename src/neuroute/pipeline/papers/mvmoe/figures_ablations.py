"""Figure 6 of paper `mvmoe`, and its bars as a table: where experts are, how many, how chosen, and what that takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl, pd
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.cells import (
    amounts,
    mean_gap_cell,
    models_here,
    quoted,
    references_note,
    rule_notes,
    sets_of,
    trained_note,
)
from neuroute.pipeline.papers.mvmoe.paper import SIZES, UNSEEN, run_id
from neuroute.pipeline.papers.mvmoe.tables import GROUPS
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import printed_gap, printed_numbers, summary_cell
from neuroute.pipeline.rendering.columns import decimal
from neuroute.pipeline.rendering.notes import draw_table, notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, PUBLISHED, Drawing, line, mark, new_figure
from neuroute.pipeline.rendering.table import HERE, Cell, Column, Row, Table, duration

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
HOLLOW: dict[str, Any] = {
    "marker": "D",
    "linestyle": "None",
    "markerfacecolor": "white",
    "markeredgecolor": style.INK,
    "markeredgewidth": 1.0,
}
METHODS = dict(
    zip(
        mvmoe.ABLATIONS["figure6d"],
        (style.GREY, DEFAULT_BAR, style.RAMPS["orange"][1], "#8a4fb0", style.GREEN),
        strict=True,
    )
)
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
    handles = [
        mark("here", "s", BAR),
        mark("here, MVMoE/4E (default)", "s", DEFAULT_BAR),
        line("published, where it is printed", **HOLLOW),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    alt = "Bars of mean gaps on unseen problems for positions, numbers and gates of experts, and gaps against time."
    rows = [row for of in settings.values() for each in of for row in each.rows()]
    columns = ["panel", "setting", "run", "side", "gap_pct", "low_pct", "high_pct", "time_s"]
    return Drawing(figure, pd.DataFrame(rows, columns=columns), _notes(study, settings), alt)


@artifact("Figure 6's bars", needs=_bars_needs, printed_files=("quoted", "table5"))
def table_figure6(study: Study) -> Table:
    every = [setting for letter in "abcd" for setting in _settings(study, letter)]
    rows = [Row((PANELS[s.panel], s.label, models_here(study, run_id(s.name))), (s.cell,)) for s in every]
    column = Column("gap_unseen_pct", f"{len(UNSEEN)} unseen problems", "gap %", at=sets_of(study.scale, SIZES[0]))
    runs = [run_id(s.name) for s in every if s.gap is not None]
    return draw_table(
        study,
        ("Panel", "Setting", HERE),
        [column],
        rows,
        trained=trained_note(study, runs, "50 million, and up to 200 million by number of experts,", [SIZES[0]]),
        references=references_note(study.scale, UNSEEN),
        **rule_notes(study, [mvmoe.reference(study.scale, v, SIZES[0]) for v in UNSEEN], runs),
    )


def _settings(study: Study, letter: str) -> list[Setting]:
    """All settings of a panel, whether or not they are trained here."""
    names = mvmoe.trained_ablations(study.scale, f"figure6{letter}")
    tests = [mvmoe.reference(study.scale, variant, SIZES[0]).dataset for variant in UNSEEN]
    settings = []
    for label, name in mvmoe.ABLATIONS[f"figure6{letter}"].items():
        here, published = label in names, _published_gap(study, name)
        cell = mean_gap_cell(study, run_id(name), tests, published) if here else Cell(None, published)
        seconds = summary_cell(study, run_id(name), "wall_time_s").measured if here and letter == "e" else None
        settings.append(Setting(letter, label, name, cell, seconds if isinstance(seconds, float) else None))
    return settings


def _published_gap(study: Study, name: str) -> float | None:
    """Table 5 has the default; of the others the text quotes one."""
    if name == "h_enc_ec":
        return quoted(study, "gap_unseen_expert_choice_enc_pct")
    if name != mvmoe.DEFAULT:
        return None
    (setting,) = [key for key, run in mvmoe.ABLATIONS["table5"].items() if run == mvmoe.DEFAULT]
    _, problem = GROUPS["unseen"]
    return printed_gap(printed_numbers(study, "table5", method_params=setting, problem=problem), SIZES[0])


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


def _notes(study: Study, settings: dict[str, list[Setting]]) -> tuple[str, ...]:
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
    return notes(
        study,
        scale=scale[mvmoe.MvmoeScale],
        amounts=amounts(study, runs) or "no",
        references=references_note(scale, UNSEEN),
        **rule_notes(study, tests, runs),
        trends=trends,
        seconds=_times(study, settings["e"]),
        missing=f"Of {every} settings not trained at this scale: {'; '.join(missing)}." if missing else "",
    )


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
    return [
        f"(e) Wall time with validations, {' and '.join(devices)}: {text}.{words} What else ran on the machine is in "
        "these times."
    ]
