"""What paper `mvmoe` claims beyond order of cells, and how it is looked at here."""

import math
from dataclasses import replace
from statistics import fmean
from typing import Literal

import numpy as np

from neuroute.analysis.contrasts import Gap, contrast, mean_of
from neuroute.pipeline.papers.mvmoe.tables import PARAMETERS
from neuroute.pipeline.rendering.comparisons import Evidence, Finding, cells_of, combined, one_cell, spread_of
from neuroute.pipeline.rendering.table import Cell, Value

DENSE, EXPERTS = "time_mtl_s", "time_moe4e_s"
TRAINED = ("CVRP", "OVRP", "VRPB", "VRPL", "VRPTW", "OVRPTW")


def capacity_before_time(evidence: Evidence) -> list[Finding]:
    """Compare how many times POMO-MTL's parameters experts have with how many times its time they take (Table 6)."""
    cells = {(labels["problem"], key): cell for labels, key, cell in cells_of(evidence.table("table6"))}
    here, in_print = (_more_parameters_than_time(cells, side) for side in ("measured", "published"))
    estimate, printed = mean_of(here) if here else None, fmean(in_print) if in_print else None
    at, busy = next((cell.at for cell in cells.values() if cell.at), ""), evidence.busy("table6")
    finding = Finding("times as much time below times as many parameters", estimate, printed, at=at, busy=busy)
    return [replace(finding, lacks="more problems that both solve", of_trainings=False)]


def _more_parameters_than_time(
    cells: dict[tuple[str, str], Cell], side: Literal["measured", "published"]
) -> list[float]:
    """The log ratio of parameters less that of time, for each problem."""
    parameters = [_count(getattr(cells[PARAMETERS, key], side)) for key in (DENSE, EXPERTS)]
    values = []
    for problem in dict.fromkeys(problem for problem, _ in cells if problem != PARAMETERS):
        dense, experts = (getattr(cells[problem, key], side) for key in (DENSE, EXPERTS))
        if isinstance(dense, float) and isinstance(experts, float) and all(parameters):
            values.append(math.log(parameters[1] / parameters[0]) - math.log(experts / dense))
    return values


def _count(text: Value) -> float:
    """Read 42,368 and 1.25M; 0 of nothing."""
    digits = str(text or 0).replace(",", "")
    return 1e6 * float(digits[:-1]) if digits.endswith("M") else float(digits)


def specialist_fails_elsewhere(evidence: Evidence) -> list[Finding]:
    """Set POMO for the CVRP against models for many problems, on the mean over those trained (Tables 1 and 4)."""
    size, column = "gap_100_pct", "gap_{}_pct"
    specialist = [
        (1 / len(TRAINED), one_cell(evidence, "table4", column.format(p.lower()), model="POMO-CVRP")) for p in TRAINED
    ]
    findings = []
    for method in ("POMO-MTL", "MVMoE/4E"):
        many = [(-1 / len(TRAINED), one_cell(evidence, "table1", size, problem=p, method=method)) for p in TRAINED]
        findings.append(combined(f"{method} below POMO-CVRP, on all trained problems", [*specialist, *many]))
    return findings


def training_on_ovrptw_helps(evidence: Evidence) -> list[Finding]:
    """Compare last gaps with and without OVRPTW in training, on OVRPBTW (Figure 7).

    Its other untrained variants are OVRPTW and OVRPBTW again, with a limit that binds no route.
    """
    last: dict[str, tuple[float, float]] = {}
    for line in evidence.points("figure7"):
        if line["side"] == "measured" and line["variant"] == "OVRPBTW":
            point = float(line["batch"]), float(line["gap_pct"])
            last[line["series"]] = max(last.get(line["series"], point), point)
    quantity, series = "with OVRPTW below without, on OVRPBTW", ("with", "without")
    if any(f"{name} OVRPTW" not in last for name in series):
        return [Finding(quantity, None)]
    parts = [
        (sign, Gap((last[f"{name} OVRPTW"][1],), np.zeros(1), "", 1, "MvMoe", "vrp", 1.0, name))
        for sign, name in zip((-1.0, 1.0), series, strict=True)
    ]
    return [Finding(quantity, contrast(parts, spread_of), at="last validation")]


def load_is_balanced(evidence: Evidence) -> list[Finding]:
    """The largest share of an expert over an even one, on all problems (Figure 9)."""
    shares: dict[str, list[float]] = {}
    for line in evidence.points("figure9"):
        if line["side"] == "measured" and line["panel"] == "a" and not str(line["variant"]).endswith("LTW"):
            shares.setdefault(str(line["variant"]), []).append(float(line["pct"]))
    logs = [math.log(max(of) * len(of) / 100) for of in shares.values()]
    finding = Finding("largest share of an expert over an even one", None, math.log(27 / 25), "log", of_trainings=False)
    return [replace(finding, estimate=mean_of(logs)) if logs else finding]
