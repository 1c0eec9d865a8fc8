"""What holds of every drawing of a network at work (icam, mvmoe, sit): it says what it shows, and what it lacks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text
from pictures import pictures
from refusals import one_line

import fabricated_icam_figures as icam
import fabricated_mvmoe_figures as mvmoe
import fabricated_pens as pens
import fabricated_scaling as scaling
import fabricated_sit_figures as sit
from fabricated import with_arrays
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.render import render
from neuroute.pipeline.rendering.style import Drawing
from neuroute.specs.objects import FIGURE_FORMATS
from shown import drawn_figure

pytestmark = pytest.mark.slow

PAPERS = {"icam": icam, "mvmoe": mvmoe, "pens": pens.FABRIC, "scaling": scaling.FABRIC, "sit": sit}
READ = {  # figure -> the evaluation that it is drawn from
    **{("icam", f"figure{i}"): f"{icam.POMO if i == 6 else icam.ICAM}/structure" for i in range(1, 7)},
    **{("mvmoe", f"figure{i}"): f"{mvmoe.LIGHT if i in (4, 8) else mvmoe.BASE}/routing" for i in (1, 2, 3, 4, 8, 9)},
}
LACKING = {  # figure -> an array without which it cannot be drawn
    "icam": {1: "sizes", 2: "layer_alphas", 3: "bias", 5: "numerator", 6: "attention"},
    "mvmoe": {1: "order_VRPL", 2: "probabilities", 3: "expert_nodes", 4: "gate", 8: "sparse", 9: "decoder_load"},
}
DATA = ("coords", "levels", "lengths", "log_n", "clipping")  # of ICAM; all else is computed
LEARNT = ("scores", "weights", "logits", "probabilities", "known", "gate", "gate_scores", "sparse_chance", "step_load",
          "encoder_load", "decoder_load")  # fmt: skip
Folder = Callable[[str], Path]


@pytest.fixture(scope="module")
def folder(records_of: Callable[[Callable[[Path], Path]], Path]) -> Folder:
    return lambda paper: records_of(getattr(PAPERS[paper], "fabricate", PAPERS[paper]))


def beyond(drawing: Drawing) -> set[Any]:
    """Labels of ticks outside of an axis, which are there but not drawn."""
    hidden: set[Any] = set()
    for axes in drawing.figure.axes:
        if not axes.axison:
            hidden |= {tick.label1 for axis in (axes.xaxis, axes.yaxis) for tick in axis.get_major_ticks()}
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            hidden |= {tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high}
    return hidden


def laid_out(drawing: Drawing) -> None:
    """Neither do texts overlap, nor boxes; nothing leaves the figure, and texts in boxes do not leave these."""
    with style.house():
        drawing.figure.canvas.draw()
    renderer: Any = drawing.figure.canvas.get_renderer()  # type: ignore[attr-defined]
    hidden = beyond(drawing)
    shown = [t for t in drawing.figure.findobj(Text) if t.get_visible() and t.get_text().strip() not in ("", "+")]
    texts = [(t.get_text(), t.get_window_extent(renderer)) for t in shown if t not in hidden]
    patches = [p for p in drawing.figure.findobj(FancyBboxPatch) if p.get_gid()]
    boxes = [(p.get_gid(), p.get_window_extent(renderer)) for p in patches]
    width, height = drawing.figure.bbox.size
    for parts in (texts, boxes):
        for i, (name, box) in enumerate(parts):
            assert box.x0 >= -1, name
            assert box.y0 >= -1, name
            assert box.x1 <= width + 1, name
            assert box.y1 <= height + 1, name
            for other, its in parts[i + 1 :]:
                assert min(overlap(box, its)) < 1.5, (name, other)
    for text, its in texts:
        for name, box in boxes:
            across, up = overlap(box, its)
            assert min(across, up) < 1.5 or (across >= its.width - 1.5 and up >= its.height - 4), (text, name)


def overlap(one: Any, other: Any) -> tuple[float, float]:
    """Pixels across and up that two boxes have in common."""
    return min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)


@pytest.mark.parametrize(("paper", "name"), [("mvmoe", "figure2"), ("scaling", "figure2")])  # boxes, curves
def test_every_format_is_written_and_comes_out_the_same(paper: str, name: str, folder: Folder, tmp_path: Path) -> None:
    study = PAPERS[paper].study
    with pictures():
        once, again = (render(study(name, folder(paper)), tmp_path / each / name) for each in ("once", "again"))
    assert [path.suffix[1:] for path in once] == list(FIGURE_FORMATS)
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]
    assert all(path.stat().st_size > 200 for path in once)


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        *READ,
        *(("mvmoe", f"figure{i}") for i in (5, 6, 7)),
        *(("pens", f"figure{i}") for i in (2, 6)),
        *(("sit", f"figure{i}") for i in (1, 2, 3)),
    ],
)
def test_it_is_laid_out_and_told_in_words(paper: str, name: str, folder: Folder) -> None:
    drawing = drawn_figure(PAPERS[paper].study, name, folder(paper))
    laid_out(drawing)
    assert drawing.alt
    assert drawing.notes


@pytest.mark.parametrize(
    ("paper", "name", "lacking"),
    [
        *((paper, name, "") for paper, name in READ),
        *((paper, f"figure{k}", array) for paper, arrays in LACKING.items() for k, array in arrays.items()),
    ],
)
def test_an_evaluation_that_is_empty_or_lacks_an_array_is_named(
    paper: str, name: str, lacking: str, folder: Folder, tmp_path: Path
) -> None:
    evaluation = READ[paper, name]
    without = with_arrays(folder(paper), tmp_path, evaluation, lambda a: a.pop(lacking) if lacking else a.clear())
    with one_line((f"no array {lacking}" if lacking else f"{evaluation} names no modules") + "; evaluate it again"):
        drawn_figure(PAPERS[paper].study, name, without)


@pytest.mark.parametrize(("paper", "name"), [figure for figure in READ if figure[1] != "figure1"])
def test_what_is_not_finite_is_drawn_nonetheless(paper: str, name: str, folder: Folder, tmp_path: Path) -> None:
    """Of a network whose training went astray: nothing that it computes is a number."""

    def broken(a: dict[str, np.ndarray]) -> None:
        for key, value in a.items():
            computed = not key.startswith(DATA) if paper == "icam" else key.endswith(LEARNT)
            if value.dtype.kind == "f" and computed:
                a[key] = np.full_like(value, np.nan)

    folder_here = with_arrays(folder(paper), tmp_path, READ[paper, name], broken)
    laid_out(drawn_figure(PAPERS[paper].study, name, folder_here))
