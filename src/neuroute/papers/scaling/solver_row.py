"""The first row of Tables 12 to 16: LKH3, or the solver that stands in for it here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuroute.plan.objects import Dataset
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell

NAMES = {"lkh": "LKH", "concorde": "Concorde"}


@dataclass(frozen=True)
class SolverRow:
    here: str  # solver and version that were measured here
    cells: dict[int, tuple[Cell, Cell]]  # the paper's size -> (gap in %, time in s)
    notes: tuple[str, ...]


def solver_row(study: Study, table: int, sets: Mapping[int, Dataset]) -> SolverRow:
    """LKH's gap and time beside the printed ones, from the manifests of the label jobs.

    Where LKH solved no test set here, it is the reference solver's row: its gap is 0 by construction.
    """
    published = study.published(table)
    lkh3 = published[published.method == "LKH3"]
    printed = {(int(n), str(m)): float(v) for n, m, v in lkh3[["n", "metric", "value"]].to_numpy()}
    entries = {e["labels"]: e for bundle in study.artifact.bundles for e in study.manifest(bundle)["labels"]}
    reference = study.scale.reference_solver
    solver = "lkh" if all(f"{dataset.id}_lkh" in entries for dataset in sets.values()) else reference
    cells, used = {}, []
    for size, dataset in sets.items():
        own, best = entries.get(f"{dataset.id}_{solver}"), entries.get(f"{dataset.id}_{reference}")
        seconds = own.get("seconds") if own else None
        cells[size] = (
            Cell(_gap(own, best) if own else None, printed.get((size, "gap_pct"))),
            Cell(seconds, printed.get((size, "time_s"))),
        )
        used += [own] if own else []
    versions = dict.fromkeys(str(own.get("version") or NAMES.get(solver, solver)) for own in used)
    return SolverRow(", ".join(versions), cells, tuple(_notes(solver, reference, used, len(sets))))


def _gap(own: Mapping[str, Any], reference: Mapping[str, Any] | None) -> float | None:
    """Gap in % of one solver's mean length against the reference's; None where a mean is unknown."""
    if reference is own:
        return 0.0
    if not reference or not own.get("mean_length") or not reference.get("mean_length"):
        return None
    return 100 * (own["mean_length"] / reference["mean_length"] - 1)


def _notes(solver: str, reference: str, used: list[dict[str, Any]], sets: int) -> list[str]:
    name = NAMES.get(solver, solver)
    if len(used) < sets:
        return [f"The label manifests lack {name}'s solutions of {sets - len(used)} of {sets} test sets."]
    notes = []
    if solver == reference:
        other = (
            "" if solver == "lkh" else " LKH was not run on these test sets; LKH3's printed numbers stand beside it."
        )
        notes.append(f"{name} is the reference here, so its gap is 0 by construction.{other}")
    untimed = sum(own.get("seconds") is None for own in used)
    if untimed:
        which = "" if untimed == sets else f" of {untimed} of {sets} test sets"
        notes.append(f"{name}'s solutions{which} came from a label cache that keeps no times.")
    if untimed < sets:
        notes.append(
            f"{name}'s time is that of its solver calls on one core each, added up; the paper's cores are unknown."
        )
    return notes
