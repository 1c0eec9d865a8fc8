"""The plan: every object that the chosen papers and scale ask for, and the files that they become."""

import difflib
import hashlib
import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from neuroute.accounting.cost import entry_of_counts
from neuroute.core.errors import NeurouteError
from neuroute.plan.config import Config, Scale, load_scale
from neuroute.plan.digest import ROOT, code_digest
from neuroute.plan.objects import (
    AnyEvaluation,
    Artifact,
    BenchmarkEvaluation,
    EfficiencyEvaluation,
    Evaluation,
    LabelBundle,
    Labels,
    Reinforced,
    RescalingEvaluation,
    Run,
    StageEvaluation,
    Together,
    decodings_of,
    parts_of,
    reads_best_factor,
)
from neuroute.problems.registry import entries

HEADLINE = "scaling"  # its artifacts lie in results/ itself
T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """Everything by id.  Snakemake, the CLI and the tests read this same object."""

    config: Config
    scale: Scale
    bundles: Mapping[str, LabelBundle]
    runs: Mapping[str, Run]
    evaluations: Mapping[str, AnyEvaluation]
    artifacts: Mapping[str, Artifact]
    titles: Mapping[str, str]  # of the papers

    # -- files ------------------------------------------------------------------------------------------------

    @property
    def work(self) -> Path:
        """Folder of what is measured at this scale."""
        return Path(self.config.work_dir) / self.scale.name

    @property
    def label_store(self) -> Path:
        """Label shards of all scales; a label cache like any other."""
        return Path(self.config.work_dir) / "labels"

    @property
    def label_dirs(self) -> list[Path]:
        return [self.label_store]

    def manifest(self, bundle: str) -> Path:
        return self.work / "labels" / f"{bundle}.json"

    def run_dir(self, run: str) -> Path:
        return self.work / "runs" / run

    def run_files(self, run: str) -> tuple[str, ...]:
        """What a run leaves in its folder besides model, log and summary."""
        training = self.runs[run].training
        return training.files if isinstance(training, Reinforced) else ()

    def checkpoint(self, weights: str) -> Path:
        """The weights of a run or, as `<run>@<stage>`, those that it had at the end of a stage."""
        run, _, stage = weights.partition("@")
        return self.run_dir(run) / f"{stage or 'model'}.safetensors"

    def files_to_start(self, run: str) -> list[Path]:
        """The weights that a run starts from, unless these are random, and the moments beside them, if any."""
        start = self.runs[run].start
        if start is None:
            return []
        path = self.checkpoint(start)
        moments = path.with_suffix(".moments.safetensors")
        return [path, *([moments] if moments.name in self.run_files(start.partition("@")[0]) else [])]

    def evaluation_file(self, evaluation: str) -> Path:
        return self.work / "evaluations" / f"{evaluation}.csv"

    def benchmark_manifest(self, name: str) -> Path:
        """What is there of a public benchmark, and where."""
        return Path(self.config.work_dir) / "benchmarks" / f"{name}.json"

    def benchmarks_of_evaluation(self, evaluation: str) -> list[str]:
        """The public benchmarks that it measures a model on: a model for several problems has several."""
        parts = parts_of(self.evaluations[evaluation])
        return list(dict.fromkeys(e.benchmark for e in parts if isinstance(e, BenchmarkEvaluation)))

    def checkpoints_of_evaluation(self, evaluation: str) -> list[Path]:
        """The weights that are measured: the run's, and of an evaluation of stages those at their ends."""
        e = self.evaluations[evaluation]
        stages = [s for part in parts_of(e) if isinstance(part, StageEvaluation) for s in part.stages]
        return [self.checkpoint(e.run), *(self.checkpoint(f"{e.run}@{stage}") for stage in stages)]

    def rescaling_of_evaluation(self, evaluation: str) -> Path | None:
        """Where the best scaling factors lie that another evaluation of the same model has found."""
        e = self.evaluations[evaluation]
        if isinstance(e, Together) or not reads_best_factor(e):
            return None
        return self.evaluation_file(f"{e.run}/rescaling").with_suffix(".npz")

    def artifact_stem(self, artifact: str) -> Path:
        paper, name = artifact.split("/")
        results = Path(self.config.results_dir)
        return results / name if paper == HEADLINE else results / paper / name

    @property
    def report(self) -> Path:
        return Path(self.config.results_dir) / "index.html"

    # -- what hangs on what -----------------------------------------------------------------------------------

    @cached_property
    def _bundle_of_labels(self) -> dict[str, str]:
        return {labels.id: b.id for b in self.bundles.values() for labels in b.labels}

    def _bundles_with(self, wanted: Iterable[Labels]) -> list[str]:
        """Bundles that hold these labels, or the first instances of labels that hold them."""
        found: dict[str, None] = {}
        for each in wanted:
            found[self._bundle_of_labels.get(each.id) or self._bundle_that_covers(each)] = None
        return list(found)

    def _bundle_that_covers(self, wanted: Labels) -> str:
        for bundle in self.bundles.values():
            if any(_covers(labels, wanted) for labels in bundle.labels):
                return bundle.id
        raise LookupError(f"no label bundle covers {wanted.id}")

    def bundles_of_run(self, run: str) -> list[str]:
        r = self.runs[run]
        return self._bundles_with([*r.data, r.validation, *r.also_validation])

    def bundles_of_evaluation(self, evaluation: str) -> list[str]:
        return self._bundles_with(self.evaluations[evaluation].labels)

    # -- code digests -----------------------------------------------------------------------------------------

    def label_code(self, bundle: str) -> str:
        solvers = sorted({labels.solver for labels in self.bundles[bundle].labels})
        problems = {labels.dataset.problem for labels in self.bundles[bundle].labels}
        return code_digest(
            "neuroute.datasets.labels:make_labels", *entries(problems, "spec"), *map(_solver_entry, solvers)
        )

    def train_code(self, run: str) -> str:
        r = self.runs[run]
        decision = () if isinstance(r.training, Reinforced) else ("decision",)
        problem = entries([r.validation.dataset.problem], "spec", "environment", *decision, r.training.scheme)
        return code_digest("neuroute.training.train:train", r.network.kind, *problem)

    def network_code(self, run: str) -> str:
        return code_digest(self.runs[run].network.kind)

    def evaluate_code(self, evaluation: str) -> str:
        e = self.evaluations[evaluation]
        benchmarks = self.benchmarks_of_evaluation(evaluation)
        run = self.runs[e.run]
        problems = {run.validation.dataset.problem, *(labels.dataset.problem for labels in e.labels)}
        problem = entries(problems, "spec", "environment", "search")
        libraries = [_library_entry(benchmark) for benchmark in benchmarks]
        timed = [part for part in parts_of(e) if isinstance(part, EfficiencyEvaluation)]
        kinds = dict.fromkeys([run.network.kind, *(n.kind for part in timed for n in part.networks.values())])
        counts = [entry for kind in kinds for entry in entry_of_counts(kind)]
        starts = sorted({_solver_entry(d.start) for d in decodings_of(e) if d.start != "greedy"})
        measures = dict.fromkeys(each.entry for each in (e, *parts_of(e)))
        digest = code_digest(*measures, *kinds, *counts, *problem, *libraries, *starts)
        return digest + (_files_digest(map(_instances_of, benchmarks)) if benchmarks else "")

    def fetch_code(self, benchmark: str) -> str:
        code = code_digest("neuroute.datasets.fetch:provide", _library_entry(benchmark))
        return code + _files_digest([_instances_of(benchmark)])

    def render_code(self, artifact: str) -> str:
        a = self.artifacts[artifact]
        files = sorted((ROOT / "papers" / a.paper / "published").glob("*.csv"))
        files += [ROOT / "rendering" / "house.mplstyle"] if a.kind == "figure" else []
        benchmarks = {b for e in a.evaluations for b in self.benchmarks_of_evaluation(e)}
        files += [_instances_of(b) for b in sorted(benchmarks)]
        return code_digest("neuroute.rendering.render:render", a.function) + _files_digest(files)

    def report_code(self) -> str:
        return code_digest("neuroute.rendering.report:write_report") + _files_digest(
            [ROOT / "rendering" / "report.html"]
        )

    # -- lookups ----------------------------------------------------------------------------------------------

    def find(self, objects: Mapping[str, T], wanted: str, what: str) -> T:
        """An object by id; raises NeurouteError with the nearest ids."""
        if wanted in objects:
            return objects[wanted]
        near = difflib.get_close_matches(wanted, objects, n=3, cutoff=0.3) or list(objects)[:3]
        raise NeurouteError(f"unknown {what} '{wanted}'; did you mean {' or '.join(near)}? `neuroute plan` lists all")


def _together(
    evaluations: list[AnyEvaluation], artifacts: list[Artifact]
) -> tuple[list[AnyEvaluation], list[Artifact]]:
    """All evaluations of a model as one, and artifacts that read it instead of its parts."""
    of_run: dict[str, list[AnyEvaluation]] = {}
    for e in evaluations:
        of_run.setdefault(e.run, []).append(e)
    together = {run: _one(run, found) for run, found in of_run.items()}
    return list(together.values()), [
        a.model_copy(
            update={"evaluations": tuple(dict.fromkeys(together[e.rpartition("/")[0]].id for e in a.evaluations))}
        )
        for a in artifacts
    ]


def _one(run: str, evaluations: list[AnyEvaluation]) -> AnyEvaluation:
    """One evaluation for several of a model; scaling factors come first, as others may ask for the best."""
    tests = dict.fromkeys(t for e in evaluations if isinstance(e, Evaluation) for t in e.tests)
    measured = [Evaluation(run=run, group="all", tests=tuple(tests))] if tests else []
    others = [e for e in evaluations if not isinstance(e, Evaluation | Together)]
    first = [e for e in others if isinstance(e, RescalingEvaluation)]
    parts = (*first, *measured, *(e for e in others if e not in first))
    return measured[0] if parts == tuple(measured) else Together(run=run, parts=parts)


def _left_to_label(bundles: list[LabelBundle]) -> list[LabelBundle]:
    """Each without what an earlier bundle holds: papers share training and test sets."""
    held: list[Labels] = []
    out = []
    for bundle in bundles:
        own = tuple(labels for labels in bundle.labels if not any(_covers(h, labels) for h in held))
        held += own
        if own:
            out.append(bundle.model_copy(update={"labels": own}))
    return out


def _reading_what_holds(
    artifacts: list[Artifact], declared: list[LabelBundle], left: list[LabelBundle]
) -> list[Artifact]:
    """Artifacts that read the bundles which in the end hold the labels of those that they name."""
    labels_of = {b.id: b.labels for b in declared}

    def holder(wanted: Labels) -> str:
        return next(b.id for b in left if any(_covers(held, wanted) for held in b.labels))

    def read(artifact: Artifact) -> tuple[str, ...]:
        return tuple(dict.fromkeys(holder(labels) for name in artifact.bundles for labels in labels_of[name]))

    return [a.model_copy(update={"bundles": read(a)}) for a in artifacts]


def _covers(held: Labels, wanted: Labels) -> bool:
    """Whether `wanted` is `held`, or its first instances."""
    count = min(held.dataset.count, wanted.dataset.count)
    return held.model_copy(update={"dataset": held.dataset.model_copy(update={"count": count})}) == wanted


def _files_digest(files: Iterable[Path]) -> str:
    """Of what the code reads besides code: printed numbers, styles, templates."""
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]


def _library_entry(benchmark: str) -> str:
    return f"neuroute.datasets.{benchmark}_library:LIBRARY"


def _instances_of(benchmark: str) -> Path:
    return ROOT / "datasets" / f"{benchmark}.csv"


def _solver_entry(solver: str) -> str:
    from neuroute.solvers.registry import MODULES

    if solver not in MODULES:
        raise NeurouteError(f"unknown solver '{solver}'; known: {', '.join(sorted(MODULES))}")
    return f"{MODULES[solver]}:"


def build_plan(config: Config) -> Plan:
    """The plan of a config.  Raises NeurouteError for an unknown scale, paper or run."""
    scale = load_scale(config.scale)
    bundles: list[LabelBundle] = []
    runs: list[Run] = []
    evaluations: list[AnyEvaluation] = []
    artifacts: list[Artifact] = []
    titles: dict[str, str] = {}
    for paper in config.papers:
        declare = importlib.import_module(f"neuroute.papers.{paper}.declare")
        own = declare.runs(config, scale)
        runs += own
        bundles += declare.bundles(scale, own)
        evaluations += declare.evaluations(scale)
        artifacts += declare.artifacts(scale)
        titles[paper] = declare.TITLE
    if scale.evaluate_together:
        evaluations, artifacts = _together(evaluations, artifacts)
    left = _left_to_label(bundles)
    artifacts = _reading_what_holds(artifacts, bundles, left)
    plan = Plan(
        config=config,
        scale=scale,
        bundles={b.id: b for b in left},
        runs={r.id: r for r in runs},
        evaluations={e.id: e for e in evaluations},
        artifacts={a.id: a for a in artifacts},
        titles=titles,
    )
    for changed in config.runs:
        plan.find(plan.runs, changed, "run in config.yaml's `runs`")
    return plan
