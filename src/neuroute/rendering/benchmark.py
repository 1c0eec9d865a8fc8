"""Records of a public benchmark, where models are compared on the instances that all of them have solved."""

from collections.abc import Iterable, Mapping

import pandas as pd

from neuroute.datasets.benchmarks import studied
from neuroute.rendering.study import Study


def solved_by_all(study: Study, evaluations: Iterable[str]) -> pd.DataFrame:
    """TSPLIB records of the instances that every model has solved in every way measured; no rows without any.

    `evaluations` are ids, "<run>/<group>"; one that was not measured at all does not count.
    """
    records = study.records[study.records.distribution == "tsplib"]
    records = records[(records.run + "/" + records.group).isin(list(evaluations))]
    ways = records.run + " " + records.decoding
    solved = ways.groupby(records.test).nunique()
    found = records[records.test.isin(solved.index[solved == ways.nunique()])]
    study.mark(found)
    return found


def not_measured(measured: pd.DataFrame, max_nodes: int, runs: Mapping[str, str]) -> list[str]:
    """Notes on what `measured` lacks: instances below `max_nodes` nodes, models (name -> run); how to get them."""
    if not len(measured):
        return [
            "No instance of TSPLIB was there, so the printed numbers stand alone. To get them: set `benchmarks_dir` in "
            "config.yaml to a local copy, or run `snakemake --forcerun fetch_tsplib` where there is a network."
        ]
    below = {k.name for k in studied(max_nodes)}
    lacking = sorted(below - {str(test).removeprefix("tsplib_") for test in measured.test})
    notes = [f"Not measured here: {', '.join(lacking)}."] if lacking else []
    without = [name for name, run in runs.items() if run not in set(measured.run)]
    return [*notes, f"Not measured here: {', '.join(without)}."] if without else notes
