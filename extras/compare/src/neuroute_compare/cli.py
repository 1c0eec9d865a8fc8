"""The command `neuroute compare`."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.cli.options import ConfigFile, Ignore, ScaleName, finished_runs, load_settings


def compare(
    set: Annotated[
        list[str] | None,
        typer.Option(help="tsplib, x, ags, national, vlsi, dimacs, or files of your own; several, as in tsplib,x"),
    ] = None,
    ignore: Ignore = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="solvers, pretrained networks, checkpoints, runs, papers, `trained` (all finished runs), "
            "module:function, module:Net=FILE, each renamed by name=...; several: lkh,tsp; "
            "none: only --published and --results"
        ),
    ] = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(
            help="results to add as rows (.csv: method, instance, cost, seconds, other columns of records.csv)"
        ),
    ] = None,
    published: Annotated[
        list[str] | None,
        typer.Option(help="published results of a survey to add as rows: all, or methods: lehd,icam,sil"),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="baseline of paired differences; default: the best cheap construction")
    ] = None,
    seconds: Annotated[
        str | None,
        typer.Option(help="search time for an instance; default 5; several (0.5,1,2) show which ranks depend on it"),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(help="seconds (wall clock) after which an instance counts as unsolved")
    ] = None,
    min_nodes: Annotated[int | None, typer.Option(help="smallest instance size, inclusive (CVRP: customers)")] = None,
    max_nodes: Annotated[int | None, typer.Option(help="largest instance size, inclusive; default 200")] = None,
    groups: Annotated[str | None, typer.Option(help="smallest sizes of groups: 100,200,500")] = None,
    seeds: Annotated[int | None, typer.Option(help="seeds of randomized methods")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads of networks; solvers have one")] = None,
    clock: Annotated[str | None, typer.Option(help="clock of --seconds: wall, or cpu on a busy machine")] = None,
    benchmarks: Annotated[
        Path | None, typer.Option(help="folder with copies of the libraries; default: the config's, else downloaded")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="folder of records, table and pictures; default: <results_dir>/compare")
    ] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda; default: the config's, else auto")] = None,
) -> None:
    """Compare networks and solvers on public instances.

    Others' results, too: gap, time, instances solved, FLOPs.

    Each network solves without search and within --seconds, each solver that searches within --seconds.  What is not
    said here is as `compare` of config.yaml has it.  A killed call goes on where it was.
    """
    from neuroute.api.solve import split_names
    from neuroute.core.yaml_files import validate
    from neuroute_compare.compare import compare as run
    from neuroute_compare.settings import Compare

    settings = load_settings(config, scale, device)
    folder = benchmarks or (Path(settings.benchmarks_dir) if settings.benchmarks_dir else None)
    options: dict[str, Any] = {
        "sets": split_names(set) if set else None,
        "ignore_sections": ignore or None,
        "methods": split_names(method) if method else None,
        "results": [str(path) for path in results] if results else None,
        "published": split_names(published) if published else None,
        "against": against,
        "seconds": _numbers(seconds),
        "limit": limit,
        "min_nodes": min_nodes,
        "max_nodes": max_nodes,
        "groups": split_names([groups]) if groups is not None else None,
        "seeds": seeds,
        "threads": threads,
        "clock": clock,
    }
    options = {key: value for key, value in options.items() if value is not None}
    settings_here = validate(Compare, settings.block("compare").model_dump() | options, "compare")
    comparison = run(
        settings_here.methods if "methods" in options else None,
        out=out or Path(settings.results_dir) / "compare",
        benchmarks=folder,
        settings=settings_here,
        device=device or settings.device,
        memory_gb=settings.memory_gb,
        work=settings.work_dir,
        checkpoints=lambda name: finished_runs(config, scale, name),
        trusted=settings.networks,
    )
    print(comparison)


def _numbers(text: str | None) -> list[float] | None:
    try:
        numbers = None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        numbers = [0.0]
    if numbers and not all(0 < number < math.inf for number in numbers):
        raise NeurouteError(f"--seconds {text}: numbers above 0 are expected, as in 5 or 0.5,1,2")
    return numbers


COMMANDS = {"Instances and networks": {compare: "neuroute compare --set tsplib --max-nodes 200 --published all"}}
