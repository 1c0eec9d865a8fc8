"""What a comparison says of fabricated records: groups, what is unsolved, differences, pictures, others' results."""

from pathlib import Path

import pandas as pd
import pytest

from compared import members, records
from neuroute.core.errors import NeurouteError
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.table import Cell
from neuroute_compare.compare import write
from neuroute_compare.pareto import budgets, flips, picture
from neuroute_compare.records import read_results
from neuroute_compare.run import check_rows
from neuroute_compare.sets import describe
from neuroute_compare.summary import Summary, groups, table

pytestmark = pytest.mark.slow

COSTS: dict[str, list[float | None]] = {
    "insertion": [110, 110, 110, 120, 120, 120],
    "better": [105, 106, 104, 101, 102, None],  # out of time on the last
    "mad": [100, 100, 100, 100, 350, 100],  # twice and a half too long on one
}

KNOWN = {m.name: describe(m) for m in members()}


def cells(name: str, made: pd.DataFrame, begin: tuple[int, ...] = (10,)) -> dict[str, Cell]:
    drawn = table(made, begin)
    row = next(row for row in drawn.rows if row.labels[1] == name)
    return {column.key: cell for column, cell in zip(drawn.columns, row.cells, strict=True)}


def notes_of(made: pd.DataFrame) -> str:
    return " ".join(table(made, []).notes)


def test_groups_begin_where_they_are_said_to() -> None:
    names = [str(group) for group in groups([100, 1000])]
    assert names == ["n < 100", "n 100–999", "n ≥ 1,000"]
    assert [[g.has(n) for g in groups([100, 1000])].index(True) for n in (99, 100, 999, 1000)] == [0, 1, 1, 2]


def test_means_are_of_what_a_method_solved_and_say_how_many() -> None:
    found = cells("better", records(COSTS))
    assert found["gap_n0_pct"].measured == pytest.approx(5)
    assert found["gap_n10_pct"].measured == pytest.approx(1.5)
    assert (found["solved_n10"].measured, found["solved_all"].measured) == ("2/3", "5/6")
    assert found["time_n10_s"].measured == pytest.approx(10.15)
    assert cells("mad", records(COSTS))["solved_all"].measured == "5/6"  # a gap of 250 % is none


def test_an_instance_that_lacks_a_seed_is_not_solved() -> None:
    made = records({"a": [101.0, 102, 103, 104, 105, 106], "b": [110.0] * 6}, seeds=2)
    made = made[~((made.method == "a") & (made.seed == 1) & (made.instance == "m32"))]
    found = cells("a", made)
    assert (found["solved_all"].measured, found["gap_all_pct"].measured) == ("5/6", pytest.approx(3))
    assert "m32" not in Summary(made).common


def test_seeds_are_counted_whatever_their_numbers() -> None:
    made = records(COSTS, seeds=2)
    made = made[(made.seed == 0) | (made.method == "better")]  # the others may draw, too
    assert "At most 2 seeds of a method." in notes_of(made.assign(seed=made.seed + 1234))
    assert "One seed." in notes_of(records(COSTS).assign(seed=1234))


def test_times_of_kept_records_keep_their_clock_beside_those_of_another() -> None:
    made = records(COSTS)
    assert "Times measured here: wall-clock time" in notes_of(made)
    theirs = made[made.method == "mad"].assign(how="published: greedy", clock="wall")  # a survey's say what they are
    kept = made[made.method == "better"].assign(clock="cpu")
    assert "Times measured here: CPU (user and system) time" in notes_of(pd.concat([kept, theirs]))
    both = notes_of(pd.concat([kept, made[made.method == "insertion"]]))
    assert "CPU (user and system) time: better; wall-clock time: insertion." in both


def test_on_what_all_solved_the_last_two_do_not_count() -> None:
    made = records(COSTS)
    assert Summary(made).common == ["m6", "m7", "m8", "m30"]
    assert cells("insertion", made)["gap_common_pct"].measured == pytest.approx(12.5)
    assert cells("better", made)["gap_common_pct"].measured == pytest.approx(4)


def test_the_difference_to_the_construction_is_paired() -> None:
    found = cells("better", records(COSTS))["above_construction_points"]
    assert found.measured == pytest.approx((5 + 4 + 6 + 19 + 18) / -5)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.measured < found.high < 0
    shifted = records({"insertion": [101, 108, 150, 120, 103, 130], "one worse": [102, 109, 151, 121, 104, 131]})
    paired = cells("one worse", shifted)["above_construction_points"]
    assert (paired.low, paired.high) == pytest.approx((1, 1))


def test_the_best_construction_is_the_yardstick_and_of_the_cvrp_no_random_insertion() -> None:
    made = records({"insertion": [120] * 6, "savings": [110] * 6, "nearest": [108] * 6, "x": [105] * 6})
    assert cells("x", made)["above_construction_points"].measured == pytest.approx(-5)
    assert "best cheap construction, savings (TSP)" in notes_of(made)
    routes = records({"insertion": [150] * 6, "nearest": [140] * 6, "x": [105] * 6}).assign(problem="cvrp")
    assert cells("x", routes)["above_construction_points"].measured is None
    assert "CVRP: the column `above construction` needs --method savings or insertion-angle." in notes_of(routes)
    angle = records({"insertion": [110] * 6, "insertion-angle": [112] * 6, "x": [105] * 6}).assign(problem="cvrp")
    assert cells("x", angle)["above_construction_points"].measured == pytest.approx(-7)


FAILING: list[list[float | None]] = [
    [None] * 6,  # solves nothing
    [250] * 6,  # a solution that is no better than none
    [104, 105, None, None, None, None],  # two, where others solve five or six
]


@pytest.mark.parametrize("failing", FAILING)
def test_a_method_that_fails_costs_its_own_row_alone(failing: list[float | None]) -> None:
    costs = {**COSTS, "mad": [100, 100, 100, 100, 150, 100]}
    made = records({**costs, "failing": failing})
    for name in costs:
        assert cells(name, made)["gap_common_pct"] == cells(name, records(costs))["gap_common_pct"]
    drawn = table(made, [10])
    assert drawn.rows[-1].labels[1] == "failing"
    assert cells("failing", made)["gap_common_pct"].measured is None
    solved = "2 of 6" if failing[0] == 104 else "0 of 6"
    with style.house():
        pictures = [picture(made), flips(made)]
    assert set(pictures[0].points.method) == set(costs)
    assert len(pictures[1].points) == 3
    for notes in (drawn.notes, pictures[0].notes, pictures[1].notes):
        assert f"failing (TSP, {solved} solved)" in " ".join(notes)


def test_few_instances_decide_no_rank() -> None:
    made = records({"a": [101] * 6, "b": [102] * 6})
    few = made[made.instance.isin(["m6", "m7"])]
    with style.house():
        drawn = flips(few)
    said = "TSP: too few instances to rank methods: 2, below 5"
    assert drawn.points.empty
    assert [text.get_text() for axes in drawn.figure.axes for text in axes.texts] == [said]
    assert said in notes_of(few)
    other = few.assign(problem="cvrp")
    with style.house():
        pairs = flips(pd.concat([made, other], ignore_index=True)).points
    assert list(pairs.problem) == ["tsp"]  # the other problem's panel has words
    assert "too few" not in notes_of(made)


def test_budgets_compare_what_solved_enough_at_each() -> None:
    late: list[float | None] = [101] * 6
    made = with_budgets(
        {("late", 1): [None] * 6, ("late", 2): late, ("a", 1): [103] * 6, ("a", 2): [102] * 6, ("b", None): [104] * 6}
    )
    with style.house():
        drawing = budgets(made)
    assert set(zip(drawing.points.method, drawing.points.other, strict=True)) == {("a", "b")}


def test_a_table_says_why_instances_are_unsolved() -> None:
    notes = " ".join(table(records(COSTS), [10]).notes)
    assert "better (one pass) 1, by time" in notes
    assert "mad (one pass) 1, by gap" in notes


def test_a_table_says_that_costs_of_others_are_below_the_best_known() -> None:
    made = records({"mine": [90.0] + [99.0] + [100.0] * 4}, kinds={"mine": "file"})
    assert (
        "2 costs below the best one known (2 of results files), the largest by mine on m6: 90, best known 100"
        in notes_of(made)
    )
    assert "1 cost below the best one known (1 measured here)" in notes_of(
        records({"mine": [90.0] + [100.0] * 5}, kinds={"mine": "network"})
    )
    assert "below the best one known" not in notes_of(records(COSTS, kinds={"mad": "file"}))


def test_pictures_show_the_common_instances_and_who_is_unbeaten() -> None:
    made = records({**COSTS, "worse": [111, 111, 111, 121, 121, 121]}, kinds={"better": "network"})
    with style.house():
        points = picture(made).points.set_index("method")
    assert set(points.instances) == {4}
    assert points.unbeaten.to_dict() == {"mad": True, "better": False, "insertion": False, "worse": False}
    assert points.kind["better"] == "network"
    made = records({"quick": [100.0] * 6, "slow": [100.0 - 1e-13] * 6})  # the same tours, summed up from another node
    made["time_s"] = made.method.map({"quick": 1.0, "slow": 2.0})
    with style.house():
        points = picture(made).points.set_index("method")
    assert points.unbeaten.to_dict() == {"quick": True, "slow": False}


def test_an_order_that_hangs_on_an_instance_flips() -> None:
    made = records({"a": [101, 102, 103, 104, 105, 106], "b": [102, 103, 104, 105, 106, 106.5], "c": [100] * 5 + [109]})
    with style.house():
        pairs = flips(made).points.set_index(["method", "other"])
    assert not pairs.flips["a", "b"]
    assert pairs.flips["c", "a"]


def test_methods_of_other_machines_beat_none_that_was_measured_here() -> None:
    made = records({"mine": [110] * 6, "slow": [120] * 6, "theirs": [100] * 6}, {"theirs": "constructive"})
    made.loc[made.method == "theirs", "device"] = "1x RTX 3090"
    made.loc[made.method == "theirs", "time_s"] = 0.001
    with style.house():
        points = picture(made).points.set_index("method")
    assert points.machine.to_dict() == {"theirs": "GPU", "mine": "here", "slow": "here"}
    assert points.unbeaten.to_dict() == {"theirs": True, "mine": True, "slow": False}


def test_one_instance_or_none_in_common_still_makes_a_page(tmp_path: Path) -> None:
    for costs in ([110, None, None, None, None, None], [None] * 6):
        made = records({"insertion": [110] * 6, "rare": costs})
        found = write(made, [10], tmp_path)
        assert "| rare |" in found.table.markdown()
        assert " rare " in str(found)
        assert sorted(p.suffix for p in tmp_path.glob("pareto.*")) == [".csv", ".json", ".pdf", ".png", ".svg"]


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(records(COSTS), [10], tmp_path / folder)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert "table.tex" in files
    assert all((tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files)


def results(path: Path, *lines: str, head: str = "method,instance,cost,seconds") -> Path:
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def test_results_of_others_become_rows(tmp_path: Path) -> None:
    file = results(tmp_path / "r.csv", "theirs,m6,104,0.5", "theirs,m7,,", "theirs,m8,250,1", "theirs,elsewhere,5,5")
    found = read_results(file, KNOWN)
    assert found.left_out == 1
    assert [(r["instance"], r["unsolved"]) for r in found.rows] == [("m6", ""), ("m7", "not solved"), ("m8", "gap")]
    assert found.rows[0]["gap_pct"] == pytest.approx(4)
    with pytest.raises(NeurouteError, match="two methods are called 'theirs'"):
        check_rows([], [found, found])
    file.write_text(file.read_text(), encoding="utf-8-sig")  # as spreadsheets write it
    assert read_results(file, KNOWN) == found


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["theirs,m6,-4,1"], r"line 2: cost '-4' is not a number above 0"),
        (["theirs,m6,ten,1"], r"line 2: cost 'ten' is not a number above 0"),
        (["theirs,m6,104,nan"], r"line 2: seconds 'nan' is not a number above 0"),
        (['theirs,m6,104,"1\n2"'], r"seconds '1\\n2' is not a number above 0"),
        (["theirs,m6,104,1", ",m7,104,1"], r"line 3: no method"),
        (["theirs,m6,104,1", "theirs,m6,105,1"], r"line 3: theirs on m6 comes twice"),
        (["theirs,m6,1_0_4,1"], r"line 2: cost '1_0_4' is not a number above 0"),
        (["theirs,m6,١٠٤,1"], r"line 2: cost '.*' is not a number above 0"),
        (["theirs,m6,104,1,5"], r"line 2: 5 cells where 4 columns are named"),
        (["theirs,m6,104,1", "theirs,m7"], r"line 3: 2 cells where 4 columns are named"),
        (["theirs,other,104,1"], r"none of its instances is compared; compared are m6, m7, m8"),
    ],
)
def test_results_that_are_none_are_refused_with_the_line(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises(NeurouteError, match=said):
        read_results(results(tmp_path / "r.csv", *lines), KNOWN)


def test_results_without_a_column_or_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match="no column 'seconds'"):
        read_results(results(tmp_path / "r.csv", "a,m6,1", head="method,instance,cost"), KNOWN)
    with pytest.raises(NeurouteError, match="cannot be read"):
        read_results(tmp_path / "none.csv", KNOWN)
    with pytest.raises(NeurouteError, match="line 2: seed '1.7' is no whole number"):
        read_results(results(tmp_path / "r.csv", "a,m6,104,1,1.7", head="method,instance,cost,seconds,seed"), KNOWN)


@pytest.mark.parametrize(
    ("head", "lines", "said"),
    [
        ("kind", ["theirs,m6,104,1,weird"], "line 2: no kind 'weird'"),
        ("kind", ["theirs,m6,104,1,network", "theirs,m7,104,1,Network"], "line 3: no kind 'Network'"),
        ("method", ["theirs,m6,104,1,other"], "line 1: two columns 'method'"),
        ("cost", ["theirs,m6,104,1,99"], "line 1: two columns 'cost'"),
        (
            "seed",
            ["theirs,m6,104,1,0", "theirs,m7,104,1,1"],
            "theirs has seed 0 on m6, 1 on m7; give every instance",
        ),
        ("seed", ["a,m6,1,1,0", "a,m6,1,1,1", "a,m7,1,1,0"], "a has seed 0, 1 on m6, 0 on m7; give every instance"),
    ],
)
def test_results_whose_columns_or_seeds_do_not_agree_are_refused(
    tmp_path: Path, head: str, lines: list[str], said: str
) -> None:
    with pytest.raises(NeurouteError, match=said):
        read_results(results(tmp_path / "r.csv", *lines, head=f"method,instance,cost,seconds,{head}"), KNOWN)


def test_a_results_file_says_nothing_of_where_it_was_measured(tmp_path: Path) -> None:
    """It vouches for no measurement: of kind, device, clock, version and how only the last tells rows apart."""
    head = "method,instance,cost,seconds,kind,device,threads,clock,version,how"
    lines = [f"theirs,m6,104,1,network,H100,4,cpu,9,{how}" for how in ("", "beam16", "published: lehd")]
    found = read_results(results(tmp_path / "r.csv", *lines, head=head), KNOWN).rows
    assert [row["how"] for row in found] == ["results file", "results file: beam16", "results file: published: lehd"]
    assert {(row["kind"], row["version"]) for row in found} == {("file", "r.csv")}
    assert not any({"device", "threads", "clock"} & row.keys() for row in found)


def with_budgets(costs: dict[tuple[str, float | None], list[float | None]]) -> pd.DataFrame:
    """Records of searches at several budgets (seconds), and of methods without one."""
    parts = []
    for (name, seconds), each in costs.items():
        made = records({name: each})
        parts.append(made.assign(budget_s=seconds, how="one pass" if seconds is None else f"{seconds:g} s"))
    return pd.concat(parts, ignore_index=True)


def test_a_table_says_what_the_search_of_a_network_begins_with() -> None:
    made = with_budgets({("mine", None): [110.0] * 6, ("mine", 1): [105.0] * 6, ("lkh", 1): [100.0] * 6})
    said = "A network's search begins with its own solution or the best of savings and insertion (TSP)"
    assert said not in notes_of(made)
    networks = made.assign(kind=made.kind.where(made.method != "mine", "network"))
    assert said in notes_of(networks)
    assert said not in notes_of(networks[networks.budget_s.isna()])


def test_orders_that_hang_on_the_budget_are_shown() -> None:
    slow, quick = [130, 131, 132, 133, 134, 135], [120, 121, 122, 123, 124, 125]
    made = with_budgets(
        {("slow", 1): slow, ("slow", 2): [101] * 6, ("quick", 1): quick, ("quick", 2): quick, ("pass", None): [140] * 6}
    )
    with style.house():
        drawing = budgets(made)
    share = drawing.points.set_index(["method", "other", "seconds"]).share_better
    assert (share["slow", "quick", 1], share["slow", "quick", 2]) == (0, 1)
    assert (share["slow", "pass", 1], share["slow", "pass", 2]) == (1, 1)
    assert "1 of 3 orders" in drawing.notes[0]
    with style.house():
        assert set(flips(made).points.method) == {"slow, 2 s", "quick, 2 s"}  # of the middle budget


def test_one_budget_has_no_picture_of_budgets(tmp_path: Path) -> None:
    made = with_budgets({("a", 1): [110] * 6, ("b", None): [120] * 6})
    assert budgets(made) is None
    write(made, [10], tmp_path)
    assert (tmp_path / "flips.png").exists()
    assert not (tmp_path / "budgets.png").exists()
