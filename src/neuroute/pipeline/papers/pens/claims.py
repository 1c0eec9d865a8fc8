"""What paper `pens` claims beyond order of cells, and how it is looked at here."""

from neuroute.analysis.contrasts import mean_of
from neuroute.pipeline.rendering.comparisons import Evidence, Finding, combined, one_cell

GAUSSIAN, ZERO = "Gaussian init", "Zero init"


def gaussian_helps_rope_most(evidence: Evidence) -> list[Finding]:
    """How much more Gaussian embeddings take off the gap of PENS-R than off that of PENS-A at TSP100 (Figure 5a)."""
    parts = [
        (sign * side, one_cell(evidence, "table_figure5", "gap_tsp100_pct", model=model, embeddings=embeddings))
        for sign, model in ((1.0, "PENS-R"), (-1.0, "PENS-A"))
        for side, embeddings in ((1.0, ZERO), (-1.0, GAUSSIAN))
    ]
    return [combined("what is left of PENS-R's gap below what is left of PENS-A's", parts)]


def factor_has_an_optimum(evidence: Evidence) -> list[Finding]:
    """The curvature of the length over the factor, as parabolas fit it, over models and sizes (Figure 3)."""
    curvatures = {
        (line["series"], line["size"]): float(line["parabola_a"])
        for line in evidence.points("figure3")
        if line["side"] == "measured" and str(line["parabola_a"]) not in ("", "nan")
    }
    estimate = mean_of([*curvatures.values()]) if curvatures else None
    quantity = "curvature of the length over the factor, a mean over models and sizes"
    return [Finding(quantity, estimate, unit="log", lacks="curves of several models and sizes", of_trainings=False)]
