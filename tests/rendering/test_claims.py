"""Claims: all are declared, name cells that exist, and are judged by one number each, in print by the same cells."""

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
from scipy.stats import ttest_1samp

from fabricated import Fabric, drawn_table
from neuroute.analysis.contrasts import Estimate, Gap, Term, contrast
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import state
from neuroute.pipeline.papers.mvmoe.claims import capacity_before_time
from neuroute.pipeline.papers.scaling.claims import deep_gains_faster_from_data, depth_pays_more
from neuroute.pipeline.papers.scaling.paper import GRID
from neuroute.pipeline.plan.claims import WHY, Claim, Gate, check_claims, claims_digest, read_claims
from neuroute.pipeline.rendering.comparisons import (
    NO_INTERVAL,
    ONE_EACH,
    DrawnTables,
    Finding,
    findings,
    kind_of,
    spread_of,
)
from neuroute.pipeline.rendering.render import render
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table
from neuroute.pipeline.rendering.verdicts import (
    Judged,
    Regime,
    effect,
    is_small_headline,
    judge_all,
    number,
    regime,
    with_holm,
)
from test_all_tables import FABRICS

CLAIMS = [(paper, claim) for paper, fabric in FABRICS.items() for claim in fabric.paper.claims()]
# Functions of figures that no fabricated records draw: kept ones are read in test_kept_verdicts.py.
OF_FIGURES = {"training_on_ovrptw_helps", "load_is_balanced"}
FUNCTIONS = [(paper, claim) for paper, claim in CLAIMS if claim.function and claim.function not in OF_FIGURES]
# Whose cells say another thing than the claim: it names a size of the effect, or more than the cells hold.
SAYS_MORE = {
    "icam.best-rl-at-100",  # of three rivals one is ahead, which a best solver has none of
    "icam.k-does-not-matter",  # levels within margins, whose cells may lie on either side
    "icam.search-hardly-helps",
    "icam.small-not-harmed",
    "mvmoe.base-slightly-better",
    "mvmoe.lehd-gains-greedy",  # means, where most instances say the opposite
    "mvmoe.lehd-gains-rrc",
    "pens.both-consistent-across-scales",  # never the worst, at some sizes the second
    "pens.best-factor-grows",  # one size of one model
    "pens.gaussian-equal-at-training-size",
    "pens.rescaling-halves",  # a factor of 1.78
    "pens.rescaling-marginal-small",
    "pens.rope-sota-below-1000",  # cells are of earlier solvers, the claim's note of its own other model
    "scaling.capacity-helps-generally",  # generally is not always
    "scaling.deepest-also-quicker",  # of two beams that a third one makes needless
    "scaling.explosion-implosion-like-uniform",
    "scaling.log-n-tsp1000",  # shares of which one mixes two models
    "sit.greedy-best-constructive",  # much smaller, where one is level
    "sit.insertion-start-best",  # on six of ten groups
    "sit.insertion-start-faster",  # mostly
}
COMPARED = {"table": "table2", "column": "gap_*", "by": "model", "order": ["A", "B"]}
DECLARED = {
    "id": "a", "claim": "A is below B.", "where": "Table 2", "weight": "result", "printed": "supports",
    "form": "tendency", "compare": [COMPARED],
}  # fmt: skip
NETWORK = "DecoderOnly"


def claim(form: str = "tendency", margin: float | None = None, no_worse: bool = False, **changes: Any) -> Claim:
    """Of one comparison, with these changes."""
    ways = {"form": form, "margin": margin, "no_worse": no_worse, "compare": [COMPARED | changes]}
    return Claim.model_validate(DECLARED | ways)


def gap(*values: float, run: str = "", network: str = NETWORK, instances: int = 100, noise: float = 0.0) -> Gap:
    return Gap(values, np.array([noise]), "set", instances, network, "tsp", 1.0, run or str(values))


def table(**models: list[Gap | float | None]) -> Table:
    """Of models A, B, ..., a column for each test set; printed are 1, 2, ... for them."""
    count = len(next(iter(models.values())))
    columns = tuple(Column(f"gap_{i}_pct", "gap", at=f"set {i}") for i in range(count))
    rows = []
    for printed, (name, of) in enumerate(models.items(), 1):
        cells = tuple(
            Cell(float(np.mean(each.values)), printed, behind=each) if isinstance(each, Gap) else Cell(each, printed)
            for each in of
        )
        rows.append(Row((name,), cells))
    return Table("t", ("Model",), columns, tuple(rows))


def estimate(value: float, error: float = 0.01) -> Estimate:
    return Estimate(value, (Term(error**2, 1e6, "trainings"),), 3)


def finding(value: float | None = None, error: float = 0.01, **of: Any) -> Finding:
    return Finding("a below b", None if value is None else estimate(value, error), **of)


def drawn(fabric: Fabric, work: Path) -> DrawnTables:
    return DrawnTables(lambda name: fabric.study(name, work))


# -- declared ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"artifacts": ["table22"]},
            r"claims.yaml: claim 'a' names table22, which is no table or figure .*mean table2",
        ),
        ({"why": "scale"}, "claim 'a' has compare and why of compare, function and why; keep one"),
        ({"compare": [], "function": "f"}, "names f, which is no function of claims.py"),
        ({"form": "level"}, "claim 'a' has no margin, within which two sides are level; correct it"),
        ({"form": "law"}, "claim 'a' is a law, which a function fits; name one"),
        ({"compare": [COMPARED | {"order": ["A", ["B", "C"]]}]}, "claim 'a' pools over the sides .* a superlative"),
        ({"compare": [], "form": None, "why": "it is late"}, "claims.yaml: claims.0.why"),
        ({"wieght": "result"}, "unknown key; did you mean weight"),
    ],
)
def test_a_wrong_declaration_is_one_line(change: Mapping[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": [DECLARED | change]}))
    with one_line(message):
        check_claims(read_claims(tmp_path), path, {"table2": 0}, {})


def test_a_digest_tells_a_changed_margin(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
        (folder / "claims.yaml").write_text("margin: 0.10")
    before = claims_digest(folders)
    assert claims_digest([*reversed(folders), tmp_path / "none"]) == before
    (folders[0] / "claims.yaml").write_text("margin: 0.11")
    assert claims_digest(folders) != before


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
        of_claim = findings(each, {name: draw(name) for name in each.tables})
        above_0 = [sign for of in of_claim for sign in of.signs]
        if each.compare[0].costs:  # whose mean counts
            above_0 = [of.printed > 0 for of in of_claim if of.printed is not None]
            if not all(sign for of in of_claim for sign in of.signs) and each.printed == "in part":
                continue  # exceptions, which its note names
        says = "supports" if all(above_0) else "in part" if any(above_0) else "contradicts"
        if f"{paper}.{each.id}" not in SAYS_MORE:
            assert (says if above_0 else "nothing to compute from") == each.printed, each.id


# -- one number a claim -----------------------------------------------------------------------------------------------


def test_a_tendency_is_the_mean_log_ratio_of_its_cells() -> None:
    a, b = [gap(4.0, run="a"), gap(9.0, run="a")], [gap(5.0, run="b"), gap(8.0, run="b")]
    (of,) = findings(claim(), {"table2": table(A=[*a], B=[*b])})
    parts = [(-0.5, a[0]), (-0.5, a[1]), (0.5, b[0]), (0.5, b[1])]
    assert of.estimate == contrast(parts, spread_of)
    assert of.estimate.value == pytest.approx(math.log(5 / 4 * 8 / 9) / 2)
    assert of.printed == pytest.approx(math.log(2))
    assert [cell.value > 0 for cell in of.cells] == [True, False]
    assert Judged(claim(), (of,)).signs == "1 of 2"


def test_rivals_are_not_pooled() -> None:
    values = {"A": 4.0, "B": 5.0, "C": 3.0}
    models = {name: [gap(value, run=name), gap(value, run=name)] for name, value in values.items()}
    superlative = claim("superlative", order=["A", ["B", "C"]])
    of = findings(superlative, {"table2": table(**models)})
    assert [round(each.estimate.value, 3) for each in of] == [0.223, -0.288]
    judged = Judged(superlative, (finding(0.5), finding(0.4)))
    assert (judged.verdict, judged.p_for) == ("supported", max(each.estimate.p_above() for each in judged.findings))
    assert Judged(superlative, (finding(0.5), finding(0.01))).verdict == "inconclusive"
    assert Judged(superlative, (finding(0.5), finding(-0.5))).verdict == "contradicted"
    just_below = finding(-0.0205)
    assert Judged(superlative, (just_below,)).verdict == "contradicted"
    assert Judged(superlative, (finding(0.5), just_below)).verdict == "inconclusive"  # two differences count


def test_a_universal_claim_has_no_exception() -> None:
    cells = tuple(estimate(value) for value in (0.3, 0.3, 0.01, -0.02))
    universal = claim("universal", order=["A", "B"])
    assert Judged(universal, (finding(0.15, cells=cells),)).verdict == "supported"
    below = (*cells[:3], estimate(-0.1))
    assert Judged(universal, (finding(0.12, cells=below),)).verdict == "contradicted"
    assert Judged(claim(), (finding(0.12, cells=below),)).verdict == "supported"  # a tendency has exceptions
    assert Judged(universal, (finding(0.001, cells=cells),)).verdict == "inconclusive"


def test_a_chain_holds_in_each_of_its_steps_if_it_is_universal() -> None:
    of = {"table2": table(A=[gap(2.0, run="a")], B=[gap(9.0, run="b")], C=[gap(8.0, run="c")])}
    steps = findings(claim("universal", order=["A", "B", "C"]), of)
    assert [round(each.estimate.value, 3) for each in steps] == [1.504, -0.118]
    (ends,) = findings(claim(order=["A", "B", "C"]), of)
    assert ends.estimate.value == pytest.approx(math.log(8 / 2) / 2)


def test_printed_cells_without_a_measured_one_are_counted() -> None:
    (of,) = findings(claim(), {"table2": table(A=[gap(4.0), gap(4.0)], B=[gap(5.0, run="b"), None])})
    assert "1 printed pairs of cells not measured" in Judged(claim(), (of,)).why


def test_a_level_lies_within_its_margin() -> None:
    level, no_worse = claim("level", 0.1), claim("level", 0.1, no_worse=True)
    for value, verdicts in (
        (0.0, ("supported", "supported")),
        (0.1, ("inconclusive", "supported")),
        (0.3, ("contradicted", "supported")),
        (-0.1, ("inconclusive", "inconclusive")),
        (math.log(0.9) - 0.0205, ("contradicted", "contradicted")),
        (-0.3, ("contradicted", "contradicted")),
    ):
        assert (Judged(level, (finding(value),)).verdict, Judged(no_worse, (finding(value),)).verdict) == verdicts
    assert Judged(level, (finding(0.0, 0.2),)).power == 0
    near = finding(-math.log(0.9) - 0.01)  # as far from the margin as 0.01 is from 0
    assert Judged(level, (near,)).cost == Judged(claim(), (finding(0.01),)).cost == "7.8 times the trainings"


def test_a_law_is_one_regression_over_all_trainings() -> None:
    numbers = {shape: 0.01 * (shape.depth * shape.width**2) for shape in GRID}
    rng = np.random.default_rng(0)

    def evidence(spread: float) -> Any:
        rows = []
        for shape in GRID:
            log = 3 - 0.5 * math.log(shape.depth) - 0.2 * math.log(shape.width**2)
            values = tuple(np.exp(log + spread * rng.normal(size=3)))
            cell = Cell(float(np.mean(values)), math.exp(log), behind=gap(*values, run=str(shape)))
            rows.append(Row((f"Greedy, depth={shape.depth}, width={shape.width}",), (cell,)))
        tables = {
            "table12": Table("t", ("Method",), (Column("gap_pct", "gap"),), tuple(rows)),
            "table1": Table(
                "t", ("Depth", "Width"), (Column("parameters_millions", "N"),),
                tuple(Row((s.depth, s.width), (Cell(n, n),)) for s, n in numbers.items()),
            ),
        }  # fmt: skip
        return SimpleNamespace(table=tables.__getitem__)

    (exact,) = depth_pays_more(evidence(0.0))
    assert (exact.estimate.value, exact.printed, exact.unit) == (pytest.approx(0.3), pytest.approx(0.3), "exponent")
    (noisy,) = depth_pays_more(evidence(0.05))
    low, high = noisy.estimate.interval()
    assert 0 < low < 0.3 < high
    assert noisy.estimate.trainings == 3


def test_a_kind_of_network_that_was_trained_once_gets_no_interval() -> None:
    new = table(A=[gap(4.0)], B=[gap(5.0, network="Novel")])
    (of,) = findings(claim(), {"table2": new})
    assert (of.estimate.interval(), of.lacks) == (None, ONE_EACH)
    assert Judged(claim(), (of,)).why == f"no interval: it takes {ONE_EACH}"
    twice = table(A=[gap(4.0)], B=[gap(5.0, 5.2, network="Novel")])
    assert findings(claim(), {"table2": twice})[0].estimate.interval() is not None


def test_few_instances_and_solvers_have_no_interval() -> None:
    for other in (gap(5.0, instances=5), 5.0):
        (of,) = findings(claim(), {"table2": table(A=[gap(4.0)], B=[other])})
        assert (of.estimate.value, of.estimate.interval()) == (pytest.approx(math.log(5 / 4)), None)
        assert Judged(claim(), (of,)).cost == NO_INTERVAL
    (of,) = findings(claim(), {"table2": table(A=[gap(4.0)], B=[None])})
    assert (of.estimate, of.printed) == (None, pytest.approx(math.log(2)))
    assert Judged(claim(), (of,)).verdict == "not measured"


def test_spreads_are_of_a_kind_of_network() -> None:
    assert kind_of("IcamCvrp") == kind_of("Icam") == "Icam"
    near, far = (replace(gap(4.0), times=times) for times in (1.0, 99.0))
    assert spread_of(near) != spread_of(far) == spread_of(replace(near, times=10.0))
    assert spread_of(replace(near, network="IcamCvrp")) == spread_of(replace(near, network="Icam"))
    assert spread_of(replace(near, network="Icam", problem="vrp")) is not None  # nothing is known of it: another one
    assert spread_of(replace(near, network="Novel")) is None


def test_single_instances_are_of_trainings_too() -> None:
    rng = np.random.default_rng(0)
    ways = {"A": rng.normal(5, 1, (8, 3)), "B": rng.normal(9, 1, (8, 4))}  # (instances, trainings)
    rows = tuple(
        Row((name, str(i)), (Cell(float(of.mean()), 1.0, behind=replace(gap(*of), instances=1, run=name)),))
        for name, each in ways.items()
        for i, of in enumerate(each)
    )
    every = Table("t", ("Model", "Instance"), (Column("gap_pct", "gap"),), rows)
    (of,) = findings(claim(over="instance"), {"table2": every})
    means = {name: each.mean() for name, each in ways.items()}
    assert of.estimate.value == pytest.approx(
        np.log(ways["B"].mean(0)).mean() - np.log(ways["A"].mean(0)).mean(), abs=1e-9
    )
    ratios = ways["B"].mean(1) / means["B"] - ways["A"].mean(1) / means["A"]
    (instances,) = (term for term in of.estimate.terms if term.source == "instances")
    assert (instances.variance, instances.freedom) == (pytest.approx(ratios.var(ddof=1) / 8), 7)


def test_times_are_compared_by_their_mean_ratio() -> None:
    times = {"A": (1.0, 2.0, 4.0), "B": (2.0, 4.1, 7.8)}
    columns = tuple(Column(f"time_{n}_s", "Time") for n in (10, 20, 40))
    of = Table("t", ("Model",), columns, tuple(Row((m,), tuple(Cell(t, 2 * t) for t in times[m])) for m in times))
    each = claim(column="time_*", costs=True)
    (compared,) = findings(each, {"table2": of})
    logs = [math.log(b / a) for a, b in zip(*times.values(), strict=True)]
    assert compared.estimate.interval() == pytest.approx(tuple(ttest_1samp(logs, 0).confidence_interval()))
    assert compared.printed == pytest.approx(np.mean(logs))
    (busy,) = findings(each, {"table2": of}, lambda name: f"load 9 of {name}")
    judged = [Judged(each, (of,)) for of in (compared, busy)]
    assert [each.verdict for each in judged] == ["supported", "inconclusive"]
    assert "busy (load 9 of table2)" in judged[1].why


def test_cells_that_are_not_there_are_named() -> None:
    both = table(A=[gap(3.0)], B=[gap(10.0)])
    for change, message in (
        ({"order": ["A", "C"]}, "claim 'a': table2: no cell with model 'C'"),
        ({"column": "time_*"}, "no cell with model 'A'"),
        ({"by": "column", "column": [], "order": ["gap_0_pct", "gap_0_pct"]}, "column 'gap_0_pct' names several cells"),
    ):
        with pytest.raises(NeurouteError, match=message):
            findings(claim(**change), {"table2": both})


# -- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("paper", "claim"), FUNCTIONS, ids=[f"{paper}.{claim.id}" for paper, claim in FUNCTIONS])
def test_a_function_reads_what_is_printed_and_measured(
    paper: str, claim: Claim, records_of: Callable[[Fabric], Path]
) -> None:
    fabric = FABRICS[paper]
    of = resolve(fabric.paper.claim_function(claim))(drawn(fabric, records_of(fabric)))
    assert of
    for each in of:
        assert isinstance(each, Finding)
        assert each.printed is None or math.isfinite(each.printed)


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    fabric = FABRICS["pens"]
    for judged in judge_all(fabric.paper, DrawnTables(lambda name: fabric.study(name, tmp_path))):
        assert (judged.verdict, judged.findings) == ("not measured", ())
        assert judged.why == WHY.get(judged.claim.why) or "missing" in judged.why


def test_verdicts_follow_from_the_intervals() -> None:
    def told(*of: Finding, **about: Any) -> tuple[str, str]:
        judged = Judged(claim(), of, **about)
        return judged.verdict, judged.why

    assert told(finding(0.2)) == ("supported", "")
    assert told(finding(-0.2)) == ("contradicted", "")
    assert told(finding(0.01)) == ("inconclusive", "the interval holds 0")
    assert told(finding()) == ("not measured", "not measured at this scale")
    assert told(missing="no table") == ("not measured", "no table")
    assert told(finding(0.2), is_judged=False)[0] == "not judged"
    assert effect(finding(math.log(2), 0.1)) == "50 % [39, 59]"
    assert number(0.123, "exponent") == "0.12"


def test_a_regime_that_does_not_move_has_no_verdict() -> None:
    for cuts, word in (((0.3, 0.4), "sensitive"), ((0.2, 0.4), "not sensitive"), ((0.3, None), "unchecked")):
        assert Regime(*cuts).sensitivity == word
    still = Regime(0.2, 0.4)
    judged = Judged(claim(), (finding(0.5),), regime=still)
    assert (judged.verdict, judged.why) == ("regime not sensitive", still.words)
    assert "20 % (least 25 %)" in still.words
    used_twice = finding(0.5, of_trainings=False)
    assert Judged(claim(one_training=True), (used_twice,), regime=still).verdict == "supported"


def test_the_gate_reads_an_exponent_and_two_sizes() -> None:
    tables = {
        "table3": Table("t", ("Model",), (Column("alpha", "a"),), (Row(("M",), (Cell(0.5),)),)),
        "table2": table(A=[gap(4.0)], B=[gap(8.0)]),
    }
    updates = {"table": "table3", "column": "alpha", "of": {"model": "M"}}
    gate = Gate.model_validate({"updates": updates, "size": COMPARED})
    evidence: Any = SimpleNamespace(table=tables.__getitem__)
    assert regime(gate, evidence) == Regime(pytest.approx(0.5), pytest.approx(0.5))
    assert regime(None, evidence) == Regime()
    solved: Any = SimpleNamespace(table=(tables | {"table2": table(A=[gap(0.0)], B=[gap(8.0)])}).__getitem__)
    assert regime(gate, solved) == Regime(pytest.approx(0.5), None)
    wrong = gate.model_copy(update={"updates": gate.updates.model_copy(update={"of": {"model": "N"}})})
    with one_line(r"gate: table3: 0 cells of alpha where \{'model': 'N'\}; name one"):
        regime(wrong, evidence)
    other = Gate.model_validate({"updates": updates, "size": COMPARED | {"order": ["A", "C"]}})
    with one_line("claim 'gate': table2: no cell with model 'C'"):
        regime(other, evidence)


def test_headlines_count_together() -> None:
    headline = claim().model_copy(update={"weight": "headline"})
    detail, big = claim(), headline.model_copy(update={"gpu": True})
    near = finding(0.0205)  # decided alone
    judged = with_holm({"p": [Judged(headline, (near,)), Judged(headline, (near,)), Judged(detail, (near,))],
                        "q": [Judged(big, (near,))]})  # fmt: skip
    assert [each.verdict for each in judged["p"]] == ["inconclusive", "inconclusive", "supported"]
    assert judged["p"][0].cost == Judged(claim(), (near,), p_of_family=1.0, counted=2).cost
    assert judged["p"][0].cost != Judged(claim(), (near,), p_of_family=1.0).cost
    assert judged["p"][0].why == "decided alone, not among all headline claims (Holm)"
    assert [is_small_headline(each) for each in (headline, detail, big)] == [True, False, False]
    assert judged["q"][0].verdict == "supported"


def test_parameters_are_held_against_times() -> None:
    times = {"CVRP": (1.0, 1.2), "VRPB": (2.0, 2.8), "VRPTW": (1.5, 2.0)}
    rows = [Row((problem,), tuple(Cell(t, 2 * t) for t in of)) for problem, of in times.items()]
    columns = (Column("time_mtl_s", "A"), Column("time_moe4e_s", "B"))
    sizes = Row(("Parameters",), tuple(Cell(size, size) for size in ("100,000", "0.3M")))
    of = Table("table6", ("Problem",), columns, (*rows, sizes))
    (judged,) = capacity_before_time(SimpleNamespace(table=lambda name: of, busy=lambda name: ""))
    logs = [math.log(3 * a / b) for a, b in times.values()]
    assert judged.estimate.interval() == pytest.approx(tuple(ttest_1samp(logs, 0).confidence_interval()))
    assert judged.printed == pytest.approx(np.mean(logs))


def test_exponents_differ_by_the_spread_of_all_models() -> None:
    models = {"(42, 128)": (0.3, 0.31, 0.33), "(6, 512)": (0.2, 0.22, 0.21, 0.23), "(6, 128)": (0.1, 0.14)}
    rows = tuple(Row((name,), (Cell(float(np.mean(of)), behind=gap(*of)),)) for name, of in models.items())
    of = Table("table_figure3", ("Model",), (Column("alpha_s", "alpha"),), rows)
    (judged,) = deep_gains_faster_from_data(SimpleNamespace(table=lambda name: of))
    squares = sum((len(each) - 1) * np.var(each, ddof=1) for each in models.values())
    (term,) = judged.estimate.terms
    assert (term.variance, term.freedom) == (pytest.approx(squares / 6 * (1 / 3 + 1 / 4)), 6)
    assert judged.estimate.value == pytest.approx(np.mean(models["(42, 128)"]) - np.mean(models["(6, 512)"]))


def test_times_of_a_busy_machine_are_not_judged(
    records_of: Callable[[Fabric], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric = FABRICS["sit"]
    claim = next(each for each in fabric.paper.claims() if each.function == "time_grows_slowly")
    work = shutil.copytree(records_of(fabric), tmp_path / "work")

    def look(load: float) -> Finding:
        monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
        for evaluation in fabric.study("table4", work).artifact.evaluations:
            state(work / "evaluations" / f"{evaluation}.csv", "")
        (of,) = resolve(fabric.paper.claim_function(claim))(drawn(fabric, work))
        return of

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert look(3.0).busy == ""
    busy = look(3.1)
    assert busy.busy == "load 3.1 on 2 cores"
    assert Judged(claim, (busy,)).verdict in ("inconclusive", "not measured")
    render(fabric.study("table4", work), tmp_path / "table4")
    assert "Times are upper bounds: the machine was busy (load 3.1 on 2 cores)." in (tmp_path / "table4.md").read_text()
