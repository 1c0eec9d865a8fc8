"""What to read first when all is done: verdicts, the best gaps, and which tables have nothing measured."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from neuroute.core.files import read_json
from neuroute.core.stated import check_stated
from neuroute.datasets.benchmarks import library
from neuroute.pipeline.plan.plan import Plan
from neuroute.pipeline.rendering.verdicts import in_short
from neuroute.specs.evaluations import BenchmarkEvaluation


def headlines(plan: Plan, most: int = 3) -> list[str]:
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
    return [*lines, *[line for line in gaps if line][:most], *_nothing_measured(plan, summary["coverage"])]


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
