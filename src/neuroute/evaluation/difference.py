"""Two trained models on the same test instances: by how much one is ahead, and how far that hangs on what was drawn."""

import fnmatch
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.analysis.bootstrap import Array, Interval, percentile_interval
from neuroute.analysis.paired import gaps_of_each_seed, mean_over_seeds
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
    interval: Interval  # 95 %, of second - first: instances drawn anew, the same ones for both; Student's t of seeds

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
    first: Sequence[Path], second: Sequence[Path], decodings: tuple[str, str] | None = None, mean_of: str | None = None
) -> list[Difference]:
    """Compare two models on every test set that all their trainings were measured on.

    first, second: of each training of the model, which differ by their seed, the folder of its evaluations.
    decodings: of the first, and of the second; None compares each decoding of both with itself.
    mean_of: patterns of test sets, as in `vrp_*_n20*`, between commas; one more difference for each decoding is of the
        mean over all that match one.

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
    resampled = [_resample(pair, sides) for pair in shared]
    rows = [each.difference() for each in resampled]
    return rows if mean_of is None else rows + _of_means(resampled, mean_of)


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
        "Intervals draw instances anew, the same ones for both; of several seeds they have Student's t.",
    ]
    if 1 in seeds:
        lines.append(
            "One training does not tell how far another seed would be: train more, `runs: {<run>: {seeds: 5}}`."
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


@dataclass(frozen=True)
class _Resampled:
    """Gaps of both models in %, on one test set or as means over several, and with other instances drawn."""

    test: str
    decoding: str
    instances: int
    gaps: tuple[float, float]
    resamples: tuple[Array, Array]  # (resamples, seeds) each

    def difference(self) -> Difference:
        first, second = (mean_over_seeds(each, stream) for stream, each in enumerate(self.resamples))
        interval = percentile_interval(second - first)
        if self.instances == 1:  # drawing it anew says nothing
            interval = replace(interval, low=math.nan, high=math.nan)
        return Difference(self.test, self.decoding, self.instances, *self.gaps, interval)


def _resample(pair: tuple[tuple[str, str], tuple[str, str]], sides: Sequence[Sequence[Lengths]]) -> _Resampled:
    test = pair[0][0]
    reference = sides[0][0].of[test, REFERENCE]
    for each in (each for side in sides for each in side):
        for kind in (REFERENCE, OPTIMA):
            here, there = (side.of.get((test, kind), np.ones(0)) for side in (sides[0][0], each))
            if here.shape != there.shape or not np.allclose(here, there):
                raise NeurouteError(f"{test}: the two were measured on other instances, or against other references")
    first, second = (np.stack([each.of[key] for each in side], axis=1) for key, side in zip(pair, sides, strict=True))
    gaps = (_gap(first, reference), _gap(second, reference))
    resamples = (gaps_of_each_seed(first, reference), gaps_of_each_seed(second, reference))
    return _Resampled(test, " and ".join(dict.fromkeys(key[1] for key in pair)), len(reference), gaps, resamples)


def _gap(lengths: Array, reference: Array) -> float:
    return 100 * (float(lengths.mean() / reference.mean()) - 1)


def _of_means(resampled: Sequence[_Resampled], patterns: str) -> list[Difference]:
    """Return the difference of the mean gap over the test sets that match a pattern, of each decoding.

    The mean is that of each seed, which may be a lucky one on all of them.
    Raises NeurouteError if fewer than two match.
    """
    of: dict[str, list[_Resampled]] = {}
    for each in resampled:
        if any(fnmatch.fnmatchcase(each.test, pattern) for pattern in patterns.split(",")):
            of.setdefault(each.decoding, []).append(each)
    several = {decoding: parts for decoding, parts in of.items() if len(parts) > 1}
    if not several:
        raise NeurouteError(f"{patterns}: matches fewer than two of {', '.join(sorted({r.test for r in resampled}))}")
    return [
        _Resampled(
            f"mean of {len(parts)}: {patterns}",
            decoding,
            sum(part.instances for part in parts),
            _mean([part.gaps for part in parts]),
            _mean([part.resamples for part in parts]),
        ).difference()
        for decoding, parts in several.items()
    ]


def _mean(pairs: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return the mean of the firsts, and that of the seconds."""
    first, second = (sum(side) / len(side) for side in zip(*pairs, strict=True))
    return first, second
