"""Two trained models on the same test instances: by how much one is ahead, and how far that hangs on what was drawn."""

import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from neuroute.analysis.bootstrap import Array, Interval, percentile_interval
from neuroute.analysis.paired import resampled_gaps_of_seeds
from neuroute.core.errors import NeurouteError
from neuroute.core.lazy import pd

REFERENCE = "reference"  # in the place of a decoding
OPTIMA = f"{REFERENCE}: optima"  # of a benchmark, whose lengths are kept as shares of them


@dataclass(frozen=True)
class Difference:
    """Of one test set: gaps in %, as ratios of mean lengths, and by how many points the first model is ahead.

    Of a benchmark, whose instances have scales of their own, gaps are means over instances.
    """

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


@dataclass(frozen=True)
class Lengths:
    """What the evaluations of one training have kept of each instance."""

    of: dict[tuple[str, str], Array] = field(default_factory=dict)  # (test set, decoding) -> (count,)

    @property
    def comparable(self) -> list[tuple[str, str]]:
        """Where a gap can be told from a reference."""
        return [key for key in self.of if not key[1].startswith(REFERENCE) and (key[0], REFERENCE) in self.of]


def differences(
    first: Sequence[Path], second: Sequence[Path], decodings: tuple[str, str] | None = None
) -> list[Difference]:
    """Compare two models on every test set that all their trainings were measured on.

    first, second: of each training of the model, which differ by their seed, the folder of its evaluations.
    decodings: of the first, and of the second; None compares each decoding of both with itself.

    Raises NeurouteError if a folder has no lengths, if the two have nothing in common or other test instances.
    """
    sides = [[read_lengths(folder) for folder in side] for side in (first, second)]
    keys = sides[0][0].comparable
    if decodings is None:
        pairs = [(key, key) for key in keys]
    else:
        pairs = [((test, decoding), (test, decodings[1])) for test, decoding in keys if decoding == decodings[0]]
    shared = [
        pair
        for pair in pairs
        if all(key in each.comparable for key, side in zip(pair, sides, strict=True) for each in side)
    ]
    if not shared:
        by = "by the same decoding" if decodings is None else f"by {decodings[0]} and {decodings[1]}"
        raise NeurouteError(f"{first[0]} and {second[0]} were not measured on a common test set {by}")
    return [_difference(pair, sides) for pair in shared]


def read_lengths(folder: Path) -> Lengths:
    """Read what the evaluations in a folder have kept.

    Raises NeurouteError if there are none, or if one cannot be read.
    """
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise NeurouteError(f"{folder}: no evaluations (.npz); name a run that was evaluated, or a folder with them")
    lengths = Lengths()
    for path in paths:
        try:
            with np.load(path) as file:
                arrays = {key: file[key] for key in file.files}
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise NeurouteError(f"{path}: not a readable npz ({error}); evaluate it again") from None
        if "optima" in arrays:
            lengths.of.update(_of_benchmark(arrays))
        for key, each in arrays.items():
            test, bar, decoding = key.rpartition("|")
            if bar:
                lengths.of[test, decoding] = each
    return lengths


def say(rows: Sequence[Difference], seeds: Sequence[int]) -> list[str]:
    """Return lines to print; seeds: how many trainings stand behind the first and the second."""
    width = max(len(f"{each.test} {each.decoding}") for each in rows)
    lines = [f"{'':{width}}   first  second  points [95 %]"]
    for each in rows:
        name, gaps = f"{each.test} {each.decoding}", f"{each.first:7.2f} {each.second:7.2f}"
        interval = f"[{each.interval.low:.2f}, {each.interval.high:.2f}]" if each.instances > 1 else "one instance"
        lines.append(f"{name:{width}} {gaps} {each.ahead:7.2f} {interval:16} {each.verdict}")
    lines += [
        "Gaps in %, as ratios of mean lengths; of benchmarks, means over instances.",
        "Intervals draw instances anew, the same ones for both.",
    ]
    if 1 in seeds:
        lines.append(
            "One training does not tell how far another seed would be: name several (a,b,c) to draw them, too."
        )
    return lines


def table(rows: Sequence[Difference], first: str, second: str) -> "pd.DataFrame":
    """Return a row for each difference, unrounded; first, second: what the models are called."""
    return pd.DataFrame(
        {
            "first": first,
            "second": second,
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


def _of_benchmark(arrays: Mapping[str, Array]) -> dict[tuple[str, str], Array]:
    """Lengths as shares of the optimum, so that their mean is that of the instances."""
    names, optima = arrays["names"], arrays["optima"]
    test = f"{len(names)} instances, {names[0]} to {names[-1]}"
    shares = {(test, key): each / optima for key, each in arrays.items() if key not in ("names", "optima")}
    return {(test, REFERENCE): np.ones(len(names)), (test, OPTIMA): optima, **shares}


def _difference(pair: tuple[tuple[str, str], tuple[str, str]], sides: Sequence[Sequence[Lengths]]) -> Difference:
    test = pair[0][0]
    reference = sides[0][0].of[test, REFERENCE]
    for each in (each for side in sides for each in side):
        for kind in (REFERENCE, OPTIMA):
            here, there = (side.of.get((test, kind), np.ones(0)) for side in (sides[0][0], each))
            if here.shape != there.shape or not np.allclose(here, there):
                raise NeurouteError(f"{test}: the two were measured on other instances, or against other references")
    means, resamples = [], []
    for stream, (key, side) in enumerate(zip(pair, sides, strict=True)):
        of_seeds = np.stack([each.of[key] for each in side], axis=1)
        means.append(100 * (float(of_seeds.mean() / reference.mean()) - 1))
        resamples.append(resampled_gaps_of_seeds(of_seeds, reference, stream))
    interval = percentile_interval(resamples[1] - resamples[0])
    if len(reference) == 1:  # drawing it anew says nothing
        interval = replace(interval, low=math.nan, high=math.nan)
    decoding = " and ".join(dict.fromkeys(key[1] for key in pair))
    return Difference(test, decoding, len(reference), means[0], means[1], interval)
