"""How far trainings of one model spread, of every kept model that was trained several times: `spreads.csv`.

`python docs/generate/spreads.py` writes the priors that verdicts go by, one for each kind of network.
"""

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from neuroute.core.files import write_text
from neuroute.core.lazy import pd
from neuroute.core.text import csv_text
from neuroute.pipeline.rendering.comparisons import SPREADS, kind_of
from neuroute.pipeline.rendering.kept import BEHIND

KEPT = Path(__file__).resolve().parents[1] / "measured"
BANDS = (1, 2.5, 5, 10, 20, 100)  # test sets of at most so many times the training's nodes
Models = Iterator[tuple[str, str, float, str, list[float]]]  # kind, problem, times, name of the model, gaps


def models() -> Models:
    """Every kept model of several trainings, on each test set."""
    for file, kind, problem in (("checks/tsp20_grid", "DecoderOnly", "tsp"), ("laptop/cvrp_grid", "Lehd", "cvrp")):
        gaps = defaultdict[tuple[str, str, float], list[float]](list)
        for row in rows_of(f"{file}.csv"):
            gaps[row["depth"], row["width"], int(row["n"]) / 20].append(float(row["gap_pct"]))
        for (depth, width, times), each in gaps.items():
            yield kind, problem, times, f"{file} {depth}x{width}", each
    yield from of_three("laptop/steps", "DecoderOnly", ("budget", "reading"))
    yield from of_three("laptop/icam/one_size", "Icam", ("training",))
    for row in rows_of(f"laptop/{BEHIND}"):
        if not row["column"].startswith("gap_"):
            continue
        gaps = [*map(float, row["gaps"].split())]
        if len(gaps) > 1:
            run = row["run"].partition("@")[0]  # checkpoints of a stage are of the same trainings, as are few shots
            if not run.startswith("mvmoe/few_"):
                if not row["drawn"]:  # of the generation before, trained at 50 nodes, whose rows state no draws
                    run = f"{run} before"
                yield kind_of(row["network"]), row["problem"], float(row["times"]), run, gaps


def of_three(file: str, kind: str, labels: tuple[str, ...]) -> Models:
    """Of three trainings on TSP50 the mean, the least and the largest say all."""
    for row in rows_of(f"{file}.csv"):
        for column, text in row.items():
            if re.fullmatch(r"gap_\d+_pct_measured", column) and text and row[f"{column}_low"]:
                mean, low, high = (float(row[f"{column}{end}"]) for end in ("", "_low", "_high"))
                nodes = int(re.findall(r"TSP(\d+)", row[f"{column}_at"])[0])
                name = f"{file} {' '.join(row[label] for label in labels)}"
                yield kind, "tsp", nodes / 50, name, [low, 3 * mean - low - high, high]


def pools() -> list[dict[str, object]]:
    """The standard deviation of ln gap over trainings, pooled; a model counts once at each size that it was trained at.

    On however many test sets, and in however many tables: by that of most trainings.
    """
    of: dict[tuple[str, str, float], dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for kind, problem, times, name, gaps in models():
        band = next((band for band in BANDS if times <= band), BANDS[-1])
        same = of[kind, problem, band][name]
        if gaps not in same:  # which two tables may show
            same.append(gaps)
    lines = []
    for (kind, problem, band), by_name in sorted(of.items()):
        by_model = {name: [gaps for gaps in each if len(gaps) == max(map(len, each))] for name, each in by_name.items()}
        freedom = sum(len(each[0]) - 1 for each in by_model.values())
        squares = sum((len(each[0]) - 1) * fmean(map(log_variance, each)) for each in by_model.values())
        spread = f"{math.sqrt(squares / freedom):.4f}"
        lines.append({"kind": kind, "problem": problem, "times": f"{band:g}", "spread": spread, "freedom": freedom})
    return lines


def log_variance(gaps: list[float]) -> float:
    """The variance of ln gap over trainings."""
    logs = [math.log(gap) for gap in gaps]
    return math.fsum((log - fmean(logs)) ** 2 for log in logs) / (len(logs) - 1)


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a kept CSV."""
    with (KEPT / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    write_text(SPREADS, csv_text(pd.DataFrame(pools())))
