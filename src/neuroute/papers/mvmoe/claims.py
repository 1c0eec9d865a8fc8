"""What paper `mvmoe` claims, and how it is looked at here."""

from __future__ import annotations

import math

from neuroute.rendering.claims import Finding, Side, mean_interval
from neuroute.rendering.table import Cell, Value
from neuroute.rendering.verdicts.comparisons import Evidence, cells_of

EXPERTS, LIGHT = "MVMoE/4E", "MVMoE/4E-L"
COLUMNS = {EXPERTS: "time_moe4e_s", LIGHT: "time_moe4eL_s"}


def light_is_faster(evidence: Evidence) -> Finding:
    """Compare seconds of an instance with base and with hierarchical gating, over all sixteen problems."""
    entries = list(cells_of(evidence.table("table6")))
    times = {method: [cell for _, key, cell in entries if key == column] for method, column in COLUMNS.items()}
    pairs = list(zip(*times.values(), strict=True))
    cell = mean_interval(_log_ratios([(a.measured, b.measured) for a, b in pairs]))
    in_print = mean_interval(_log_ratios([(a.published, b.published) for a, b in pairs]))
    return Finding(
        f"{EXPERTS} more than {LIGHT}: seconds of an instance, in %",
        Cell(_percent(cell.measured), _percent(in_print.measured), _percent(cell.low), _percent(cell.high)),
        tuple(_mean_side(method, of) for method, of in times.items()),
        "problems (Student's t of the log ratio)",
        pairs[0][0].at if pairs else "",
        busy=evidence.busy("table6"),
    )


def _log_ratios(pairs: list[tuple[Value, Value]]) -> list[float]:
    return [math.log(a / b) for a, b in pairs if isinstance(a, int | float) and isinstance(b, int | float) and a and b]


def _percent(log_ratio: Value) -> float | None:
    return 100 * math.expm1(log_ratio) if isinstance(log_ratio, float) else None


def _mean_side(label: str, times: list[Cell]) -> Side:
    """Mean seconds over the problems, where all were measured."""

    def mean(values: list[Value]) -> float | None:
        numbers = [float(value) for value in values if isinstance(value, int | float)]
        return sum(numbers) / len(numbers) if numbers and len(numbers) == len(values) else None

    return Side(label, mean([cell.measured for cell in times]), mean([cell.published for cell in times]))
