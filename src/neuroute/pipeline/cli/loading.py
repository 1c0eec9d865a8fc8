"""What jobs load when they first need it, loaded at once in a process whose copies run them."""

import gc
import importlib

from neuroute.pipeline.plan.plan import Plan
from neuroute.problems.registry import PARTS

LOADED = (
    "neuroute.api.trainer", "neuroute.api.loggers", "neuroute.evaluation.driver",
    "neuroute.datasets.labels", "neuroute.datasets.benchmarks", "neuroute.pipeline.rendering.render",
    "neuroute.pipeline.rendering.report", "neuroute.pipeline.rendering.verdicts", "neuroute.pipeline.dag.targets",
    # behind `core/lazy.py`, and what optimizers and backends load at their first use
    "pandas", "torch._dynamo", "matplotlib.pyplot", "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg", "PIL.PngImagePlugin",
)  # fmt: skip


def load_what_jobs_use(plan: Plan) -> None:
    """Import what the jobs of a plan use, and look up their code digests."""
    entries = {entry for parts in PARTS.values() for entry in parts.values()}
    entries |= {run.network.kind for run in plan.runs.values()}
    entries |= {artifact.function for artifact in plan.artifacts.values()}
    entries |= {each.entry for evaluation in plan.evaluations.values() for each in evaluation.measurements}
    for name in (*LOADED, *sorted({entry.partition(":")[0] for entry in entries})):
        importlib.import_module(name)
    for run in plan.runs:  # parsed once, where planning has not kept them
        plan.network_code(run), plan.train_code(run)
    for evaluation in plan.evaluations:
        plan.evaluate_code(evaluation)
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()  # what a compiled function needs before it is loaded
    gc.collect()
    gc.freeze()  # a copy neither looks through what it shares with the others, nor copies its pages to do so
