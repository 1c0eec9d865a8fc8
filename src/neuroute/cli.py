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

from neuroute.cli_options import (
    Augment,
    Beam,
    ConfigFile,
    Device,
    Longest,
    Prc,
    Rescale,
    Rrc,
    ScaleName,
    Start,
    Starts,
    Threads,
)  # fmt: skip
from neuroute.errors import NeurouteError

app = typer.Typer(
    help="Neural-routing research as one DAG: instances, labels, training, evaluation, tables and figures.\n\n"
    "Snakemake calls the stages below; each runs by hand too, from the folder that holds the Snakefile. "
    "Start with `neuroute doctor` (which solvers are there) and `neuroute plan` (what would run, and for how long).",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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
        str | None, typer.Argument(help="a paper (sit), table12, scaling/figure2, a run ... ; default: everything")
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

    from neuroute.datasets.chunks import solver_pool
    from neuroute.datasets.labels import make_labels
    from neuroute.files import write_json

    p = _plan(config, scale)
    b = p.find(p.bundles, bundle, "label bundle")
    n_workers = workers or p.config.label_workers or os.cpu_count() or 1
    caches = [Path(c) for c in p.config.label_caches]
    with solver_pool(n_workers) as pool:
        made = [make_labels(labels, p.label_store, caches, n_workers, pool=pool) for labels in b.labels]
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
    starts, mend = p.files_to_start(run), f"train it with `neuroute train {(r.start or '').partition('@')[0]}`"
    started = [_file_digest(path, mend) for path in starts]
    train_run(
        r,
        p.run_dir(run),
        p.work / "state" / run / _state_key(r.canonical(), code, _data_digest(p, run), *started),
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
        start=starts[0] if starts else None,
    )


def _file_digest(path: Path, mend: str) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        raise NeurouteError(f"{path}: missing; {mend}") from None


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
    evaluation: Annotated[
        str | None, typer.Argument(help="an evaluation of the plan, e.g. scaling/base_6x128/greedy")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="instead: a checkpoint, to measure on --data")] = None,
    data: Annotated[
        str | None,
        typer.Option(help=".npz, .txt, .pkl, .tsp, .vrp or a folder; or a name in `testsets_dir` or of the plan"),
    ] = None,
    beam: Beam = 1,
    rrc: Rrc = 0,
    prc: Prc = 0,
    start: Start = None,
    longest: Longest = None,
    rescale: Rescale = 1.0,
    starts: Starts = None,
    augment: Augment = False,
    limit: Annotated[int | None, typer.Option(min=1, help="with --model: only the first instances")] = None,
    out: Annotated[Path | None, typer.Option(help="with --model: write records here (.csv)")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Decode the test sets of an evaluation with a trained run and record every number; or, with --model and --data,
    measure any checkpoint on any instances.  How solutions are built (--beam to --augment) is said with --model only.
    """
    from neuroute.dotted import resolve
    from neuroute.evaluation.records import Where

    how = {"beam": beam, "rrc": rrc, "rescale": rescale, "prc": prc, "start": start, "longest": longest}
    how |= {"starts": starts, "augment": augment}
    if model is not None and data is not None and evaluation is None:
        p = _plan(config, scale, device=device) if config or Path("config.yaml").exists() else None
        print(_evaluate_data(p, model, data, how, limit, out, device, threads))
        return
    for_model = (
        model is not None
        or data is not None
        or out is not None
        or limit is not None
        or tuple(how.values()) != (1, 0, 1.0, 0, None, None, None, False)
    )
    if evaluation is None or for_model:
        raise NeurouteError("give either an evaluation of the plan (`neuroute plan` lists them), or --model and --data")
    p = _plan(config, scale, device=device)
    e = p.find(p.evaluations, evaluation, "evaluation")
    where = Where(
        scale=p.scale.name,
        code=p.evaluate_code(evaluation),
        network_code=p.network_code(e.run),
        device=p.config.device,
        threads=threads or p.scale.evaluate_threads,
        memory_gb=p.config.memory_gb,
        benchmarks={b: p.benchmark_manifest(b) for b in p.benchmarks_of_evaluation(evaluation)},
        rescaling=p.rescaling_of_evaluation(evaluation),
    )
    checkpoint = p.run_dir(e.run) / "model.safetensors"
    resolve(e.entry)(e, p.runs[e.run], checkpoint, p.evaluation_file(evaluation), p.label_dirs, where)


def _evaluate_data(
    p: Any,
    model: Path,
    data: str,
    how: dict[str, Any],
    limit: int | None,
    out: Path | None,
    device: str | None,
    threads: int | None,
) -> str:
    """Measure a checkpoint on the user's instances; `p` is None outside a checkout, where only files are found."""
    import torch

    from neuroute.evaluation.options import choose_decoding
    from neuroute.evaluation.user import evaluate, find_instances, load_model
    from neuroute.plan.config import parse_config

    config = p.config if p else parse_config({"device": device or "auto"}, "options")
    decoding = choose_decoding(**how)
    instances = find_instances(data, config.testsets_dir, p.bundles if p else {}, p.label_dirs if p else [])
    if threads:
        torch.set_num_threads(threads)
    loaded = load_model(model, config.device)
    return evaluate(loaded, instances.first(limit) if limit else instances, decoding, config.memory_gb, out)


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
    results, folder = Path(p.config.results_dir), folder or Path("docs/measured") / p.scale.name
    for path in keep_artifacts(results, stems, p.scale.name, folder, commit):
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
    file: Annotated[Path, typer.Argument(help="a TSPLIB file (.tsp), a VRPLIB file (.vrp) or one of Solomon's (.txt)")],
    model: Annotated[Path, typer.Option(help="a checkpoint (model.safetensors)")],
    beam: Beam = 1,
    rrc: Rrc = 0,
    prc: Prc = 0,
    start: Start = None,
    brought: Annotated[
        Path | None, typer.Option("--from", help="instead: a solution of your own (.tour or .sol) to improve by --prc")
    ] = None,
    longest: Longest = None,
    rescale: Rescale = 1.0,
    starts: Starts = None,
    augment: Augment = False,
    out: Annotated[Path | None, typer.Option(help="drawing of the solution (.svg, .pdf or .png)")] = None,
    save: Annotated[Path | None, typer.Option(help="keep the solution here (.tour or .sol)")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda")] = "auto",
) -> None:
    """Solve a file of TSPLIB, VRPLIB or Solomon's with a trained model, or improve a solution of it; draw it."""
    from neuroute.evaluation.options import choose_decoding
    from neuroute.evaluation.solve import solve_file
    from neuroute.plan.config import load_config

    memory_gb = load_config().memory_gb if Path("config.yaml").exists() else None
    decoding = choose_decoding(beam, rrc, rescale, prc, start, longest, starts, augment)
    drawing = out or Path(f"{file.stem}.svg")
    print(solve_file(file, model, decoding, drawing, device, memory_gb, brought=brought, save=save))


@app.command()
@_guarded
def fetch(
    benchmark: Annotated[str, typer.Argument(help="tsplib, cvrplib or solomon")],
    to: Annotated[Path | None, typer.Option(help="folder; default: <work_dir>/benchmarks/<benchmark>")] = None,
    config: ConfigFile = None,
) -> None:
    """Download a public benchmark and check it, or point at the copy that `benchmarks_dir` of the config names.

    What cannot be had is said and left out: the tables then show the published numbers alone.
    """
    from neuroute.datasets.benchmarks import library
    from neuroute.datasets.fetch import fetch as fetch_files
    from neuroute.datasets.fetch import provide

    library(benchmark)  # an unknown one ends here, before a config is read
    if to is not None:
        missing = fetch_files(benchmark, to)
        if missing:
            first = next(iter(missing.values()))
            raise NeurouteError(f"{to}: {len(missing)} files of {benchmark} could not be fetched: {first}")
        return
    p = _plan(config, None)
    manifest = p.benchmark_manifest(benchmark)
    own_copy = Path(p.config.benchmarks_dir) if p.config.benchmarks_dir else None
    provide(benchmark, manifest, manifest.with_suffix(""), own_copy)


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


@app.command(name="import-weights")
@_guarded
def import_weights(
    file: Annotated[Path, typer.Argument(help="weights: .pt, .pth or .safetensors")],
    out: Annotated[Path, typer.Option(help="the checkpoint to write (.safetensors)")],
    network: Annotated[
        str | None, typer.Option(help="lehd, bq or decoder-only; not needed for a checkpoint of neuroute")
    ] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="default: read from the tensors")] = None,
    width: Annotated[int | None, typer.Option(min=1, help="default: read from the tensors")] = None,
    heads: Annotated[int | None, typer.Option(min=1, help="default: as published; no tensor tells")] = None,
    feed_forward: Annotated[int | None, typer.Option(min=1, help="default: read from the tensors")] = None,
    train_nodes: Annotated[int | None, typer.Option(min=4, help="nodes of the training instances; default 100")] = None,
) -> None:
    """Turn weights from elsewhere into a checkpoint, or keep a checkpoint after rewriting its network's code.

    Reads LEHD's published checkpoints for the TSP, and any file whose tensors are called as here. Nothing in the file
    is executed.
    """
    from neuroute.networks.import_weights import import_weights as convert

    shape = {"depth": depth, "width": width, "heads": heads, "feed_forward": feed_forward, "train_nodes": train_nodes}
    print(convert(file, out, network, shape))


if __name__ == "__main__":
    app()
