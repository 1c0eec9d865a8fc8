"""The leaderboard, from kept records and the survey's results: `python docs/generate/leaderboard.py`.

It fills the parts of docs/results/leaderboard.md between `<!-- made by docs/generate/leaderboard.py -->` and
`<!-- end -->`, and puts the page of one file and its pictures beside the records.
"""

import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from neuroute.pipeline.rendering.table import duration
from neuroute_compare.compare import write
from neuroute_compare.pareto import LOOKS
from neuroute_compare.records import frame, read_published, read_results
from neuroute_compare.sets import describe_listed
from neuroute_compare.summary import Key, Summary, by_problem, groups

DOCS = Path(__file__).resolve().parents[1]
FOLDER = DOCS / "measured" / "compare" / "leaderboard"
PAGE = DOCS / "results" / "leaderboard.md"
SETS, MOST, GROUPS = ("tsplib", "x"), 1000, [100, 200, 500]
LEADERS, TEN_S = FOLDER / "records.csv", FOLDER.parent / "ten_seconds" / "records.csv"
VRPS = DOCS / "measured" / "zoo" / "zoo" / "table3.csv"
AIMS = (  # set, name of it, least and most nodes, the network, how, records, and the gap (%) aimed at
    ("tsplib", "TSPLIB up to 300 nodes", 0, 300, ("tsp", "multistart"), LEADERS, 3.0),
    ("x", "set X up to 300 customers", 0, 300, ("cvrp", "multistart"), LEADERS, 6.5),
    ("tsplib", "TSPLIB below 200 nodes", 0, 199, ("tsp", "10 s"), TEN_S, 0.3),
    ("x", "set X below 150 customers", 0, 149, ("cvrp", "10 s"), TEN_S, 1.5),
)
VRP_AIM = 9.0
AGAINST = {"tsp": ("tsp", "multistart"), "cvrp": ("cvrp", "multistart")}  # the network that differences are to
MADE = re.compile(r"(<!-- made by docs/generate/leaderboard\.py -->\n).*?(<!-- end -->)", re.DOTALL)


def records(path: Path, instances: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of records that neuroute kept: what they say of kind and machine is taken, as of no results of others."""
    kept = {}
    for line in pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records"):
        how = line.get("how", "")
        how = "results file" if how in ("", "one pass", "results file") else f"results file: {how}"
        kept[line["method"], how, line["instance"], int(float(line.get("seed") or 0))] = line
    rows = read_results(path, instances).rows
    for row in rows:
        line = kept[row["method"], row["how"], row["instance"], row["seed"]]
        row |= {name: line[name] for name in ("how", "kind", "version", "device", "clock", "code") if line.get(name)}
        row |= {name: float(line[name]) for name in ("limit_s", "threads") if line.get(name)}
    return rows


def filled(text: str) -> str:
    """The page with its tables as the records have them."""
    parts = iter((tables(), aims()))
    return MADE.sub(lambda part: f"{part[1]}\n{next(parts)}\n{part[2]}", text)


@cache
def compared() -> pd.DataFrame:
    """Kept records beside the survey's."""
    instances = describe_listed(SETS, 0, MOST)
    return frame(records(LEADERS, instances) + read_published(["all"], instances).rows)


def tables() -> str:
    """A table for each problem."""
    return "\n".join(_table(problem, summary) for problem, summary in by_problem(compared()).items())


def aims() -> str:
    """By how much the pretrained networks miss what was aimed at; below 0 the aim is met."""
    lines = [
        "| On | Network | How | Instances | Aim (%) | Gap (%) | Above the aim (points) |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for name, title, least, most, key, path, aim in AIMS:
        (summary,) = by_problem(frame(records(path, describe_listed([name], least, most)))).values()
        instances = summary.solved_by(key)
        gap, interval = summary.mean("gap_pct", key, instances), summary.interval(key, instances)
        assert gap is not None
        assert interval is not None
        cells = title, f"`{key[0]}`", key[1], str(len(instances)), f"{aim:g}"
        lines.append(
            f"| {' | '.join(cells)} | {gap:.2f} [{interval.low:.2f}, {interval.high:.2f}] | {gap - aim:+.2f} |"
        )
    gap = float(pd.read_csv(VRPS).gap_pct_measured.mean())
    cells = (
        "16 VRPs of 50 customers",
        "`vrp`",
        "multistart",
        "16 of each",
        f"{VRP_AIM:g}",
        f"{gap:.2f}",
        f"{gap - VRP_AIM:+.2f}",
    )
    return "\n".join([*lines, f"| {' | '.join(cells)} |"]) + "\n"


def _table(problem: str, summary: Summary) -> str:
    sizes = [group for group in groups(GROUPS) if summary.within(group)]
    sets = " and ".join(sorted(summary.records.set.unique()))
    heads = [
        "#",
        "Method",
        "How",
        "Ranked",
        *map(str, sizes),
        "All",
        "Solved",
        "Time",
        f"To `{AGAINST[problem][0]}`",
        "Kind",
    ]
    lines = [
        f"### {problem.upper()}: {len(summary.sizes)} instances of {sets}, "
        f"{len(summary.common)} solved by all ranked methods\n",
        f"| {' | '.join(heads)} |",
        f"|---:|---|---|{'---:|' * (len(sizes) + 5)}---|",
    ]
    return "\n".join([*lines, *(_line(problem, summary, key) for key in summary.keys)]) + "\n"


def _line(problem: str, summary: Summary, key: Key) -> str:
    solved = summary.solved_by(key)
    kind = LOOKS[summary.first("kind", key) or "file"][0]
    name = key[0] if kind.startswith("published") else f"**{key[0]}**"
    tried = summary.records[(summary.records.method == key[0]) & (summary.records.how == key[1])].instance.nunique()
    seconds = summary.mean("time_s", key, solved)
    cells = [
        str(summary.ranks.get(key, "–")), name, key[1].removeprefix("published: "),
        _gap(summary, key, summary.common) if key in summary.compared else "–",
        *(_gap(summary, key, summary.within(group)) for group in groups(GROUPS) if summary.within(group)),
        _gap(summary, key, list(summary.sizes)), f"{len(solved)}/{tried}",
        "–" if seconds is None else duration(seconds), _difference(summary, key, AGAINST[problem]), kind,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _gap(summary: Summary, key: Key, instances: list[str]) -> str:
    """The mean over the instances solved; in parentheses where these are not all."""
    solved = summary.solved_by(key, instances)
    mean = summary.mean("gap_pct", key, solved)
    text = "–" if mean is None else f"{mean:.2f}"
    return text if len(solved) == len(instances) or mean is None else f"({text})"


def _difference(summary: Summary, key: Key, other: Key) -> str:
    difference = summary.difference(key, other)
    if difference is None:
        return "–"
    mean, interval = difference
    return f"{mean:+.2f}" + (f" [{interval.low:+.2f}, {interval.high:+.2f}]" if interval else "")


def draw(folder: Path) -> None:
    """Write the leaderboard of one file and its pictures, as `neuroute compare` does."""
    with tempfile.TemporaryDirectory() as scratch:
        write(compared(), GROUPS, Path(scratch))
        for name in ("leaderboard.html", "pareto.png", "sizes.png"):
            shutil.copy(Path(scratch, name), folder / name)


def main() -> None:
    """Write the page, and the leaderboard of one file with its pictures."""
    PAGE.write_text(filled(PAGE.read_text()))
    draw(FOLDER)


if __name__ == "__main__":
    main()
