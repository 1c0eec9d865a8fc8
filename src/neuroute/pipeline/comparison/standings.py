"""The short table of a comparison: method, gap on what all solved, time, rank."""

from __future__ import annotations

from collections.abc import Collection

from neuroute.core.lazy import pd
from neuroute.pipeline.comparison.summary import by_problem, label
from neuroute.pipeline.rendering.table import duration

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
