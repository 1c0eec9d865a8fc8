"""Remake a drawn table or figure in a folder of its own, and compare: `neuroute verify`."""

import csv
import filecmp
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.files import read_json
from neuroute.core.source import short_commit, source
from neuroute.evaluation.loaded import values_digest
from neuroute.pipeline.plan.plan import Plan
from neuroute.pipeline.rendering.kept import ABOUT, labels_of, sources
from neuroute.specs.objects import Artifact, GivenRun

Start = Literal["weights", "labels"]
Lines = Sequence[Mapping[str, str]]
ROUNDING = 1e-12  # relative; of numbers that were written and read again
# Rules that may run where weights are given: whatever else a change of the plan asks for, no training.
AFTER_WEIGHTS = ("import_weights", "labels", "fetch_benchmark", "evaluate")
OF_FILES = re.compile(", (weights of a file|published weights)")  # how a row says that its model was not trained here
SHOWN = 10  # differences


@dataclass(frozen=True)
class Drawn:
    """A table or figure as it was drawn: of `results`, or of a folder of `neuroute keep`.

    Attributes:
        file: its CSV.
        artifact: of the plan.
        lines: of the CSV.
        made_from: what its .json states; empty where that was not kept.
    """

    file: Path
    artifact: Artifact
    lines: Lines
    made_from: Mapping[str, Any]


def scale_of(file: Path) -> str:
    """The scale that a drawn CSV states.  Raises NeurouteError if it is none."""
    lines = _read(file)
    if not lines or "scale" not in lines[0]:
        raise NeurouteError(f"{file}: states no scale; give the .csv of a table or figure of results or docs/measured")
    return lines[0]["scale"]


def find_drawn(plan: Plan, file: Path) -> Drawn:
    """Raises NeurouteError if the plan has no table or figure of that file's name."""
    papers = [key for key in plan.papers if key == file.resolve().parent.name]
    headline = [key for key, paper in plan.papers.items() if paper.headline]
    artifact = plan.artifact(f"{(papers or headline or list(plan.papers))[0]}/{file.stem}")
    beside = file.with_suffix(".json")
    about = read_json(beside, "draw it again", "name") if beside.exists() else {}
    return Drawn(file, artifact, _read(file), about.get("made_from", {}))


def kept_weights(plan: Plan, drawn: Drawn, cell: tuple[int, str] | None, folder: Path) -> dict[str, Path]:
    """Weights that were kept, of models of which the work folder has none, as checkpoints of today's code in `folder`.

    They lie in runs/<scale> beside the folder of kept tables, or in the package; of a model that is trained by other
    settings now they are none.  Whether today's code computes the same by them is what is to be found out.
    """
    from neuroute.api import zoo
    from neuroute.networks.import_weights import import_weights
    from neuroute.networks.weights import read_about

    shipped = {card.run: card.name for card in (*zoo.models(), *map(zoo.card_of, zoo.runs()))}
    places = [place / "runs" / plan.scale.name for place in drawn.file.resolve().parents[1:3]]
    found: dict[str, Path] = {}
    for run in _runs_behind(plan, drawn, cell):
        if plan.checkpoint(run).exists():
            continue
        files = [place / run / "model.safetensors" for place in places]
        files += [zoo.checkpoint(shipped[run])[0]] if run in shipped else []
        training = plan.runs[run].training.model_dump(mode="json")
        for file in filter(Path.is_file, files):
            if read_about(file).get("spec", {}).get("training", {}).items() <= training.items():
                found[run] = folder / f"{run}.safetensors"
                import_weights(file, found[run], plan.runs[run].network.kind, {})
                break
    return found


def verify(
    plan: Plan, remade: Plan, drawn: Drawn, cell: tuple[int, str] | None, start: Start, options: Sequence[str]
) -> Iterator[str]:
    """Remake an artifact, from the weights of its models or from labels on, and yield what differs; nothing if equal.

    Args:
        plan: which made it.
        remade: the same, of a folder for this alone.  Models and measurements that are not made anew are copied there;
            it is removed in the end, and a killed call goes on.  It names the weights that were kept.
        drawn: as it was.
        cell: line and column of a table: then only what was measured of that cell's model is made anew.
        start: whether models are taken as they are, or trained.
        options: of Snakemake.

    Raises NeurouteError before anything runs if weights are not there, and if Snakemake fails.
    """
    artifact, folder = remade.artifacts[drawn.artifact.id], Path(remade.config.work_dir).parent
    runs = [run for run in _runs_behind(plan, drawn, cell) if run in remade.runs]
    anew = [e for e in artifact.evaluations if e.rpartition("/")[0] in runs]
    if start == "weights":
        for run in runs:
            if not (plan.checkpoint(run).exists() or isinstance(remade.runs[run], GivenRun)):
                raise NeurouteError(
                    f"{plan.checkpoint(run)}: weights of {run} are missing; correct work_dir in {plan.config.where}, "
                    f"or train: neuroute verify {drawn.file} --from labels"
                )
    _copy_others(plan, remade, artifact, runs if start == "labels" else [], anew)
    targets = [remade.evaluation_file(e) for e in anew] + [remade.manifest(job) for job in artifact.label_jobs]
    targets += [remade.checkpoint(run) for run in runs] if start == "labels" else []
    settings = {key: getattr(remade.config, key) for key in ("scale", "work_dir", "results_dir")}
    given = {run: {"weights": each.weights} for run, each in remade.runs.items() if isinstance(each, GivenRun)}
    settings |= {"runs": json.dumps(given)} if given else {}
    command = [sys.executable, "-m", "snakemake", *map(str, targets), "--quiet", "host", *options]
    command += ["--config", *(f"{key}={value}" for key, value in settings.items())]
    command += ["--allowed-rules", *AFTER_WEIGHTS] if start == "weights" else []
    if targets and subprocess.run(command).returncode:
        raise NeurouteError(
            f"{artifact.id} was not remade, see above; mend it and run the same command again, which resumes"
        )
    now = find_drawn(remade, _draw(remade, artifact))
    found = list(_differences(drawn, now, cell))
    if cell is None:
        found += _other_values(plan, remade, drawn, anew, runs if start == "labels" else [])
    shutil.rmtree(folder)
    yield from found


def _draw(remade: Plan, artifact: Artifact) -> Path:
    """Draw what was measured; for a cell alone that may be its model, and the rest of the table stays empty."""
    from neuroute.pipeline.rendering.render import render
    from neuroute.pipeline.rendering.study import Study

    there = [e for e in artifact.evaluations if remade.evaluation_file(e).exists()]
    runs = [run for run in artifact.runs if remade.checkpoint(run).exists()]
    measured = artifact.model_copy(update={"evaluations": tuple(there), "runs": tuple(runs)})
    study = Study.load(measured, remade.config, remade.scale, remade.runs.values(), remade.work)
    render(study, remade.artifact_stem(artifact.id))
    return remade.artifact_stem(artifact.id).with_suffix(".csv")


def say_versions(drawn: Drawn) -> str:
    """Name the commits of what is compared."""
    column = {line["commit"] for line in drawn.lines if line.get("commit")}
    before = sorted({short_commit(each) or str(each["version"]) for each in sources(drawn.made_from)} or column)
    here = source()
    return f"made by {', '.join(before) or 'an unknown version'}; now by {short_commit(here) or here['version']}"


def find_cell(drawn: Drawn, row: str, column: str) -> tuple[int, str]:
    """The number of a line and the name of a measured column.

    Raises NeurouteError if there is none of that name, or several rows.
    """
    columns = [head.removesuffix("_measured") for head in drawn.lines[0] if head.endswith("_measured")]
    if column not in columns:
        near_by = did_you_mean(near(column, columns)) or "; write ROW,COLUMN, as in 'D=4, W=32,gap_pct'"
        raise NeurouteError(f"{drawn.file}: no measured column {column}{near_by}")
    rows = [", ".join(labels_of(line).values()) for line in drawn.lines]
    numbers = [i for i, line in enumerate(drawn.lines) if row == rows[i] or row in labels_of(line).values()]
    if len(numbers) != 1:
        if not numbers:
            raise NeurouteError(f"{drawn.file}: no row {row}{did_you_mean(near(row, rows))}")
        raise NeurouteError(f"{drawn.file}: row {row}; there are {len(numbers)}: say all of its labels")
    return numbers[0], column


def _runs_behind(plan: Plan, drawn: Drawn, cell: tuple[int, str] | None) -> list[str]:
    """Models that are shown; of a cell, as far as its table states it, only its own, with all their seeds."""
    if cell is not None:
        row = ", ".join(labels_of(drawn.lines[cell[0]]).values())
        stated = drawn.made_from.get("cells", {}).get(row, {}).get(cell[1])
        if run := stated or drawn.lines[cell[0]].get(f"{cell[1]}_measured_weights"):
            return plan.trainings(run.partition("@")[0])
    every = [*drawn.artifact.runs, *(e.rpartition("/")[0] for e in drawn.artifact.evaluations)]
    return list(dict.fromkeys(run.partition("@")[0] for run in every))


def _copy_others(plan: Plan, remade: Plan, artifact: Artifact, trained: Sequence[str], anew: Sequence[str]) -> None:
    """Put into the folder what is not made anew, each file newer than what it was made from; labels are shared."""
    for shared in (plan.label_store, plan.benchmark_manifest("").parent):
        shared.mkdir(parents=True, exist_ok=True)
        link = Path(remade.config.work_dir) / shared.name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(shared.resolve())
    evaluations = [e for e in artifact.evaluations if e not in anew]
    runs = {*artifact.runs, *(e.rpartition("/")[0] for e in artifact.evaluations)} - {*trained}
    stages: tuple[Iterable[Path], ...] = (
        (file for file in plan.manifest("").parent.glob("*.*") if file.suffix in (".json", ".npz")),
        (file for run in runs for file in plan.run_dir(run).rglob("*") if file.is_file() and file.name[0] != "."),
        (plan.evaluation_file(e).with_suffix(end) for e in evaluations for end in (".csv", ".npz", ".json")),
    )
    began = time.time()
    for age, files in zip((3, 2, 1), stages, strict=True):
        for file in files:
            copy = remade.work / file.relative_to(plan.work)
            if file.exists() and not (copy.exists() and filecmp.cmp(file, copy, shallow=False)):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)
                os.utime(copy, (began - age, began - age))


def _other_values(plan: Plan, remade: Plan, drawn: Drawn, anew: Sequence[str], trained: Sequence[str]) -> Iterator[str]:
    """Yield a line for each model and measurement whose values are others than before, as far as these are known."""
    for run in trained:
        before = drawn.made_from.get("runs", {}).get(run, {}).get("weights_sha256")
        now = read_json(remade.run_dir(run) / "run.json", "train it again", "weights_sha256")["weights_sha256"]
        if before and now != before:
            yield f"{run}: other weights (sha256 {before[:8]} before, {now[:8]} now)"
    for evaluation in anew:
        before = drawn.made_from.get("evaluations", {}).get(evaluation, {}).get("values_sha256")
        now = values_digest(remade.evaluation_file(evaluation))
        if before and now != before:
            yield f"{evaluation}: other values (sha256 {before[:8]} before, {now[:8]} now)"


def _differences(drawn: Drawn, now: Drawn, cell: tuple[int, str] | None) -> Iterator[str]:
    """Yield a line for each cell with another number or text, the first `SHOWN` of them, and how many more there are.

    Times and memory are not compared, nor are printed numbers.
    """
    if len(drawn.lines) != len(now.lines):
        yield f"{len(drawn.lines)} rows before, {len(now.lines)} now"
        return
    clocks = now.made_from.get("clocks", [])
    heads = [head for head in drawn.lines[0] if head not in ABOUT and not head.endswith("_published")]
    if lacking := [head for head in heads if head not in now.lines[0]]:
        yield f"no column {', '.join(lacking)} now"
    heads = [h for h in heads if h not in lacking and h not in clocks and h.partition("_measured")[0] not in clocks]
    if cell is not None:
        heads = [head for head in drawn.lines[0] if head.partition("_measured")[0] == cell[1] and "_measured" in head]
    others = []
    for number, (before, after) in enumerate(zip(drawn.lines, now.lines, strict=True)):
        if cell is None or number == cell[0]:
            name = ", ".join(labels_of(before).values()) if "_measured" in "".join(before) else f"row {number + 1}"
            texts = {head: _other(before[head], OF_FILES.sub("", after[head])) for head in heads}
            others += [f"{name}: {head}: {text}" for head, text in texts.items() if text]
    yield from others[:SHOWN]
    if len(others) > SHOWN:
        yield f"and {len(others) - SHOWN:,} more"


def _other(before: str, now: str) -> str:
    """How a text differs from the one before; "" if it does not, but for rounding."""
    if before == now:
        return ""
    try:
        a, b = float(before), float(now)
    except ValueError:
        return f"{before or 'nothing'} before, {now or 'nothing'} now"
    if math.isclose(a, b, rel_tol=ROUNDING):
        return ""
    return f"{a:g} before, {b:g} now" + (f" ({100 * (b / a - 1):+.3g} %)" if a else "")


def _read(file: Path) -> Lines:
    try:
        with file.open(newline="", encoding="utf-8") as text:
            return list(csv.DictReader(text))
    except FileNotFoundError:
        raise NeurouteError(f"{file}: no such file; give the .csv of a table or figure") from None
    except (OSError, ValueError) as error:
        raise NeurouteError(f"{file}: not a CSV ({error}); give that of a table or figure") from None
