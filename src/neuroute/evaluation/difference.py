"""Two trained models on the same test instances: by how much one is ahead, and how far that hangs on what was drawn."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neuroute.analysis.bootstrap import Array, Interval, percentile_interval
from neuroute.analysis.paired import resampled_means
from neuroute.core.errors import NeurouteError
from neuroute.core.lazy import pd

REFERENCE = "|reference"  # what keys of reference solutions end with


@dataclass(frozen=True)
class Difference:
    """Of one test set and decoding: gaps in %, as ratios of mean lengths, and by how many points the first is ahead."""

    test: str
    decoding: str
    instances: int
    first: float
    second: float
    interval: Interval  # 95 %, of second - first: instances are drawn anew, the same ones for both, and seeds

    @property
    def ahead(self) -> float:
        return self.second - self.first

    @property
    def verdict(self) -> str:
        """Who is ahead, if the interval lies on one side of 0; undecided, too, without one (a single instance)."""
        if self.interval.low > 0:
            return "first ahead"
        return "second ahead" if self.interval.high < 0 else "undecided"


def differences(first: Sequence[Path], second: Sequence[Path]) -> list[Difference]:
    """Compare two models on every test set and decoding that all their trainings were measured on.

    first, second: of each training of the model, which differ by their seed, the folder of its evaluations.

    Raises NeurouteError if a folder has no lengths, if the two have nothing in common or other test instances.
    """
    sides = [[read_lengths(folder) for folder in side] for side in (first, second)]
    every = [lengths for side in sides for lengths in side]
    shared = [key for key in every[0] if all(key in lengths for lengths in every)]
    rows = [_difference(key, sides) for key in shared if "|reference" not in key and _reference_of(key) in shared]
    if not rows:
        raise NeurouteError(f"{first[0]} and {second[0]} were not measured on a common test set by the same decoding")
    return rows


def read_lengths(folder: Path) -> Mapping[str, Array]:
    """Read what evaluations in a folder have kept of each instance: "<test set>|<decoding>" -> lengths (count,)."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise NeurouteError(f"{folder}: no evaluations (.npz); name a run that was evaluated, or a folder with them")
    lengths: dict[str, Array] = {}
    for path in paths:
        try:
            with np.load(path) as file:
                lengths |= {key: file[key] for key in file.files if "|" in key}
        except (OSError, ValueError) as error:
            raise NeurouteError(f"{path}: not a readable npz ({error}); evaluate it again") from None
    return lengths


def table(rows: Sequence[Difference]) -> "pd.DataFrame":
    """Return a row for each difference, unrounded."""
    return pd.DataFrame(
        {
            "test": each.test,
            "decoding": each.decoding,
            "instances": each.instances,
            "first_gap_pct": each.first,
            "second_gap_pct": each.second,
            "difference": each.ahead,
            "low": each.interval.low,
            "high": each.interval.high,
            "verdict": each.verdict,
        }
        for each in rows
    )


def say(rows: Sequence[Difference], seeds: Sequence[int]) -> list[str]:
    """Return lines to print; seeds: how many trainings stand behind the first and the second."""
    width = max(len(f"{each.test} {each.decoding}") for each in rows)
    lines = [f"{'':{width}}   first  second  points [95 %]"]
    for each in rows:
        name, gaps = f"{each.test} {each.decoding}", f"{each.first:7.2f} {each.second:7.2f}"
        interval = f"[{each.interval.low:.2f}, {each.interval.high:.2f}]" if each.instances > 1 else "one instance"
        lines.append(f"{name:{width}} {gaps} {each.ahead:7.2f} {interval:16} {each.verdict}")
    lines.append("Gaps in %, as ratios of mean lengths. Intervals draw instances anew, the same ones for both.")
    if 1 in seeds:
        lines.append(
            "One training does not tell how far another seed would be: name several (a,b,c) to draw them, too."
        )
    return lines


def _difference(key: str, sides: Sequence[Sequence[Mapping[str, Array]]]) -> Difference:
    reference = sides[0][0][_reference_of(key)]
    for side in sides:
        for lengths in side:
            other = lengths[_reference_of(key)]
            if other.shape != reference.shape or not np.allclose(other, reference):
                raise NeurouteError(f"{key.partition('|')[0]}: the two were measured on other instances or references")
    means, resamples = [], []
    for stream, side in enumerate(sides):
        of_seeds = np.stack([lengths[key] for lengths in side], axis=1)
        means.append(100 * (of_seeds.mean() / reference.mean() - 1))
        resamples.append(100 * (resampled_means(of_seeds, stream) / resampled_means(reference) - 1))
    test, _, decoding = key.rpartition("|")
    interval = percentile_interval(resamples[1] - resamples[0])
    if len(reference) == 1:  # drawing it anew says nothing
        interval = replace(interval, low=math.nan, high=math.nan)
    return Difference(test, decoding, len(reference), float(means[0]), float(means[1]), interval)


def _reference_of(key: str) -> str:
    return key.rpartition("|")[0] + REFERENCE
