"""What a target of Snakemake that no rule makes was meant to be.

It goes by the words of a message of Snakemake: of another one's the refusal stays as it is.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.pipeline.plan.papers import all_papers, load_paper
from neuroute.pipeline.plan.plan import Plan
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
            return f"{target} is {_why_not(plan, f'{paper.key}/{names[0]}')}{others}"
    targets: dict[str, list[str]] = {rule: [rule] for rule in rules}
    for name, file in _targets(plan):
        targets.setdefault(name, []).append(file)
    names = [target] if target in targets else near(str(path), targets)
    return f"no rule makes {target}" + (
        did_you_mean(file for name in names for file in targets[name]) or "; `neuroute plan --all` lists what there is"
    )


def _why_not(plan: Plan, artifact: str) -> str:
    try:
        return plan.artifact(artifact).id
    except NeurouteError as error:
        return str(error)


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
