"""Who solves what, and whether it can: a solver that is missing, and that has work left, is replaced in the whole plan.

Its name then stands nowhere in labels, records or tables: they name the solver that ran, and notes say for whom.
"""

import logging
from pathlib import Path

from neuroute.core.errors import NeurouteError
from neuroute.datasets.store import rows_missing
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.plan import Plan
from neuroute.solvers.base import fitting_workers
from neuroute.solvers.registry import get, is_installed, stand_in
from neuroute.specs.objects import Labels

log = logging.getLogger("neuroute.pipeline.plan")


def settle(plan: Plan) -> Plan:
    """Return the plan with the next best solver for each one that is missing and has labels yet to make.

    Where config.yaml names substitutes, or the scale wants none (`paper`), the plan stays as it is.
    """
    if plan.config.substitutes is not None or not plan.scale.substitute_solvers:
        return plan
    # The solvers that are not installed and have labels yet to make
    of: dict[str, list[Labels]] = {}
    for job, labels in plan.label_jobs.items():
        if not plan.manifest(job).exists():
            of.setdefault(labels.solver, []).append(labels)
    lacking = [
        name
        for name, waiting in of.items()
        if not is_installed(name) and any(_rows_missing(plan, labels) for labels in waiting)
    ]
    substitutes = {name: other for name in lacking if (other := stand_in(name))}
    if not substitutes:
        return plan
    for name, other in substitutes.items():
        log.info(
            "%s is not installed and labels are missing, so %s makes them; `substitutes: {}` in %s uses existing "
            "labels only", name, other, plan.config.where,
        )  # fmt: skip
    return build_plan(plan.config.model_copy(update={"substitutes": substitutes}))


def check_solvers(plan: Plan, job: str, here: bool = True) -> None:
    """Check that the labels of a label job that have yet to be solved can be; `here`: in this machine's memory.

    Raises NeurouteError if their solver is not installed, or if an instance does not fit.
    """
    labels = plan.label_jobs[job]
    if _rows_missing(plan, labels):
        try:
            get(labels.solver).version()
        except NeurouteError as error:
            other, solver = stand_in(labels.solver), labels.solver
            choice = (
                f"; or set `substitutes: {{{solver}: {other}}}` in {plan.config.where}: {other} then solves instead"
            )
            raise NeurouteError(f"{error}{choice if other else ''}") from None
    if here:
        workers_that_fit(plan, job, 1)


def workers_that_fit(plan: Plan, job: str, workers: int) -> int:
    """Return how many of so many workers can solve what is left of a label job at once, in this machine's memory.

    Raises NeurouteError if not even one can.
    """
    labels = plan.label_jobs[job]
    return (
        fitting_workers(get(labels.solver), labels.dataset.nodes, workers) if _rows_missing(plan, labels) else workers
    )


def _rows_missing(plan: Plan, labels: Labels) -> int:
    """Count the rows that are yet to be solved: no cache that the config names has them."""
    return rows_missing(labels, [plan.label_store, *map(Path, plan.config.label_caches)])
