"""The table of the toy paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neuroute.pipeline.papers.toy.paper import RUN, instances

from neuroute.pipeline.plan.needs import Need, Solved, artifact
from neuroute.pipeline.rendering.grid import Grid, Method, gaps, grid_table, needs_of

if TYPE_CHECKING:
    from neuroute.pipeline.plan.config import Scale
    from neuroute.pipeline.rendering.study import Study
    from neuroute.pipeline.rendering.table import Table


def table1_grid(scale: Scale) -> Grid:
    """One model and a rule of thumb, one test set."""
    test = instances(scale, "test")
    methods = [Method("Nearest neighbour", None, solvers=("nearest",)), Method("Decoder", None, runs=RUN)]
    return Grid(methods, gaps({test.dataset.n: test}))


def _needs(scale: Scale) -> Iterator[Need]:
    """Yield what the grid reads, and that the rule of thumb solves the test set, too."""
    yield from needs_of(table1_grid)(scale)
    yield Solved(instances(scale, "test").model_copy(update={"solver": "nearest"}))


@artifact("Gap of the toy network", needs=_needs)
def table1(study: Study) -> Table:
    """The gap to optimal tours."""
    return grid_table(study, ("Method",), table1_grid(study.scale))
