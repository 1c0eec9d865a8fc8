"""The jobs that `chaos.py` interrupts: how they are started, what they hang on, and what they leave."""

import ctypes
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import yaml

from neuroute.datasets import labels
from neuroute.decoding import decode
from neuroute.evaluation import loaded
from neuroute.evaluation.loaded import CLOCK_ARRAYS, CLOCKS
from neuroute.pipeline.cli.warm import _command
from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import load_config
from neuroute.training import loop, self_improvement

ROOT = Path(__file__).resolve().parents[1]
EVERY_S = 0.02  # between two saves: these jobs take seconds, not days
CLOCK = re.compile("seconds|cores|load|solved|cached|peak_memory_mb|(csv|npz)_sha256|.*_s")  # keys of JSON
SKIPPED = {"state", "logs", "usage", ".snakemake", "results"}
LABELS = {  # by paper: a test set so large that it is solved in several chunks, and what makes it so
    "pens": ("tsp_uniform_test_n8_c400_concorde", {"test_counts": {100: 400}}),
    "sit": ("cvrp_uniform_test_n11_c270_hgs-short", {"cvrp": {"test_counts": {5000: 270}}}),
    "mvmoe": ("vrp_OVRPTW_uniform_test_n6_c300_pyvrp-short", {"test_counts": {50: 300}}),
}
RUNS = ("pens/pens_a", "scaling/base_6x128", "scaling/sigd", "sit/tsp_1k", "icam/icam_tsp")
EVALUATIONS = ("pens/pens_a/all", "sit/tsp_1k/all", "scaling/base_6x128/all")


@dataclass(frozen=True)
class Job:
    """Something that is killed: how it is started in a folder, and what it leaves there that is compared."""

    kind: str
    name: str
    start: Callable[[Path], int]  # returns the id of a process that leads its group
    gone: tuple[str, ...]  # what is not there yet, as patterns
    results: bool = False  # whether drawings are compared


def finish(job: Job, folder: Path) -> None:
    """Run a job to its end.  Raises RuntimeError with its last words if it fails."""
    status = os.waitstatus_to_exitcode(os.waitpid(job.start(folder), 0)[1])
    if status:
        raise RuntimeError(f"{job.name}: exit status {status}: {(folder.parent / 'log.txt').read_text()[-1500:]}")


def write_config(folder: Path, papers: list[str], changes: dict[str, Any] | None = None) -> Path:
    """Write config.yaml and the tests' scale, with changes to the papers' part of it."""
    scale = yaml.safe_load((ROOT / "tests" / "data" / "micro.yaml").read_text())
    for paper in papers if changes else ():
        change(scale[paper], changes)
    (folder / "micro.yaml").write_text(yaml.safe_dump(scale))
    file = folder / "config.yaml"
    file.write_text(json.dumps({"scale": "micro.yaml", "papers": papers, "device": "cpu", "benchmarks_dir": "none"}))
    (folder / "none").mkdir(exist_ok=True)
    return file


def change(settings: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict):
            change(settings[key], value)
        else:
            settings[key] = value


def command(folder: Path, *arguments: str, limit: int | None = None) -> int:
    """Run a command of neuroute in a copy of this process; return its id."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with this process
        os.chdir(folder)
        log = os.open("../log.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)  # never on a disk that is full
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.modules["__main__"] = ModuleType("__main__")  # solver processes need none of it
        count_steps()
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        status = _command(list(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def count_steps() -> None:
    """Write a letter for each chunk solved, batch trained and step of a decoding; save often."""
    loop.SHARE = 1
    loop.SAVE_EVERY_S = self_improvement.SAVE_EVERY_S = loaded.KEEP_EVERY_S = labels.KEEP_EVERY_S = EVERY_S
    steps = os.open("../steps.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def counted(function: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def run(*arguments: Any) -> Iterator[Any]:
            for each in function(*arguments):
                os.write(steps, b".")
                yield each

        return run

    labels.solve_chunks = counted(labels.solve_chunks)
    decode._improving = counted(decode._improving)
    begin = loop.TrainingLoop.__init__

    def begin_counted(self: Any, batches: Any, *more: Any) -> None:
        begin(self, batches, *more)
        train = batches.train
        batches.train = lambda index: os.write(steps, b".") and train(index)

    loop.TrainingLoop.__init__ = begin_counted  # type: ignore[method-assign]


def snakemake(folder: Path, limit: int | None = None) -> int:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--directory", str(folder), "all"]
    line += ["--cores", "1", "--configfile", "config.yaml"]
    with (folder.parent / "log.txt").open("ab") as log:
        process = subprocess.Popen(line, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
    return process.pid


def snapshot(folder: Path, results: bool) -> dict[str, str]:
    """Return a digest of each file that a job leaves, of those with seconds in them of all the rest."""
    found = {}
    for path in sorted(p for p in (folder / "work").rglob("*") if p.is_file()):
        parts = path.relative_to(folder).parts
        if not (SKIPPED & set(parts) or any(part.startswith(".") for part in parts)):
            found["/".join(parts)] = hashlib.sha256(contents(path)).hexdigest()
    if results:
        for path in sorted(p for p in (folder / "results").rglob("*") if p.is_file()):
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def contents(path: Path) -> bytes:
    if path.suffix in (".json", ".jsonl"):
        return "\n".join(json.dumps(without_clock(json.loads(line))) for line in lines(path)).encode()
    if path.suffix == ".csv":
        table = pd.read_csv(path)
        return table[~table.metric.isin(CLOCKS)].drop(columns="wall_time_s").to_csv(index=False).encode()
    if path.suffix == ".npz":
        with np.load(path) as file:
            return b"".join(key.encode() + file[key].tobytes() for key in file.files if not CLOCK_ARRAYS.search(key))
    return path.read_bytes()


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]


def without_clock(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_clock(each) for key, each in value.items() if not CLOCK.fullmatch(key)}
    return [without_clock(each) for each in value] if isinstance(value, list) else value


def plan_in(folder: Path) -> Plan:
    home = Path.cwd()
    os.chdir(folder)
    try:
        return build_plan(load_config(Path("config.yaml")))
    finally:
        os.chdir(home)


def prepare(folder: Path, run: str, group: str) -> None:
    """Do in a folder all that a training, or an evaluation of it, hangs on."""
    plan = plan_in(folder)
    chain = [run]
    while start := plan.runs[chain[-1]].start:
        chain.append(start.partition("@")[0])
    jobs = [job for each in chain for job in plan.label_jobs_of_run(each)]
    jobs += plan.label_jobs_of_evaluation(f"{run}/{group}") if group else []
    todo = [("label", job, "--workers", "1") for job in dict.fromkeys(jobs)]
    todo += [("train", each) for each in reversed(chain if group else chain[1:])]
    for benchmark in plan.benchmarks_of_evaluation(f"{run}/{group}") if group else ():
        todo.append(("fetch", benchmark))
    for line in todo:
        finish(Job("prepare", " ".join(line), partial(started, line), ()), folder)


def started(line: tuple[str, ...], folder: Path, limit: int | None = None) -> int:
    return command(folder, *line, limit=limit)


def jobs_of(kind: str, place: Path) -> Iterator[tuple[Job, Callable[[], Path]]]:
    """Yield the jobs of a kind, each with what makes the folder that holds what it hangs on."""
    if kind == "dag":
        yield Job(kind, "pens", snakemake, ()), partial(make_base, place / "dag", "pens")
    elif kind == "render":
        drawing = Job(kind, "pens", partial(started, ("render", "pens")), ("results",), results=True)
        yield drawing, partial(make_base, place / "render", "pens", all_of_it=True)
    elif kind == "label":
        for paper, (name, changes) in LABELS.items():
            job = Job(kind, name, partial(started, (kind, name, "--workers", "2")), ())
            yield job, partial(make_base, place / name, paper, changes=changes)
    else:
        for name in RUNS if kind == "train" else EVALUATIONS:
            run, _, group = name.rpartition("/") if kind == "evaluate" else (name, "", "")
            base = partial(make_base, place / f"{kind}-{name.replace('/', '-')}", name.partition("/")[0], run, group)
            yield Job(kind, name, partial(started, (kind, name)), ()), base


def make_base(
    base: Path,
    paper: str,
    run: str = "",
    group: str = "",
    all_of_it: bool = False,
    changes: dict[str, Any] | None = None,
) -> Path:
    """Make a folder for a paper, with all that a training or an evaluation of it hangs on, or with all there is."""
    base.mkdir()
    write_config(base, [paper], changes)
    if run:
        prepare(base, run, group)
    if all_of_it:
        finish(Job("dag", paper, snakemake, ()), base)
    return base
