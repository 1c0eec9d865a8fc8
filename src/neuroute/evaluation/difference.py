"""Two trained models on the same test instances: by how much one is ahead, and how far that hangs on what was drawn."""

import fnmatch
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.analysis.intervals import DIGITS, Array, Interval, gaps_of_each_seed, mean_over_seeds, percentile_interval
from neuroute.core.arrays import read_arrays
from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_stated
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
    trainings: tuple[int, int]  # seeds of the first, and of the second
    interval: Interval  # 95 %, of second - first: instances drawn anew, the same ones for both; Student's t of seeds

    @property
    def ahead(self) -> float:
        return self.second - self.first

    @property
    def verdict(self) -> str:
        """Who is ahead, if the interval lies on one side of 0; undecided, too, without one (a single instance)."""
        low, high = (round(end, DIGITS) for end in (self.interval.low, self.interval.high))
        if low > 0:
            return "first ahead"
        return "second ahead" if high < 0 else "undecided"


# What the evaluations of one training have kept of each instance: (test set, decoding) -> (count,)
Lengths = dict[tuple[str, str], Array]


def differences(
    first: Sequence[Path], second: Sequence[Path], decodings: tuple[str, str] | None = None, mean_of: str | None = None
) -> list[Difference]:
    """Compare two models on every test set that both were measured on, each by those of its trainings that were.

    first, second: of each training of the model, which differ by their seed, the folder of its evaluations.  Of the
        same trainings, compared by two decodings, each is paired with itself.
    decodings: of the first, and of the second; None compares each decoding of both with itself.
    mean_of: patterns of test sets, as in `vrp_*_n20*`, between commas; one more difference for each decoding is of the
        mean over all that match one.

    Raises NeurouteError if a folder has no lengths, if the two have nothing in common or other test instances.
    """
    sides = [[read_lengths(folder) for folder in side] for side in (first, second)]
    keys = dict.fromkeys(key for each in sides[0] for key in _comparable(each))
    if decodings is None:
        pairs = [(key, key) for key in keys]
    else:
        pairs = [((test, decoding), (test, decodings[1])) for test, decoding in keys if decoding == decodings[0]]
    same = list(first) == list(second)
    shared = {pair: trainings for pair in pairs if all(trainings := _trainings_on(pair, sides, same))}
    if not shared:
        by = "by the same decoding" if decodings is None else f"by {decodings[0]} and {decodings[1]}"
        raise NeurouteError(
            f"{first[0]} and {second[0]} were not measured on a common test set {by}; `neuroute evaluate` both"
        )
    resampled = [_resample(pair, trainings, same) for pair, trainings in shared.items()]
    rows = [each.difference() for each in resampled]
    return rows if mean_of is None else rows + _of_means(resampled, mean_of)


def read_lengths(folder: Path) -> Lengths:
    """Read what the evaluations in a folder have kept.

    Raises NeurouteError if there are none, or if one cannot be read.
    """
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise NeurouteError(f"{folder}: no evaluations (.npz); name a run that was evaluated, or a folder with them")
    lengths: Lengths = {}
    for path in paths:
        check_stated(path, "evaluate again, or copy the folder again")
        try:
            arrays = read_arrays(path)
        except NeurouteError as error:
            raise NeurouteError(f"{error}; evaluate again") from None
        for group in [key.removesuffix("optima") for key in arrays if key.endswith("optima")]:  # "" or "tsplib/"
            library = {key.removeprefix(group): each for key, each in arrays.items() if key.startswith(group)}
            # Lengths as shares of the optimum, so that their mean is that of the instances
            names, optima = library.pop("names"), library.pop("optima")
            benchmark = f"{len(names)} instances, {names[0]} to {names[-1]}"
            lengths |= {(benchmark, REFERENCE): np.ones(len(names)), (benchmark, OPTIMA): optima}
            lengths |= {(benchmark, key): each / optima for key, each in library.items()}
        for key, each in arrays.items():
            test, bar, decoding = key.rpartition("|")
            if bar:
                lengths[test, decoding] = each
    return lengths


def say(rows: Sequence[Difference]) -> list[str]:
    """Return lines to print."""
    width = max(len(f"{each.test} {each.decoding}") for each in rows)
    lines = [f"{'':{width}}   first  second  points [95 %]                      trainings"]
    for each in rows:
        name, gaps = f"{each.test} {each.decoding}", f"{each.first:7.2f} {each.second:7.2f}"
        low, high = each.interval.low, each.interval.high
        interval = "one instance" if math.isnan(low) else f"[{low:.2f}, {high:.2f}]"
        trainings = " and ".join(map(str, each.trainings))
        lines.append(f"{name:{width}} {gaps} {each.ahead:7.2f} {interval:16} {each.verdict:12} {trainings}")
    lines += [
        "Gaps in %, as ratios of mean lengths; of benchmarks, means over instances.",
        "Intervals: paired bootstrap over instances; with several seeds Student's t.",
    ]
    if any(1 in each.trainings for each in rows):
        lines.append("One training does not show seed variance: train more, `runs: {<run>: {seeds: 5}}`.")
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
            "first_trainings": each.trainings[0],
            "second_trainings": each.trainings[1],
            "first_gap_pct": each.first,
            "second_gap_pct": each.second,
            "difference": each.ahead,
            "low": each.interval.low,
            "high": each.interval.high,
            "verdict": each.verdict,
        }
        for each in rows
    )


@dataclass(frozen=True)
class _Resampled:
    """Gaps of both models in %, on one test set or as means over several, and with other instances drawn."""

    test: str
    decoding: str
    instances: int
    single: bool  # a test set of one instance is among them: drawing it anew says nothing
    gaps: tuple[float, float]
    resamples: tuple[Array, Array]  # (resamples, seeds) each
    same: bool  # both sides are the same trainings

    def difference(self) -> Difference:
        first, second = self.resamples
        differences = (
            mean_over_seeds(second - first) if self.same else mean_over_seeds(second, 1) - mean_over_seeds(first, 0)
        )
        interval = percentile_interval(differences)
        if self.single:
            interval = replace(interval, low=math.nan, high=math.nan)
        trainings = first.shape[1], second.shape[1]
        return Difference(self.test, self.decoding, self.instances, *self.gaps, trainings, interval)


def _comparable(lengths: Lengths) -> list[tuple[str, str]]:
    """Return where a gap can be told from a reference."""
    return [key for key in lengths if not key[1].startswith(REFERENCE) and (key[0], REFERENCE) in lengths]


Pair = tuple[tuple[str, str], tuple[str, str]]  # test set and decoding of the first, and of the second


def _trainings_on(pair: Pair, sides: Sequence[Sequence[Lengths]], same: bool) -> list[list[Lengths]]:
    """Return the trainings of each side that were measured; of the same ones those that were by both decodings."""
    if same:
        return [[each for each in sides[0] if all(key in _comparable(each) for key in pair)]] * 2
    return [[each for each in side if key in _comparable(each)] for key, side in zip(pair, sides, strict=True)]


def _resample(pair: Pair, sides: Sequence[Sequence[Lengths]], same: bool) -> _Resampled:
    test = pair[0][0]
    reference = sides[0][0][test, REFERENCE]
    for each in (each for side in sides for each in side):
        for kind in (REFERENCE, OPTIMA):
            here, there = (side.get((test, kind), np.ones(0)) for side in (sides[0][0], each))
            if here.shape != there.shape or not np.allclose(here, there):
                raise NeurouteError(f"{test}: measured on other instances or references; evaluate both by one plan")
    first, second = (np.stack([each[key] for each in side], axis=1) for key, side in zip(pair, sides, strict=True))
    gaps = (_gap(first, reference), _gap(second, reference))
    resamples = (gaps_of_each_seed(first, reference), gaps_of_each_seed(second, reference))
    decoding, count = " and ".join(dict.fromkeys(key[1] for key in pair)), len(reference)
    return _Resampled(test, decoding, count, count == 1, gaps, resamples, same)


def _gap(lengths: Array, reference: Array) -> float:
    return 100 * (float(lengths.mean() / reference.mean()) - 1)


def _of_means(resampled: Sequence[_Resampled], patterns: str) -> list[Difference]:
    """Return the difference of the mean gap over the test sets that match a pattern, of each decoding.

    The mean is that of each seed, which may be a lucky one on all of them.
    Raises NeurouteError if fewer than two match, or if they were measured on other numbers of trainings.
    """
    of: dict[str, list[_Resampled]] = {}
    for each in resampled:
        if any(fnmatch.fnmatchcase(each.test, pattern) for pattern in patterns.split(",")):
            of.setdefault(each.decoding, []).append(each)
    several = {decoding: parts for decoding, parts in of.items() if len(parts) > 1}
    if not several:
        tests = ", ".join(sorted({r.test for r in resampled}))
        raise NeurouteError(f"{patterns}: matches fewer than two of {tests}; take a wider pattern")
    for parts in several.values():
        if len({tuple(each.shape[1] for each in part.resamples) for part in parts}) > 1:
            raise NeurouteError(f"{patterns}: not all test sets were measured with all seeds; take a narrower pattern")
    return [
        _Resampled(
            f"mean of {len(parts)}: {patterns}",
            decoding,
            sum(part.instances for part in parts),
            any(part.single for part in parts),
            _mean([part.gaps for part in parts]),
            _mean([part.resamples for part in parts]),
            parts[0].same,
        ).difference()
        for decoding, parts in several.items()
    ]


def _mean(pairs: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return the mean of the firsts, and that of the seconds."""
    first, second = (sum(side) / len(side) for side in zip(*pairs, strict=True))
    return first, second
