"""Claims: all are declared, name cells that exist, and are judged by intervals alone, in print by the same cells."""

import math
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from refusals import one_line
from scipy.stats import t, ttest_1samp, ttest_ind

from fabricated import Fabric, drawn_table
from neuroute.analysis.intervals import Behind, Term, half_width, of_trainings
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.stated import state
from neuroute.papers.mvmoe.claims import capacity_before_time
from neuroute.papers.scaling.claims import deep_gains_faster_from_data
from neuroute.plan.claims import Claim, check_claims, read_claims
from neuroute.rendering.claims import (
    Finding,
    Judged,
    Side,
    above,
    mean_interval,
    slope_interval,
    spread_of,
)
from neuroute.rendering.table import Cell, Column, Row, Table
from neuroute.rendering.verdicts.comparisons import MORE_PAIRS, DrawnTables, compare, judge_all
from test_all_tables import FABRICS

CLAIMS = [(paper, claim) for paper, fabric in FABRICS.items() for claim in fabric.paper.claims()]
FUNCTIONS = [(paper, claim) for paper, claim in CLAIMS if claim.function]
# Whose cells say another thing than the claim: it names a size of the effect, or more than the cells hold.
SAYS_MORE = {
    "icam.best-rl-at-100",  # of three rivals one is ahead, which a best solver has none of
    "mvmoe.lehd-gains-greedy",  # means, where most instances say the opposite
    "mvmoe.lehd-gains-rrc",
    "pens.rescaling-halves",  # a factor of 1.78
    "scaling.log-n-tsp1000",  # shares of which one mixes two models
    "sit.greedy-best-constructive",  # much smaller, where one is level
}
COMPARED = {"table": "table2", "column": "gap_*", "by": "model", "order": ["A", "B"]}
DECLARED = {
    "id": "a", "claim": "A is below B.", "where": "Table 2", "weight": "result", "kind": "order",
    "artifacts": ["table2"], "printed": {"says": "supports"}, "compare": [COMPARED],
}  # fmt: skip


def finding(*terms: Term, busy: str = "", **cell: float | None) -> Finding:
    return Finding("a less b", Cell(**cell), (), "instances", "TSP10", busy=busy, terms=terms)  # type: ignore[arg-type]


def claim(**changes: Any) -> Claim:
    """Of one comparison, with these changes."""
    return Claim.model_validate(DECLARED | {"compare": [COMPARED | changes]})


def table(*gaps: Behind | None, published: tuple[float | None, ...] = (1.0, 2.0), column: str = "gap_pct") -> Table:
    """Of models A, B, ..."""
    rows = tuple(
        Row((name,), (Cell(each and float(np.mean(each.gaps)), in_print, behind=each),))
        for name, each, in_print in zip("AB", gaps, published, strict=True)
    )
    return Table("t", ("Model",), (Column(column, "gap"),), rows)


def drawn(fabric: Fabric, work: Path) -> DrawnTables:
    return DrawnTables(lambda name: fabric.study(name, work))


def gaps_of(*gaps: float, noise: float = 0.0, seed: int = 0) -> Behind:
    samples = np.mean(gaps) + np.random.default_rng(seed).normal(0, noise, 1000)
    return Behind(gaps, samples, 100, "DecoderOnly", "tsp", 1.0)


# -- declared ---------------------------------------------------------------------------------------------------------


def test_main_figures_are_drawn() -> None:
    for fabric in FABRICS.values():
        assert fabric.artifacts.keys() >= set(fabric.paper.main_figures()) > set()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"artifacts": ["table22"]},
            r"claims.yaml: claim 'a' names table22, which is no table or figure .*mean table2",
        ),
        ({"compare": [COMPARED | {"table": "x"}]}, "names x, which is no table or figure"),
        ({"unjudged": "It is late."}, "claim 'a' has compare and unjudged of compare, function and unjudged; keep one"),
        ({"compare": []}, "claim 'a' has none of compare, function and unjudged"),
        ({"compare": [], "function": "f"}, "names f, which is no function of claims.py"),
        ({"weight": "heavy"}, "claims.yaml: claims.0.weight"),
        ({"wieght": "result"}, "unknown key; did you mean weight"),
    ],
)
def test_a_wrong_declaration_is_one_line(change: Mapping[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": [DECLARED | change]}))
    with one_line(message):
        check_claims(read_claims(tmp_path), path, {"table2": 0}, {})  # type: ignore[arg-type]


def test_two_claims_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump({"claims": [DECLARED, DECLARED]}))
    with pytest.raises(NeurouteError, match="claims.yaml: two claims 'a'; rename one"):
        read_claims(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("paper", FABRICS)
def test_claims_name_cells_that_exist_and_say_what_these_print(
    paper: str, records_of: Callable[[Fabric], Path]
) -> None:
    fabric = FABRICS[paper]
    draw = cache(lambda name: drawn_table(fabric.study, name, records_of(fabric)))
    for each in fabric.paper.claims():
        if not each.compare:
            continue
        found = list(compare(each, {name: draw(name) for c in each.compare for name in c.table}))
        printed = [f.difference.published for f in found if isinstance(f.difference.published, float)]
        above_0 = [value > 1e-9 for value in printed]
        says = "supports" if all(above_0) else "in part" if any(above_0) else "contradicts"
        if f"{paper}.{each.id}" in SAYS_MORE:
            assert (says, bool(each.printed.note)) != (each.printed.says, False)
        else:
            assert (says if printed else "nothing to compute from") == each.printed.says, each.id


# -- judged -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("paper", "claim"), FUNCTIONS, ids=[claim.function for _, claim in FUNCTIONS])
def test_a_function_finds_what_is_printed_and_measured(
    paper: str, claim: Claim, records_of: Callable[[Fabric], Path]
) -> None:
    fabric = FABRICS[paper]
    found = resolve(fabric.paper.claim_function(claim))(drawn(fabric, records_of(fabric)))
    printed = found.difference.published
    assert isinstance(printed, float)
    assert printed > 0
    upper, lower = (side.measured for side in found.sides)
    assert (found.difference.measured or 0) * (upper - lower) > 0
    if found.difference.low is not None:
        assert found.difference.low <= found.difference.measured <= found.difference.high


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    fabric = FABRICS["pens"]
    for judged in judge_all(fabric.paper, DrawnTables(lambda name: fabric.study(name, tmp_path))):
        assert (judged.verdict, judged.findings) == ("not measured", ())
        assert judged.why == judged.claim.unjudged or "missing" in judged.why


def verdict(*findings: Finding) -> tuple[str, str]:
    judged = Judged(claim(), findings)
    return judged.verdict, judged.why


def test_a_superlative_says_whom_it_did_not_meet() -> None:
    """A rival that was measured at one size alone was there."""
    ours, lehd = Side("ours", 1.0), Side("LEHD", 3.0)
    met = replace(finding(measured=2.0, low=1.0, high=3.0), sides=(lehd, ours))
    missed = [
        replace(finding(measured=None), sides=(Side(label, None), ours)) for label in ("LEHD", "GLOP", "GLOP", "MDAM")
    ]
    assert verdict(met, *missed) == ("supported", "not measured: GLOP, MDAM")
    assert verdict(met, met, missed[1])[1] == "of 2 differences 2 above 0, 0 below, 0 open; not measured: GLOP"
    assert verdict(met)[1] == ""


def test_verdicts_follow_from_the_intervals() -> None:
    yes, no = finding(measured=2.0, low=1.0, high=3.0), finding(measured=-2.0, low=-3.0, high=-1.0)
    unseen = finding(measured=1.0, low=-1.0, high=3.0)
    assert verdict(yes) == ("supported", "")
    assert verdict(no) == ("contradicted", "")
    assert verdict(unseen) == ("inconclusive", "the interval holds 0")
    assert verdict(finding(measured=1.0)) == ("inconclusive", "nothing to draw an interval from")
    assert verdict(finding(published=1.0)) == ("not measured", "not measured at this scale")
    assert verdict(yes, finding(published=1.0)) == ("supported", "")
    assert verdict(yes, yes, unseen) == ("inconclusive", "of 3 differences 2 above 0, 0 below, 1 open")
    assert verdict(yes, no)[0] == "contradicted"
    busy = finding(measured=2.0, low=1.0, high=3.0, busy="load 9")
    assert verdict(busy) == ("inconclusive", "times do not count, as the machine was busy (load 9)")
    assert replace(Judged(claim(), (yes,)), is_judged=False).verdict == "not judged"


def test_of_many_differences_one_below_must_be_far_below() -> None:
    term, yes = Term(1.0, 1e9), finding(measured=2.0, low=1.0, high=3.0)
    below = finding(term, measured=-2.2, low=-4.16, high=-0.24)
    assert verdict(below)[0] == "contradicted"
    assert verdict(below, *[yes] * 9)[0] == "inconclusive"
    assert Judged(claim(), (below, *[yes] * 9)).cost == "more trainings, or more instances, of each"
    assert verdict(finding(term, measured=-3.0, low=-4.96, high=-1.04), *[yes] * 9)[0] == "contradicted"


def test_a_difference_is_of_paired_instances_and_of_trainings() -> None:
    spread = spread_of("DecoderOnly", "tsp", 1)
    (found,) = compare(claim(), {"table2": table(gaps_of(3.0, noise=9.0), gaps_of(10.0, noise=9.0))})
    assert found.difference.measured == 7
    half = half_width([of_trainings([gap], spread) for gap in (3.0, 10.0)])  # noise is of the same instances
    assert found.difference.high == pytest.approx(7 + half)
    assert f"{100 * spread.share:.0f} % of a gap" in found.over
    of_three = gaps_of(9.0, 10.0, 11.0)
    (found,) = compare(claim(), {"table2": table(gaps_of(3.0), of_three)})
    half = half_width([of_trainings([3.0], spread), of_trainings(of_three.gaps, spread)])
    assert found.difference.high == pytest.approx(7 + half)
    one = claim(one_training=True)
    (found,) = compare(one, {"table2": table(gaps_of(3.0, noise=0.5), gaps_of(10.0, noise=0.5, seed=1))})
    assert found.difference.high == pytest.approx(7 + 1.984 * 0.5 * 2**0.5, rel=0.05)
    (found,) = compare(claim(), {"table2": table(gaps_of(3.0), None)})
    assert (found.difference.measured, found.difference.published) == (None, 1.0)
    of_models = table(gaps_of(3.0), gaps_of(5.0))
    solver = replace(of_models.rows[1], cells=(Cell(5.0),))
    (found,) = compare(claim(), {"table2": replace(of_models, rows=(of_models.rows[0], solver))})
    assert (found.sign(), found.cost.startswith("gaps of two models")) == (0, True)


def test_instances_of_two_test_sets_are_no_pairs() -> None:
    gaps = gaps_of(10.0, noise=1.0)  # of both: what is drawn together is as alike as can be
    columns = tuple(Column(f"gap_{n}_pct", "Gap", at=f"TSP{n}, 100 instances") for n in (20, 50))
    cells = (Cell(10.0, behind=gaps), Cell(12.0, behind=replace(gaps, samples=gaps.samples + 2)))
    each = claim(by="column", column=(), order=["gap_20_pct", "gap_50_pct"], one_training=True)
    (apart,) = compare(each, {"table2": Table("t", ("Model",), columns, (Row(("A",), cells),))})
    same = tuple(replace(column, at="TSP20, 100 instances") for column in columns)
    (paired,) = compare(each, {"table2": Table("t", ("Model",), same, (Row(("A",), cells),))})
    error = 2**0.5 * float(np.std(gaps.samples, ddof=1))
    assert apart.difference.high - apart.difference.low == pytest.approx(2 * t.ppf(0.975, 198) * error)
    assert paired.difference.high == pytest.approx(paired.difference.low)


def test_trainings_that_go_on_from_others_are_pairs() -> None:
    before, after = gaps_of(10.0, 12.0, 15.0), gaps_of(9.0, 11.2, 13.9)
    (found,) = compare(claim(continued=True), {"table2": table(after, before)})
    expected = ttest_1samp([1.0, 0.8, 1.1], 0).confidence_interval()
    assert (found.difference.low, found.difference.high) == pytest.approx((expected.low, expected.high))


def test_single_instances_are_of_trainings_too() -> None:
    drawn = np.random.default_rng(0)
    ways = {"A": drawn.normal(5, 1, (8, 3)), "B": drawn.normal(9, 1, (8, 4))}  # (instances, trainings)

    def cell(of: np.ndarray) -> Cell:
        return Cell(float(of.mean()), 1.0, behind=Behind(tuple(of), np.full(9, of.mean()), 1, "MvMoe", "vrp", 2.0))

    rows = tuple(Row((name, str(i)), (cell(each),)) for name, of in ways.items() for i, each in enumerate(of))
    one = claim(over="instance")
    (found,) = compare(one, {"table2": Table("t", ("Model", "Instance"), (Column("gap_pct", "gap"),), rows)})
    differences = ways["B"].mean(1) - ways["A"].mean(1)
    terms = [
        Term(differences.var(ddof=1) / 8, 7),
        *(Term(of.mean(0).var(ddof=1) / of.shape[1], of.shape[1] - 1) for of in ways.values()),
    ]
    assert found.difference.high == pytest.approx(differences.mean() + half_width(terms))
    assert "3 trainings and 4 trainings" in found.over or "4 trainings and 3 trainings" in found.over


def test_spreads_of_others_count_where_none_reach_as_far() -> None:
    assert spread_of("Icam", "cvrp", 10) == spread_of("Icam", "tsp", 10)
    assert spread_of("Pomo", "cvrp", 1) == spread_of("Lehd", "cvrp", 0.5) != spread_of("Lehd", "tsp", 1)
    assert spread_of("Lehd", "cvrp", 10) != spread_of("Lehd", "tsp", 10) == spread_of("MvMoe", "vrp", 9)
    assert spread_of("Lehd", "cvrp", 100) == spread_of("DecoderOnly", "tsp", 100)


def test_cells_that_are_not_there_are_named() -> None:
    both = table(gaps_of(3.0), gaps_of(10.0))
    for change, message in (
        ({"order": ["A", "C"]}, "claim 'a': table2: no cell whose model is 'C'"),
        ({"column": "time_*"}, "no cell whose model is 'A'"),
        ({"by": "column", "column": [], "order": ["gap_pct", "gap_pct"]}, "column 'gap_pct' names several cells"),
    ):
        with pytest.raises(NeurouteError, match=message):
            list(compare(claim(**change), {"table2": both}))


def test_means_are_of_what_both_sides_have() -> None:
    rows = [("X", "A", 1.0, None), ("X", "B", 3.0, 4.0), ("Y", "A", 5.0, 1.0), ("Y", "B", 9.0, 2.0)]
    of = Table(
        "t", ("Problem", "Model"), (Column("gap_pct", "gap"),),
        tuple(Row((problem, model), (Cell(here, printed),)) for problem, model, here, printed in rows),
    )  # fmt: skip
    (found,) = compare(claim(each="problem", mean=True), {"table2": of})
    assert (found.difference.measured, found.difference.published) == (3.0, 1.0)
    sides = {"A": (gaps_of(3.0, noise=1.0), gaps_of(5.0, noise=1.0, seed=1)), "B": (None, gaps_of(9.0, noise=1.0))}
    cells = {name: [Cell(each and float(np.mean(each.gaps)), behind=each) for each in of] for name, of in sides.items()}
    every = Table(
        "t", ("Problem", "Model"), (Column("gap_pct", "gap"),),
        tuple(Row((problem, name), (cells[name][i],)) for i, problem in enumerate("XY") for name in "AB"),
    )  # fmt: skip
    (of_both,) = compare(claim(each="problem", mean=True), {"table2": every})
    (alone,) = compare(claim(each="problem", mean=True), {"table2": replace(every, rows=every.rows[2:])})
    assert of_both.difference == alone.difference


def test_times_are_compared_by_their_mean_ratio() -> None:
    times = {"A": (1.0, 2.0, 4.0), "B": (2.0, 4.1, 7.8)}
    columns = tuple(Column(f"time_{n}_s", "Time") for n in (10, 20, 40))
    of = Table("t", ("Model",), columns, tuple(Row((m,), tuple(Cell(t, 2 * t) for t in times[m])) for m in times))
    each = claim(column="time_*", ratio=True)
    (found,) = compare(each, {"table2": of})
    expected = ttest_1samp([math.log(b / a) for a, b in zip(*times.values(), strict=True)], 0).confidence_interval()
    got = [getattr(found.difference, name) for name in ("low", "high", "measured", "published")]
    mean = 100 * ((2.0 * 2.05 * 1.95) ** (1 / 3) - 1)
    assert got == pytest.approx([100 * math.expm1(expected.low), 100 * math.expm1(expected.high), mean, mean])
    (busy,) = compare(each, {"table2": of}, lambda table: f"load 9 of {table}")
    assert (found.sign(), busy.sign(), busy.busy) == (1, 0, "load 9 of table2")


def test_of_many_ratios_one_below_must_be_far_below() -> None:
    times = {"A": (2.0, 2.3, 2.9, 2.1), "B": (1.0, 1.9, 1.5, 1.6)}
    columns = tuple(Column(f"time_{n}_s", "Time") for n in (10, 20, 40, 80))
    of = Table("t", ("Model",), columns, tuple(Row((m,), tuple(map(Cell, times[m]))) for m in times))
    (below,) = compare(claim(column="time_*", ratio=True), {"table2": of})
    yes = finding(measured=2.0, low=1.0, high=3.0)
    assert verdict(below)[0] == "contradicted"
    assert verdict(below, *[yes] * 9)[0] == "inconclusive"
    (open_one,) = compare(claim(column="time_[12]*", ratio=True), {"table2": of})
    assert open_one.cost == MORE_PAIRS


def test_parameters_are_held_against_times() -> None:
    times = {"CVRP": (1.0, 1.2), "VRPB": (2.0, 2.8), "VRPTW": (1.5, 2.0)}
    rows = [Row((problem,), tuple(Cell(t, 2 * t) for t in of)) for problem, of in times.items()]
    columns = (Column("time_mtl_s", "A"), Column("time_moe4e_s", "B"))

    def judged(*sizes: str) -> Finding:
        of = Table(
            "table6", ("Problem",), columns, (*rows, Row(("Parameters",), tuple(Cell(size, size) for size in sizes)))
        )
        return capacity_before_time(SimpleNamespace(table=lambda name: of, busy=lambda name: ""))

    found = judged("100,000", "0.3M")
    expected = ttest_1samp([math.log(b / a) for a, b in times.values()], 0).confidence_interval()
    got = [found.difference.low, found.difference.high, found.difference.measured, found.difference.published]
    mean = (1.2 * 1.4 * 4 / 3) ** (1 / 3)
    assert got == pytest.approx([3 - math.exp(expected.high), 3 - math.exp(expected.low), 3 - mean, 3 - mean])
    assert (found.sign(), judged("0.1M", "0.13M").sign()) == (1, 0)


def test_exponents_differ_by_three_trainings_or_more() -> None:
    def judged(*models: tuple[float, ...]) -> Finding:
        rows = tuple(
            Row((name,), (Cell(float(np.mean(of)), behind=Behind(of, np.full(9, np.mean(of)), 64, "Net", "tsp", 1)),))
            for name, of in zip(("(42, 128)", "(6, 512)"), models, strict=True)
        )
        of = Table("table_figure3", ("Model",), (Column("alpha_s", "alpha"),), rows)
        return deep_gains_faster_from_data(SimpleNamespace(table=lambda name: of))

    deep, wide = (0.3, 0.31, 0.33), (0.2, 0.22, 0.21, 0.23)
    found = judged(deep, wide)
    expected = ttest_ind(deep, wide, equal_var=False).confidence_interval()
    assert (found.difference.low, found.difference.high) == pytest.approx((expected.low, expected.high))
    assert found.sign() == 1
    few = judged(deep[:2], wide)
    assert (few.sign(), few.cost) == (0, "3 trainings or more of each")


def test_times_of_a_busy_machine_are_not_judged(
    records_of: Callable[[Fabric], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric = FABRICS["sit"]
    claim = next(each for each in fabric.paper.claims() if each.function == "time_grows_slowly")
    work = shutil.copytree(records_of(fabric), tmp_path / "work")

    def look(load: float) -> Finding:
        monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
        for evaluation in fabric.study(claim.artifact, work).artifact.evaluations:
            state(work / "evaluations" / f"{evaluation}.csv", "")
        found: Finding = resolve(fabric.paper.claim_function(claim))(drawn(fabric, work))
        return found

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert "busy" not in look(3.0).why
    busy = look(6.0)
    assert (busy.sign(), busy.why) == (0, "times do not count, as the machine was busy (load 6.0 on 2 cores)")
    first = work / "evaluations" / f"{fabric.study(claim.artifact, work).artifact.evaluations[0]}.json"
    first.write_text(first.read_text().replace('"cores": 2', '"cores": 0'))
    with pytest.raises(NeurouteError, match=f"{first}: does not state the machine's cores and load"):
        resolve(fabric.paper.claim_function(claim))(drawn(fabric, work))


def test_differences_are_of_the_same_draws() -> None:
    draws = np.random.default_rng(0).normal(0, 100, 1000)
    a, b = Side("A", 101.0, 1.5, draws + 101), Side("B", 100.0, "OOM", draws + 100)
    cell = above(a, b, "gap", "instances", "").difference
    assert (cell.measured, cell.published) == (1.0, None)
    assert (cell.low, cell.high) == pytest.approx((1.0, 1.0))
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
