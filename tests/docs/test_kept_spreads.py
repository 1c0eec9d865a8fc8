"""The pooled spreads of trainings follow from every kept model that was trained several times."""

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuroute.analysis.intervals import pooled

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "measured"
SPREADS = ROOT / "src" / "neuroute" / "rendering" / "spreads.csv"
BANDS = (1, 2.5, 5, 10, 20)  # test sets at most so many times the training's size
# Of decodings of the same trainings one counts; ICAM's are those of Table 13.
AS_TRAINED = re.compile(r"(\w+, )?(BQ|LEHD) greedy, |(BQ-NCO|LEHD|w/o [\w-]+|Ours), ")
Model = tuple[str, str, float]  # network, problem, times the training's size
PROBLEMS = {"MvMoe": 10}  # of the same trainings: they count once
SEEDS = {"Depth=6, Width=128": 3, "Depth=42, Width=128": 2}
SEEDS |= {f"depth={d}, width={w}": 3 for d, w in ((6, 128), (6, 256), (6, 512), (12, 128), (24, 128), (42, 128))}


def rows_of(name: str) -> list[dict[str, str]]:
    with (KEPT / name).open() as file:
        return list(csv.DictReader(file))


def of_grid(name: str, problem: str) -> Iterator[tuple[Model, list[float]]]:
    gaps = defaultdict(list)
    for row in rows_of(name):
        gaps[row["depth"], row["width"], int(row["n"]) / 20].append(float(row["gap_pct"]))
    for (_, _, times), each in gaps.items():
        yield ("any", problem, times), each


def of_ranges(row: dict[str, str], seeds: int, network: str, size: int) -> Iterator[tuple[Model, list[float]]]:
    """Of two or three trainings the mean, the least and the largest say all."""
    for column in row:
        if re.fullmatch(r"gap_(tsp|)(\d*_?)pct_measured", column) and row[column]:
            mean, low, high = (float(row[f"{column}{end}"]) for end in ("", "_low", "_high"))
            n = int(re.findall(r"TSP(\d+)", row.get(f"{column}_at") or f"TSP{size}")[0])
            yield (network, "tsp", n / size), [low, high, 3 * mean - low - high][:seeds]


def trained_several_times() -> Iterator[tuple[Model, list[float]]]:
    yield from of_grid("tsp20/grid.csv", "tsp")
    yield from of_grid("laptop/cvrp_grid.csv", "cvrp")
    seen = set()
    for row in rows_of("laptop/table21.csv"):
        if row["gap_50_pct_measured"] not in seen:  # two rows may show the same trainings
            seen.add(row["gap_50_pct_measured"])
            yield from of_ranges(row, 3, "any", 50)
    for row in (*rows_of("laptop/table12.csv"), *rows_of("laptop/table13.csv")):
        for model, seeds in SEEDS.items():
            if model in row["method"]:
                yield from of_ranges(row, seeds, "any", 50)
    for row in rows_of("laptop/icam/table13.csv"):
        yield from of_ranges(row, 3, "Icam", 50)
    for row in rows_of("laptop/behind.csv"):
        if (row["paper"], row["artifact"]) == ("mvmoe", "table2") and row["column"].startswith("gap_"):
            yield (row["network"], row["problem"], float(row["times"])), [*map(float, row["gaps"].split())]
    taken: dict[Model, str] = {}  # two tables may show the same trainings
    for row in rows_of("laptop/behind.csv"):
        gaps = [float(gap) for gap in row["gaps"].split()]
        is_plain = AS_TRAINED.match(row["row"]) or row["artifact"] == "table_figure4"
        if len(gaps) > 1 and row["column"].startswith("gap_") and is_plain:
            times, table = float(row["times"]), f"{row['paper']}/{row['artifact']}"
            if taken.setdefault((row["network"], row["problem"], band_of(times)), table) == table:
                yield ("any", row["problem"], times), gaps


def band_of(times: float) -> float:
    return min(band for band in BANDS if times <= band)


def test_spreads_are_those_of_all_kept_trainings() -> None:
    groups = defaultdict(list)
    for (network, problem, times), gaps in trained_several_times():
        groups[network, problem, band_of(times)].append(gaps)
    expected = {key: pooled(models) for key, models in groups.items()}
    with SPREADS.open() as file:
        stated = list(csv.DictReader(file))
    of_kept = {
        (row["network"], row["problem"], float(row["times"])): row for row in stated if not row["kept"].endswith(".md")
    }
    assert of_kept.keys() == expected.keys(), sorted(expected.items())
    for key, spread in expected.items():
        assert float(of_kept[key]["share"]) == pytest.approx(spread.share, abs=5e-5), key
        assert int(of_kept[key]["freedom"]) == spread.freedom / PROBLEMS.get(key[0], 1), key
