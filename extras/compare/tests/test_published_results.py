"""The survey's results that come with the package: its printed means follow, and they join what is measured."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import neuroute
from compared import members, records
from neuroute.core.errors import NeurouteError
from neuroute_compare.records import frame, published_runs, read_published
from neuroute_compare.sets import SETS, describe, describe_listed
from neuroute_compare.settings import Compare
from neuroute_compare.summary import Group, Key, Summary, by_problem

GROUPS = {"lt1k": Group(0, 1000), "1k_10k": Group(1000, 10_000), "10k_100k": Group(10_000, None)}


@pytest.fixture(scope="module")
def summaries() -> dict[str, Summary]:
    return by_problem(frame(read_published(["all"], describe_listed(SETS, 0, 10**6)).rows))


def mean_gap(summary: Summary, key: Key, group: Group, rule: str) -> float:
    instances = summary.solved_by(key, summary.within(group))
    if rule == "all":  # that have a solution, however long and late
        rows = summary.records[(summary.records.method == key[0]) & summary.records.gap_pct.notna()]
        instances = [name for name in summary.within(group) if name in set(rows.instance)]
    mean = summary.mean("gap_pct", key, instances)
    assert (mean is None) == (not instances)
    return mean or 0.0  # which the logs print where nothing is solved


def test_the_surveys_means_follow_from_its_results(summaries: dict[str, Summary]) -> None:
    checked = {"solved": 0, "all": 0}
    for run in published_runs():
        key = (run["method"], f"published: {run['how']}")
        for name, group in GROUPS.items():
            if run[f"rule_{name}"]:
                mean = mean_gap(summaries[run["problem"]], key, group, run[f"rule_{name}"])
                printed = run[f"printed_{name}"]
                assert mean == pytest.approx(float(printed), abs=0.51 * 10.0 ** -len(printed.partition(".")[2])), key
                checked[run[f"rule_{name}"]] += 1
    assert checked == {"solved": 202, "all": 24}


def test_every_run_has_all_instances_of_its_problem(summaries: dict[str, Summary]) -> None:
    for problem, runs, instances in (("tsp", 49, 228), ("cvrp", 37, 110)):
        counts = summaries[problem].records.groupby(["method", "how"]).instance.nunique()
        assert (len(counts), set(counts)) == (runs, {instances})
        assert not summaries[problem].records.device.isna().any()


def test_methods_are_named_alone_by_system_or_all() -> None:
    known = describe_listed(["x"], 0, 200)
    named = lambda *names: {row["method"] for row in read_published(names, known).rows}  # noqa: E731
    assert named("lehd", "reld") == {"lehd", "reld"}
    assert named("gfacs") == {f"gfacs-{n}{how}" for n in (200, 500, 1000) for how in ("", "-nols")}
    assert len(named("all")) == 37
    with pytest.raises(
        NeurouteError, match="--published icamm: no method of that name in the survey; did you mean icam"
    ):
        read_published(["icamm"], known)
    with pytest.raises(NeurouteError, match="--published .*: none of its instances is compared; compared are m6"):
        read_published(["all"], {m.name: describe(m) for m in members()})


@pytest.mark.usefixtures("without_pictures")
def test_published_rows_stand_beside_measured_ones(tmp_path: Path) -> None:
    found = neuroute.compare(
        ["insertion"], ["tsplib"], published=["lehd", "random-insertion"], max_nodes=70, benchmarks=tmp_path,
        against="lehd", out=tmp_path / "out",
    )  # fmt: skip
    columns = [column.key for column in found.table.columns]
    rows = {row.labels[1]: dict(zip(columns, row.cells, strict=True)) for row in found.table.rows}
    assert set(rows) == {"insertion", "lehd", "random-insertion"}
    assert rows["lehd"]["device"].measured == "1x RTX 3090 24 GB"
    assert rows["lehd"]["solved_all"].measured == rows["insertion"]["solved_all"].measured == "3/3"
    above = rows["insertion"]["above_points"]
    assert above.low is not None
    assert above.low > 0  # LEHD beats insertion on each
    assert rows["lehd"]["above_points"].measured is None


@pytest.mark.usefixtures("without_pictures")
def test_beside_published_results_ones_own_rows_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("in_order.py").write_text("def solve(instance, seconds):\n    return list(range(instance.n))\n")
    how: dict[str, Any] = {"max_nodes": 76, "benchmarks": tmp_path, "out": tmp_path / "out"}
    found = neuroute.compare(["mine=in_order:solve", "nearest"], "tsplib", published="all", **how)
    frame = found.to_frame().set_index("method")
    assert frame.loc["mine, 5 s", ["own", "published"]].tolist() == [True, False]
    assert frame.own.sum() == 1
    assert frame["rank"].dropna().is_monotonic_increasing
    first = frame.iloc[0]
    assert first.gap_low_pct <= first.gap_pct <= first.gap_high_pct
    lines = str(found).splitlines()
    assert max(map(len, lines[:-1])) <= 100
    assert len(lines) < len(frame)  # the rest is in files
    assert [line.split()[1] for line in lines if line.startswith("* ")] == ["mine,", "yours"]
    assert "<table" in found._repr_html_()


@pytest.mark.usefixtures("without_pictures")
def test_kept_records_join_as_results_of_others(tmp_path: Path) -> None:
    """Their numbers do; whether they were measured here, and on what, no file can say."""
    first = neuroute.compare(["nearest"], ["tsplib"], max_nodes=70, benchmarks=tmp_path, out=tmp_path / "first")
    kept = Compare(results=[str(first.folder / "records.csv")])
    again = neuroute.compare(["none"], ["tsplib"], max_nodes=70, settings=kept, out=tmp_path / "again")
    for column in ("method", "instance", "seed", "cost", "gap_pct", "time_s", "seconds", "unsolved"):
        assert again.records[column].dropna().tolist() == first.records[column].dropna().tolist(), column
    assert set(again.records.kind) == {"file"}
    assert not any("Measured on" in note for note in again.table.notes)
    both = neuroute.compare(
        ["nearest"], ["tsplib"], max_nodes=70, benchmarks=tmp_path, settings=kept, out=tmp_path / "c"
    )
    assert {row.labels[2] for row in both.table.rows} == {"one pass", "results file"}


def test_a_slip_in_the_method_that_differences_are_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match="--against lhed: is not among the compared methods; did you mean lehd"):
        neuroute.compare(["none"], ["x"], published="lehd", against="lhed", out=tmp_path / "out")


def test_equal_gaps_share_a_place() -> None:
    made = records({"a": [100] * 6, "b": [100] * 6, "c": [101] * 6})
    ranks = {key[0]: rank for key, rank in Summary(made).ranks.items()}
    assert ranks == {"a": 1, "b": 1, "c": 3}


@pytest.mark.usefixtures("without_pictures")
def test_without_methods_results_are_set_out_wherever_the_instances_are(tmp_path: Path) -> None:
    found = neuroute.compare(["none"], ["national"], published="lehd", max_nodes=1000, out=tmp_path / "out")
    assert isinstance(found.records, pd.DataFrame)
    assert set(found.records.set) == {"national"}
