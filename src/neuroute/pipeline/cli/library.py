"""Instances and networks: solve, evaluate, train, models, generate, export, import-weights."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.cli.options import (
    Changes,
    ConfigFile,
    Device,
    Ignore,
    ScaleName,
    Threads,
    begin_planned,
    load_plan,
    parse_part,
)

Format = Annotated[str | None, typer.Option("--format", help="npz, lehd (.txt), or a folder: tsplib, vrplib, solomon")]


def train(
    run: Annotated[str, typer.Argument(help="a run of the plan, e.g. scaling/base_6x128")],
    config: ConfigFile = None,
    scale: ScaleName = None,
    device: Device = None,
    threads: Threads = None,
    changes: Changes = None,
) -> None:
    """Train a run.

    A killed call goes on where it stopped and ends with the same weights.

    Of a run whose weights config.yaml gives, takes these instead.
    """
    from neuroute.specs.objects import GivenRun

    p = load_plan(config, scale, device, changes)
    r = p.find(p.runs, run, "run")
    begin_planned(p, run, p.run_dir(run) / ".lock")
    if isinstance(r, GivenRun):
        from neuroute.networks.import_weights import take_weights

        take_weights(r, p.run_dir(run), p.network_code(run))
        return
    from neuroute.api.train import Trainer
    from neuroute.datasets.labels import restore_labels
    from neuroute.training.callbacks import make_loggers
    from neuroute.training.train import Settings

    c = p.config
    restore_labels(r.labels, p.label_store, p.solutions)
    trainer = Trainer(
        r,
        p.work,
        p.label_dirs,
        Settings(c.device, threads or p.scale.train_threads, c.memory_gb, c.compile, c.jobs_per_gpu, c.tf32),
        tuple(make_loggers(c.loggers)),
        p.files_to_start(run),
        p.cache / p.scale.name / "state",
    )
    trainer.train()


def import_weights(
    file: Annotated[Path, typer.Argument(help="weights: .pt, .pth or .safetensors")],
    out: Annotated[Path, typer.Option(help="the checkpoint to write (.safetensors)")],
    network: Annotated[
        str | None,
        typer.Option(help="network of files with neuroute's tensor names: lehd, bq-cvrp, ... or your module:Net"),
    ] = None,
    argument: Annotated[
        list[str] | None, typer.Option(help="constructor argument that no tensor tells: heads=4, inputs=OVRP")
    ] = None,
) -> None:
    """Turn weights from elsewhere into a checkpoint.

    Or keep a checkpoint after rewriting its network's code.

    Reads what the published code of some twenty networks writes (docs/how-to/published_weights.md lists them), and any
    file whose tensors are called as here. Nothing in the file is executed.
    """
    from neuroute.core.yaml_files import parse_yaml
    from neuroute.networks.import_weights import import_weights as convert

    arguments: dict[str, Any] = {}
    for text in argument or ():
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise NeurouteError(f"--argument {text}: write NAME=VALUE, as in heads=8")
        arguments[name] = parse_yaml(value)
    print(convert(file, out, network, arguments))


if TYPE_CHECKING:
    from neuroute.pipeline.plan.plan import Plan

STANDS_IN = 3  # exit code, where another method stands in for the one that was asked for
# How a model builds solutions: `choose_decoding` says which go together.
DecodingName = Annotated[
    str | None,
    typer.Option(
        "--decoding",
        help="how the network builds solutions: greedy, multistart, multistart-x8, beam16, rrc100, prc100, ...; "
        "default: multistart for networks of many starts, else greedy",
    ),
]
Beam = Annotated[int, typer.Option(min=1, help="beam search of this width; 1 is greedy")]
Rrc = Annotated[int, typer.Option(min=0, help="rebuild random pieces of the solution, so many times")]
Prc = Annotated[int, typer.Option(min=0, help="rebuild all pieces of the solution in parallel, so many times (sit)")]
Start = Annotated[
    str | None, typer.Option(help="first solution of --prc: greedy (default), insertion, nearest and other insertions")
]
Longest = Annotated[int | None, typer.Option(help="most stops of a sub-path of --prc; default 1000, or all")]
Revise = Annotated[
    str | None,
    typer.Option(help="revision of random insertion: nodes of a block x iterations, as in 100x20,50x25,noflips"),
]
Rescale = Annotated[float, typer.Option(help="stretch the coordinates that the model sees (pens)")]
Starts = Annotated[
    str | None, typer.Option(help="try this many first nodes and keep the best solution, or all (POMO, ICAM)")
]
Augment = Annotated[bool, typer.Option("--augment", help="also solve the 8 rotations and reflections (x8)")]
Images = Annotated[int, typer.Option(min=1, help="number of random rotations and reflections, instance included")]


def evaluate(
    evaluation: Annotated[
        str | None, typer.Argument(help="an evaluation of the plan, e.g. scaling/base_6x128/all")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="instead: a checkpoint, module:Net=FILE or a name of `neuroute models`, measured on --data"),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help=".npz, .csv, .txt, .pkl, .tsp, .vrp or a folder; or a name in `testsets_dir` or of the plan"),
    ] = None,
    decoding: DecodingName = None,
    beam: Beam = 1,
    rrc: Rrc = 0,
    prc: Prc = 0,
    start: Start = None,
    longest: Longest = None,
    rescale: Rescale = 1.0,
    starts: Starts = None,
    augment: Augment = False,
    images: Images = 1,
    revise: Revise = None,
    reference: Annotated[
        str | None, typer.Option(help="with --model: report the gaps to this solver; kept beside --out")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="processes of the --reference solver; default: all cores")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="with --model: only the first instances")] = None,
    ignore: Ignore = None,
    out: Annotated[Path | None, typer.Option(help="with --model: write records here (.csv)")] = None,
    part: Annotated[
        str | None, typer.Option(help="2/4: every fourth test from the second on, of an evaluation of the plan")
    ] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
    device: Device = None,
    threads: Threads = None,
    changes: Changes = None,
) -> None:
    """Measure a trained run, or any checkpoint on any instances.

    Decode the test sets of an evaluation of the plan and record every number; or measure --model on --data.  --decoding
    to --revise need --model.

    A killed call resumes.  Several calls with --part, on several machines of one kind, share the work of
    one; a call without it then writes the records.
    """
    from neuroute.specs.decodings import choose_decoding

    how = choose_decoding(beam, rrc, rescale, prc, start, longest, starts, augment, images, revise, decoding)
    if model is not None and data is not None and evaluation is None and part is None:
        from neuroute.api.evaluate import evaluate as measure
        from neuroute.api.evaluate import find_instances
        from neuroute.api.model import load_model
        from neuroute.pipeline.plan.config import parse_config

        has_plan = config or changes or Path("config.yaml").exists()  # without one only files are found
        p = load_plan(config, scale, device, changes) if has_plan else None
        settings = p.config if p else parse_config({"device": device or "auto"}, "options")
        jobs, folders = (p.label_jobs, p.label_dirs) if p else ({}, [])
        instances = find_instances(data, settings.testsets_dir, jobs, folders, "--data", ignore or [])
        loaded = load_model(model, settings.device, settings.networks)
        instances = instances.first(limit) if limit else instances
        about: dict[str, Any] = {"reference": reference, "workers": workers, "threads": threads}
        print(measure(loaded, instances, how, settings.memory_gb, out, **about))
    elif evaluation is not None and (model, data, out, limit, reference, workers, how, ignore) == (*[None] * 8,):
        _evaluate_test_sets(load_plan(config, scale, device, changes), evaluation, threads, parse_part(part))
    else:
        raise NeurouteError(
            "give either an evaluation of the plan (`neuroute plan --all` lists them), or --model and --data"
        )


def _evaluate_test_sets(p: "Plan", evaluation: str, threads: int | None, part: tuple[int, int] | None) -> None:
    """Record every number of an evaluation of the plan, or keep those of a part of it."""
    from neuroute.datasets.labels import restore_labels
    from neuroute.datasets.store import check_made, labels_digest
    from neuroute.decoding.memory import in_precision_of_device
    from neuroute.evaluation import driver
    from neuroute.evaluation.loaded import RunContext

    e = p.find(p.evaluations, evaluation, "evaluation")
    out = p.evaluation_file(evaluation)
    begin_planned(p, evaluation, out.with_name(f".{out.stem}") / ".lock0")
    if not p.checkpoint(e.run).exists():
        raise NeurouteError(f"{p.checkpoint(e.run)}: no such checkpoint; train it with `neuroute train {e.run}`")
    restore_labels(e.labels, p.label_store, p.solutions)
    check_made(e.labels, p.label_dirs)
    threads = threads or p.scale.evaluate_threads
    context = RunContext(
        scale=p.scale.name,
        code=p.evaluate_code(evaluation),
        network_code=p.network_code(e.run),
        device=p.config.device,
        threads=threads,
        memory_gb=p.config.memory_gb,
        jobs_per_gpu=p.config.jobs_per_gpu,
        tf32=p.config.tf32,
        label_dirs=p.label_dirs,
        data=labels_digest([m for j in p.label_jobs_of_evaluation(evaluation) if (m := p.manifest(j)).exists()]),
        benchmarks={b: p.benchmark_manifest(b) for b in p.benchmarks_to_fetch(evaluation)},
        stages=next(iter(p.checkpoints_of_evaluation(evaluation)[1:]), None),
        rescaling=p.rescaling_of_evaluation(evaluation),
    )
    run = in_precision_of_device(p.runs[e.run], p.config)
    driver.evaluate(e, run, p.checkpoint(e.run), out, context, part)


def solve(
    file: Annotated[Path, typer.Argument(help="one instance: .tsp, .vrp, Solomon's .txt, .csv, .npz")],
    model: Annotated[
        str | None,
        typer.Option(
            help="a checkpoint, module:Net=FILE or a name of `neuroute models`; default: by the file's problem"
        ),
    ] = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(help="instead of a network: lkh, hgs, ... (`neuroute doctor`); several, as in lkh,insertion"),
    ] = None,
    reference: Annotated[str | None, typer.Option(help="also report the gap to this solver")] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0, help="search time after loading; default: 10 for networks, the solver's own for solvers"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="random seed of the search")] = 0,
    decoding: DecodingName = None,
    beam: Beam = 1,
    rrc: Rrc = 0,
    prc: Prc = 0,
    start: Start = None,
    start_file: Annotated[Path | None, typer.Option("--from", help="your solution (.tour or .sol) to improve")] = None,
    longest: Longest = None,
    rescale: Rescale = 1.0,
    starts: Starts = None,
    augment: Augment = False,
    images: Images = 1,
    revise: Revise = None,
    out: Annotated[Path | None, typer.Option(help="drawing of the solution (.svg, .pdf or .png)")] = None,
    save: Annotated[Path | None, typer.Option(help="keep the solution here (.tour or .sol)")] = None,
    ignore: Ignore = None,
    fallback: Annotated[
        bool,
        typer.Option("--fallback", help="exit with 0, not 3, when a construction replaces a solver without a solution"),
    ] = False,
    config: ConfigFile = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda")] = "auto",
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads of a network; default: one or all, by which is faster")
    ] = None,
) -> None:
    """Solve an instance of a file.

    A network or a solver solves it, or improves a solution of it.

    The network is one of `neuroute models`, and searches for --seconds; or say how solutions are built (--decoding to
    --revise).
    """
    from neuroute.api.solve import solve_file, split_names
    from neuroute.pipeline.plan.config import load_config
    from neuroute.specs.decodings import choose_decoding

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the best so far is kept
    how = choose_decoding(beam, rrc, rescale, prc, start, longest, starts, augment, images, revise, decoding)
    if how is not None and seconds is not None:
        raise NeurouteError(
            "--seconds: limits a search; --decoding to --revise have no time limit. Leave one of them out"
        )
    solvers = split_names(solver or [])
    if solver and not solvers:
        raise NeurouteError("--solver: names none; give one, as in --solver lkh, or leave it out")
    if solvers and (model, how, start_file) != (None, None, None):
        raise NeurouteError("--solver: --model, --from and --decoding to --revise are for networks; leave them out")
    settings = load_config(config) if config or Path("config.yaml").exists() else None
    memory_gb, trusted = (settings.memory_gb, settings.networks) if settings else (None, [])
    line, stands_in = solve_file(
        file,
        model,
        how,
        out,
        device,
        memory_gb,
        solvers=solvers,
        reference=reference,
        seconds=seconds,
        seed=seed,
        start=start_file,
        save=save,
        ignore=ignore or [],
        trusted=trusted,
        threads=threads,
        say=print,
    )
    print(line)
    if stands_in and not fallback:
        raise typer.Exit(STANDS_IN)


def models(name: Annotated[str | None, typer.Argument(help="a network, with all its measured gaps")] = None) -> None:
    """List the pretrained networks: problem, sizes, gaps; with NAME one in detail."""
    from neuroute.api.zoo import FOLDER, card_of, cards, table

    if name is not None:
        print(card_of(name))
    elif there := list(cards().values()):
        print(table(there))
        print("Gaps are of the largest tests within the sizes trained on; `neuroute models NAME` says more.")
    else:
        print(f"no networks in {FOLDER}; give a checkpoint of your own to `solve` and `evaluate` with --model")


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
