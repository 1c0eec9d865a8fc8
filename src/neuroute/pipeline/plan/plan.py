"""The plan: every object that the chosen papers and scale ask for, and the files that they become."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import TypeVar

from neuroute.core.digest import ROOT, code_digest
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.job import CACHE_ENV
from neuroute.datasets.benchmarks import list_file, packaged_files
from neuroute.evaluation.flops import COUNTING
from neuroute.pipeline.plan.changes import with_seed
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Need
from neuroute.pipeline.plan.paper import Paper, load_paper, paper_folders
from neuroute.pipeline.plan.scale import load_scale, scale_names
from neuroute.problems.registry import entries
from neuroute.solvers.registry import entry
from neuroute.specs.objects import Artifact, BenchmarkEvaluation, Evaluation, Labels, Run, Test, training_entries

T = TypeVar("T")
TRAINED = ["model.safetensors", "log.jsonl", "stages.zip", "run.json"]  # what a training leaves in its run's folder


@dataclass(frozen=True)
class Plan:
    """Everything by id.  Snakemake, the CLI and the tests read this same object."""

    config: Config
    scale: Scale
    label_jobs: Mapping[str, Labels]  # one job for each set of labels, whoever reads it
    runs: Mapping[str, Run]
    evaluations: Mapping[str, Evaluation]
    artifacts: Mapping[str, Artifact]
    papers: Mapping[str, Paper]
    needs: Mapping[str, list[Need]]  # of each artifact, as far as they can be met
    unreachable: frozenset[str] = frozenset()  # runs that are not trained, since what they start from is not there

    @property
    def titles(self) -> dict[str, str]:
        """Of the papers."""
        return {key: paper.title for key, paper in self.papers.items()}

    def trainings(self, run: str) -> list[str]:
        """The run and its further trainings, which differ by their seed."""
        return [run, *takewhile(self.runs.__contains__, (with_seed(run, i) for i in count(1)))]

    def full_id(self, name: str) -> str:
        """The id of an artifact of the headline paper that is named without its paper."""
        headline = [key for key, paper in self.papers.items() if paper.headline]
        return f"{headline[0]}/{name}" if headline and "/" not in name else name

    # -- files ------------------------------------------------------------------------------------------------

    @property
    def work(self) -> Path:
        """Folder of what is measured at this scale."""
        return Path(self.config.work_dir) / self.scale.name

    @property
    def cache(self) -> Path:
        """Folder of what is kept for later jobs, and can be had again: label shards, states of trainings."""
        return Path(os.environ.get(CACHE_ENV) or self.config.work_dir)

    @property
    def label_store(self) -> Path:
        """Label shards of all scales; a label cache like any other."""
        return self.cache / "labels"

    @property
    def label_dirs(self) -> list[Path]:
        """Where labels are read: the store, and the manifests that say what is to be in it."""
        return [self.label_store, self.manifest("").parent]

    def manifest(self, job: str) -> Path:
        return self.work / "labels" / f"{job}.json"

    def solutions(self, job: str) -> Path:
        """The solutions that a label job leaves."""
        return self.manifest(job).with_suffix(".npz")

    def label_files(self, jobs: Iterable[str]) -> list[Path]:
        return [file for job in jobs for file in (self.manifest(job), self.solutions(job))]

    def published_files(self, job: str) -> list[Path]:
        """The user's files that a label job reads: a published test set, and solutions beside it."""
        dataset = self.label_jobs[job].dataset
        if dataset.file is None:
            return []
        source = self.scale.source_of(dataset)
        return [source, *sorted(source.parent.glob(f"*_{source.name}"))]

    def run_dir(self, run: str) -> Path:
        return self.work / "runs" / run

    def checkpoint(self, run: str) -> Path:
        return self.run_dir(run) / "model.safetensors"

    def stages(self, run: str) -> Path:
        """The file of the ends of a run's stages."""
        return self.run_dir(run) / "stages.zip"

    def files_to_start(self, run: str) -> list[Path]:
        """The model that a run starts from, unless its weights are random, and the ends of stages, with moments."""
        start = (self.runs[run].start or "").partition("@")[0]
        return [self.checkpoint(start), self.stages(start)] if start else []

    def evaluation_file(self, evaluation: str) -> Path:
        return self.work / "evaluations" / f"{evaluation}.csv"

    def benchmark_manifest(self, name: str) -> Path:
        """What is there of a public benchmark, and where."""
        return Path(self.config.work_dir) / "benchmarks" / f"{name}.json"

    def benchmarks_of_evaluation(self, evaluation: str) -> list[str]:
        """The public benchmarks that it measures a model on: a model for several problems has several."""
        return list(dict.fromkeys(m.benchmark for m in self.evaluations[evaluation].of_kind(BenchmarkEvaluation)))

    def benchmarks_to_fetch(self, evaluation: str) -> list[str]:
        """Those of them that the evaluation needs more of than what comes with the package."""
        there = self.evaluations[evaluation].of_kind(BenchmarkEvaluation)
        beyond = (m.benchmark for m in there if not (m.names and set(m.names) <= set(packaged_files(m.benchmark))))
        return list(dict.fromkeys(beyond))

    def checkpoints_of_evaluation(self, evaluation: str) -> list[Path]:
        """The files of the weights that are measured: the run's, and those at the ends of stages."""
        e = self.evaluations[evaluation]
        has_stages = any(test.stage for test in e.of_kind(Test))
        return [self.checkpoint(e.run), *([self.stages(e.run)] if has_stages else [])]

    def rescaling_of_evaluation(self, evaluation: str) -> Path | None:
        """Where the best scaling factors lie that another evaluation of the same model has found."""
        e = self.evaluations[evaluation]
        if not e.reads_best_factor():
            return None
        return self.evaluation_file(f"{e.run}/rescaling").with_suffix(".npz")

    def artifact_stem(self, artifact: str) -> Path:
        paper, name = artifact.split("/")
        return self.stem_of(self.papers[paper], name)

    def stem_of(self, paper: Paper, name: str) -> Path:
        """Where a paper's artifact lies, or would lie if the paper were in this plan."""
        results = Path(self.config.results_dir)
        return results / name if paper.headline else results / paper.key / name

    @property
    def report(self) -> Path:
        return Path(self.config.results_dir) / "index.html"

    @property
    def summary(self) -> Path:
        """What `write_report` leaves beside the report."""
        return self.report.with_name("summary.json")

    # -- what hangs on what -----------------------------------------------------------------------------------

    def label_jobs_of_run(self, run: str) -> list[str]:
        return list(dict.fromkeys(labels.id for labels in self.runs[run].labels))

    def label_jobs_of_evaluation(self, evaluation: str) -> list[str]:
        return list(dict.fromkeys(labels.id for labels in self.evaluations[evaluation].labels))

    # -- code digests -----------------------------------------------------------------------------------------

    def label_code(self, job: str) -> str:
        labels = self.label_jobs[job]
        return code_digest(
            "neuroute.datasets.labels:make_labels",
            *entries([labels.dataset.problem], "spec"),
            entry(labels.solver),
        )

    def train_code(self, run: str) -> str:
        return code_digest(*training_entries(self.runs[run]))

    def network_code(self, run: str) -> str:
        return code_digest(self.runs[run].network.kind)

    def evaluate_code(self, evaluation: str) -> str:
        e = self.evaluations[evaluation]
        benchmarks = self.benchmarks_of_evaluation(evaluation)
        run = self.runs[e.run]
        problems = {run.validation.dataset.problem, *(labels.dataset.problem for labels in e.labels)}
        problem = entries(problems, "spec", "environment", "search")
        libraries = [_library_entry(benchmark) for benchmark in benchmarks]
        timed = [network for m in e.measurements for network in getattr(m, "networks", {}).values()]
        kinds = dict.fromkeys(network.kind for network in (run.network, *timed))
        starts = sorted({entry(solver) for d in e.decodings_used() for solver in d.solvers})
        methods = {d.method for d in e.decodings_used() if d.is_own or d.method == "revise"}
        for method in sorted(methods):
            starts += entries([run.validation.dataset.problem], method)
        measures = dict.fromkeys(m.entry for m in e.measurements)
        digest = code_digest(
            "neuroute.evaluation.driver:evaluate", COUNTING, *measures, *kinds, *problem, *libraries, *starts
        )
        files = [file for b in benchmarks for file in (list_file(b), *packaged_files(b).values())]
        return digest + (_files_digest(files) if files else "")

    def fetch_code(self, benchmark: str) -> str:
        code = code_digest("neuroute.datasets.fetch:provide", _library_entry(benchmark))
        return code + _files_digest([list_file(benchmark)])

    def render_code(self, artifact: str) -> str:
        a = self.artifacts[artifact]
        names = (*(f"{name}.csv" for name in a.printed_files), f"{a.name}.md", "shared.md")
        paths = (self.papers[a.paper].folder / "published" / name for name in names)
        files = [file for file in paths if file.is_file()]
        files += [ROOT / "pipeline" / "rendering" / "house.mplstyle"] if a.kind == "figure" else []
        benchmarks = {b for e in a.evaluations for b in self.benchmarks_of_evaluation(e)}
        files += [list_file(b) for b in sorted(benchmarks)]
        entries = ["neuroute.pipeline.rendering.render:render", "neuroute.pipeline.rendering.study:Study", a.function]
        if not self._inputs_of_runs(artifact):  # it may count what networks have or do while it is drawn
            entries += [COUNTING, *sorted({self.runs[run].network.kind for run in self._shown_runs(artifact)})]
        return code_digest(*entries) + _files_digest(files)

    def report_code(self) -> str:
        files = [ROOT / "pipeline" / "rendering" / name for name in ("report.html", "spreads.csv")]
        functions = ("report:write_report", "verdicts:judge_all", "protocol:protocol_lines")
        entries = [f"neuroute.pipeline.rendering.{function}" for function in functions]
        for key in dict.fromkeys(a.paper for a in self.artifacts.values()):
            if declared := self.papers[key].protocol:
                entries.append(f"{declared.__module__}:{declared.__name__}")
            paper = self.papers[key]
            if claims := paper.claims():
                entries += [paper.claim_function(claim) for claim in claims if claim.function]
                compared = {table for claim in claims for table in claim.tables}
                entries += [a.function for a in self.artifacts.values() if a.paper == key and a.name in compared]
                files += [paper.folder / "claims.yaml", *sorted((paper.folder / "published").glob("*.csv"))]
        return code_digest(*entries) + _files_digest(files)

    def digested(self, job: str) -> tuple[str, str]:
        """What Snakemake compares of a job: its spec, and the digest of its code."""
        if job in self.label_jobs:
            return self.label_jobs[job].canonical(), self.label_code(job)
        if job in self.runs:
            return self.runs[job].canonical(), self.train_code(job)
        if job in self.evaluations:
            return self.evaluations[job].canonical(), self.evaluate_code(job)
        return self.shown_spec(job), self.render_code(job)

    def shown_spec(self, artifact: str) -> str:
        """What an artifact shows besides its inputs: its paper's part of the scale, and the runs that it reads."""
        a, runs = self.artifacts[artifact], self._shown_runs(artifact)
        return "\n".join([a.canonical(), self.scale.of(a.paper), *(self.runs[r].canonical() for r in runs)])

    def _inputs_of_runs(self, artifact: str) -> set[str]:
        a = self.artifacts[artifact]
        return {*a.runs, *(self.evaluations[e].run for e in a.evaluations)}

    def _shown_runs(self, artifact: str) -> list[str]:
        """Runs that an artifact may show: one without inputs of runs, such as a table of settings, any of its paper."""
        paper = self.artifacts[artifact].paper
        return sorted(self._inputs_of_runs(artifact) or (run.id for run in self.runs.values() if run.paper == paper))

    # -- lookups ----------------------------------------------------------------------------------------------

    def declares(self, name: str) -> bool:
        """Whether any known paper, be it in this plan or not, has an artifact of this id."""
        key, _, own_name = name.partition("/")
        return key in paper_folders() and own_name in {d.name for d in load_paper(key).declarations()}

    def artifact(self, name: str) -> Artifact:
        """An artifact by id.  Raises NeurouteError with the paper or scales that have it, else with near ids."""
        if name in self.artifacts or not self.declares(name):
            return self.find(self.artifacts, name, "table or figure")
        key, _, own_name = name.partition("/")
        if key not in self.papers and key in self.scale.apart:
            raise NeurouteError(f"{name}: scale {self.scale.name} leaves {key} apart: give `papers: [{key}]`")
        if key not in self.papers and self.config.papers:
            listed = f"`papers: [{', '.join(self.config.papers)}]` in {self.config.where}"
            raise NeurouteError(f"{name}: {listed} leaves {key} out: add {key}")
        having = [scale for scale in scale_names() if self._is_shown_at(scale, load_paper(key), own_name)]
        which = f"scales that do: {', '.join(having)}" if having else "no scale in workflow/scales does"
        raise NeurouteError(f"{name}: scale {self.scale.name} does not train its models; {which}")

    def _is_shown_at(self, scale: str, paper: Paper, name: str) -> bool:
        try:
            return name in {d.name for d in paper.needs(load_scale(scale, [paper.key]))}
        except NeurouteError:  # a scale without this paper
            return False

    def find(self, objects: Mapping[str, T], name: str, what: str) -> T:
        """An object by id.  Raises NeurouteError with near ids."""
        if name in objects:
            return objects[name]
        meant = did_you_mean(near(name, objects)) or ";"
        raise NeurouteError(f"unknown {what} '{name}'{meant} `neuroute plan --all` lists all")


def _files_digest(files: Iterable[Path]) -> str:
    """Of what the code reads besides code: printed numbers, styles, templates."""
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]


def _library_entry(benchmark: str) -> str:
    return f"neuroute.datasets.benchmarks:{benchmark.upper()}"
