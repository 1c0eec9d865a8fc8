"""Figures of paper `scaling` on fabricated records: all formats, same bytes, and honest on bad data."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fabricated_scaling import study_of
from figure_checks import drawn_figure, texts
from neuroute.pipeline.rendering import style

pytestmark = pytest.mark.slow

draw = partial(drawn_figure, study_of, lay_out=True)
# Figures 7 and 8 show one shape, whose fabricated gaps are not bad enough; test_figures_training_and_probes has them.
BAD = [f"figure{number}" for number in (1, 2, 3, 4, 5, 6, 9)]


def shown(name: str, work: Path) -> list[str]:
    return texts(draw(name, work))


def test_figure3_says_where_the_order_of_exponents_means_nothing(copy: Path) -> None:
    for log in copy.glob("runs/scaling/base_*/log.jsonl"):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for i, line in enumerate(lines):
            line |= {"gap_pct": 3.0 + 2 * (i % 4 > 1)} if line["kind"] == "validation" else {}
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert any("no order" in text for text in shown("figure3", copy))


def test_panels_of_figure10_have_the_same_axes(work: Path) -> None:
    panels = draw("figure10", work).figure.axes
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in panels}) == 1


def test_a_panel_without_data_or_line_says_so() -> None:
    with style.house():
        figure = style.new_figure()
        empty, one, two, bars = figure.subplots(1, 4, sharey=True)
        empty.axhline(1.0)
        one.plot([1.0, np.nan], [2.0, 3.0], "o")
        two.plot([1.0, 2.0], [2.0, 3.0])
        bars.bar([1.0], [2.0])
        style.Drawing(figure, pd.DataFrame())
    words = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert words == [["not measured at this scale"], ["one point: no line"], [], []]
    assert not any(tick.tick1line.get_visible() or tick.label1.get_visible() for tick in empty.xaxis.get_major_ticks())
    assert all(tick.label1.get_visible() for tick in one.xaxis.get_major_ticks())


@pytest.mark.parametrize("name", BAD)
def test_bad_gaps_are_told_and_do_not_crash(name: str, bad_work: Path) -> None:
    with np.errstate(all="raise", under="ignore"):
        drawing = draw(name, bad_work)
    told = " ".join(drawing.notes)
    assert "not positive" in told
    gaps = drawing.points[drawing.points.side == "measured"].gap_pct
    assert (gaps <= 0).any()  # kept in the data
    if (gaps == 0).all() and name != "figure1":  # nothing to fit
        assert re.search("(?i)no (measured )?fit", told)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.03, 0.4, -1.0, 0.0], {"0.05", "0.1", "0.2"}),
        ([1e-4, 0.5, -1.0, 0.0], {"0.001", "0.01", "0.1"}),
        ([8.0, 17.0], {"10", "12", "15"}),
        ([5.21, 5.24], set()),  # nearly equal
    ],
)
def test_log_axis_has_readable_ticks(values: list[float], ticks: set[str]) -> None:
    with style.house():
        axes = style.new_figure().subplots()
        style.log_axis(axes, "y", values)
    low, high = axes.get_ylim()
    shown = [style.plain_number(t) for t in axes.get_yticks() if low <= t <= high]
    assert ticks <= set(shown)
    assert 3 <= len(shown) <= 8


def test_fits_stay_in_their_frames(work: Path) -> None:
    for name in ("figure2", "figure5"):
        for axes in draw(name, work).figure.axes:
            low, high = axes.get_ylim()
            gaps = [y for line in axes.lines for y in line.get_ydata() if y > 0]
            assert low < min(gaps)
            assert max(gaps) < high


def test_plain_numbers() -> None:
    words = [style.plain_number(v) for v in (0.0001, 0.05, 1, 200, 5e4, 1e6)]
    assert words == ["0.0001", "0.05", "1", "200", "50k", "1M"]
