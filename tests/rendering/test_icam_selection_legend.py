"""The legend of icam's Figure 1 (b) lies over the lines that mark radii, and can be read there."""

from pathlib import Path

from fabricated_icam_figures import study, write_structure
from figure_checks import drawn


def test_no_line_strikes_through_the_legend(tmp_path: Path) -> None:
    drawing = drawn(study("figure1", write_structure(tmp_path)))
    (panel,) = [axes for axes in drawing.figure.axes if axes.get_title(loc="left").startswith("(b)")]
    legend = panel.get_legend()
    assert legend is not None
    assert legend.get_frame_on()
    assert legend.get_frame().get_alpha() == 1
    assert legend.get_zorder() > max(line.get_zorder() for line in panel.lines)
