"""A table of measured numbers beside published ones, as CSV, Markdown, LaTeX and HTML; its headings and formats."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

from neuroute.analysis.contrasts import Gap
from neuroute.core.lazy import pd
from neuroute.core.text import csv_text
from neuroute.specs.objects import Dataset

HERE = "Here"  # heading of the column that says which model or solver plays the paper's role

Value = float | int | str | None
Format = Callable[[Any], str]

LEGEND = "Measured here, with the paper's number in parentheses; a number in parentheses alone was not measured here."
NOT_QUOTED = "Measured here; nothing is quoted."
QUOTED = '<tr class="quoted">'  # rows of which nothing was run, which the report can hide


def fixed(decimals: int) -> Format:
    """Numbers with so many decimals, without a minus before zero; text as it is."""
    return partial(_fixed, decimals)


def _fixed(decimals: int, value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:z,.{decimals}f}"


THREE_DECIMALS = fixed(3)


class PrintedSeconds(float):
    """Seconds that a paper prints, with its own digits and unit: 6.0 from "0.1m"."""

    def __new__(cls, seconds: float, text: str) -> PrintedSeconds:
        value = super().__new__(cls, seconds)
        value.text = text
        return value

    text: str

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]
        return float(self), self.text  # of a copy that comes from another process

    @property
    def words(self) -> str:
        """The digits as printed, with a unit as this page writes it: 0.1 min.  Without a unit they are seconds."""
        digits = self.text.rstrip("smh")
        unit = {"": "s", "m": "min"}.get(self.text[len(digits) :], self.text[len(digits) :])
        return f"{digits} {unit}"


def duration(seconds: Any) -> str:
    """Seconds as a reader wants them: 4.2 ms, 0.31 s, 20.4 s, 3.3 min, 2.75 h; printed ones as they are printed."""
    if isinstance(seconds, str):
        return seconds
    if isinstance(seconds, PrintedSeconds):
        return seconds.words
    if 0 < abs(seconds) < 0.00995:
        return f"{1000 * seconds:.1f} ms" if abs(seconds) >= 0.0001 else f"{1000 * seconds:.2g} ms"
    if abs(seconds) < 9.995:
        return f"{seconds:.2f} s"
    if abs(seconds) < 59.95:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if abs(seconds) < 3600 * 1.5 else f"{seconds / 3600:.2f} h"


def sized(here: str, paper: str) -> str:
    """Head numbers by what was measured, and in parentheses by what the paper measured: TSP20 (paper: TSP100)."""
    return f"{here} (paper: {paper})" if paper not in ("", here) else here


@dataclass(frozen=True)
class Column:
    """A column of values.

    Attributes:
        key: name in the CSV, unit included: `gap_pct`, `time_s`.
        label: heading.
        unit: shown after it.
        format: value -> text.
        group: heading that neighbouring columns share.
        at: what the values were measured on: "TSP20, 512 instances".
        paper: what the paper has in the place of the group, or of the label without one: "TSP100".
    """

    key: str
    label: str
    unit: str = ""
    format: Format = THREE_DECIMALS
    group: str = ""
    at: str = ""
    paper: str = ""

    @property
    def heading(self) -> str:
        """Of the group: what was measured, and what the paper measured where that is another."""
        return sized(self.group, self.paper) if self.group else ""

    @property
    def own_label(self) -> str:
        """The label, likewise where no group says it."""
        return self.label if self.group else sized(self.label, self.paper)


@dataclass(frozen=True)
class Cell:
    """One value as measured here and as published.

    Attributes:
        measured: in the column's unit; None, or NaN, where nothing was.
        published: likewise.
        low, high: bounds of the measured one.
        at: what it was measured on where its column says another; a label or a note must say so, too.
        behind: trainings and instances that it is the mean of, as verdicts need them.
    """

    measured: Value = None
    published: Value = None
    low: float | None = None
    high: float | None = None
    at: str = ""
    behind: Gap | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("measured", "published", "low", "high"):
            value = getattr(self, name)
            if isinstance(value, float) and math.isnan(value):
                object.__setattr__(self, name, None)


@dataclass(frozen=True)
class Row:
    """Labels, one for each label column, and cells, one for each column."""

    labels: tuple[str | int, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Rows headed by labels; a cell for each column.

    Attributes:
        title: of the artifact.
        labels: headings of the label columns.
        columns: of values.
        rows: each with as many labels and cells.
        notes: sentences below.
        legend: default: says whether anything is quoted.

    Raises:
        ValueError: if a row does not fit the columns.
    """

    title: str
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    legend: str = ""

    def __post_init__(self) -> None:
        if not self.legend:
            quoted = any(cell.published is not None for row in self.rows for cell in row.cells)
            object.__setattr__(self, "legend", LEGEND if quoted else NOT_QUOTED)
        for row in self.rows:
            if (len(row.labels), len(row.cells)) != (len(self.labels), len(self.columns)):
                raise ValueError(f"{self.title}: row {row.labels} does not fit the columns")

    def frame(self, extra: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Return numbers alone: `<key>_measured`, `<key>_published`, bounds where there are any, `<key>_measured_at`.

        Beside gaps of models: of how many trainings they are, `<key>_measured_trainings`, and of which run's weights,
        `<key>_measured_weights`.

        `extra` is name -> value of further columns that are the same in all rows, such as the scale.
        """
        data: dict[str, list[Any]] = {
            snake(name): [row.labels[i] for row in self.rows] for i, name in enumerate(self.labels)
        }
        for i, column in enumerate(self.columns):
            cells = [row.cells[i] for row in self.rows]
            data[f"{column.key}_measured"] = [c.measured for c in cells]
            if any(c.low is not None for c in cells):
                data[f"{column.key}_measured_low"] = [c.low for c in cells]
                data[f"{column.key}_measured_high"] = [c.high for c in cells]
            if any(c.published is not None for c in cells):
                data[f"{column.key}_published"] = [c.published for c in cells]
            if column.at or any(c.at for c in cells):
                at = [(c.at or column.at) if c.measured is not None else None for c in cells]
                data[f"{column.key}_measured_at"] = at
            if any(c.behind for c in cells):
                data[f"{column.key}_measured_trainings"] = [c.behind and len(c.behind.values) for c in cells]
                data[f"{column.key}_measured_weights"] = [c.behind and c.behind.run for c in cells]
        for key, value in (extra or {}).items():
            data[key] = [value] * len(self.rows)
        return pd.DataFrame(data)

    def csv(self, extra: Mapping[str, Any] | None = None) -> str:
        """Write `frame` as CSV, texts without formulas."""
        return csv_text(self.frame(extra))

    def markdown(self) -> str:
        """Write title, table, legend and notes as Markdown: measured [low, high] (published)."""
        heads = [_bar(h) for h in (*self.labels, *(_heading(c) for c in self.columns))]
        lines = [
            f"### {_bar(self.title)}",
            "",
            f"| {' | '.join(heads)} |",
            "|" + "---|" * len(self.labels) + "---:|" * len(self.columns),
        ]
        lines += [f"| {' | '.join(map(_bar, texts))} |" for texts in self._texts()]
        lines += ["", self.legend, ""]
        lines += [f"- {note}" for note in (*_measured_at(self.columns), *self.notes)]
        return "\n".join(lines).rstrip() + "\n"

    def _texts(self) -> Iterator[list[str]]:
        """Labels and cells of each row."""
        for row in self.rows:
            cells = (_plain(cell, column) for cell, column in zip(row.cells, self.columns, strict=True))
            yield [*map(str, row.labels), *cells]

    def latex(self) -> str:
        """Write a table of LaTeX, with what `markdown` has; needs \\usepackage{booktabs}."""
        spec = "l" * len(self.labels) + "r" * len(self.columns)
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(self.title)}}}", rf"\begin{{tabular}}{{{spec}}}"]
        lines.append(r"\toprule")
        groups = _groups(self.columns)
        if any(label for label, _ in groups):
            cells, rules, first = [""] * len(self.labels), [], len(self.labels) + 1
            for label, size in groups:
                cells.append(rf"\multicolumn{{{size}}}{{c}}{{{_tex(label)}}}" if label else " & ".join([""] * size))
                if label:
                    rules.append(rf"\cmidrule(lr){{{first}-{first + size - 1}}}")
                first += size
            lines += [" & ".join(cells) + r" \\", " ".join(rules)]
        heads = [*self.labels, *(f"{c.own_label} ({c.unit})" if c.unit else c.own_label for c in self.columns)]
        lines += [" & ".join(_tex(h) for h in heads) + r" \\", r"\midrule"]
        lines += [" & ".join(map(_tex, texts)) + r" \\" for texts in self._texts()]
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [r"\par\smallskip\footnotesize " + _tex(self.legend)]
        lines += [r"\par " + _tex(note) for note in (*_measured_at(self.columns), *self.notes)]
        return "\n".join([*lines, r"\end{table}", ""])

    def html(self) -> str:
        """Write a fragment <table>: the measured number, with the published one under it.  All text is escaped."""
        e = html.escape
        fixed = [i for i, heading in enumerate(self.labels) if heading != HERE][:2]
        names = ("label fix pair", "label fix second") if len(fixed) == 2 else ("label fix",)
        classes = dict(zip(fixed, names, strict=False))
        kinds = [classes.get(i, "label") for i in range(len(self.labels))]
        is_grouped = any(c.group for c in self.columns)
        height = ' rowspan="2"' if is_grouped else ""
        headings = [f'<th class="{k}"{height} scope="col">{e(n)}</th>' for k, n in zip(kinds, self.labels, strict=True)]
        if is_grouped:
            for group, size in _groups(self.columns):
                headings.append(f'<th colspan="{size}" scope="colgroup" class="group">{e(group)}</th>')
            headings.append("</tr>\n<tr>")
        for c in self.columns:
            unit = f' <span class="unit">{e(c.unit)}</span>' if c.unit else ""
            at = f'<span class="at">{e(c.at)}</span>' if c.at else ""
            headings.append(f'<th scope="col">{e(c.own_label)}{unit}{at}</th>')
        thead = f"<tr>{''.join(headings)}</tr>"
        by_column = [[row.cells[i] for row in self.rows] for i in range(len(self.columns))]
        columns_measured = [any(cell.measured is not None for cell in cells) for cells in by_column]
        body = []
        for row in self.rows:
            labels = "".join(
                f'<th class="{k}" scope="row">{e(str(v))}</th>' for k, v in zip(kinds, row.labels, strict=True)
            )
            cells = "".join(_td(c, k, m) for c, k, m in zip(row.cells, self.columns, columns_measured, strict=True))
            quoted = any(columns_measured) and all(cell.measured is None for cell in row.cells)
            body.append(f"{QUOTED if quoted else '<tr>'}{labels}{cells}</tr>")
        return "<table>\n<thead>\n{}\n</thead>\n<tbody>\n{}\n</tbody>\n</table>\n".format(thead, "\n".join(body))


def _plain(cell: Cell, column: Column) -> str:
    """0.512 [0.480, 0.540] (0.464)"""
    parts = []
    if cell.measured is not None:
        parts.append(column.format(cell.measured))
        if cell.low is not None and cell.high is not None:
            parts.append(f"[{column.format(cell.low)}, {column.format(cell.high)}]")
    if cell.published is not None:
        parts.append(f"({column.format(cell.published)})")
    return " ".join(parts) or "–"


def _td(cell: Cell, column: Column, column_is_measured: bool) -> str:
    e = html.escape
    parts = []
    if cell.measured is not None:
        parts.append(f'<span class="here">{e(column.format(cell.measured))}</span>')
        if cell.low is not None and cell.high is not None:
            parts.append(f'<span class="range">{e(column.format(cell.low))} … {e(column.format(cell.high))}</span>')
    if cell.published is not None:
        only = " only" if cell.measured is None and column_is_measured else ""
        parts.append(f'<span class="paper{only}">{e(column.format(cell.published))}</span>')
    text = any(isinstance(v, str) for v in (cell.measured, cell.published))
    start = '<td class="text">' if text else "<td>"
    return f"{start}{''.join(parts) or '–'}</td>"


def _heading(column: Column) -> str:
    name = f"{column.heading}: {column.label}" if column.group else column.own_label
    return f"{name} ({column.unit})" if column.unit else name


def _measured_at(columns: tuple[Column, ...]) -> tuple[str, ...]:
    """One line that says what the columns were measured on; a group stands for its columns where they agree."""
    at: dict[str, list[str]] = {}
    for column in columns:
        if column.at:
            group = {c.at for c in columns if c.group == column.group}
            short = f"{column.group}: {column.label}" if column.group and len(group) > 1 else column.group
            names = at.setdefault(column.at, [])
            names += [name] if (name := short or column.label) not in names else []
    if len(at) == 1:
        return (f"Measured on {next(iter(at))}.",)
    # What is said again, "TSP20: TSP20, 128 instances", needs no name.
    texts = (
        where if names == [where.partition(",")[0]] else f"{', '.join(names)}: {where}" for where, names in at.items()
    )
    return (f"Measured on: {'; '.join(texts)}.",) if at else ()


def _groups(columns: tuple[Column, ...]) -> list[tuple[str, int]]:
    """Headings of groups, each with how many neighbouring columns it is of."""
    return [(heading, len(list(alike))) for heading, alike in groupby(columns, key=lambda column: column.heading)]


def snake(name: str) -> str:
    """Name a column of a CSV by a heading: `Gap (%)` is `gap`."""
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def _bar(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "×": r"$\times$", "–": "--", "—": "---", "…": r"\dots{}",
    "≥": r"$\geq$", "≤": r"$\leq$", "≈": r"$\approx$", "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$",
    "²": r"$^2$", "³": r"$^3$", "∝": r"$\propto$", "→": r"$\to$", "−": "$-$",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(TEX.get(c, c) for c in text)


# -- headings, formats and test sets in words, the same in the tables of all papers -----------------------------------

WHOLE = fixed(0)
AS_CONFIGURED = "As configured here, with the paper's value in parentheses."
AS_TRAINED = "As configured here, with the paper's value in parentheses; in parentheses alone: not trained here."


def millions(value: Any) -> str:
    """Format with two decimals as the papers do, with three digits for the small models of small scales."""
    return f"{value:,.2f}" if value >= 0.995 else f"{value:.3g}"


def plain(value: Any) -> str:
    """Format a setting: text as it is, whole numbers with separators for thousands."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


def decimal(value: float, decimals: int = 2) -> str:
    """Format a number in running text, with a real minus."""
    return f"{value:z.{decimals}f}".replace("-", "−")


def described(dataset: Dataset) -> str:
    """Describe a test set: its capacity where that is not its size's rule, its distribution where not uniform."""
    words = f"{dataset.problem.upper()}{dataset.n}, {dataset.count:,} instances"
    words += f", C={dataset.capacity}" if dataset.capacity else ""
    return words + ("" if dataset.distribution == "uniform" else f" ({dataset.distribution})")


def joined(descriptions: Iterable[str]) -> str:
    """Describe what columns that several problems share were measured on."""
    return " and ".join(dict.fromkeys(text for text in descriptions if text))


def gap_column(size: int, dataset: Dataset, decimals: int = 3) -> Column:
    """Head the gaps on the TSP's data set that stands for the paper's size."""
    return Column(
        f"gap_tsp{size}_pct", f"TSP{dataset.n}", "gap %", fixed(decimals), at=described(dataset), paper=f"TSP{size}"
    )


def gap_columns(sets: Mapping[int, Dataset]) -> tuple[Column, ...]:
    """Head one column of gaps for each of the paper's sizes; `sets` holds the data set that stands for it."""
    return tuple(gap_column(size, dataset) for size, dataset in sets.items())


def short(size: int) -> str:
    """Shorten a size: 1k for 1000."""
    return f"{size // 1000}k"
