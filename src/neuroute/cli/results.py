"""Tables, figures and the report, from the records that are there: render, report, keep."""

from pathlib import Path
from typing import Annotated

import typer

from neuroute.cli.options import ConfigFile, ScaleName, load_plan
from neuroute.plan.objects import Artifact


def render(
    artifacts: Annotated[
        list[str], typer.Argument(help="tables and figures, e.g. scaling/table12; sit: all of a paper")
    ],
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """Draw tables and figures from the records that are there, all in one process."""
    from neuroute.rendering.render import render as render_artifact
    from neuroute.rendering.study import Study

    p = load_plan(config, scale)
    to_render: dict[str, Artifact] = {}
    for name in artifacts:
        of_paper = {a.id: a for a in p.artifacts.values() if a.paper == name}
        to_render |= of_paper or {name: p.find(p.artifacts, name, "artifact")}
    for a in to_render.values():
        study = Study.load(a, p.config, p.scale, p.runs.values(), p.work)
        render_artifact(study, p.artifact_stem(a.id))


def report(config: ConfigFile = None, scale: ScaleName = None) -> None:
    """Write results/index.html from the rendered artifacts and the records, and results/summary.json."""
    from neuroute.dag.headlines import headlines
    from neuroute.rendering.claims import judge
    from neuroute.rendering.protocol import protocol_lines
    from neuroute.rendering.report import Overview, write_report
    from neuroute.rendering.study import Study

    p = load_plan(config, scale)
    stems: dict[str, list[Path]] = {}
    for a in p.artifacts.values():
        stems.setdefault(a.paper, []).append(p.artifact_stem(a.id))
    overviews = {}
    for key in stems:
        claims = p.papers[key].claims()
        claimed_artifacts = [p.artifacts[f"{key}/{claim.artifact}"] for claim in claims]
        studies = [Study.load(a, p.config, p.scale, p.runs.values(), p.work) for a in claimed_artifacts]
        judged = [judge(claim, study) for claim, study in zip(claims, studies, strict=True)]
        overviews[key] = Overview(judged, p.papers[key].main_figures())
    protocols = {key: protocol_lines(p, key) for key in stems}
    write_report(stems, p.report, p.scale, p.titles, overviews, protocols)
    print(*headlines(p), sep="\n")


def keep(
    folder: Annotated[Path | None, typer.Argument(help="where to; default docs/measured/<scale>")] = None,
    commit: Annotated[str | None, typer.Option(help="commit that measured; default: the current one")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """Copy the rendered artifacts, with commit, date and device in every row, to keep them for the record."""
    from neuroute.rendering.keep import keep as keep_artifacts

    p = load_plan(config, scale)
    stems = [p.artifact_stem(a) for a in p.artifacts]
    results, folder = Path(p.config.results_dir), folder or Path("docs/measured") / p.scale.name
    for path in keep_artifacts(results, stems, p.scale.name, folder, commit):
        print(path)
