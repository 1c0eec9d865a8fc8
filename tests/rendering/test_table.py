"""The Table object: its formats, escapes and units."""

import csv
import io
import re

from neuroute.pipeline.rendering.table import HERE, Cell, Column, PrintedSeconds, Row, Table, duration, fixed

AWKWARD = Table(
    "A & B <i>",
    ("Model|s",),
    (Column("gap_pct", "Gap_%", "%", fixed(2), "50% & more", "TSP20"), Column("note", "Note")),
    (
        Row(("x_1",), (Cell(1234.5, 0.5, 1000.0, 1500.0), Cell("<b>bold</b>", "a|b"))),
        Row((7,), (Cell(None, 0.25), Cell(float("nan")))),
    ),
    ("100% of $5 & <script>",),
)


def test_markdown_escapes_bars_and_marks_what_was_not_measured() -> None:
    text = AWKWARD.markdown()
    assert "1,234.50 [1,000.00, 1,500.00] (0.50)" in text
    assert "| 7 | (0.25) | – |" in text
    assert "Model\\|s" in text
    assert "a\\|b" in text


def test_latex_escapes() -> None:
    text = AWKWARD.latex()
    assert r"50\% \& more" in text
    assert r"x\_1" in text
    assert r"100\% of \$5 \& <script>" in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    bodies = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.replace(r"\&", "").count("&") for line in bodies if "multicolumn" not in line} == {2}


def test_html_escapes() -> None:
    text = AWKWARD.html()
    assert "<b>bold</b>" not in text
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert 'class="paper only"' in text


def test_csv_holds_plain_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(AWKWARD.csv({"scale": "smoke"}))))
    assert rows[0]["gap_pct_measured"] == "1234.5"
    assert rows[0]["gap_pct_measured_at"] == "TSP20"
    assert rows[1]["gap_pct_measured"] == ""
    assert rows[1]["gap_pct_published"] == "0.25"
    assert rows[1]["scale"] == "smoke"


def test_rows_that_were_not_run_can_be_told_in_html() -> None:
    rows = [row for row in AWKWARD.html().split("<tr") if 'scope="row"' in row]
    assert ["quoted" in row.partition(">")[0] for row in rows] == [False, True]


def test_durations_in_readable_units() -> None:
    assert [duration(s) for s in (0.00001234, 0.0042, 0.00995, 0)] == ["0.012 ms", "4.2 ms", "0.01 s", "0.00 s"]
    assert [duration(s) for s in (0.305, 20.4, 84, 3360, 9900)] == ["0.30 s", "20.4 s", "1.4 min", "56.0 min", "2.75 h"]


def test_printed_durations_keep_their_digits_and_unit() -> None:
    printed = {"0.1m": 6.0, "245m": 14700.0, "1.7h": 6120.0, "1.28s": 1.28, "20.6": 20.6}
    shown = [duration(PrintedSeconds(seconds, text)) for text, seconds in printed.items()]
    assert shown == ["0.1 min", "245 min", "1.7 h", "1.28 s", "20.6 s"]
    rows = (Row(("a",), (Cell(6.0, PrintedSeconds(6.0, "0.1m")),)), Row(("b",), (Cell(6.0),)))
    table = Table("t", ("a",), (Column("time_s", "Time", format=duration),), rows)
    assert "6.00 s (0.1 min)" in table.markdown()
    assert "a,6.0,6.0\nb,6.0,\n" in table.csv()  # numbers stay numbers


def test_the_labels_that_tell_rows_apart_stay_in_view() -> None:
    def classes(*labels: str) -> list[str]:
        column = Column("x", "X", "", fixed(1))
        html = Table("t", labels, (column,), (Row(tuple(map(str, range(len(labels)))), (Cell(1.0),)),)).html()
        return re.findall(r'class="(label[\w ]*)" scope="row"', html)

    assert classes("Method") == classes("Model", HERE)[:1] == ["label fix"]
    assert classes("Model", HERE)[1:] == ["label"]
    assert classes("Problem", "Method", HERE) == ["label fix pair", "label fix second", "label"]
