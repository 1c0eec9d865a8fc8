"""Runs that were trained with several seeds: what their trainings took, and differences of their mean gaps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuroute.analysis.intervals import Array, gaps_of_each_seed, mean_over_seeds, resampled_gaps_of_seeds
from neuroute.plan.objects import Dataset, Decoding
from neuroute.rendering import cells
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell


def summary_over_seeds(study: Study, run: str, names: Mapping[str, str]) -> dict[str, float]:
    """Average what a run's trainings have seen and taken; names: what it is called here -> in run.json."""
    summaries = [study.summary(training) for training in study.trainings(run)]
    return {key: float(np.mean([s.get(name, np.nan) for s in summaries])) for key, name in names.items()}


def summary_cell(study: Study, run: str, key: str) -> Cell:
    """Show what a run's trainings have left in run.json under a key, their mean between the least and the largest."""
    values = [s[key] for training in study.trainings(run) if (s := study.summary(training)).get(key) is not None]
    study.note_seeds(run, len(values))
    return cells.mean_cell(values)


def resampled_over_seeds(
    study: Study, run: str, dataset: Dataset, stream: int, decoding: Decoding | str = "greedy"
) -> Array | None:
    """Resample the mean gap (%) of a run's trainings (resamples,); None if one of them was not measured.

    Instances are shared by all runs; `stream` tells the draws of seeds of several runs apart.
    """
    lengths = study.lengths_of_each(run, dataset, decoding)
    return None if lengths is None else resampled_gaps_of_seeds(*lengths, stream)


def above_over_seeds(study: Study, run: str, base: str, dataset: Dataset, decoding: Decoding | str = "greedy") -> Cell:
    """Show by how many points the mean gap of a run is above that of another, over instances and seeds."""
    gap, base_gap = (study.gap(each, dataset, decoding) for each in (run, base))
    here, there = (study.lengths_of_each(each, dataset, decoding) for each in (run, base))
    if here is None or there is None or gap is None or base_gap is None:
        return Cell()
    above = mean_over_seeds(gaps_of_each_seed(*here), 1) - mean_over_seeds(gaps_of_each_seed(*there), 0)
    return cells.interval_cell(gap - base_gap, above)


def say_seeds(study: Study) -> list[str]:
    """Say of which runs means over several trainings are shown, and what the ranges of these are."""
    counts = study.shown_seeds()
    if not counts:
        return []
    texts = ", ".join(f"{run.removeprefix(f'{study.artifact.paper}/')} ({count})" for run, count in counts.items())
    return [
        f"Trained with several seeds: {texts}. What is shown of them is a mean over the seeds; the range beside a "
        "model's number is then that of its trainings, from the least to the largest."
    ]
