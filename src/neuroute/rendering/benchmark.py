"""Records of a public benchmark, where models are compared on the instances that all of them have solved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from neuroute.datasets.benchmarks import studied

if TYPE_CHECKING:
    import pandas as pd

    from neuroute.rendering.study import Study


def solved_by_all(study: Study, evaluations: Iterable[str], benchmark: str = "tsplib") -> pd.DataFrame:
    """Records of the instances that every model has solved in every way measured; no rows without any.

    `evaluations` are ids, "<run>/<group>"; one that was not measured at all does not count.
    """
    records = study.records[study.records.distribution == benchmark]
    records = records[(records.run + "/" + records.group).isin(list(evaluations))]
    ways = records.run + " " + records.decoding
    solved = ways.groupby(records.test).nunique()
    found = records[records.test.isin(solved.index[solved == ways.nunique()])]
    study.mark(found)
    return found


def not_measured(
    measured: pd.DataFrame, max_nodes: int, runs: Mapping[str, str], benchmark: str = "tsplib", min_nodes: int = 0
) -> list[str]:
    """Notes on what `measured` lacks: instances in that range of nodes, models (name -> run); how to get them."""
    if not len(measured):
        return [
            f"No instance of {benchmark.upper()} was there, so the printed numbers stand alone. To get them: set "
            "`benchmarks_dir` in config.yaml to a local copy, or run `snakemake --forcerun fetch_benchmark` where "
            "there is a network."
        ]
    expected = {k.name for k in studied(max_nodes, min_nodes, benchmark)}
    lacking = sorted(expected - {str(test).removeprefix(f"{benchmark}_") for test in measured.test})
    notes = [f"Not measured here: {', '.join(lacking)}."] if lacking else []
    without = [name for name, run in runs.items() if run not in set(measured.run)]
    return [*notes, f"Not measured here: {', '.join(without)}."] if without else notes
