"""Which conclusions flip when instances and seeds are drawn anew, and with the seconds that searches have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuroute.analysis import RESAMPLES
from neuroute.analysis.paired import shares_better
from neuroute.comparison.summary import Key, Summary, by_problem, label, left_out
from neuroute.core.lazy import pd
from neuroute.rendering import style
from neuroute.rendering.plots import SURE, share_cells
from neuroute.rendering.style import Drawing, drawing

MOST = 24  # methods that a panel has place for


def flips(records: pd.DataFrame) -> Drawing:
    """Draw for each problem, of each pair of methods, the share of resamples in which the row has the smaller gap.

    Of many methods, those measured here and the best others.  Of several budgets of searches, the one in the middle.
    A problem with too few instances has words instead.
    """
    problems = by_problem(_within(records, _middle(_seconds(records))))
    panel_keys = {problem: [] if s.too_few else s.foremost(MOST) for problem, s in problems.items()}
    most = max(map(len, panel_keys.values()))
    figure = style.new_figure(style.TWO_COLUMNS, 1.4 + 0.24 * most)
    panels = figure.subplots(1, len(problems), squeeze=False)[0]
    rows: list[dict[str, Any]] = []
    for axes, (problem, summary) in zip(panels, problems.items(), strict=True):
        if summary.too_few:
            style.empty_axes(axes, f"{problem.upper()}: {summary.too_few}")
            continue
        shares = shares_better([summary.values("gap_pct", key, summary.common) for key in panel_keys[problem]])
        names = [label(key) for key in panel_keys[problem]]
        upper = np.where(np.triu(np.ones_like(shares), 1) > 0, shares, np.nan)[:-1, 1:]
        share_cells(axes, upper, names[:-1], names[1:], f"{problem.upper()}, {len(summary.common)} instances")
        axes.set_aspect("equal")
        for i, j in zip(*np.triu_indices(len(names), 1), strict=True):
            pair = {"problem": problem, "method": names[i], "other": names[j]}
            rows.append(pair | {"share_better": shares[i, j], "flips": bool(shares[i, j] < SURE)})
    open_pairs = [row for row in rows if row["flips"]]
    notes = [
        f"Share (%) of {RESAMPLES:,} resamples of the common instances and of seeds in which the row's mean gap is "
        f"below the column's. Orange: below {100 * SURE:g} %, an order that other instances may turn round "
        f"({len(open_pairs)} of {len(rows)} pairs).",
        *(f"{p.upper()}: {s.too_few}." for p, s in problems.items() if s.too_few),
        *left_out(problems),
    ]
    text = "; ".join(
        f"{r['problem']}: {r['method']} before {r['other']} in {100 * r['share_better']:.0f} %" for r in open_pairs
    )
    return drawing(figure, rows, notes, f"Pairs of methods whose order is not sure: {text or 'none'}.")


def _seconds(records: pd.DataFrame) -> list[float]:
    """Return what searches had, shortest first."""
    return sorted(float(b) for b in records.budget_s.dropna().unique())


def _middle(times: Sequence[float]) -> float | None:
    return times[len(times) // 2] if times else None


def _within(records: pd.DataFrame, budget: float | None) -> pd.DataFrame:
    """Keep what ends by itself, and searches of that budget."""
    records_kept: pd.DataFrame = records[records.budget_s.isna() | (records.budget_s == budget)]
    return records_kept


def budgets(records: pd.DataFrame) -> Drawing | None:
    """Draw which orders change with the seconds that searches have; None where all had as many.

    Of each pair, of which one at least searches, the share of resamples in which the first has the smaller gap.
    """
    times, rows = _seconds(records), list[dict[str, Any]]()
    if len(times) < 2:
        return None
    problems = by_problem(records)
    for problem, all_of_it in problems.items():
        if not all_of_it.too_few:
            rows += _orders(problem, all_of_it, times)
    sheets = {problem: _changing(rows, problem, times) for problem in problems}
    most = max((len(sheet) for sheet in sheets.values()), default=1)
    figure = style.new_figure(style.TWO_COLUMNS, 1.2 + 0.24 * max(most, 4))
    panels = figure.subplots(1, len(sheets), squeeze=False)[0]
    for axes, (problem, sheet) in zip(panels, sheets.items(), strict=True):
        if sheet:
            share_cells(axes, np.array(list(sheet.values())), list(sheet), [f"{b:g} s" for b in times], problem.upper())
        else:
            style.empty_axes(axes, f"{problem.upper()}: {problems[problem].too_few or 'no order changes'}")
    shown_text = f"{sum(map(len, sheets.values()))} of {len(rows) // len(times)} orders"
    notes = [
        f"Share (%) of {RESAMPLES:,} resamples of instances and seeds in which the first method has the smaller mean "
        f"gap when searches have so many seconds. Blue: at least {100 * SURE:g} % one way. Shown: {shown_text}, those "
        "that are open at some budget or turn round between two; the CSV has all.",
        *left_out(problems),
    ]
    return drawing(figure, rows, notes, f"Orders of methods that hang on the budget of searches: {shown_text}.")


def _orders(problem: str, every: Summary, times: Sequence[float]) -> list[dict[str, Any]]:
    """Return for each pair and budget the share of resamples in which the first is better."""
    middle = f"{_middle(times):g} s"
    keys = Summary(_within(every.records, _middle(times))).keys
    rows = []
    for pair in [(a, b) for i, a in enumerate(keys) for b in keys[i + 1 :] if middle in (a[1], b[1])]:
        at = {s: [(key[0], f"{s:g} s") if key[1] == middle else key for key in pair] for s in times}
        if not all(key in every.compared for now in at.values() for key in now):
            continue
        for seconds, now in at.items():
            share = shares_better([every.values("gap_pct", key, every.common) for key in now])[0, 1]
            about = {"problem": problem, "method": _plain(pair[0]), "other": _plain(pair[1]), "seconds": seconds}
            rows.append(about | {"share_better": share, "open": bool(max(share, 1 - share) < SURE)})
    return rows


def _changing(rows: Sequence[dict[str, Any]], problem: str, times: Sequence[float]) -> dict[str, list[float]]:
    """Return the shares at each budget of the pairs that are open at one, or turn round between two."""
    sheet: dict[str, list[float]] = {}
    for row in rows:
        if row["problem"] == problem:
            sheet.setdefault(f"{row['method']} before {row['other']}", []).append(row["share_better"])
    return {name: line for name, line in sheet.items() if min(line) < SURE and max(line) > 1 - SURE}


def _plain(key: Key) -> str:
    """Name a method without its budget."""
    return key[0] if key[1].endswith(" s") else label(key)
