"""What models learn from and are measured on: label, generate, export, fetch."""

import os
from pathlib import Path
from typing import Annotated

import typer

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.cli.options import ConfigFile, ScaleName, load_plan, parse_part

Format = Annotated[str | None, typer.Option("--format", help="npz, lehd (.txt), or a folder: tsplib, vrplib, solomon")]


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


def generate(
    problem: Annotated[str, typer.Argument(help="tsp, cvrp, or one of the 16 VRPs, such as ovrptw")],
    out: Annotated[Path, typer.Option(help="file (.npz, .txt) or new folder")],
    n: Annotated[int, typer.Option(help="nodes; with vehicles, customers")] = 50,
    count: Annotated[int, typer.Option(help="how many instances")] = 1,
    seed: Annotated[int, typer.Option(help="random seed; 0: the papers' test instances")] = 0,
    first: Annotated[int, typer.Option(help="number of the first instance of the seed")] = 0,
    distribution: Annotated[str, typer.Option(help="of the TSP: uniform, cluster, explosion or implosion")] = "uniform",
    capacity: Annotated[int | None, typer.Option(help="vehicle capacity; default: the papers' for this n")] = None,
    form: Format = None,
) -> None:
    """Write random instances, as the papers draw them; `solve`, `evaluate --data` and other people's code read them."""
    from neuroute.api.files import gather
    from neuroute.api.files import generate as draw
    from neuroute.problems.instances.export import export as write

    instances = draw(problem, n, count, seed=seed, first=first, distribution=distribution, capacity=capacity)
    print(write(gather(instances, out.stem), out, form, "--out"))


def export(
    data: Annotated[str, typer.Argument(help="a test set or a label job of the plan, or a file or folder of your own")],
    to: Annotated[Path, typer.Option(help="file (.npz, .txt) or new folder")],
    form: Format = None,
    limit: Annotated[int | None, typer.Option(min=1, help="only the first instances")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
) -> None:
    """Write instances and solutions for other people's code.

    `evaluate --data` reads them with the same gaps.
    """
    from neuroute.api.evaluate import find_instances
    from neuroute.problems.instances.export import check_export
    from neuroute.problems.instances.export import export as write

    if Path(data).is_file() and to.exists() and to.samefile(data):
        raise NeurouteError(f"--to {to}: is the input file; name another one")
    p = load_plan(config, scale) if config or scale or Path("config.yaml").exists() else None
    testsets = p.config.testsets_dir if p else None
    instances = find_instances(data, testsets, p.label_jobs if p else {}, p.label_dirs if p else [], "DATA")
    instances = instances.first(limit) if limit else instances
    check_export(instances, to, form)
    print(write(instances, to, form))


def fetch(
    benchmark: Annotated[str, typer.Argument(help="tsplib, cvrplib, solomon, national or vlsi")],
    to: Annotated[Path | None, typer.Option(help="folder; default: <work_dir>/benchmarks/<benchmark>")] = None,
    config: ConfigFile = None,
) -> None:
    """Download a public benchmark and check it.

    Uses the copy in `benchmarks_dir` of the config, if set.  Files that cannot be downloaded are listed; tables then
    show the packaged instances.
    """
    from neuroute.datasets.benchmarks import library
    from neuroute.datasets.fetch import fetch as fetch_files
    from neuroute.datasets.fetch import provide

    library(benchmark)  # an unknown one ends here, before a config is read
    if to is not None:
        missing = fetch_files(benchmark, to).missing
        if missing:
            first = next(iter(missing.values()))
            raise NeurouteError(f"{to}: {len(missing)} files of {benchmark} are missing; run this again: {first}")
        return
    p = load_plan(config, None)
    manifest = p.benchmark_manifest(benchmark)
    own_copy = Path(p.config.benchmarks_dir) if p.config.benchmarks_dir else None
    provide(benchmark, manifest, manifest.with_suffix(""), own_copy)
