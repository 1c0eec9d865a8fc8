"""Which conclusions flip: how often one method beats another when instances and seeds are drawn anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuroute.analysis import RESAMPLES
from neuroute.analysis.paired import shares_better
from neuroute.comparison.summary import FEWEST, Key, Summary, by_problem
from neuroute.core.lazy import mpl, pd
from neuroute.rendering import style
from neuroute.rendering.style import Drawing, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SURE = 0.975  # share of resamples from which on an order stands


def flips(records: pd.DataFrame) -> Drawing:
    """Draw for each problem, of each pair of methods, the share of resamples in which the row has the smaller gap."""
    problems = {p: s for p, s in by_problem(records).items() if len(s.common) >= FEWEST and len(s.keys) > 1}
    most = max((len(s.keys) for s in problems.values()), default=1)
    figure = style.new_figure(style.TWO_COLUMNS, 1.4 + 0.24 * most)
    panels = figure.subplots(1, max(1, len(problems)), squeeze=False)[0]
    rows: list[dict[str, Any]] = []
    if not problems:
        style.empty_axes(panels[0], "too few instances were solved by all methods")
    for axes, (problem, summary) in zip(panels, problems.items(), strict=False):
        shares = shares_better([summary.values("gap_pct", key, summary.common) for key in summary.keys])
        _panel(axes, summary, shares, f"{problem.upper()}, {len(summary.common)} instances")
        for i, first in enumerate(summary.keys):
            for j, second in enumerate(summary.keys):
                if i < j:
                    pair = {"problem": problem, "method": _name(first), "other": _name(second)}
                    rows.append(pair | {"share_better": shares[i, j], "flips": bool(shares[i, j] < SURE)})
    open_pairs = [row for row in rows if row["flips"]]
    notes = [
        f"Share (%) of {RESAMPLES:,} resamples of the common instances and of seeds in which the row's mean gap is "
        f"below the column's. Orange: below {100 * SURE:g} %, an order that other instances may turn round "
        f"({len(open_pairs)} of {len(rows)} pairs)."
    ]
    told = "; ".join(
        f"{r['problem']}: {r['method']} before {r['other']} in {100 * r['share_better']:.0f} %" for r in open_pairs
    )
    return drawing(figure, rows, notes, f"Pairs of methods whose order is not sure: {told or 'none'}.")


def _name(key: Key) -> str:
    return key[0] if key[1] in ("one pass", "results file") else f"{key[0]}, {key[1]}"


def _panel(axes: Axes, summary: Summary, shares: Any, title: str) -> None:
    count = len(summary.keys)
    axes.set_title(title)
    for i in range(count):
        for j in range(i + 1, count):
            sure = shares[i, j] >= SURE
            color = style.RAMPS["blue"][0] if sure else style.RAMPS["orange"][0]
            axes.add_patch(mpl.patches.Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=color, edgecolor="white"))
            text = f"{100 * shares[i, j]:.0f}" if shares[i, j] < 0.9995 else "100"
            axes.text(j, i, text, ha="center", va="center", fontsize=6.5)
    axes.set(xlim=(0.5, count - 0.5), ylim=(count - 1.5, -0.5), aspect="equal")
    names = [_name(key) for key in summary.keys]
    axes.set_xticks(range(1, count), names[1:], rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(count - 1), names[:-1])
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
