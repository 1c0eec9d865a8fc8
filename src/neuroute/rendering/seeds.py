"""What is shown of a run that was trained with several seeds: means over its trainings, ranges, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuroute.plan.objects import Dataset, Decoding
from neuroute.rendering import cells
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Value

if TYPE_CHECKING:
    from neuroute.analysis.bootstrap import Array


def gap_over_seeds(
    study: Study, runs: Sequence[str], dataset: Dataset, published: Value = None, decoding: Decoding | str = "greedy"
) -> Cell:
    """Show the gap in %, as ratio of means: the mean over a run's trainings between the least and the largest.

    Of the only training measured, with its bootstrap interval.
    """
    gaps_or_none = {each: study.gap(each, dataset, decoding) for each in runs}
    gaps = {each: gap for each, gap in gaps_or_none.items() if gap is not None}
    if len(gaps) > 1:
        return Cell(sum(gaps.values()) / len(gaps), published, min(gaps.values()), max(gaps.values()))
    return cells.gap_cell(study, next(iter(gaps), runs[0]), dataset, published, decoding)


def summary_over_seeds(study: Study, runs: Sequence[str], names: Mapping[str, str]) -> dict[str, float]:
    """Average what a run's trainings have seen and taken; names: what it is called here -> in run.json."""
    summaries = [study.summary(run) for run in runs]
    return {key: float(np.mean([s.get(name, np.nan) for s in summaries])) for key, name in names.items()}


def resampled_over_seeds(
    study: Study, runs: Sequence[str], dataset: Dataset, stream: int, decoding: Decoding | str = "greedy"
) -> Array | None:
    """Resample the mean gap (%) of a run's trainings (resamples,); None if one of them was not measured.

    Instances are shared by all runs; `stream` tells the draws of seeds of several runs apart.
    """
    from neuroute.analysis.paired import resampled_gaps_of_seeds

    lengths = lengths_over_seeds(study, runs, dataset, decoding)
    return None if lengths is None else resampled_gaps_of_seeds(*lengths, stream)


def above_over_seeds(
    study: Study, runs: Sequence[str], base: Sequence[str], dataset: Dataset, decoding: Decoding | str = "greedy"
) -> Cell:
    """Show by how many points the mean gap of some trainings is above that of others, over instances and seeds."""
    from neuroute.analysis.paired import gaps_of_each_seed, mean_over_seeds

    gap, base_gap = (gap_over_seeds(study, each, dataset, None, decoding).measured for each in (runs, base))
    here, there = (lengths_over_seeds(study, each, dataset, decoding) for each in (runs, base))
    if here is None or there is None or not (isinstance(gap, float) and isinstance(base_gap, float)):
        return Cell()
    above = mean_over_seeds(gaps_of_each_seed(*here), 1) - mean_over_seeds(gaps_of_each_seed(*there), 0)
    return cells.interval_cell(gap - base_gap, above)


def lengths_over_seeds(
    study: Study, runs: Sequence[str], dataset: Dataset, decoding: Decoding | str = "greedy"
) -> tuple[Array, Array] | None:
    """Lengths (instances, seeds) and those of the reference (instances,); None if one training was not measured."""
    pairs = [study.lengths(run, dataset, decoding) for run in runs]
    complete = [pair for pair in pairs if pair is not None]
    if not complete or len(complete) < len(pairs):
        return None
    return np.stack([unrounded for unrounded, _ in complete], 1), complete[0][1]
