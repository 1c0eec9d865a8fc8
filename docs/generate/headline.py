"""The picture of the first page, from kept tables of `scaling`: `python docs/generate/headline.py`."""

import hashlib
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))

from seeds import DOCS, gaps, parameters, table

from neuroute.analysis.contrasts import law, regression
from neuroute.analysis.power_laws import fit
from neuroute.pipeline.papers.scaling.claims import DEEPER, EXPONENTS, WIDER, directions
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.comparisons import spread_of
from neuroute.pipeline.rendering.style import mark

PICTURE = DOCS / "assets" / "headline.png"


def made_from() -> str:
    """A digest of the tables; the picture states it, so that an old one is noticed."""
    tables = (DOCS / "measured" / "laptop" / name for name in ("table1.csv", "table12.csv", "behind.csv"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in tables)).hexdigest()


def draw() -> None:
    """Draw the measured gaps, and by which power they fall with parameters beside that of the printed gaps.

    Exponents are of one regression over all trainings; intervals (95 %) count trainings, instances and models off the
    law.  Small marks: a line of models alone.
    """
    sizes, here, sizes_there = parameters(), gaps("table12", "gap_pct"), parameters("published")
    rows = table("table12")[-len(here) :]
    printed = dict(zip(here, (float(row["gap_pct_published"]) for row in rows), strict=True))
    in_print = np.log([printed[shape] for shape in sizes])
    with style.house():
        figure = style.new_figure(height=3.0)
        grid, exponents = figure.subplots(1, 2)
        for y, (lines, family) in enumerate(((DEEPER, "orange"), (WIDER, "blue"))):
            for shade, line in zip(style.ramp(family, len(lines)), lines, strict=True):
                x, means = [sizes[shape] for shape in line], [float(np.mean(here[shape].values)) for shape in line]
                if lines is DEEPER:
                    grid.plot(x, means, "-o", color=shade, markersize=4, label=str(line[0].width))
                exponents.plot(fit(x, means, "log-log").alpha, y + 0.18, "o", color=shade, markersize=3)
                exponents.plot(
                    fit([sizes_there[s] for s in line], [printed[s] for s in line], "log-log").alpha,
                    y + 0.18,
                    "x",
                    color=shade,
                    markersize=4,
                )
        for y, weights in enumerate(EXPONENTS.values()):
            estimate = law(directions(sizes), [here[shape] for shape in sizes], weights, spread_of)
            exponents.plot(estimate.interval() or (), [y, y], color=style.INK, linewidth=2)
            exponents.plot(estimate.value, y, "o", color=style.INK, markersize=6)
            exponents.plot(
                regression(directions(sizes_there), in_print, weights).value, y, "x", color=style.INK, markersize=7
            )
        style.log_axis(grid, "x", list(sizes.values()))
        style.log_axis(grid, "y", [float(np.mean(gap.values)) for gap in here.values()])
        grid.set_xlabel("Decoder parameters (millions)")
        grid.set_ylabel("Optimality gap (%)")
        grid.set_title(f"Twelve decoders: {rows[0]['gap_pct_measured_at']}")
        grid.legend(title="more layers, at the paper's width", fontsize="small")
        exponents.set_yticks(range(3), ["adding\nlayers", "adding\nwidth", "difference"])
        exponents.set_ylim(2.6, -0.5)
        exponents.axvline(0, color=style.GREY, linewidth=0.7)
        exponents.set_xlabel("Exponent of the gap in parameters")
        exponents.set_title("By which power the gap falls")
        handles = [mark("here, 95 % interval", "o", style.INK), mark("printed, refitted", "x", style.INK)]
        exponents.legend(handles=handles, loc="lower right")
        figure.savefig(PICTURE, dpi=200, metadata={"Description": made_from()})


if __name__ == "__main__":
    draw()
