"""The plan: every object that the chosen papers and scale ask for, and the files that they become."""

import difflib
import hashlib
import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from neuroute.errors import NeurouteError
from neuroute.plan.config import Config, Scale, load_scale
from neuroute.plan.digest import ROOT, code_digest
from neuroute.plan.objects import Artifact, Evaluation, LabelBundle, Run

HEADLINE = "scaling"  # its artifacts lie in results/ itself
T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """Everything by id.  Snakemake, the CLI and the tests read this same object."""

    config: Config
    scale: Scale
    bundles: Mapping[str, LabelBundle]
    runs: Mapping[str, Run]
    evaluations: Mapping[str, Evaluation]
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

    def evaluation_file(self, evaluation: str) -> Path:
        return self.work / "evaluations" / f"{evaluation}.csv"

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

    def _bundles_with(self, ids: Iterable[str]) -> list[str]:
        """Bundles that hold these labels, or the first instances of labels that hold them."""
        found: dict[str, None] = {}
        for each in ids:
            found[self._bundle_of_labels.get(each) or self._bundle_that_covers(each)] = None
        return list(found)

    def _bundle_that_covers(self, labels_id: str) -> str:
        wanted = next(t.labels for e in self.evaluations.values() for t in e.tests if t.labels.id == labels_id)
        for bundle in self.bundles.values():
            for labels in bundle.labels:
                same = wanted.model_copy(
                    update={"dataset": wanted.dataset.model_copy(update={"count": labels.dataset.count})}
                )
                if same == labels and wanted.dataset.count <= labels.dataset.count:
                    return bundle.id
        raise LookupError(f"no label bundle covers {labels_id}")

    def bundles_of_run(self, run: str) -> list[str]:
        r = self.runs[run]
        return self._bundles_with([*(d.id for d in r.data), r.validation.id])

    def bundles_of_evaluation(self, evaluation: str) -> list[str]:
        return self._bundles_with(t.labels.id for t in self.evaluations[evaluation].tests)

    # -- code digests -----------------------------------------------------------------------------------------

    def label_code(self, bundle: str) -> str:
        solvers = sorted({labels.solver for labels in self.bundles[bundle].labels})
        return code_digest("neuroute.datasets.labels:make_labels", *map(_solver_entry, solvers))

    def train_code(self, run: str) -> str:
        return code_digest("neuroute.training.train:train", self.runs[run].network.kind)

    def network_code(self, run: str) -> str:
        return code_digest(self.runs[run].network.kind)

    def evaluate_code(self, evaluation: str) -> str:
        kind = self.runs[self.evaluations[evaluation].run].network.kind
        return code_digest("neuroute.evaluation.measure:measure", kind)

    def render_code(self, artifact: str) -> str:
        a = self.artifacts[artifact]
        files = sorted((ROOT / "papers" / a.paper / "published").glob("*.csv"))
        files += [ROOT / "rendering" / "house.mplstyle"] if a.kind == "figure" else []
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


def _files_digest(files: Iterable[Path]) -> str:
    """Of what the code reads besides code: printed numbers, styles, templates."""
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]


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
    evaluations: list[Evaluation] = []
    artifacts: list[Artifact] = []
    titles: dict[str, str] = {}
    for paper in config.papers:
        declare = importlib.import_module(f"neuroute.papers.{paper}.declare")
        own = declare.runs(config, scale)
        runs += own
        bundles += declare.bundles(scale, own)
        evaluations += declare.evaluations(scale)
        artifacts += declare.artifacts()
        titles[paper] = declare.TITLE
    plan = Plan(
        config=config,
        scale=scale,
        bundles={b.id: b for b in bundles},
        runs={r.id: r for r in runs},
        evaluations={e.id: e for e in evaluations},
        artifacts={a.id: a for a in artifacts},
        titles=titles,
    )
    for changed in config.runs:
        plan.find(plan.runs, changed, "run in config.yaml's `runs`")
    return plan
