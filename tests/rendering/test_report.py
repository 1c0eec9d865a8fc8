"""The report: one self-contained page from what was rendered, and what cells of tables it counts."""

import datetime
import json
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from refusals import one_line

from fabricated_scaling import SCALE, study_of
from neuroute.pipeline.papers.scaling.paper import ScalingScale
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import parse_config
from neuroute.pipeline.rendering import report as report_module
from neuroute.pipeline.rendering.render import render
from neuroute.pipeline.rendering.report import Coverage, Overview, coverage_lines, write_report
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table
from neuroute.pipeline.rendering.verdicts import Judged, headlines, told_in_short
from test_claims import FABRICS, finding

VOID = {"meta", "img", "br", "link", "hr", "input"}


class Page(HTMLParser):
    """Collects links, ids and images, and checks that tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.images: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [given["href"]] if tag == "a" and given.get("href") else []
        self.ids += [given["id"]] if given.get("id") else []
        self.images += [given["src"]] if tag == "img" and given.get("src") else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def results(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for name in ("table12", "figure1", "figure3"):
        render(study_of(name, work), folder / name)
    return folder


def report(results: Path, *names: str) -> str:
    out = results / "report" / "index.html"
    write_report({"scaling": [results / n for n in names]}, out, SCALE, {"scaling": "A title with <tags> & more"})
    return out.read_text()


def of_changed_figure(results: Path, **changes: object) -> str:
    """The page of Figure 1 under another name, with these changes of what is told about it."""
    about = json.loads((results / "figure1.json").read_text()) | changes
    (results / "figure9.json").write_text(json.dumps(about))
    shutil.copy(results / "figure1.svg", results / "figure9.svg")
    return report(results, "figure9")


@pytest.fixture(scope="module")
def page(results: Path) -> str:
    """A table and two figures, and a table that was not drawn."""
    return report(results, "table12", "figure1", "figure3", "table4")


def test_the_top_says_when_by_which_commit_and_where(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = {"version": "1.0.0", "commit": "1234abcd" + 32 * "0", "dirty": False}
    monkeypatch.setattr(report_module, "source", lambda: source)
    for source["dirty"], words in ((False, ""), (True, " with uncommitted changes")):
        today = datetime.date.today()
        text = report(results, "table12").partition("<main>")[0]
        days = (today, datetime.date.today())
        assert any(f"Written {day}, commit 1234abcd{words}; measured on Test CPU" in text for day in days)


def test_page_is_self_contained_and_its_links_lead_to_files_and_sections(results: Path, page: str) -> None:
    parsed = Page(page)
    assert all(image.startswith("data:image/svg+xml;base64,") for image in parsed.images)
    assert len(parsed.images) == 2
    assert not any(word in page for word in ("http://", "https://", "<script", "@import", "url("))
    assert len(set(parsed.ids)) == len(parsed.ids)
    for link in parsed.links:
        if link.startswith("#"):
            assert link[1:] in parsed.ids
        else:
            assert (results / "report" / link).is_file()
    assert {"../table12.csv", "../table12.tex", "../figure1.pdf"} <= {*parsed.links}


def test_scale_numbers_notes_and_source_are_shown(page: str) -> None:
    own = SCALE[ScalingScale]
    on = f"TSP{own.sizes[100]} uniform × {own.test_counts[100]:,} (against concorde)"
    of_fits, of_scale = "As printed", "Trends mean nothing"
    for words in ("Scale “smoke”", of_scale, '<span class="paper">0.464</span>', on, of_fits, "Not drawn yet"):
        assert words in page


def test_a_cell_tells_its_story(results: Path) -> None:
    page = report(results, "table12")
    table = page[page.index("<table>") :]
    assert "test set: TSP" in table
    assert "\nagain: neuroute verify table12.csv --cell &#x27;" in table
    cells = table.count('<span class="here">')
    assert 0 < table.count(' title="') == cells


def test_text_is_escaped(results: Path) -> None:
    text = of_changed_figure(results, title="<b>bold</b>", notes=["a < b & c"], alt='say "hi"')
    assert "<b>bold</b>" not in text
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert "a &lt; b &amp; c" in text
    assert "A title with &lt;tags&gt; &amp; more" in text
    Page(text)


def test_other_scales_are_marked(results: Path) -> None:
    on = json.loads((results / "figure1.json").read_text())["measured_on"]
    text = of_changed_figure(results, measured_on=on | {"scale": "laptop"})
    assert "mixed scales" in text
    assert "scale laptop" in text


def test_a_lost_file_is_named(results: Path) -> None:
    about = (results / "table12.json").read_text()
    (results / "table13.json").write_text(about)
    with one_line(r"table13\.html: missing"):
        report(results, "table13")
    (results / "table13.html").write_text("")
    with one_line(r"table13\.html: empty; draw"):
        report(results, "table13")


def test_every_cell_is_of_one_kind(tmp_path: Path) -> None:
    columns = (Column("gap_pct", "Gap"), Column("time_s", "Time"))
    rows = [
        Row(("both",), (Cell(1.0, 2.0, 0.9, 1.1), Cell(3.0))),
        Row(("quoted",), (Cell(None, 2.5), Cell(None, 4.0))),
        Row(("impossible",), (Cell(None, "OOM"), Cell(None, "N/A"))),
        Row(("measured where it was impossible",), (Cell(1.0, "OOM"), Cell(None))),
        Row(("nothing",), (Cell(None), Cell(None))),
    ]
    file = tmp_path / "table1.csv"
    file.write_text(Table("title", ("Method",), columns, tuple(rows)).csv({"scale": "smoke"}))
    found = Coverage.of(file)
    assert found == Coverage(measured=3, beside=1, quoted=2, impossible=2)
    assert coverage_lines({"Table 1": found, "Table 2": Coverage(0, 0, 0, 0)}) == [
        ("Table 1", "3", "1", "2", "2", "33 %"),
        ("all", "3", "1", "2", "2", "33 %"),
    ]
    assert coverage_lines({}) == []


# -- claims on the first page, in summary.json and at the end of a run ------------------------------------------------


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    """One claim of each verdict that a number can give, and one without a number."""
    claims = {claim.id: claim for claim in FABRICS["scaling"].paper.claims()}
    return [
        Judged(claims["depth-exponent-larger"], (finding(0.2),)),
        Judged(claims["few-samples-deep-wins"], tuple([finding(0.01)] * 9)),
        Judged(claims["error-tenfold"].model_copy(update={"claim": "1 < 2."}), missing="A ratio."),
    ]


def opening(results: Path, judged: list[Judged], judges: bool) -> tuple[str, dict[str, Any]]:
    """The page of two figures and a table of which one figure is the paper's main one, and its summary."""
    stems = {"scaling": [results / name for name in ("figure3", "table12", "figure1", "table2")]}
    overview, out = Overview(judged, ("figure1", "figure99")), results / "report" / "index.html"
    scale = SCALE.model_copy(update={"verdicts": judges})
    write_report(stems, out, scale, {"scaling": "A title"}, {"scaling": overview}, digest="0123abc")
    return out.read_text(), json.loads(out.with_name("summary.json").read_text())


def test_the_page_opens_with_claims_and_tells_them_in_short(results: Path, judged: list[Judged]) -> None:
    page, told = opening(results, judged, judges=True)
    assert page.index('<h2 id="claims">Verdicts') < page.index('id="scaling-figure1"')
    assert page.count("data:image/svg+xml;base64,") == 3  # of the main figure on the first screen, too
    assert all(f'<span class="verdict {name}">' in page for name in ("supported", "inconclusive", "not-measured"))
    links = (told_in_short("smoke", judged), '<a href="#scaling-figure1">', '<span class="claimed">1 &lt; 2.')
    notes = ("1 more, in summary.json", "chance alone", "digest 0123abc", "Regime unchecked", "own tables support")
    for words in (*links, *notes):
        assert words in page
    assert told["verdicts"] == {
        "supported": 1, "contradicted": 0, "inconclusive": 1, "regime not sensitive": 0, "not measured": 1,
    }  # fmt: skip
    assert told["by_printed"]["contradicts"]["not measured"] == told["by_printed"]["supports"]["supported"] == 1
    assert told["numbers"]["measured"] >= told["numbers"]["beside_printed"] > 0
    assert [len(each["findings"]) for each in told["claims"]] == [1, 9, 0]


def test_a_scale_without_verdicts_says_what_to_believe_and_shows_none(results: Path, judged: list[Judged]) -> None:
    kept = results / report_module.KEPT.relative_to(".")
    page, told = opening(results, [replace(each, is_judged=False) for each in judged], judges=False)
    assert told["verdicts"] == {"not judged": 3}
    first = page[: page.index('<div class="layout">')]
    assert "No claim is judged at this scale" in first
    assert "data:image/svg+xml" in first
    assert 'class="verdict ' not in page
    assert judged[0].claim.claim.split("<")[0][:40] in page
    assert str(report_module.KEPT) not in page  # as no checkout is here
    kept.parent.mkdir(parents=True)
    kept.touch()
    page, _ = opening(results, judged, judges=False)
    assert '<a href="../docs/results/what_reproduces.md">Verdicts at scale laptop</a>' in page


def test_headlines_are_verdicts_cells_the_best_model_and_what_is_empty(
    results: Path, judged: list[Judged], tmp_path: Path
) -> None:
    settings = {"papers": ["scaling"], "work_dir": str(tmp_path / "w"), "results_dir": str(tmp_path)}
    plan = build_plan(parse_config(settings))
    for run, gap in (("scaling/base_6x128", 3.0), ("scaling/lehd_24x64", 2.5)):
        file = next(plan.evaluation_file(each.id) for each in plan.evaluations.values() if each.run == run)
        file.parent.mkdir(parents=True)
        columns = "run,metric,value,reference,test,decoding,n_instances,weights"
        file.write_text(f"{columns}\n{run},gap_pct,{gap},lkh,t,greedy,8,\n")
    _, told = opening(results, judged, judges=True)
    plan.summary.write_text(json.dumps(told))
    first, second, third = headlines(plan)
    counts = "supported 1, contradicted 0, inconclusive 1, regime not sensitive 0, not measured 1"
    assert first == f"3 claims at scale smoke: {counts}"
    assert second.startswith(f"{told['numbers']['measured']:,} cells measured")
    assert third == "scaling/lehd_24x64: 2.50 % above lkh on 8 instances of t (greedy), the best of 2 models"
    _, told = opening(results, [replace(each, is_judged=False) for each in judged], judges=False)
    told["coverage"]["scaling"] |= {f"table{n}": {"measured": 0, "quoted": n} for n in (6, 12)}
    plan.summary.write_text(json.dumps(told))
    unjudged, *_, library, other = headlines(plan)
    assert unjudged.startswith("3 claims at scale smoke: shown, not judged")
    assert library.startswith("Nothing measured in scaling/table6: no instance of TSPLIB was found; run again with")
    assert other == f"Nothing measured in scaling/table12: its notes say why ({tmp_path}/table12.md)"
    plan.summary.unlink()
    with one_line(r"summary.json: missing; run `neuroute report`"):
        headlines(plan)
