"""A page of how many cells of the papers' tables are measured, from the results that docs/measured keeps."""

from pathlib import Path

from neuroute.pipeline.plan.paper import all_papers
from neuroute.pipeline.rendering.report import COVERAGE_HEADS, COVERAGE_LEGEND, Coverage, coverage_lines

MEASURED = Path(__file__).resolve().parents[1] / "measured"
HEADLINE = "scaling"  # whose artifacts lie in the folder of the scale itself
HEAD = f"""# Measured, quoted, impossible

{COVERAGE_LEGEND} Of the results that are kept in docs/measured; `results/summary.json` has the same of every run,
and its report shows it.

Of the 36 systems of other authors in the tables 34 are trained or run here, Att-GCN, DIFUSCO, DIMES and H-TSP since the
results below were kept, which lack them. TAM and SO are quoted, as no code of theirs is public.
"""


def page() -> str:
    """A table for each scale and paper that anything is kept of."""
    parts = [HEAD]
    for scale in sorted(path for path in MEASURED.iterdir() if path.is_dir()):
        for paper in all_papers():
            folder = scale if paper == HEADLINE else scale / paper
            files = sorted(folder.glob("table*.csv"), key=_place)
            lines = coverage_lines({file.stem: Coverage.of(file) for file in files})
            if lines:
                rows = [COVERAGE_HEADS, tuple("---" for _ in COVERAGE_HEADS), *lines]
                table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
                parts.append(f"\n## `{paper}` at scale {scale.name}\n\n{table}\n")
    return "".join(parts)


def _place(file: Path) -> tuple[str, int]:
    word = file.stem.rstrip("0123456789")
    return word, int(file.stem[len(word) :] or 0)
