"""The `neuroute` command: every stage of the DAG by hand, and what helps around it."""

import hashlib
import json
import logging
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from neuroute.errors import NeurouteError

app = typer.Typer(
    help="Neural-routing research as one DAG: instances, labels, training, evaluation, tables and figures.\n\n"
    "Snakemake calls the stages below; each runs by hand too, from the folder that holds the Snakefile. "
    "Start with `neuroute doctor` (which solvers are there) and `neuroute plan` (what would run, and for how long).",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

ConfigFile = Annotated[Path | None, typer.Option("--config", help="config file; default ./config.yaml")]
ScaleName = Annotated[str | None, typer.Option("--scale", help="smoke, laptop, gpu, paper, or a .yaml file")]
Device = Annotated[str | None, typer.Option(help="auto, cpu or cuda; default: the config's")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; default: the scale's")]


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a NeurouteError into one line and exit code 2."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", datefmt="%H:%M:%S")
        try:
            command(*args, **kwargs)
        except NeurouteError as error:
            print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(2) from None

    return run


def _plan(config: Path | None, scale: str | None, **overrides: Any):  # type: ignore[no-untyped-def]
    from neuroute.plan.build import build_plan
    from neuroute.plan.config import load_config

    return build_plan(load_config(config, scale=scale, **overrides))


@app.command()
@_guarded
def plan(
    target: Annotated[
        str | None, typer.Argument(help="table12, scaling/figure2, a run ... ; default: everything")
    ] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """List what a target needs, what is already there, and what it costs, before anything runs."""
    from neuroute.plan.estimate import describe

    print(describe(_plan(config, scale), target))


@app.command()
@_guarded
def label(
    bundle: Annotated[str, typer.Argument(help="a label bundle of the plan, e.g. scaling/in_domain")],
    config: ConfigFile = None,
    scale: ScaleName = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="solver processes; default: the config's, else all cores")
    ] = None,
) -> None:
    """Solve the instances of a bundle; resumes where a killed call stopped, reuses label caches."""
    import os

    from neuroute.datasets.labels import make_labels
    from neuroute.files import write_json

    p = _plan(config, scale)
    b = p.find(p.bundles, bundle, "label bundle")
    n_workers = workers or p.config.label_workers or os.cpu_count() or 1
    caches = [Path(c) for c in p.config.label_caches]
    made = [make_labels(labels, p.label_store, caches, n_workers) for labels in b.labels]
    write_json(p.manifest(bundle), {"bundle": bundle, "labels": made})


@app.command()
@_guarded
def train(
    run: Annotated[str, typer.Argument(help="a run of the plan, e.g. scaling/base_6x128")],
    config: ConfigFile = None,
    scale: ScaleName = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Train a run; a killed call goes on where it stopped and ends with the same weights."""
    from neuroute.training.train import Settings
    from neuroute.training.train import train as train_run

    p = _plan(config, scale, device=device)
    r = p.find(p.runs, run, "run")
    code = p.train_code(run)
    train_run(
        r,
        p.run_dir(run),
        p.work / "state" / run / _state_key(r.canonical(), code, _data_digest(p, run)),
        p.label_dirs,
        Settings(
            p.config.device,
            threads or p.scale.train_threads,
            p.config.memory_gb,
            p.config.compile,
            p.config.tensorboard,
        ),
        code=code,
        network_code=p.network_code(run),
    )


def _state_key(*parts: str) -> str:
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


def _data_digest(p: Any, run: str) -> str:
    """Digest of the tours that a run trains on and is validated with, from the label manifests."""
    from neuroute.files import read_json

    shards = []
    for bundle in p.bundles_of_run(run):
        manifest = read_json(p.manifest(bundle), f"make it with `neuroute label {bundle}`")
        shards += [[m["labels"], s["shard"], s["sha256"]] for m in manifest["labels"] for s in m["shards"]]
    return hashlib.sha256(json.dumps(shards, sort_keys=True).encode()).hexdigest()


@app.command()
@_guarded
def evaluate(
    evaluation: Annotated[str, typer.Argument(help="an evaluation of the plan, e.g. scaling/base_6x128/greedy")],
    config: ConfigFile = None,
    scale: ScaleName = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Decode the test sets of an evaluation with a trained run and record every number."""
    from neuroute.evaluation.measure import measure

    p = _plan(config, scale, device=device)
    e = p.find(p.evaluations, evaluation, "evaluation")
    measure(
        e,
        p.runs[e.run],
        p.run_dir(e.run) / "model.safetensors",
        p.evaluation_file(evaluation),
        p.label_dirs,
        scale=p.scale.name,
        code=p.evaluate_code(evaluation),
        network_code=p.network_code(e.run),
        device=p.config.device,
        threads=threads or p.scale.evaluate_threads,
        memory_gb=p.config.memory_gb,
    )


@app.command()
@_guarded
def render(
    artifact: Annotated[str, typer.Argument(help="a table or figure, e.g. scaling/table12")],
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """Draw a table or figure from the records that are there."""
    from neuroute.rendering.render import render as render_artifact
    from neuroute.rendering.study import Study

    p = _plan(config, scale)
    a = p.find(p.artifacts, artifact, "artifact")
    study = Study.load(a, p.config, p.scale, p.runs.values(), p.work)
    render_artifact(study, p.artifact_stem(artifact))


@app.command()
@_guarded
def report(config: ConfigFile = None, scale: ScaleName = None) -> None:
    """Write results/index.html from the rendered artifacts."""
    from neuroute.rendering.report import write_report

    p = _plan(config, scale)
    stems: dict[str, list[Path]] = {}
    for a in p.artifacts.values():
        stems.setdefault(a.paper, []).append(p.artifact_stem(a.id))
    write_report(stems, p.report, p.scale, p.titles)


@app.command()
@_guarded
def keep(
    folder: Annotated[Path | None, typer.Argument(help="where to; default docs/measured/<scale>")] = None,
    commit: Annotated[str | None, typer.Option(help="commit that measured; default: the current one")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """Copy the rendered artifacts, with commit, date and device in every row, to keep them for the record."""
    from neuroute.rendering.keep import keep as keep_artifacts

    p = _plan(config, scale)
    stems = [p.artifact_stem(a) for a in p.artifacts]
    for path in keep_artifacts(stems, p.scale.name, folder or Path("docs/measured") / p.scale.name, commit):
        print(path)


@app.command()
@_guarded
def doctor() -> None:
    """Solve a small instance with every solver; say which are there and how to get the others."""
    from neuroute.solvers.doctor import examine

    for finding in examine():
        print(finding.line())


@app.command()
@_guarded
def solve(
    file: Annotated[Path, typer.Argument(help="a TSPLIB file (.tsp)")],
    model: Annotated[Path, typer.Option(help="a checkpoint (model.safetensors)")],
    beam: Annotated[int, typer.Option(min=1, help="beam width; 1 is greedy")] = 1,
    rrc: Annotated[int, typer.Option(min=0, help="iterations of random re-construct after greedy")] = 0,
    out: Annotated[Path | None, typer.Option(help="drawing of the tour (.svg, .pdf or .png)")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda")] = "auto",
) -> None:
    """Solve a TSPLIB file with a trained model, print the length and draw the tour."""
    from neuroute.evaluation.solve import solve_file

    print(solve_file(file, model, beam, rrc, out or Path(f"{file.stem}.svg"), device))


@app.command()
@_guarded
def schema(
    folder: Annotated[Path, typer.Argument(help="where to write")] = Path("workflow/schemas"),
) -> None:
    """Write the JSON schemas of config.yaml and of the scale files, generated from the models."""
    from neuroute.files import write_text
    from neuroute.plan.config import Config, Scale

    for model, name in ((Config, "config"), (Scale, "scale")):
        text = json.dumps(model.model_json_schema(), indent=1, sort_keys=True) + "\n"
        write_text(folder / f"{name}.schema.json", text)


if __name__ == "__main__":
    app()
