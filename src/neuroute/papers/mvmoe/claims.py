"""What paper `mvmoe` claims, and how it is looked at here."""

from __future__ import annotations

import math

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.cells import mean_gap_cell, mean_gap_samples, of_each, sets_of
from neuroute.papers.mvmoe.roles import MULTI, SIZES, UNSEEN, VARIANTS, run_id
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.papers.mvmoe.table_library import common_gaps
from neuroute.papers.mvmoe.tables_benchmarks import LARGER, SET_X, solver
from neuroute.plan.claims import claim
from neuroute.rendering.cells import number, printed_numbers
from neuroute.rendering.claims import FEWEST, INSTANCES, Finding, Side, above, mean_interval, printed_difference
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Value

FIGURES = ("figure1", "figure4", "figure5", "figure6", "figure9")
DENSE, EXPERTS, LIGHT = "POMO-MTL", "MVMoE/4E", "MVMoE/4E-L"


@claim(
    "Experts improve solutions of problems that the model is not trained for.",
    where="abstract; Section 5.1, Table 2",
    artifact="table2",
)
def experts_help(study: Study) -> Finding:
    """Compare mean gaps over the ten unseen problems of the smaller size, with and without experts."""
    sets = [roles.reference(study.scale, variant, SIZES[0]).dataset for variant in UNSEEN]

    def side(method: str) -> Side:
        rows = printed_numbers(study, 2, method=method, n=SIZES[0], metric="gap_pct")
        run = run_id(roles.multi(study.scale, method, SIZES[0]))
        mean = mean_gap_cell(study, run, sets).measured
        gap = mean if isinstance(mean, float) else None
        samples = mean_gap_samples(study, run, sets) if min(each.count for each in sets) >= FEWEST else None
        return Side(method, gap, float(rows.value.mean()), samples)

    at = f"{len(UNSEEN)} problems, {sets_of(study.scale, SIZES[0])}"
    return above(side(DENSE), side(EXPERTS), "mean gap over the unseen problems, in points", INSTANCES, at)


@claim(
    "Hierarchical gating makes the mixture of experts faster.",
    where="abstract; Section 4.3, Table 6",
    artifact="table6",
)
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


@claim(
    "Hierarchical gating generalises better to other distributions than base gating.",
    where="abstract; Section 5.2, Table 7",
    artifact="table7",
)
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
    return Finding(
        f"{EXPERTS} less {LIGHT}: mean gap, in points",
        mean_interval(differences, printed_difference(base, light)),
        (base, light),
        "instances (Student's t)",
        f"{len(differences)} instances of Set-X",
    )
