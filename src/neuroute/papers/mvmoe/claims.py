"""What paper `mvmoe` claims, and how it is looked at here."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import variance

from neuroute.analysis.spreads import Term, half_width, of_trainings
from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.cells import of_each
from neuroute.papers.mvmoe.roles import MULTI, VARIANTS, run_id
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.papers.mvmoe.table_library import common_gaps
from neuroute.papers.mvmoe.tables_benchmarks import LARGER, SET_X, solver
from neuroute.rendering.cells import number, printed_numbers
from neuroute.rendering.claims import Finding, Side, mean_interval, printed_difference, spread_of
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Value

EXPERTS, LIGHT = "MVMoE/4E", "MVMoE/4E-L"
TIMES = 2.5  # customers of Set-X here over those of the training, at most


def light_is_faster(study: Study) -> Finding:
    """Compare seconds of an instance with base and with hierarchical gating, over all sixteen problems."""
    scale, published = study.scale, printed_numbers(study, 6)

    def seconds(method: str, variant: str) -> tuple[float | None, float]:
        run, dataset = run_id(roles.multi(scale, method, LARGER)), roles.constructed(scale, variant)
        rows = published[(published.problem == variant) & (published.method == method)]
        return study.value("time_s", run, dataset, MULTI), float(rows.value.item())

    times = {method: [seconds(method, variant) for variant in VARIANTS] for method in (EXPERTS, LIGHT)}
    pairs = list(zip(*times.values(), strict=True))
    here = [math.log(a / b) for (a, _), (b, _) in pairs if a and b]
    cell, in_print = mean_interval(here), mean_interval([math.log(a / b) for (_, a), (_, b) in pairs])
    m = scale[MvmoeScale]
    return Finding(
        f"{EXPERTS} more than {LIGHT}: seconds of an instance, in %",
        Cell(_percent(cell.measured), _percent(in_print.measured), _percent(cell.low), _percent(cell.high)),
        tuple(_mean_side(method, of) for method, of in times.items()),
        "problems (Student's t of the log ratio)",
        of_each(m.construction_size, m.construction_count),
        busy=study.busy(),
    )


def _percent(log_ratio: Value) -> float | None:
    return 100 * math.expm1(log_ratio) if isinstance(log_ratio, float) else None


def _mean_side(label: str, times: list[tuple[float | None, float]]) -> Side:
    """Mean seconds over the problems, where all were measured."""
    here = [value for value, _ in times if value is not None]
    mean = sum(here) / len(here) if len(here) == len(times) else None
    return Side(label, mean, sum(value for _, value in times) / len(times))


def light_generalises(study: Study) -> Finding:
    """Compare mean gaps on the instances of Set-X that both have solved."""
    names = {method: roles.multi(study.scale, method, LARGER) for method in (EXPERTS, LIGHT)}
    gaps = common_gaps(study, SET_X, [solver(study, method, name, "set_x") for method, name in names.items()])
    published = printed_numbers(study, 7, problem="CVRP", metric="gap_pct")
    means = published[published.instance.str.startswith("mean of")]
    base, light = (
        Side(
            method,
            sum(gaps_of_one) / len(gaps_of_one) if gaps_of_one else None,
            number(means[means.method == method], None, "gap_pct"),
        )
        for method, gaps_of_one in zip(names, gaps, strict=True)
    )
    differences = [a - b for a, b in zip(*gaps, strict=True)]
    mean = math.fsum(differences) / len(differences) if differences else None
    cell, terms = Cell(mean, printed_difference(base, light)), tuple[Term, ...]()
    if mean is not None and len(differences) > 1:
        of_instances = Term(variance(differences) / len(differences), len(differences) - 1)
        spread = spread_of("MvMoe", "vrp", TIMES)
        terms = (of_instances, *(of_trainings([math.fsum(each) / len(each)], spread) for each in gaps))
        half = half_width(terms)
        cell = replace(cell, low=mean - half, high=mean + half)
    return Finding(
        f"{EXPERTS} less {LIGHT}: mean gap, in points",
        cell,
        (base, light),
        "instances and trainings (Student's t)",
        f"{len(differences)} instances of Set-X",
        terms=terms,
    )
