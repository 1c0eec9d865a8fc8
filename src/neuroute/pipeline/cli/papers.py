"""Papers, stage by stage: plan, why, label, render, report, claims, difference, verify, keep."""

import os
import re
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from neuroute.core.errors import NeurouteError
from neuroute.core.limited import process_pool
from neuroute.pipeline.cli.options import Changes, ConfigFile, ScaleName, load_plan, parse_part

if TYPE_CHECKING:
    from neuroute.pipeline.plan.plan import Plan
    from neuroute.pipeline.rendering.comparisons import DrawnTables
    from neuroute.pipeline.rendering.verdicts import Judged
    from neuroute.specs.objects import Artifact


def plan(
    target: Annotated[
        str | None, typer.Argument(help="a paper (sit), table12, scaling/figure2, a run ... ; default: everything")
    ] = None,
    lists_all: Annotated[bool, typer.Option("--all", help="list every job")] = False,
    array: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="write the jobs as SLURM job arrays into this folder")
    ] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
    changes: Changes = None,
) -> None:
    """List the jobs, time and disk of a target; nothing runs."""
    from neuroute.pipeline.plan.overview import describe
    from neuroute.pipeline.plan.slurm import write_arrays

    if array and changes:
        raise NeurouteError("--array: its jobs read the config file alone; write there what --set changes")
    p = load_plan(config, scale, changes=changes)
    if array:
        print(*write_arrays(p, target, array, config, scale), sep="\n")
    else:
        print(describe(p, target, lists_all=lists_all))


def why(
    target: Annotated[str | None, typer.Argument(help="as of `neuroute plan`; default: everything")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
    changes: Changes = None,
) -> None:
    """Say what would rerun for a target, and why: `learning_rate: 0.002 -> 0.0002`."""
    from neuroute.pipeline.plan.overview import why as causes

    for line in causes(load_plan(config, scale, changes=changes), target):
        print(line)


def label(
    label_job: Annotated[str, typer.Argument(help="a label job of the plan, e.g. tsp_uniform_test_n100_c128_lkh")],
    config: ConfigFile = None,
    scale: ScaleName = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="solver processes; default: the config's, else all cores")
    ] = None,
    part: Annotated[str | None, typer.Option(help="2/4: every fourth chunk of instances from the second on")] = None,
) -> None:
    """Solve the instances of a label job.

    It resumes where a killed call stopped, and reuses label caches.

    Several calls with --part, on machines that share the folder, do the work of one; a call without it then checks all
    and writes the labels.
    """
    from neuroute.core.files import write_json
    from neuroute.datasets.chunks import solver_pool
    from neuroute.datasets.labels import make_labels, pack_labels, solve_part
    from neuroute.pipeline.plan.build import workers_that_fit

    share = parse_part(part)
    p = load_plan(config, scale)
    labels = p.find(p.label_jobs, label_job, "label job")
    if labels.dataset.file is not None:
        from neuroute.api.published import import_test_set

        import_test_set(labels, p.scale.source_of(labels.dataset), p.label_store)
    n_workers = workers or p.config.label_workers or os.cpu_count() or 1
    n_workers = workers_that_fit(p, label_job, n_workers)
    caches = [Path(c) for c in p.config.label_caches]
    if share:
        with solver_pool(n_workers) as pool:
            count = solve_part(labels, p.label_store, caches, share, pool=pool)
        print(f"{count} instances solved: part {part} of {label_job}")
        return
    with solver_pool(n_workers) as pool:
        manifest = make_labels(labels, p.label_store, caches, n_workers, pool=pool)
    stand_ins = {name: other for name, other in (p.config.substitutes or {}).items() if other == labels.solver}
    more = {"stand_ins": stand_ins} if stand_ins else {}
    pack_labels(labels, p.label_store, p.solutions(label_job))
    write_json(p.manifest(label_job), {**manifest, **more})


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
    overviews = {key: Overview(judged, p.papers[key].stated.figures) for key, judged in _judge(p).items()}
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
    if out and out.suffix != ".csv":
        raise NeurouteError(f"--out {out}: claims are written as .csv; let the name end so")
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
