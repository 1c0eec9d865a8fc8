"""Tables, figures, the report, and what they say: render, report, claims, difference, verify, keep."""

import os
import re
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from neuroute.core.errors import NeurouteError
from neuroute.core.limited import process_pool
from neuroute.pipeline.cli.options import ConfigFile, ScaleName, load_plan

if TYPE_CHECKING:
    from neuroute.pipeline.plan.plan import Plan
    from neuroute.pipeline.rendering.comparisons import DrawnTables
    from neuroute.pipeline.rendering.verdicts import Judged
    from neuroute.specs.objects import Artifact


def render(
    artifacts: Annotated[
        list[str], typer.Argument(help="tables and figures, e.g. scaling/table12; sit: all of a paper")
    ],
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """Draw tables and figures from records."""
    from neuroute.pipeline.rendering.render import render as render_artifact
    from neuroute.pipeline.rendering.study import Study

    p = load_plan(config, scale)
    to_render: dict[str, Artifact] = {}
    for name in artifacts:
        of_paper = {a.id: a for a in p.artifacts.values() if a.paper == name}
        to_render |= of_paper or {name: p.artifact(p.full_id(name))}
    for a in to_render.values():
        study = Study.load(a, p.config, p.scale, p.runs.values(), p.work)
        render_artifact(study, p.artifact_stem(a.id))


def report(config: ConfigFile = None, scale: ScaleName = None) -> None:
    """Write results/index.html from what is drawn and measured.

    And results/summary.json beside it.
    """
    from neuroute.pipeline.plan.claims import claims_digest
    from neuroute.pipeline.rendering.protocol import protocol_lines
    from neuroute.pipeline.rendering.report import Overview, write_report
    from neuroute.pipeline.rendering.verdicts import headlines

    p = load_plan(config, scale)
    stems: dict[str, list[Path]] = {}
    for a in p.artifacts.values():
        stems.setdefault(a.paper, []).append(p.artifact_stem(a.id))
    overviews = {key: Overview(judged, p.papers[key].main_figures()) for key, judged in _judge(p).items()}
    protocols = {key: protocol_lines(p, key) for key in stems}
    digest = claims_digest(paper.folder for paper in p.papers.values())
    write_report(stems, p.report, p.scale, p.titles, overviews, protocols, digest)
    print(*headlines(p), sep="\n")


def _judge(p: "Plan") -> dict[str, list["Judged"]]:
    """Judge the claims of every paper that the plan draws something of, by its records; papers beside each other."""
    from neuroute.pipeline.rendering.verdicts import with_holm

    papers = list(dict.fromkeys(a.paper for a in p.artifacts.values()))
    # A copy has the plan and what is imported, whose tables it draws; the last job of a run has all cores.
    workers = min(len(papers), os.cpu_count() or 1)
    with process_pool(workers, get_context("fork"), _COPIED.append, (p,)) as pool:
        return with_holm(dict(zip(papers, pool.map(_judge_paper, papers), strict=True)))


_COPIED: list["Plan"] = []


def _judge_paper(key: str) -> list["Judged"]:
    from neuroute.pipeline.rendering.verdicts import judge_all

    p = _COPIED[-1]
    return judge_all(p.papers[key], _evidence(p, key), p.scale.verdicts)


def _evidence(p: "Plan", paper: str) -> "DrawnTables":
    from neuroute.pipeline.rendering.comparisons import DrawnTables
    from neuroute.pipeline.rendering.study import Study

    def study_of(name: str) -> Study:
        return Study.load(p.artifact(f"{paper}/{name}"), p.config, p.scale, p.runs.values(), p.work)

    return DrawnTables(study_of)


def claims(
    tables: Annotated[
        Path | None, typer.Option("--kept", help="judge by the tables kept here, e.g. docs/measured/laptop")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="write them here (.csv); default: print them")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """Judge the papers' claims by records or kept tables.

    Each claim is one number, and by it supported, contradicted, inconclusive (with the cost of deciding), of a regime
    that is not sensitive, or not measured (with the reason).
    """
    from neuroute.core.files import write_text
    from neuroute.core.lazy import pd
    from neuroute.core.text import csv_text
    from neuroute.pipeline.plan.config import load_config
    from neuroute.pipeline.rendering.kept import judge_kept, rows_of
    from neuroute.pipeline.rendering.verdicts import told_in_short

    if tables is not None and scale:
        raise NeurouteError("give either --kept (a folder of tables) or --scale (records of this scale)")
    if tables is not None:
        if config or Path("config.yaml").exists():
            load_config(config)  # which may say where papers of one's own lie
        name, claimed = tables.resolve().name, judge_kept(tables)
    else:
        p = load_plan(config, scale)
        name, claimed = p.scale.name, _judge(p)
    if out:
        write_text(out, csv_text(pd.DataFrame(rows_of(claimed))))
    else:
        for row in rows_of(claimed):
            why = "; to decide: ".join(text for text in (row["here"] or row["why"], row["cost"]) if text)
            print(f"{row['id']}: {row['verdict']}" + (f" ({why})" if why else ""))
    print(told_in_short(name, [each for of_paper in claimed.values() for each in of_paper]))


def difference(
    first: Annotated[
        str,
        typer.Argument(
            help="a run with all its seeds, e.g. scaling/deep_24x64, or folders of evaluations: seed0,seed1"
        ),
    ],
    second: Annotated[str, typer.Argument(help="the model to compare it with, named the same way")],
    decodings: Annotated[
        str | None,
        typer.Option(help="decodings of the two models: multistart,greedy; default: every decoding with itself"),
    ] = None,
    mean_of: Annotated[
        str | None,
        typer.Option(help="patterns of test sets, as in 'vrp_*B*,vrp_*L*': also compare the mean over all of them"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="write them here, too (.csv)")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """Compare two trained models: gaps in points, with intervals.

    Intervals are of 95 %.

    They are compared instance by instance on all that both were measured on; of several seeds, by their mean.  The
    folder of its evaluations names one training alone.

    To see what a change does, copy the folder of its evaluations (work/<scale>/evaluations/<run>) before it, and name
    the copy.
    """
    from neuroute.core.files import write_text
    from neuroute.core.text import csv_text
    from neuroute.evaluation.difference import differences, say, table

    def folders(name: str) -> list[Path]:
        if Path(name).is_dir():
            return [Path(name)]
        p = load_plan(config, scale)
        if name not in p.runs and (p.work / "evaluations" / name).is_dir():  # of a run that the plan no longer has
            return [p.work / "evaluations" / name]
        p.find(p.runs, name, "run or folder")
        return [p.work / "evaluations" / run for run in p.trainings(name)]

    of_first, of_second = (
        list(dict.fromkeys(each for name in side.split(",") for each in folders(name))) for side in (first, second)
    )
    names = decodings.split(",") if decodings is not None else None
    if names is not None and len(names) != 2:
        raise NeurouteError(f"--decodings {decodings}: give two, of the first and of the second model")
    rows = differences(of_first, of_second, (names[0], names[1]) if names else None, mean_of)
    print(*say(rows), sep="\n")
    if out:
        write_text(out, csv_text(table(rows, first, second)))


def verify(
    file: Annotated[Path, typer.Argument(help="the .csv of a table or figure, of results or of docs/measured")],
    cell: Annotated[str | None, typer.Option(metavar="ROW,COLUMN", help="one cell only: 'D=4, W=32,gap_pct'")] = None,
    start: Annotated[
        Literal["weights", "labels"], typer.Option("--from", help="weights: test again; labels: train again, too")
    ] = "weights",
    cores: Annotated[str, typer.Option(help="cores of all jobs together")] = "all",
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """Remake a table or figure and compare its numbers.

    Its models are tested again, in a folder of their own, and what is drawn is compared with what is there, but for
    times and memory.  Exit status: 0 if all is equal, 1 if something differs, 2 if it could not be remade.

    The scale is the one that the file states.
    """
    from neuroute.pipeline.dag.verify import find_cell, find_drawn, kept_weights, say_versions, scale_of
    from neuroute.pipeline.dag.verify import verify as remake

    stated = scale_of(file)
    plan = load_plan(config, scale)
    if scale is None and plan.scale.name != stated:
        plan = load_plan(config, stated)
    drawn = find_drawn(plan, file)
    row, _, column = (cell or "").rpartition(",")
    if cell is not None and not row:
        raise NeurouteError(f"--cell {cell}: write ROW,COLUMN, as in 'D=4, W=32,gap_pct'")
    place = find_cell(drawn, row, column) if cell else None
    name = "-".join([plan.scale.name, drawn.artifact.paper, drawn.artifact.name, start, *filter(None, [row, column])])
    folder = Path(plan.config.work_dir) / "verify" / re.sub(r"[^\w.-]", "_", name)
    kept = {} if start == "labels" else kept_weights(plan, drawn, place, folder / "weights")
    changes = [f"work_dir={folder}/work", f"results_dir={folder}/results"]
    changes += [f"runs.{run}.weights={weights}" for run, weights in kept.items()]
    remade = load_plan(config, plan.config.scale, changes=changes)
    options = ["--cores", cores, *(["--configfile", str(config)] if config else [])]
    print(f"{drawn.artifact.id} at scale {plan.scale.name}, {say_versions(drawn)}", flush=True)
    if kept:
        print(f"by weights that were kept: {', '.join(kept)}", flush=True)
    found = list(remake(plan, remade, drawn, place, start, options))
    print(*(found or [f"{file}: equal{f', {cell}' if cell else ''}"]), sep="\n")
    if found:
        raise typer.Exit(1)


def keep(
    folder: Annotated[Path | None, typer.Argument(help="target folder; default docs/measured/<scale>")] = None,
    commit: Annotated[str | None, typer.Option(help="commit of the measurements; default: from their records")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """Copy tables and figures to a folder for the record.

    Commit, date and device stand in every row, behind.csv has what claims are judged by, and ro-crate-metadata.json
    what each file was made from, with checksums.
    """
    from neuroute.pipeline.rendering.kept import keep as keep_artifacts
    from neuroute.pipeline.rendering.kept import keep_behind, write_crate

    p = load_plan(config, scale)
    stems = [p.artifact_stem(a) for a in p.artifacts]
    results, folder = Path(p.config.results_dir), folder or Path("docs/measured") / p.scale.name
    kept = keep_artifacts(results, stems, p.scale.name, folder, commit)
    tables, loads = {}, {}
    for a in p.artifacts.values():
        if a.kind == "table" and folder / p.artifact_stem(a.id).relative_to(results).with_suffix(".csv") in kept:
            evidence = _evidence(p, a.paper)
            tables[a.paper, a.name] = evidence.table(a.name)
            loads[a.paper, a.name] = evidence.busy(a.name)
    behind = keep_behind(folder, tables, loads)
    print(*kept, behind, write_crate(folder, p.scale.name, kept), sep="\n")
    stems_of = {a: p.artifact_stem(a).relative_to(results) for a in p.artifacts}
    if absent := [a for a, stem in stems_of.items() if folder / f"{stem}.csv" not in kept]:
        old = [a for a in absent if (folder / f"{stems_of[a]}.csv").exists()]
        stays = f"; older files stay: {', '.join(old)}" if old else ""
        typer.echo(f"not drawn at scale {p.scale.name}, so not kept: {', '.join(absent)}{stays}", err=True)
