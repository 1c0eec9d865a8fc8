"""What holds of every artifact that is rendered, and of the figures of every paper."""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text
from pictures import pictures

from neuroute.core.dotted import resolve
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.render import render
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing

Look = Callable[[str, Path], Study]  # (artifact, work folder) -> what the artifact sees of it


def written_twice(look: Look, name: str, work: Path, folder: Path, formats: Iterable[str]) -> list[Path]:
    """The files of every format, which come out the same again."""
    with pictures():
        once, again = (render(look(name, work), folder / each / name) for each in ("once", "again"))
    assert [path.suffix[1:] for path in once] == list(formats)
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]
    return once


def drawn(found: Study, lay_out: bool = False) -> Drawing:
    """In the house style; laid out, where that may fail."""
    with style.house():
        drawing = resolve(found.artifact.function)(found)
        assert isinstance(drawing, Drawing)
        if lay_out:
            drawing.figure.draw_without_rendering()
    return drawing


@cache  # folders that are changed are changed before they are drawn
def drawn_figure(look: Look, name: str, work: Path, lay_out: bool = False) -> Drawing:
    return drawn(look(name, work), lay_out)


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
