"""Compare methods on public instances: from names to records, a table and pictures, and a page of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from neuroute.api import classical, zoo
from neuroute.api.model import Model
from neuroute.api.reference import fetch_set
from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.files import check_folder, check_writable, write_json, write_text
from neuroute.core.lazy import pd
from neuroute.core.text import csv_text, html_table
from neuroute.core.yaml_files import validate
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.style import Drawing, save_figure, save_table, with_suffix
from neuroute.pipeline.rendering.table import Table, duration
from neuroute_compare.methods import PROBLEMS, Checkpoints, Method, check_name, parse
from neuroute_compare.pareto import LOOKS, budgets, by_size, flips, picture
from neuroute_compare.records import MEASURED, published_runs, read_published, read_results
from neuroute_compare.run import check_rows, run
from neuroute_compare.sets import Member, collect, describe, describe_listed
from neuroute_compare.settings import Compare, split_method
from neuroute_compare.summary import Key, Summary, by_problem, groups, label, table
from neuroute_compare.worker import Machine

FIGURES: dict[str, Callable[[pd.DataFrame, Sequence[int]], Drawing | None]] = {
    "pareto": lambda records, _: picture(records),
    "sizes": by_size,
    "flips": lambda records, _: flips(records),
    "budgets": lambda records, _: budgets(records),
}
TEMPLATE = Path(__file__).with_name("page.html")  # of the page
ON_PAGE = {"pareto": "Gap against time", "sizes": "Gap against size"}


@dataclass(frozen=True)
class Comparison:
    """What was measured of several methods on the same instances; `str` gives the table.

    Attributes:
        records: a row for each method, instance and seed.
        folder: where records, table and pictures are.
        table: of gaps, times and instances solved, in groups of sizes, with notes.
        own: names of the user's own methods: models, checkpoints and functions.
    """

    records: pd.DataFrame
    folder: Path
    table: Table
    own: frozenset[str] = frozenset()

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each method and problem: gap on what all solved with its interval, time, rank."""
        return standings(self.records, self.own)

    def __str__(self) -> str:
        lines = text_lines(self.to_frame())
        return "\n".join([*lines, f"All rows, notes and pictures: {self.folder}/leaderboard.html and table.md"])

    def _repr_html_(self) -> str:
        return html_table(f"Comparison, kept in {self.folder}", self.to_frame())


def compare(
    methods: str | Model | Sequence[str | Model] | None = None,
    set: str | Sequence[str] | None = None,
    *,
    published: str | Sequence[str] | None = None,
    against: str | None = None,
    seconds: float | Sequence[float] | None = None,
    max_nodes: int | None = None,
    out: str | Path = "results/compare",
    benchmarks: str | Path | None = None,
    settings: Compare | None = None,
    device: str = "cpu",
    memory_gb: float | None = None,
    work: str | Path = "work",
    checkpoints: Checkpoints | None = None,
    trusted: Collection[str] = (),
) -> Comparison:
    """Solve the instances of sets by each method, one after the other, and compare gaps and times.

    What has been solved is kept in the folder, so a killed comparison goes on where it was, and a later one that adds a
    method solves by that method alone.

    Args:
        methods: models, solvers, shipped networks, checkpoints, `module:function` (of an instance and seconds, which
            returns a tour or routes), or `module:Net=model.safetensors`, each perhaps under a name (`name=...`); None:
            those of the settings; `none` alone: nothing is solved, and results are set out on all instances of the
            sets.
        set: `tsplib`, `x`, `ags`, `national`, `vlsi`, `dimacs`, or files and folders whose instances have a best cost.
        published: methods of a survey whose results join in: `all`, or as in `["lehd", "icam"]`.
        against: the method to which paired differences are; None: the best cheap construction.
        seconds: of wall-clock time that each search has for an instance; of several, each search is a row at each;
            None: those of the settings, or 5.
        max_nodes: of the largest instance (CVRP: customers); None: 200.
        out: folder of records, table and pictures.
        benchmarks: a folder with copies of the libraries; None: what comes with the package, and what is downloaded
            to `<work>/benchmarks`.
        settings: all others, as `compare` of config.yaml has them.
        device: `auto` (a GPU where there is one), `cpu` or `cuda`.
        memory_gb: of an instance's solving; None: 4 for a network's activations, and no limit otherwise.
        work: folder of downloads.
        checkpoints: says which runs a name stands for, and where their weights are.
        trusted: kinds of networks outside this package that a checkpoint may name.

    Raises:
        NeurouteError: before anything is solved or downloaded, if there is no such method, set or folder, or a method
            cannot be loaded; before anything is solved, if a method is for none of the instances.
    """
    given_methods = None if methods is None else [_name(m) if isinstance(m, Model) else m for m in _several(methods)]
    checkpoints = checkpoints or (lambda name: {})
    options: dict[str, Any] = {"methods": given_methods, "against": against, "seconds": seconds, "max_nodes": max_nodes}
    options |= {"sets": _several(set), "published": _several(published)}
    set_options = {key: value for key, value in options.items() if value is not None}
    choice = validate(Compare, (settings or Compare()).model_dump() | set_options, "compare")
    folder, hand = Path(out), None if benchmarks is None else Path(benchmarks)
    check_writable("--out", folder / "records.csv", levels=2)
    sources = [] if choice.methods == ["none"] else choice.methods
    for name in sources:
        if methods is not None or name not in Compare().methods:
            check_name(name, checkpoints)
    failed, rows_of = dict[str, str](), dict[str, list[Method]]()
    for name, budget in product(sources, choice.budgets):
        try:
            rows_of.setdefault(name, []).extend(parse(name, budget, checkpoints, trusted))
        except NeurouteError as error:
            why = str(error).removeprefix("--method ").removeprefix(f"{split_method(name)[1]}: ")
            if methods is not None:
                raise NeurouteError(f"--method {name}: {why}") from None
            failed[name] = why  # not installed, of the methods that config.yaml names
    members, notes, sizes = list[Member](), list[str](), (choice.min_nodes, choice.max_nodes)
    if sources:
        members, notes = collect(
            choice.sets, *sizes, lambda name: hand or fetch_set(name, Path(work)), choice.ignore_sections
        )
    instances = {m.name: describe(m) for m in members} if sources else describe_listed(choice.sets, *sizes)
    problems = [p for p in PROBLEMS if any(m.instance.problem == p for m in members)]
    for name, why in failed.items():
        notes += [f"Left out: {name}: {why}."] if split_method(name)[2] in ("", *problems) else []
    rows = dict[Method, None]()
    for name, of_name in rows_of.items():
        able = [m.on(problems) for m in of_name if m.on(problems).problems]
        if not able and methods is not None:
            theirs = " and ".join(p.upper() for p in PROBLEMS if any(p in m.problems for m in of_name))
            where = ", ".join(choice.sets)
            raise NeurouteError(
                f"--method {name}: solves the {theirs}, of which {where} has no instance; leave the method out"
            )
        rows |= dict.fromkeys(able)
    own = frozenset(m.name for m in rows if m.source not in classical.known() and m.source not in zoo.cards())
    results = [read_results(Path(path), instances) for path in choice.results]
    for path, each in zip(choice.results, results, strict=True):
        notes += [f"{each.left_out} lines of {path} name instances that are not compared."] if each.left_out else []
    results += [read_published(choice.published, instances)] if choice.published else []
    check_rows(list(rows), results)
    names = {m.name for m in rows} | {row["method"] for each in results for row in each.rows}
    if choice.against is not None and choice.against not in names:
        meant = did_you_mean(near(choice.against, names)) or ";"
        raise NeurouteError(f"--against {choice.against}: is not among the compared methods{meant} name one of those")
    if not rows and not results:
        why = " ".join(notes) or "None of the methods is for these instances."
        raise NeurouteError(f"nothing to compare; name other methods by --method.  {why}")
    if choice.clock == "cpu" and (choice.threads > 1 or devices.choose(device).type != "cpu"):
        raise NeurouteError("--clock cpu: counts one thread on a CPU; leave out --threads and --device cuda")
    check_folder(folder)
    machine = Machine(devices.choose(device).type, choice.threads, memory_gb, choice.clock)
    records = run(members, list(rows), results, folder, seeds=choice.seeds, limit=choice.limit, machine=machine)
    return replace(write(records, choice.groups, folder, notes, choice.against), own=own)


def _name(model: Model) -> str:
    """How `--method` names a model: a shipped one's name, or its file under the name of its run."""
    return model.name if model.card is not None else f"{model.name.rpartition('/')[2]}={model.source}"


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str | Model) else value


def write(
    records: pd.DataFrame,
    beginnings: Sequence[int],
    folder: Path,
    notes: Sequence[str] = (),
    against: str | None = None,
) -> Comparison:
    """Write records, table and pictures of a comparison into a folder."""
    write_text(folder / "records.csv", csv_text(records))
    result_table = table(records, beginnings, notes, against)
    save_table(result_table, folder / "table")
    pictures = []
    for name, draw in FIGURES.items():
        with style.house():
            figure = draw(records, beginnings)
        if figure is None:
            continue
        save_figure(figure.figure, folder / name)
        write_text(with_suffix(folder / name, "csv"), csv_text(figure.points))
        write_json(with_suffix(folder / name, "json"), {"notes": list(figure.notes), "alt": figure.alt})
        if name in ON_PAGE:
            pictures.append((ON_PAGE[name], folder / f"{name}.svg", figure))
    write_text(folder / "leaderboard.html", page(records, beginnings, pictures, result_table.notes))
    return Comparison(records, folder, result_table)


# -- The leaderboard: one HTML file with its rows, sorted and filtered where it is read, and pictures
# The file holds, for each method, set and group of sizes, how many instances were solved and what their gaps and times
# add up to; a line of script takes means over what a reader selects.


def page(
    records: pd.DataFrame,
    beginnings: Iterable[int],
    pictures: Sequence[tuple[str, Path, Drawing]],
    notes: Sequence[str],
) -> str:
    """Return the page; of each of the pictures there is a title, an SVG file, and what was drawn."""
    about = {(run["method"], run["problem"]): run for run in published_runs()}
    sizes, rows = groups(beginnings), list[dict[str, Any]]()
    for problem, summary in by_problem(records).items():
        sets = summary.records.drop_duplicates("instance").set_index("instance").set.to_dict()
        for key in summary.keys:
            kind = summary.first("kind", key) or "file"
            row: dict[str, Any] = {"problem": problem, "method": key[0], "how": key[1].removeprefix("published: ")}
            row |= {
                "rank": summary.ranks.get(key),
                "common": summary.mean("gap_pct", key, summary.common) if key in summary.compared else None,
                "kind": LOOKS[kind][0],
                "here": kind in MEASURED,
                "on": summary.first("device", key) or "",
            }
            run = about.get((key[0], problem)) if key[1].startswith("published") else None
            row["about"] = f"{run['system']}: {run['decoding']}; {run['weights']}" if run else ""
            cells = [
                [name, place, *_cell(summary, key, [i for i in summary.within(group) if sets[i] == name])]
                for name in sorted(set(sets.values()))
                for place, group in enumerate(sizes)
            ]
            rows.append(row | {"cells": [cell for cell in cells if cell[2]]})
    figures = [
        {
            "title": title,
            "alt": drawing.alt,
            "notes": " ".join(drawing.notes),
            "source": f"data:image/svg+xml;base64,{base64.b64encode(file.read_bytes()).decode()}",
        }
        for title, file, drawing in pictures
    ]
    data = {"rows": rows, "groups": [str(group) for group in sizes], "figures": figures, "notes": list(notes)}
    return TEMPLATE.read_text("utf-8").replace("{{data}}", json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"))


def _cell(summary: Summary, key: Key, instances: Sequence[str]) -> tuple[int, int, float, float | None]:
    """How many instances a method tried and solved, and the sums of gaps and of seconds (None: not known)."""
    tried = set(summary.records[(summary.records.method == key[0]) & (summary.records.how == key[1])].instance)
    solved = summary.solved_by(key, instances)
    gap, seconds = (summary.mean(metric, key, solved) for metric in ("gap_pct", "time_s"))
    count = len(solved)
    return len(tried & set(instances)), count, (gap or 0.0) * count, None if seconds is None else seconds * count


SHOWN = 15  # rows of a problem that are printed, besides those measured here
OWN = "*"


def standings(records: pd.DataFrame, own: Collection[str]) -> pd.DataFrame:
    """Return a row for each method and problem, in the order of the ranks.

    Gap (%), its 95 % interval and seconds are means over the instances that all compared methods solved; of a method
    that is not compared, over those that it solved itself, without a rank.  own: names of the user's methods.
    """
    rows = []
    for problem, summary in by_problem(records).items():
        for key in summary.keys:
            instances = summary.common if key in summary.compared else summary.solved_by(key)
            interval = summary.interval(key, instances)
            rows.append(
                {
                    "problem": problem.upper(),
                    "method": label(key),
                    "gap_pct": summary.mean("gap_pct", key, instances),
                    "gap_low_pct": interval and interval.low,
                    "gap_high_pct": interval and interval.high,
                    "time_s": summary.mean("time_s", key, instances),
                    "rank": summary.ranks.get(key),
                    "instances": len(instances),
                    "solved": len(summary.solved_by(key)),
                    "published": key[1].startswith("published"),
                    "own": key[0] in own,
                }
            )
    return pd.DataFrame(rows).astype({"rank": "Int64"})


def text_lines(frame: pd.DataFrame) -> list[str]:
    """Return the table as text: of each problem the first rows, all that was measured here, and how many more."""
    lines = []
    for problem, rows in frame.groupby("problem", sort=False):
        shown = rows[(rows.published.cumsum() <= SHOWN) | ~rows.published]
        of_all = rows[rows["rank"].notna()].instances
        over = f"the {of_all.iloc[0]} instances that all ranked methods solved" if len(of_all) else "what each solved"
        lines.append(f"{problem}, means over {over}")
        cells = [("", "method", "gap %", "95 %", "time", "rank")]
        for row in shown.to_dict("records"):
            known = {key: value for key, value in row.items() if not pd.isna(value)}
            own_base = "" if "rank" in known else f" (its {row['instances']} solved)"
            cells.append(
                (
                    OWN if row["own"] else "",
                    row["method"] + own_base,
                    f"{known['gap_pct']:.2f}" if "gap_pct" in known else "none",
                    f"{known['gap_low_pct']:.2f} to {known['gap_high_pct']:.2f}" if "gap_low_pct" in known else "",
                    duration(known["time_s"]) if "time_s" in known else "",
                    str(known.get("rank", "")),
                )
            )
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for mark, method, *values in cells:
            padded = "  ".join(value.rjust(width) for value, width in zip(values, widths[2:], strict=True))
            lines.append(f"{mark:{widths[0]}} {method:{widths[1]}}  {padded}".rstrip())
        if hidden := len(rows) - len(shown):
            lines.append(f"and {hidden} more")
    if frame.own.any():
        lines.append(f"{OWN} yours")
    if frame.published.any():
        lines.append("published: times are of other machines, and do not compare")
    return lines
