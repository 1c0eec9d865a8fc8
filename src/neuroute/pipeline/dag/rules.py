"""What the rules of the workflow ask: which files a job reads, how jobs are told apart, and what goes together."""

import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from snakemake.exceptions import WorkflowError
from snakemake.io import ancient, local
from snakemake.logging import logger

import neuroute
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.files import scratch_folder
from neuroute.core.job import CONFIG_ENV, SOCKET_ENV
from neuroute.core.yaml_files import read_yaml
from neuroute.datasets.benchmarks import instance_file, published_instances
from neuroute.pipeline.dag.engine import Engine
from neuroute.pipeline.plan.build import build_plan, settle
from neuroute.pipeline.plan.config import PLANNED_ENV, gpus, parse_config
from neuroute.pipeline.plan.estimates import Estimates
from neuroute.pipeline.plan.paper import all_papers, load_paper
from neuroute.pipeline.plan.plan import Plan
from neuroute.specs.objects import Artifact, GivenRun, Reinforced, formats

T = TypeVar("T")


def or_workflow_error(function: Callable[..., T]) -> Callable[..., T]:
    """Raise a WorkflowError, one line of Snakemake's, instead of a NeurouteError."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> T:
        try:
            return function(*arguments, **options)
        except NeurouteError as error:
            raise WorkflowError(str(error)) from None

    return call


class Rules:
    """A plan as jobs: `w` are the wildcards of one.

    Attributes:
        plan: what there is to do.
        requests: what jobs ask a cluster for; `--cores` is what one of them may have there, and all of them share here.
        gpus: of a training.
        running: what ends with this Snakemake.
    """

    def __init__(self, plan: Plan, engine: Engine) -> None:
        self.plan, self.engine = plan, engine
        self.requests = Estimates(plan, engine.cores or 16)
        self.gpus = gpus(plan.config)
        self.given = [run for run, r in plan.runs.items() if isinstance(r, GivenRun)]
        self.running = ExitStack()

    @classmethod
    @or_workflow_error
    def of(cls, workflow: Any, config: dict[str, Any]) -> "Rules":
        """The rules of a config.  Jobs get the same config, and the code and the environment of this process.

        Raises WorkflowError for a config that is none.
        """
        engine = Engine(workflow)
        for file in engine.config_files:
            read_yaml(Path(file))  # what Snakemake says nothing of: a key that comes twice
        # In messages files as they are called; `config.yaml` where another workflow's config holds ours.
        where = " with ".join(engine.config_files) or "config.yaml"
        plan = settle(build_plan(parse_config(config, where)))
        config["substitutes"] = plan.config.substitutes  # fixed for this run, whatever is installed meanwhile
        os.environ.pop(SOCKET_ENV, None)  # of the machine that sent this job, if it was sent
        if not os.path.exists(os.environ.get(PLANNED_ENV, "")):
            os.environ.pop(PLANNED_ENV, None)  # likewise, where no folder is shared
        os.environ[CONFIG_ENV] = json.dumps(config)
        # The environment that runs Snakemake, activated or not; of a checkout its own package.
        folder = Path(neuroute.__file__).parents[1]
        source = [str(folder)] if folder.name == "src" else []
        os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
        os.environ["PYTHONPATH"] = os.pathsep.join([*source, *filter(None, [os.environ.get("PYTHONPATH")])])
        return cls(plan, engine)

    @or_workflow_error
    def begin(self) -> None:
        """When all rules are known, and before it is decided what there is to do."""
        logger.addFilter(ExplainTargets(self.plan, self.engine.rules))
        if self.engine.is_main:
            self.engine.check_storage()
        if self.engine.starts_jobs:
            self._fetch_what_was_missing()
        if self.engine.runs_group:
            self.start_warm_process()  # hooks are for the process that sends jobs

    def _fetch_what_was_missing(self) -> None:
        """What came of a network that was not there before is new input."""
        plan = self.plan
        if plan.config.benchmarks_dir:
            return
        names = {b for e in plan.evaluations for b in plan.benchmarks_to_fetch(e)}
        manifests = {b: plan.benchmark_manifest(b) for b in sorted(names) if plan.benchmark_manifest(b).exists()}
        if manifests:
            from neuroute.datasets.fetch import fetch_again

            if came := fetch_again(manifests):
                logger.info(f"{came} public instances were fetched that were missing before.")

    def start_warm_process(self) -> None:
        """Start it, if the scale has warm jobs; it ends with `running`, and with this process, whose pipe it holds.

        Of jobs that go to a cluster those are its copies that are made where they are sent from, tables and figures;
        the others know nothing of it, on whatever node they run.
        """
        if not self.plan.scale.warm_jobs or not hasattr(os, "pidfd_open"):
            return
        place = self.running.enter_context(scratch_folder())
        os.environ[SOCKET_ENV] = f"{place}/socket"
        log = self.running.enter_context((place / "log").open("w"))
        command = [sys.executable, "-m", "neuroute", "warm", os.environ[SOCKET_ENV]]
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, env=os.environ | one_thread
        )
        assert process.stdin
        self.running.callback(process.stdin.close)
        while not os.path.exists(os.environ[SOCKET_ENV]) and process.poll() is None:
            time.sleep(0.05)

    # -- which jobs a rule makes --------------------------------------------------------------------------------------

    @property
    def trained_here(self) -> str:
        """A wildcard that matches runs that are trained."""
        return _one_of(self.plan.runs.keys() - set(self.given))

    @property
    def imported(self) -> str:
        """A wildcard that matches runs whose weights config.yaml gives."""
        return _one_of(self.given)

    def artifacts_of(self, kind: str) -> str:
        """A wildcard that matches all tables or all figures, as their files are called in the results folder."""
        stems = [self.plan.artifact_stem(a) for a, o in self.plan.artifacts.items() if o.kind == kind]
        return _one_of(str(stem.relative_to(self.plan.config.results_dir)) for stem in stems)

    def artifact(self, w: Any) -> Artifact:
        return self.plan.artifacts[self.plan.full_id(w.artifact)]

    def paper(self, w: Any) -> str:
        """The title of an artifact's paper, as the heading of a report."""
        return self.plan.papers[self.artifact(w).paper].title

    # -- what a job reads ---------------------------------------------------------------------------------------------

    def drawings(self) -> list[str]:
        """All files of all artifacts: one that is lost is made again."""
        artifacts = self.plan.artifacts.values()
        return [f"{self.plan.artifact_stem(a.id)}.{suffix}" for a in artifacts for suffix in formats(a.kind)]

    def artifact_inputs(self, w: Any) -> list[Any]:
        return self._behind(self.artifact(w))

    def _behind(self, a: Artifact) -> list[Any]:
        plan = self.plan
        return (
            [
                file
                for e in a.evaluations
                for file in [plan.evaluation_file(e).with_suffix(end) for end in (".csv", ".npz", ".json")]
            ]
            + [plan.run_dir(r) / file for r in a.runs for file in ("log.jsonl", "run.json")]
            + self._summaries(plan.evaluations[e].run for e in a.evaluations)
            + [plan.manifest(b) for b in a.label_jobs]
        )

    def report_inputs(self) -> list[Any]:
        """What is drawn, and all that claims are judged by."""
        behind = (file for a in self.plan.artifacts.values() for file in self._behind(a))
        return [*self.drawings(), *dict.fromkeys(behind)]

    def published_files(self, w: Any) -> list[Any]:
        return [local(str(file)) for file in self.plan.published_files(w.labels)]

    def own_instances(self, w: Any) -> list[Any]:
        """Instances of a benchmark in the user's copy: one that comes, goes or changes is new input."""
        folder = self.plan.config.benchmarks_dir
        names = published_instances(w.benchmark) if folder else ()
        files = (instance_file(Path(folder), name, w.benchmark) for name in names)  # type: ignore[arg-type]
        return [local(str(file)) for file in files if file.is_file()]

    def evaluation_inputs(self, w: Any) -> list[Any]:
        """The weights that are measured, the labels, the public benchmarks, and a sweep that went before."""
        e, plan = evaluation_of(w), self.plan
        return (
            plan.checkpoints_of_evaluation(e)
            + self._summaries([plan.evaluations[e].run])
            + plan.label_files(plan.label_jobs_of_evaluation(e))
            + [plan.benchmark_manifest(b) for b in plan.benchmarks_to_fetch(e)]
            + [file for file in [plan.rescaling_of_evaluation(e)] if file]
        )

    def training_inputs(self, w: Any) -> list[Any]:
        plan, start = self.plan, (self.plan.runs[w.run].start or "").partition("@")[0]
        files = plan.label_files(plan.label_jobs_of_run(w.run)) + plan.files_to_start(w.run)
        return [*files, *self._summaries([start] if start else [])]

    def _summaries(self, runs: Iterable[str]) -> list[Any]:
        """What says which weights a run's are.  They also say how long it took, so their age and content count for
        nothing here.
        """
        return [ancient(str(self.plan.run_dir(run) / "run.json")) for run in dict.fromkeys(runs)]

    def compare_inputs(self, w: Any) -> list[Any]:
        """Libraries, the weights of runs that are named, and others' results."""
        settings = self.plan.config.block("compare")
        if settings is None:  # not installed, as the job says
            return []
        runs = [run for run in settings.sources if run in self.plan.runs]
        return (
            [self.plan.benchmark_manifest(b) for b in settings.benchmarks]
            + [self.plan.checkpoint(run) for run in runs]
            + [local(file) for file in settings.results]
        )

    # -- how a job runs -----------------------------------------------------------------------------------------------

    def resources(self, stage: str, name_of: Callable[[Any], str]) -> dict[str, Callable[[Any, int], int]]:
        """What a job asks a cluster for; `attempt` tells it which of its attempts it is (core/job.py)."""

        def asked(of: Callable[[str, str, int], int]) -> Callable[[Any, int], int]:
            return lambda wildcards, attempt: of(stage, name_of(wildcards), attempt)

        r = self.requests
        return {
            "attempt": lambda wildcards, attempt: attempt,
            "runtime": asked(r.runtime),
            "mem_mb": asked(r.mem_mb),
            "share": asked(r.share),
        }

    def group(self, stage: str, name: str) -> str | None:
        """Which short jobs go to a cluster together; a profile says how many (group-components: short=16)."""
        group = self.requests.group(stage, name)
        if group:
            self.engine.send_together(group, "short")
        return group

    def urgency(self, run: str) -> int:
        """Trainings that make their own labels come first, as others start from them: runs that hang on each other are
        what takes longest in the end.
        """
        training = self.plan.runs[run].training
        return 2 if isinstance(training, Reinforced) else int(training.kind != "supervised")

    def products(self) -> Mapping[str, str]:
        """A parameter where a GPU keeps all digits of fp32 products, which gives other results than TF32."""
        return {"products": "fp32"} if self.gpus and not self.plan.config.tf32 else {}


def evaluation_of(w: Any) -> str:
    """The id of an evaluation."""
    return f"{w.paper}/{w.name}/{w.group}"


def launcher(w: Any, resources: Any) -> str:
    """Several GPUs of a training: a process for each."""
    return f"-m torch.distributed.run --standalone --nproc-per-node {resources.gpu}" if resources.gpu > 1 else ""


def _one_of(ids: Iterable[str]) -> str:
    """A wildcard that matches these alone."""
    return "|".join(map(re.escape, sorted(ids))) or "(?!)"


# -- of a target that no rule makes, what was meant; by the words of a message of Snakemake ---------------------------

REFUSAL = re.compile(r"MissingRuleException.*No rule to produce (\S+) \(", re.DOTALL)


class ExplainTargets(logging.Filter):
    """Puts one line that says whose a target is, or which one is near, in the place of Snakemake's refusal."""

    def __init__(self, plan: Plan, rules: Iterable[str]) -> None:
        """rules: names of the Snakefile's."""
        super().__init__()
        self._plan, self._rules = plan, list(rules)

    def filter(self, record: logging.LogRecord) -> bool:
        if refusal := REFUSAL.match(record.getMessage()):
            record.msg, record.args = f"error: {explain(self._plan, refusal[1], self._rules)}", None
        return True


def explain(plan: Plan, target: str, rules: Iterable[str]) -> str:
    """One line on a target, a name or a file, that no rule makes."""
    if target in plan.papers:
        return f"{target} is a paper, not a target; set `papers: [{target}]` in {plan.config.where} and make `all`"
    path = Path(os.path.normpath(target))
    for paper in map(load_paper, all_papers()):
        names = [d.name for d in paper.declarations() if plan.stem_of(paper, d.name) == path.with_suffix("")]
        if names and f"{paper.key}/{names[0]}" not in plan.artifacts:
            same = [
                plan.artifact_stem(a.id).with_suffix(path.suffix) for a in plan.artifacts.values() if a.name == names[0]
            ]
            others = f", or make {' or '.join(map(str, same[:3]))}" if same else ""
            try:
                reason = plan.artifact(f"{paper.key}/{names[0]}").id
            except NeurouteError as error:
                reason = str(error)
            return f"{target} is {reason}{others}"
    targets: dict[str, list[str]] = {rule: [rule] for rule in rules}
    for name, file in _targets(plan):
        targets.setdefault(name, []).append(file)
    names = [target] if target in targets else near(str(path), targets)
    return f"no rule makes {target}" + (
        did_you_mean(file for name in names for file in targets[name]) or "; `neuroute plan --all` lists what there is"
    )


def _targets(plan: Plan) -> Iterator[tuple[str, str]]:
    """Names and files, each with the target that stands for it."""
    for a in plan.artifacts.values():
        files = [str(plan.artifact_stem(a.id).with_suffix(f".{ending}")) for ending in formats(a.kind)]
        yield from zip(files, files, strict=True)
        yield from ((str(plan.report.parent / f"{a.id}{Path(file).suffix}"), file) for file in files)
        yield from ((name, files[0]) for name in (a.id, a.name, os.path.splitext(files[0])[0]))
    others: list[tuple[Path, tuple[str, ...]]] = []  # files with their names
    others += [(plan.checkpoint(run), (run, str(plan.run_dir(run)))) for run in plan.runs]
    others += [(plan.evaluation_file(evaluation), (evaluation,)) for evaluation in plan.evaluations]
    others += [(plan.manifest(job), (job,)) for job in plan.label_jobs]
    for file, names in (*others, (plan.report, ()), (plan.summary, ())):
        yield from ((name, str(file)) for name in (*names, str(file)))
