"""What holds of the tables of every paper."""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from fabricated import drop_measured
from neuroute.plan.build import _combine
from neuroute.plan.needs import TOGETHER, group_of
from neuroute.plan.objects import Artifact, RunEvaluation
from neuroute.rendering.table import Table
from rendered import Look
from table_cells import of

PAPERS = ("scaling", "pens", "sit", "icam", "mvmoe")


def nothing_measured(work: Path, to: Path) -> Path:
    """A copy of the folder in which nothing was measured and no solver ran."""
    copy = shutil.copytree(work, to)
    for path in copy.glob("evaluations/**/*.csv"):
        drop_measured(path)
    for path in copy.glob("labels/**/*.json"):
        path.write_text(json.dumps({"labels": []}))
    return copy


def only_printed(table: Table, whole: Table) -> None:
    """Every cell has its published number and no other."""
    assert all(c.measured is None for r in table.rows for c in r.cells)
    shown = [[c.published for c in r.cells] for r in whole.rows]
    assert [[c.published for c in r.cells] for r in table.rows] == shown


def in_one_job(paper: str, work: Path, to: Path, evaluations: Iterable[RunEvaluation]) -> Path:
    """A copy of the folder as scales leave it that evaluate all of a model together."""
    copy, evaluations = shutil.copytree(work, to), list(evaluations)
    folder = copy / "evaluations"
    for run in {e.run for e in evaluations}:
        parts = [e for e in evaluations if e.run == run and (folder / f"{e.id}.csv").exists()]
        arrays = {}
        for part in parts:
            prefix = "" if part.kind == "tests" else f"{part.group}/"
            with np.load(folder / f"{part.id}.npz") as file:
                arrays |= {prefix + key: file[key] for key in file.files}
        frames = [pd.read_csv(folder / f"{part.id}.csv") for part in parts]
        frame, name = pd.concat(frames), group_of(paper, run, TOGETHER)
        shutil.rmtree(folder / run)
        (folder / run).mkdir()
        frame.to_csv(folder / run / f"{name}.csv", index=False)
        np.savez(folder / run / f"{name}.npz", **arrays)
    return copy


def same_together(
    paper: str,
    look: Look,
    several: Mapping[str, Table],
    together: Path,
    evaluations: Iterable[RunEvaluation],
    artifacts: Iterable[Artifact],
) -> None:
    """Tables of records of one job a model are those of records of several."""
    _, changed = _combine(paper, list(evaluations), list(artifacts))
    for artifact in changed:
        assert all(e.rpartition("/")[2] in (TOGETHER, f"{TOGETHER}_{paper}") for e in artifact.evaluations)
        one, other = of(replace(look(artifact.name, together), artifact=artifact)), several[artifact.name]
        assert (one.csv(), one.notes) == (other.csv(), other.notes)
