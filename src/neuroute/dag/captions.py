"""What an artifact shows, in a sentence for Snakemake's report."""

from neuroute.plan.decoding_names import name_of
from neuroute.plan.evaluations import RunEvaluation
from neuroute.plan.needs import Log, Solved, Tested
from neuroute.plan.plan import Plan


def describe_measured(plan: Plan, artifact: str) -> str:
    """Return which models are measured on what, as the artifact's needs say."""
    needs = plan.needs[artifact]
    tests = [need for need in needs if isinstance(need, Tested)]
    others = [need for need in needs if isinstance(need, RunEvaluation)]
    logs = [need for need in needs if isinstance(need, Log)]
    solved = [need.labels for need in needs if isinstance(need, Solved)]
    phrases = []
    if tests:
        sets = dict.fromkeys(t.test.labels.dataset.stem for t in tests)
        decodings = dict.fromkeys(name_of(t.test.decoding) for t in tests)
        phrases.append(f"gaps of {_models({t.run for t in tests})} on {_list(sets)} by {_list(decodings)}")
    if others:
        groups = dict.fromkeys(e.group for e in others)
        phrases.append(f"{_list(groups)} of {_models({e.run for e in others})}")
    if logs:
        phrases.append(f"the training of {_models({log.run for log in logs})}")
    if solved:
        phrases.append(f"the time of {_list(dict.fromkeys(labels.solver for labels in solved))}")
    return f"Measured: {'; '.join(phrases)}." if phrases else "Printed numbers and settings; nothing is measured."


def _models(runs: set[str]) -> str:
    return next(iter(runs)) if len(runs) == 1 else f"{len(runs)} models"


def _list(words: dict[str, None], most: int = 6) -> str:
    rest = len(words) - most
    return ", ".join(list(words)[:most]) + (f" and {rest} more" if rest > 0 else "")
