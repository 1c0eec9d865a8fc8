"""What the probes saw of the three models of Figures 10 to 12."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis.representations import separation
from neuroute.papers.scaling import grid, roles
from neuroute.papers.scaling.curves import HERE, shape_name
from neuroute.papers.scaling.grid import Shape
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.objects import Dataset
from neuroute.rendering.columns import described
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

SHAPES: list[Shape] = [roles.depth_and_width(shape) for shape in roles.PROBED]
WIDE = (
    "H.1 and H.3 call the wide model (6, 256), H.2 and H.4 (6, 512); the 21.00M parameters that H.3 gives are those of "
    "(6, 512), which is drawn."
)


@dataclass(frozen=True)
class Probe:
    """What was seen of one model."""

    shape: Shape
    seen: Mapping[str, NDArray[Any]]  # as evaluation.probes.measure leaves it

    @property
    def states(self) -> NDArray[np.float64]:
        """(available, width), the optimal next node first."""
        return np.asarray(self.seen["states"], float)

    @property
    def whole(self) -> bool:
        return bool(np.isfinite(self.states).all())

    def about(self) -> dict[str, Any]:
        return {"side": HERE, "depth": self.shape[0], "width": self.shape[1]}


def seen_probes(study: Study) -> list[Probe]:
    return [Probe(shape, study.arrays(f"{grid.run_id(shape)}/probes")) for shape in SHAPES]


def probed_set(study: Study) -> Dataset:
    return grid.labelled_set(study, 100, study.scale[ScalingScale].probe_count)


def panel_title(study: Study, i: int, shape: Shape) -> str:
    return f"({'abc'[i]}) {shape_name(shape)}\nHere: {grid.name_here(study, shape)}"


def state_notes(probes: Sequence[Probe]) -> list[str]:
    seen = probes[0].seen
    instance, decision, available = int(seen["instance"]), int(seen["decision"]), len(seen["states"])
    notes = [
        f"States after the last layer, of the {available} available nodes at decision {decision} (from 0) along the "
        f"optimal tour of test instance {instance}. The paper speaks of the final decoder layer (H.1) and of the final "
        "attention layer (H.2)."
    ]
    if decision == 0:
        notes.append(
            "On the first decision the last node in the order of the tour is as right as the first: a tour may be "
            "walked either way."
        )
    return notes


def separation_table(study: Study, probes: Sequence[Probe]) -> Table:
    def over(values: NDArray[Any]) -> Cell:
        known = values[np.isfinite(values)]
        if len(known) < len(values) or not len(known):
            return Cell("not finite")
        low, middle, high = np.percentile(known, [25, 50, 75])
        return Cell(float(middle), None, float(low), float(high))

    rows = tuple(
        Row(
            (shape_name(p.shape), grid.name_here(study, p.shape)),
            (
                Cell(float(separation(p.states)) if p.whole else "not finite"),
                over(np.asarray(p.seen["separation"], float)),
            ),
        )
        for p in probes
    )
    columns = (
        Column("separation_drawn", "Instance drawn", format=fixed(2), group="Separation of the optimal next node"),
        Column(
            "separation_median",
            "Median, quartiles",
            format=fixed(2),
            group="Separation of the optimal next node",
            at=described(probed_set(study)),
        ),
    )
    return Table("Separation of the optimal next node", ("Model", "Here"), columns, rows)
