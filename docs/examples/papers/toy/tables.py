"""The table of the toy paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.papers.toy.paper import RUN, instances

from neuroute.plan.needs import artifact
from neuroute.rendering.grid import Grid, Method, gaps, grid_table, needs_of

if TYPE_CHECKING:
    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study
    from neuroute.rendering.table import Table


def table1_grid(scale: Scale) -> Grid:
    """One model, one test set."""
    return Grid([Method("Decoder", None, runs=RUN)], gaps({20: instances(scale, "test")}))


@artifact("Gap of the toy network", needs=needs_of(table1_grid))
def table1(study: Study) -> Table:
    """The gap to optimal tours."""
    return grid_table(study, ("Method",), table1_grid(study.scale), "A note.")
