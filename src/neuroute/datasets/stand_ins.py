"""Settle who solves what: a solver that is missing, and that has work left, is replaced in the whole plan.

Its name then stands nowhere in labels, records or tables: they name the solver that ran, and notes say for whom.
"""

from neuroute.datasets.labels import rows_missing_of
from neuroute.plan.build import build_plan
from neuroute.plan.plan import Plan
from neuroute.solvers.stand_ins import is_installed, stand_in


def settle(plan: Plan) -> Plan:
    """Return the plan with the next best solver for each one that is missing and has labels yet to make.

    Where config.yaml names substitutes, or the scale wants none (`paper`), the plan stays as it is.
    """
    if plan.config.substitutes is not None or not plan.scale.substitute_solvers:
        return plan
    found = {name: other for name in _lacking(plan) if (other := stand_in(name))}
    return build_plan(plan.config.model_copy(update={"substitutes": found})) if found else plan


def _lacking(plan: Plan) -> list[str]:
    """Return the solvers that are not installed and have labels yet to make."""
    of: dict[str, list[str]] = {}
    for job in plan.label_jobs.values():
        if not plan.manifest(job.id).exists():
            for labels in job.labels:
                of.setdefault(labels.solver, []).append(job.id)
    return [
        name
        for name, jobs in of.items()
        if not is_installed(name) and any(rows_missing_of(plan, job, name) for job in dict.fromkeys(jobs))
    ]
