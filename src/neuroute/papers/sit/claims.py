"""What paper `sit` claims, and how it is looked at here."""

import re
from typing import Literal

from neuroute.papers.sit.roles import SIZES
from neuroute.papers.sit.tables_efficiency import exponent
from neuroute.rendering.claims import Finding, Side, printed_difference, slope_interval
from neuroute.rendering.table import Value
from neuroute.rendering.verdicts.comparisons import Evidence, cells_of

Quantity = Literal["time_{}_s", "memory_{}_mb"]
WORDS = {"time_{}_s": "the time of a greedy solution", "memory_{}_mb": "the memory of a greedy solution"}


def time_grows_slowly(evidence: Evidence) -> Finding:
    """Compare exponents of n in the time of a greedy solution with LEHD's, over the sizes that both solve."""
    return _grows_slowly(evidence, "time_{}_s", evidence.busy("table4"))


def memory_grows_slowly(evidence: Evidence) -> Finding:
    """Compare exponents of n in the memory of a greedy solution with LEHD's, over the sizes that both solve."""
    return _grows_slowly(evidence, "memory_{}_mb")


def _grows_slowly(evidence: Evidence, quantity: Quantity, busy: str = "") -> Finding:
    columns = {quantity.format(f"{size // 1000}k"): size for size in SIZES}
    here: dict[str, dict[float, float]] = {"LEHD": {}, "Ours": {}}
    in_print: dict[str, dict[float, float]] = {"LEHD": {}, "Ours": {}}
    for labels, key, cell in cells_of(evidence.table("table4")):
        method, nodes = labels["method"], re.search(r"\d+", cell.at)
        if method in here and key in columns:
            if nodes:
                _put(here[method], float(nodes[0]), cell.measured)
            _put(in_print[method], columns[key], cell.published)
    both, both_printed = (sorted(of["LEHD"].keys() & of["Ours"].keys()) for of in (here, in_print))
    sides = tuple(
        Side(method, _exponent(here[method], both), _exponent(in_print[method], both_printed)) for method in here
    )
    ratios = [here["LEHD"][n] / here["Ours"][n] for n in both]
    at = f"TSPs of {', '.join(f'{n:,.0f}' for n in both)} nodes, one instance each" if both else ""
    return Finding(
        f"LEHD less Ours: exponent of n in {WORDS[quantity]}",
        slope_interval(both, ratios, printed_difference(*sides)),
        sides,
        "sizes (Student's t of the slope)",
        at or "no size that both solve",
        busy=busy,
        lacks="three sizes or more that both solve",
    )


def _put(values: dict[float, float], n: float, value: Value) -> None:
    if isinstance(value, int | float) and value > 0:
        values[n] = float(value)


def _exponent(values: dict[float, float], sizes: list[float]) -> float | None:
    return exponent(sizes, [values[n] for n in sizes])
