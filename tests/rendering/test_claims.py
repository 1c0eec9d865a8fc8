"""Claims: every paper has three, each compares as its sentence does, and verdicts follow from intervals alone."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from fabricated import Fabric
from neuroute.core.errors import NeurouteError
from neuroute.core.stated import state
from neuroute.dag.headlines import headlines
from neuroute.plan.build import build_plan
from neuroute.plan.claims import Claim
from neuroute.plan.config import parse_config
from neuroute.rendering.claims import Finding, Judged, Side, above, judge, less, mean_interval, slope_interval
from neuroute.rendering.report import Overview, write_report
from neuroute.rendering.table import Cell
from test_all_tables import FABRICS

CLAIMS = [(paper, claim) for paper, fabric in FABRICS.items() for claim in fabric.paper.claims()]
each_claim = pytest.mark.parametrize(("paper", "claim"), CLAIMS, ids=[c.function.rpartition(":")[2] for _, c in CLAIMS])


def finding(**cell: float | None) -> Finding:
    return Finding("a less b", Cell(**cell), (), "instances", "TSP10")  # type: ignore[arg-type]


@pytest.mark.parametrize("paper", FABRICS)
def test_a_paper_has_three_claims_and_main_figures(paper: str) -> None:
    assert len(FABRICS[paper].paper.claims()) == 3
    assert FABRICS[paper].artifacts.keys() >= set(FABRICS[paper].paper.main_figures()) > set()


@each_claim
def test_a_claim_holds_in_print_and_is_measured(paper: str, claim: Claim, records_of: Callable[[Fabric], Path]) -> None:
    fabric = FABRICS[paper]
    found = judge(claim, fabric.study(claim.artifact, records_of(fabric))).finding
    assert found is not None
    printed = found.difference.published
    assert isinstance(printed, float)
    assert printed > 0
    upper, lower = (side.measured for side in found.sides)
    assert upper is not None
    assert lower is not None
    assert (found.difference.measured or 0) * (upper - lower) > 0
    if found.difference.low is not None:
        assert found.difference.low <= found.difference.measured <= found.difference.high  # type: ignore[operator]


@each_claim
def test_what_was_not_measured_cannot_be_seen(paper: str, claim: Claim, tmp_path: Path) -> None:
    judged = judge(claim, FABRICS[paper].study(claim.artifact, tmp_path))
    assert (replace(judged, is_judged=True).verdict, judged.finding) == ("cannot be seen", None)
    assert "missing" in judged.why


def test_the_other_sign_gives_the_other_verdict(tmp_path: Path) -> None:
    """Large models are the worse ones by this law, so that no claim on depth agrees."""
    fabric: Fabric = FABRICS["scaling"]
    worse = fabric.by(lambda run, dataset, how: 20 - fabric.gap(run, dataset, how))
    work = worse.write(tmp_path)
    judged = [judge(claim, worse.study(claim.artifact, work)) for claim in fabric.paper.claims()]
    assert {each.finding.verdict for each in judged if each.finding} == {"does not"}
    assert {each.verdict for each in judged} == {"not judged"}  # smoke's networks are too small


def test_verdicts_follow_from_the_interval() -> None:
    assert finding(measured=2.0, low=1.0, high=3.0).verdict == "agrees"
    assert finding(measured=-2.0, low=-3.0, high=-1.0).verdict == "does not"
    unseen = {
        "the interval holds 0": finding(measured=1.0, low=-1.0, high=3.0),
        "too few to tell by": finding(measured=1.0),
        "not measured at this scale": finding(published=1.0),
    }
    for why, found in unseen.items():
        assert (found.verdict, found.why) == ("cannot be seen", why)


@pytest.mark.parametrize(("paper", "name"), [("mvmoe", "light_is_faster"), ("sit", "time_grows_slowly")])
def test_times_of_a_busy_machine_are_not_judged(
    paper: str, name: str, records_of: Callable[[Fabric], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric = FABRICS[paper]
    claim = next(each for each in fabric.paper.claims() if each.function.endswith(name))
    work = shutil.copytree(records_of(fabric), tmp_path / "work")

    def look(load: float) -> Finding:
        monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
        for evaluation in fabric.study(claim.artifact, work).artifact.evaluations:
            state(work / "evaluations" / f"{evaluation}.csv")
        found = judge(claim, fabric.study(claim.artifact, work)).finding
        assert found
        return found

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert "busy" not in look(3.0).why
    busy = look(6.0)
    assert (busy.verdict, busy.why) == (
        "cannot be seen", "times do not count, as the machine was busy (load 6.0 on 2 cores)"
    )  # fmt: skip
    first = work / "evaluations" / f"{fabric.study(claim.artifact, work).artifact.evaluations[0]}.json"
    first.write_text(first.read_text().replace('"cores": 2', '"cores": 0'))
    assert (
        f"{first}: does not state the machine's cores and load" in judge(claim, fabric.study(claim.artifact, work)).why
    )


def test_differences_are_of_the_same_draws() -> None:
    draws = np.random.default_rng(0).normal(0, 100, 1000)
    a, b = Side("A", 101.0, 1.5, draws + 101), Side("B", 100.0, "OOM", draws + 100)
    cell = above(a, b, "gap", "instances", "").difference
    assert (cell.measured, cell.published) == (1.0, None)
    assert (cell.low, cell.high) == pytest.approx((1.0, 1.0))
    dataset = FABRICS["scaling"].runs[0].validation.dataset
    assert less(b, a, dataset).difference == cell
    assert above(a, replace(b, measured=None), "gap", "", "").difference.measured is None


def test_intervals_by_student() -> None:
    values = [1.0, 2.0, 4.0]
    cell, expected = mean_interval(values), ttest_1samp(values, 0).confidence_interval()
    assert (cell.low, cell.high) == pytest.approx((expected.low, expected.high))
    assert mean_interval([3.0]).low is mean_interval([]).measured is None
    sizes = [10.0, 100.0, 1000.0]
    cell = slope_interval(sizes, [n**1.5 for n in sizes])
    assert (cell.measured, cell.low, cell.high) == pytest.approx((1.5, 1.5, 1.5))
    noisy = slope_interval(sizes, [1.0, 30.0, 50.0])
    assert noisy.low < noisy.measured < noisy.high  # type: ignore[operator]
    assert slope_interval(sizes[:2], [1.0, 10.0]) == Cell(pytest.approx(1.0))
    assert slope_interval(sizes[:1], [1.0]).measured is None


def test_the_page_opens_with_claims_and_tells_them_in_short(work: Path, tmp_path: Path) -> None:
    from neuroute.rendering.render import render

    fabric = FABRICS["scaling"]
    for name in ("figure2", "table3"):
        render(fabric.study(name, work), tmp_path / name)
    claims = fabric.paper.claims()
    looked = [judge(claims[0], fabric.study("figure2", work)), judge(claims[2], fabric.study("table3", tmp_path))]
    judged = [replace(each, is_judged=True) for each in looked]
    judged.append(Judged(replace(claims[1], sentence="1 < 2."), finding(measured=1.0, low=-1.0, high=2.0)))
    stems = {"scaling": [tmp_path / name for name in ("figure2", "table3", "table2")]}
    overview = Overview(judged, ("figure2", "figure9"))
    judging = fabric.scale.model_copy(update={"verdicts": True})
    write_report(stems, tmp_path / "index.html", judging, {"scaling": "A title"}, {"scaling": overview})
    page = (tmp_path / "index.html").read_text()
    assert page.index("What became of the claims") < page.index('id="scaling-figure2"')
    assert page.count("data:image/png;base64,") == 1
    assert '<a href="#scaling-figure2">' in page
    assert "1 &lt; 2." in page
    assert all(f'<span class="verdict {name}">' in page for name in ("agrees", "cannot-be-seen"))
    told = json.loads((tmp_path / "summary.json").read_text())
    assert told["verdicts"] == {"agrees": 1, "does not": 0, "cannot be seen": 2}
    assert told["numbers"]["measured"] >= told["numbers"]["beside_printed"] > 0
    assert [each["published"] for each in told["claims"]][1] is None
    plan = build_plan(parse_config({"papers": ["scaling"], "work_dir": str(tmp_path), "results_dir": str(tmp_path)}))
    for run, gap in (("scaling/base_6x128", 3.0), ("scaling/lehd_24x64", 2.5)):
        file = next(plan.evaluation_file(each.id) for each in plan.evaluations.values() if each.run == run)
        file.parent.mkdir(parents=True)
        file.write_text(f"run,metric,value,reference,test,decoding,n_instances\n{run},gap_pct,{gap},lkh,t,greedy,8\n")
    first, second, third = headlines(plan)
    assert first == "3 claims at scale smoke: agrees 1, cannot be seen 2, does not 0"
    assert second.startswith(f"{told['numbers']['measured']:,} numbers measured")
    assert third == "scaling/lehd_24x64: 2.50 % above lkh on 8 instances of t (greedy), the best of 2 models"
    write_report(stems, tmp_path / "other.html", fabric.scale, overviews={"scaling": Overview(looked)})
    told = json.loads((tmp_path / "summary.json").read_text())
    assert told["verdicts"] == {"not judged": 2}
    assert "No claim is judged at this scale" in (tmp_path / "other.html").read_text()
    told["coverage"]["scaling"] |= {f"table{n}": {"measured": 0, "quoted": n} for n in (6, 12)}
    plan.summary.write_text(json.dumps(told))
    unjudged, *_, library, other = headlines(plan)
    assert unjudged.startswith("2 claims at scale smoke: shown, not judged")
    assert library.startswith("Nothing measured in scaling/table6: no instance of TSPLIB was there; run again where")
    assert other == f"Nothing measured in scaling/table12: its notes say why ({tmp_path}/table12.md)"
    plan.summary.unlink()
    with pytest.raises(NeurouteError, match=r"summary.json: missing; run `neuroute report`"):
        headlines(plan)
