"""What targets mean and bring: of one that no rule makes, what was meant; after a run, its headline numbers.

It goes by the words of a message of Snakemake: of another one's the refusal stays as it is.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.files import check_stated, read_json
from neuroute.datasets.benchmarks import library
from neuroute.pipeline.plan.papers import all_papers, load_paper
from neuroute.pipeline.plan.plan import Plan
from neuroute.pipeline.rendering.verdicts import in_short
from neuroute.specs.evaluations import BenchmarkEvaluation
from neuroute.specs.objects import formats

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


def headlines(plan: Plan) -> list[str]:
    """Return what the report says in short, a line for each of the first papers of which gaps are recorded, and which
    tables have nothing measured, why, and how to mend it.

    Raises NeurouteError if the report's summary is missing or broken, or records were edited.
    """
    summary = read_json(plan.summary, "run `neuroute report`", "numbers", "claims", "coverage")
    numbers, lines = summary["numbers"], list[str]()
    if summary["claims"]:
        lines.append(in_short(summary["scale"], summary["verdicts"]))
    lines.append(
        f"{numbers['measured']:,} cells measured, {numbers['beside_printed']:,} of them beside printed numbers"
    )
    # Those of which nothing is printed come last.
    papers = sorted(plan.papers, key=lambda paper: plan.papers[paper].optional)
    gaps = (_best_gap(plan, paper) for paper in papers)
    return [*lines, *[line for line in gaps if line][:3], *_nothing_measured(plan, summary["coverage"])]


def _nothing_measured(plan: Plan, coverage: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Iterator[str]:
    """Yield a line for each reason that tables have no number of their own."""
    names: dict[str, list[str]] = {}
    for artifact in plan.artifacts.values():
        cells = coverage.get(artifact.paper, {}).get(artifact.name)
        if cells and not cells["measured"]:
            names.setdefault(_reason(plan, artifact.id), []).append(artifact.id)
    for reason, of in names.items():
        yield f"Nothing measured in {', '.join(of)}: {reason}"


def _reason(plan: Plan, artifact: str) -> str:
    tests = [need for need in plan.needs[artifact] if isinstance(need, BenchmarkEvaluation)]
    titles = dict.fromkeys(library(need.benchmark).title for need in tests)
    if tests and len(tests) == len(plan.needs[artifact]):
        return (
            f"no instance of {' or '.join(titles)} was found; run again with internet access, or set `benchmarks_dir` "
            "in config.yaml to a folder with copies"
        )
    return f"its notes say why ({plan.artifact_stem(artifact)}.md)"


def _best_gap(plan: Plan, paper: str) -> str:
    """The least gap of the models that most are compared with; nothing where none is measured."""
    files = {plan.evaluation_file(e.id): e.id for e in plan.evaluations.values() if plan.runs[e.run].paper == paper}
    tables = []
    for file in filter(Path.exists, files):
        check_stated(file, f"evaluate it again: `neuroute evaluate {files[file]}`")
        rows = pd.read_csv(file, dtype=str, keep_default_na=False)
        tables.append(rows[(rows.metric == "gap_pct") & (rows.reference != "none") & (rows.value != "")])
    if not any(map(len, tables)):
        return ""
    gaps = pd.concat(tables).drop_duplicates(["test", "decoding", "run"], keep="last")
    compared = max((rows for _, rows in gaps.groupby(["test", "decoding"], sort=False)), key=len)
    best = min(compared.to_dict("records"), key=lambda row: (float(row["value"]), row["run"]))
    weights = f" with {best['weights']}" if best["weights"] else ""
    of = f", the best of {len(compared)} models" if len(compared) > 1 else ""
    return (
        f"{best['run']}{weights}: {float(best['value']):.2f} % above {best['reference']} on {best['n_instances']} "
        f"instances of {best['test']} ({best['decoding']}){of}"
    )
