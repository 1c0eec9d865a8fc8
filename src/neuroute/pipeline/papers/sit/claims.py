"""What paper `sit` claims, and how it is looked at here."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from neuroute.analysis.contrasts import Estimate, slope
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.pipeline.papers.sit.tables import exponent
from neuroute.pipeline.rendering.comparisons import Evidence, Finding, cells_of
from neuroute.pipeline.rendering.table import Value

Quantity = Literal["time_{}_s", "memory_{}_mb"]
WORDS = {"time_{}_s": "the time of a greedy solution", "memory_{}_mb": "the memory of a greedy solution"}
SIZES_LACK = "three sizes or more that both solve"
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
    columns = {quantity.format(f"{size // 1000}k"): size for size in sit.SIZES}
    here: dict[str, dict[float, float]] = {"LEHD": {}, "Ours": {}}
    in_print: dict[str, dict[float, float]] = {"LEHD": {}, "Ours": {}}
    for labels, key, cell in cells_of(evidence.table("table4")):
        method, nodes = labels["method"], re.search(r"\d+", cell.at)
        if method in here and key in columns:
            if nodes:
                _put(here[method], float(nodes[0]), cell.measured)
            _put(in_print[method], columns[key], cell.published)
    both, both_printed = (sorted(of["LEHD"].keys() & of["Ours"].keys()) for of in (here, in_print))
    printed = [exponent(both_printed, [in_print[method][n] for n in both_printed]) for method in here]
    ratios = [here["LEHD"][n] / here["Ours"][n] for n in both]
    at = f"TSPs of {', '.join(f'{n:,.0f}' for n in both)} nodes, one instance each" if both else ""
    return Finding(
        f"exponent of n in {WORDS[quantity]}: LEHD's less SIT's",
        slope(both, ratios) if len(both) > 1 else None,
        None if printed[0] is None or printed[1] is None else printed[0] - printed[1],
        "exponent",
        at=at or "no size that both solve",
        busy=busy,
        lacks=SIZES_LACK,
        of_trainings=False,
    )


def _put(values: dict[float, float], n: float, value: Value) -> None:
    if isinstance(value, int | float) and value > 0:
        values[n] = float(value)


def search_time_does_not_grow(evidence: Evidence) -> list[Finding]:
    """The exponent of n in the time of a thousand iterations of parallel re-construction (Table 1)."""
    here: dict[float, float] = {}
    in_print: dict[float, float] = {}
    columns = {f"time_{size // 1000}k_s": size for size in sit.SIZES}
    for labels, key, cell in cells_of(evidence.table("table1")):
        if labels["method"] == "Ours PRC1,000" and labels["problem"] == "TSP" and key in columns:
            nodes = re.search(r"\d+", cell.at)
            if nodes:
                _put(here, float(nodes[0]), cell.measured)
            _put(in_print, columns[key], cell.published)
    sizes, printed = sorted(here), exponent(sorted(in_print), [in_print[n] for n in sorted(in_print)])
    estimate = slope(sizes, [here[n] for n in sizes]) if len(sizes) > 1 else None
    quantity, busy = "exponent of n in the time of parallel re-construction", evidence.busy("table1")
    finding = Finding(quantity, estimate, printed, "exponent", busy=busy, of_trainings=False)
    return [replace(finding, lacks="three sizes or more")]


def repeating_helps(evidence: Evidence) -> list[Finding]:
    """How the gap falls with repetitions of the last node (Figure 3)."""
    points = _repetitions(evidence)
    return [_falls("exponent of the gap in repetitions of the last node", points)]


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
