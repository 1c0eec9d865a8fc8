"""What paper `mvmoe` claims beyond order of cells, and how it is looked at here."""

import math
from typing import Literal

from neuroute.papers.mvmoe.tables_benchmarks import PARAMETERS
from neuroute.rendering.claims import Finding, Side, mean_interval, printed_difference
from neuroute.rendering.table import Cell, Value
from neuroute.rendering.verdicts.comparisons import MORE_PAIRS, Evidence, cells_of

DENSE, EXPERTS = "time_mtl_s", "time_moe4e_s"


def capacity_before_time(evidence: Evidence) -> Finding:
    """Compare how many times POMO-MTL's parameters experts have with how many times its time they take (Table 6)."""
    cells = {(labels["problem"], key): cell for labels, key, cell in cells_of(evidence.table("table6"))}
    parameters, seconds = _times_as_much(cells, "measured")
    in_print, seconds_in_print = _times_as_much(cells, "published")
    sides = (
        Side("parameters of MVMoE/4E, in those of POMO-MTL", parameters, in_print),
        Side("time, likewise", _of_log(seconds.measured), _of_log(seconds_in_print.measured)),
    )

    def less(log_ratio: Value) -> float | None:
        ratio = _of_log(log_ratio)
        return None if parameters is None or ratio is None else parameters - ratio

    difference = Cell(less(seconds.measured), printed_difference(*sides), less(seconds.high), less(seconds.low))
    over = "problems (Student's t of the log ratio of times)"
    at = next((cell.at for cell in cells.values() if cell.at), "")
    busy = evidence.busy("table6")
    what = "parameters less time, both in those of POMO-MTL"
    return Finding(what, difference, sides, over, at, busy=busy, lacks=MORE_PAIRS)


def _times_as_much(
    cells: dict[tuple[str, str], Cell], side: Literal["measured", "published"]
) -> tuple[float | None, Cell]:
    """How many times as many parameters, and the mean over problems of the log ratio of times."""

    def pair(problem: str) -> list[Value]:
        there = [cells.get((problem, key)) for key in (DENSE, EXPERTS)]
        return [None if cell is None else cell.measured if side == "measured" else cell.published for cell in there]

    dense, experts = pair(PARAMETERS)
    parameters = _count(experts) / _count(dense) if dense and experts else None
    logs = []
    for problem in dict.fromkeys(problem for problem, _ in cells):
        dense, experts = pair(problem)
        if isinstance(dense, float) and isinstance(experts, float):
            logs.append(math.log(experts / dense))
    return parameters, mean_interval(logs)


def _count(text: Value) -> float:
    """Read 42,368 and 1.25M."""
    digits = str(text).replace(",", "")
    return 1e6 * float(digits[:-1]) if digits.endswith("M") else float(digits)


def _of_log(ratio: Value) -> float | None:
    return math.exp(ratio) if isinstance(ratio, float) else None
