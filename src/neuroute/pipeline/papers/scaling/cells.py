"""What the tables of paper `scaling` share: its models and test sets as rows and columns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.rendering.cells import MEAN_OF_GAPS, Solvers, solver_name
from neuroute.pipeline.rendering.grid import Measure, Method, record
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.objects import Labels


@dataclass(frozen=True)
class DecoderOnly:
    """D layers of width W with H heads, an FFN of 4 W and, as published, ReZero."""

    depth: int
    width: int
    heads: int

    @property
    def parameters(self) -> int:
        """D (13 W^2 + 7 W + 2) + 2 W^2 + 6 W + 1 (Table 1); D (W^2 + W) of them the gates'."""
        w = self.width
        return self.depth * (13 * w**2 + 7 * w + 2) + 2 * w**2 + 6 * w + 1

    def decision(self, tokens: int) -> int:
        """FLOPs of a decision on k tokens: D (26 W^2 k + 4 W k^2 + H k^2 + 4 W k) + 4 W^2 + 6 W k.

        So printed FLOPs come out (`accounting.flops.solution_paper`): one for each entry of a softmax and each output
        of a ReLU, and the head is of all tokens, not of the candidates alone.
        """
        w, k = self.width, tokens
        return self.depth * (26 * w**2 * k + (4 * w + self.heads) * k**2 + 4 * w * k) + 4 * w**2 + 6 * w * k


ADDED = "not the paper's"


def model(shape: scaling.Shape, label: str, prefix: str = "base", **where: object) -> Method:
    """Show the model of a shape; `label` is filled with its depth and width, as are its printed columns."""
    return Method(label.format(*shape), shape._asdict() | where, runs=scaling.run_id(shape, prefix))


def of_grid(scale: Scale, label: str) -> list[Method]:
    """Show all models of the grid; of those that the scale adds the label says so."""
    return [
        replace(model(shape, f"{label}, {ADDED}"), printed=None) if scaling.is_added(shape) else model(shape, label)
        for shape in scaling.grid(scale)
    ]


def sets_of(scale: Scale, sizes: Iterable[int] = scaling.SIZES) -> dict[int, Labels]:
    """Return the uniform test sets that stand for the paper's sizes."""
    return {size: scaling.reference(scale, size) for size in sizes}


MEAN_OF_RATIOS = Measure(MEAN_OF_GAPS, record(MEAN_OF_GAPS))


def solver(scale: Scale) -> Method:
    """Show the rival solver, or the reference solver where it was not run, in the row of LKH3 (Tables 12 to 16)."""
    names = (scale[scaling.ScalingScale].rival_solver, scale.reference_solver)
    return Method("LKH3", {"method": "LKH3"}, solvers=tuple(dict.fromkeys(names)))


def solver_notes(study: Study, tests: Sequence[Labels]) -> list[str]:
    """Say which solver stands in the row of LKH3, and what its gap and time are."""
    solvers, reference = Solvers.of(study), study.scale.reference_solver
    rival = study.scale[scaling.ScalingScale].rival_solver
    name = rival if all(solvers.entry(test.dataset, rival) for test in tests) else reference
    words = solver_name(name)
    entries = [entry for test in tests if (entry := solvers.entry(test.dataset, name)) is not None]
    notes = []
    if name == reference:
        other = (
            ""
            if name == rival
            else f" {solver_name(rival)} was not run on these test sets; LKH3's printed numbers stand beside it."
        )
        notes.append(f"{words} is the reference here, so its gap is 0 by construction.{other}")
    untimed = sum(entry.get("seconds") is None for entry in entries)
    if untimed:
        which = "" if untimed == len(tests) else f" of {untimed} of {len(tests)} test sets"
        notes.append(f"{words}'s solutions{which} came from a label cache that keeps no times.")
    if untimed < len(tests):
        notes.append(
            f"{words}'s time is that of its solver calls on one core each, added up; the paper's cores are unknown."
        )
    return notes
