"""Rows of a comparison: methods beside each other on test sets of several sizes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from neuroute.plan.objects import Decoding

GREEDY = Decoding()


@dataclass(frozen=True)
class Method:
    """One row: what singles out its printed numbers, and by which solvers or models it is measured here, if at all."""

    label: str
    printed: Mapping[str, object] | None  # columns of the printed numbers; None: the paper has no such row
    solvers: tuple[str, ...] = ()
    runs: Mapping[int, str] = field(default_factory=dict)  # the paper's size -> the model that solves it here
    decoding: Decoding = GREEDY
