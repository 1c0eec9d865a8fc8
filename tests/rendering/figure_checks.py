"""What holds of the figures of every paper."""

from typing import Any

from matplotlib.text import Text

from neuroute.core.dotted import resolve
from neuroute.rendering import style
from neuroute.rendering.study import Study
from neuroute.rendering.style import Drawing


def drawn(found: Study, lay_out: bool = False) -> Drawing:
    """In the house style; laid out, where that may fail."""
    with style.house():
        drawing = resolve(found.artifact.function)(found)
        assert isinstance(drawing, Drawing)
        if lay_out:
            drawing.figure.draw_without_rendering()
    return drawing


def texts(drawing: Drawing) -> list[str]:
    return [t.get_text() for t in drawing.figure.findobj(Text) if t.get_visible() and t.get_text().strip()]


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


def texts_apart(found: Study) -> None:
    """Neither do texts overlap, nor do they leave the figure."""
    with style.house():
        drawing = drawn(found)
        drawing.figure.canvas.draw()
        renderer: Any = drawing.figure.canvas.get_renderer()  # type: ignore[attr-defined]
        hidden = beyond(drawing)
        shown = [t for t in drawing.figure.findobj(Text) if t.get_visible() and t.get_text().strip() not in ("", "+")]
        boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in shown if t not in hidden]
    width, height = drawing.figure.bbox.size
    for i, (text, box) in enumerate(boxes):
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
        for other, its in boxes[i + 1 :]:
            across, up = min(box.x1, its.x1) - max(box.x0, its.x0), min(box.y1, its.y1) - max(box.y0, its.y0)
            assert across < 1.5 or up < 1.5, (text, other)
