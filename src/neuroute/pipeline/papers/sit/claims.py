"""What paper `sit` claims, and how it is looked at here."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from neuroute.analysis.contrasts import Estimate, slope
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.pipeline.papers.sit.tables import exponent
from neuroute.pipeline.rendering.comparisons import Evidence, Finding, cells_of

Quantity = Literal["time_{}_s", "memory_{}_mb"]
WORDS = {"time_{}_s": "the time of a greedy solution", "memory_{}_mb": "the memory of a greedy solution"}
SATURATED = 15  # repetitions of the last node, beyond which the gain is small


def time_grows_slowly(evidence: Evidence) -> list[Finding]:
    """Compare exponents of n in the time of a greedy solution with LEHD's, over the sizes that both solve."""
    return [_grows_slowly(evidence, "time_{}_s", evidence.busy("table4"))]


def memory_grows_slowly(evidence: Evidence) -> list[Finding]:
    """Compare exponents of n in the memory of a greedy solution with LEHD's, over the sizes that both solve."""
    return [_grows_slowly(evidence, "memory_{}_mb")]


def advantage_grows(evidence: Evidence) -> list[Finding]:
    """Both: times and memory of LEHD over those of SIT grow with n."""
    return [*time_grows_slowly(evidence), *memory_grows_slowly(evidence)]


def _grows_slowly(evidence: Evidence, quantity: Quantity, busy: str = "") -> Finding:
    lehd, ours = (_by_nodes(evidence, "table4", quantity, method=method) for method in ("LEHD", "Ours"))
    both, both_printed = (sorted(lehd[i].keys() & ours[i].keys()) for i in (0, 1))
    printed = [exponent(both_printed, [in_print[n] for n in both_printed]) for _, in_print in (lehd, ours)]
    ratios = [lehd[0][n] / ours[0][n] for n in both]
    at = f"TSPs of {', '.join(f'{n:,.0f}' for n in both)} nodes, one instance each" if both else ""
    return Finding(
        f"exponent of n in {WORDS[quantity]}: LEHD's less SIT's",
        slope(both, ratios) if len(both) > 1 else None,
        None if printed[0] is None or printed[1] is None else printed[0] - printed[1],
        "exponent",
        at=at or "no size that both solve",
        busy=busy,
        lacks="three sizes or more that both solve",
        of_trainings=False,
    )


def _by_nodes(
    evidence: Evidence, table: str, quantity: Quantity, **of: str
) -> tuple[dict[float, float], dict[float, float]]:
    """Nodes -> the positive numbers of a row, as measured and as printed."""
    columns = {quantity.format(sit.short(size)): size for size in sit.SIZES}
    here: dict[float, float] = {}
    in_print: dict[float, float] = {}
    for labels, key, cell in cells_of(evidence.table(table)):
        if key in columns and of.items() <= labels.items():
            nodes = re.search(r"\d+", cell.at)
            if nodes and isinstance(cell.measured, int | float) and cell.measured > 0:
                here[float(nodes[0])] = float(cell.measured)
            if isinstance(cell.published, int | float) and cell.published > 0:
                in_print[columns[key]] = float(cell.published)
    return here, in_print


def search_time_does_not_grow(evidence: Evidence) -> list[Finding]:
    """The exponent of n in the time of a thousand iterations of parallel re-construction (Table 1)."""
    here, in_print = _by_nodes(evidence, "table1", "time_{}_s", method="Ours PRC1,000", problem="TSP")
    sizes, printed = sorted(here), exponent(sorted(in_print), [in_print[n] for n in sorted(in_print)])
    estimate = slope(sizes, [here[n] for n in sizes]) if len(sizes) > 1 else None
    quantity, busy = "exponent of n in the time of parallel re-construction", evidence.busy("table1")
    finding = Finding(quantity, estimate, printed, "exponent", busy=busy, of_trainings=False)
    return [replace(finding, lacks="three sizes or more")]


def repeating_helps(evidence: Evidence) -> list[Finding]:
    """How the gap falls with repetitions of the last node (Figure 3)."""
    return [_falls("exponent of the gap in repetitions of the last node", _repetitions(evidence))]


def repeating_saturates(evidence: Evidence) -> list[Finding]:
    """How much more it falls up to fifteen repetitions than beyond (Figure 3)."""
    points = _repetitions(evidence)
    parts = [[p for p in points if p[0] <= SATURATED], [p for p in points if p[0] >= SATURATED]]
    first, beyond = (_falls("", each).estimate for each in parts)
    quantity = f"exponent of the gap up to {SATURATED} repetitions less that beyond"
    estimate = first.less(beyond) if first and beyond else None
    return [Finding(quantity, estimate, unit="exponent", lacks="trainings with more numbers of repetitions")]


def _repetitions(evidence: Evidence) -> list[tuple[float, float]]:
    return [
        (float(line["repetitions"]), float(line["gap_pct"]))
        for line in evidence.points("figure3")
        if line["side"] == "measured"
    ]


def _falls(quantity: str, points: Sequence[tuple[float, float]]) -> Finding:
    estimate: Estimate | None = None
    if len({x for x, _ in points}) > 1:
        estimate = slope([x for x, _ in points], [1 / gap for _, gap in points])
    return Finding(quantity, estimate, unit="exponent", lacks="trainings with more numbers of repetitions")
