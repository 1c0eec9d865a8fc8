"""Scales whose numbers cannot be: said in one line, before anything is planned."""

from pathlib import Path
from typing import Any

import pytest
from refusals import one_line

from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_scale, parse_config
from plans import expect_refusal, plan_of, smoke_with, write_scale

CASES: dict[str, list[tuple[tuple[Any, ...], Any, str]]] = {
    "scaling": [
        (("sizes", 100), 3, "scaling.sizes.100.*greater than or equal to 4"),
        (("widths", 128), {"width": 30, "heads": 4}, "width 30 is not divisible by 4 heads"),
        (("depths",), {6: 6}, "depths must name the paper's .* add 12"),
        (("more_models",), {"18x192": {"depth": 3, "width": 9, "heads": 2}}, "18x192: width 9 is not divisible"),
        (("more_models",), {"6x256": {"depth": 3, "width": 8, "heads": 2}}, "depths and widths have 6x256 already"),
        (("more_models",), {"24x64": {"depth": 3, "width": 8, "heads": 2}}, "24x64 is a model of Table 2"),
        (("changes", "deep_6x128"), {"learning_rate": 1e-3}, "may name deep_24x64, deep_96x32"),
        (("training", "samples"), "many", "scaling.training.samples.*integer"),
    ],
    "pens": [
        (("factors", 100), [1.0, 1.05, 1.1], "too narrow for a minimum"),
        (("network",), {"depth": 1, "width": 18, "heads": 3, "feed_forward": 8}, "multiple of 4"),
        (("timed_counts", 100), 10_000, "timed_counts.100"),
    ],
    "sit": [
        (("longest", 10_000), 10**6, "give a number from 4 to tsp.sizes.10000"),
        (("repetitions", 7), 1, "none of the paper's"),
        (("tsp", "warm_up", "reconstructions"), 1, "warm_up is one round"),
        (("tsp", "training", 1000, "validations"), 7, "no multiple"),
        (("cvrp", "tam_capacities", 1000), None, "tam_capacities"),
    ],
    "icam": [
        (("forks",), [[20, 0.1]], "the main run is"),
        (("forks",), [[20, 0.2]], "Table 10 has k "),
        (("elites", 20), 10, "elite of stage3 is"),
        (("large_counts", 2000), None, "large_counts must name"),
        (("cvrp", "tam_capacities", 1000), 8, "icam.cvrp: tam_capacities .*demands are up to 9"),
        (("cvrp", "benchmark_nodes"), [121, 101], "icam.cvrp: benchmark_nodes: from 121 to less than 101 nodes"),
        (("cvrp", "benchmark_nodes"), [101, 101], "icam.cvrp: benchmark_nodes: from 101 to less than 101 nodes"),
        (("tsp", "validation_counts", 1000), None, "validation_counts must name"),
        (("tsp", "training", "stages", 1, "name"), "second", "its stages must be"),
        (("tsp", "training", "batches_before"), 5, "nothing comes before it"),
        (("tsp", "training", "stages", 0, "capacities"), [30, 30], "they are for the CVRP"),
        (("tsp", "other_solvers"), {"150": ["lkh"]}, "none of the paper's sizes"),
    ],
    "mvmoe": [
        (("sizes", 200), 30, "sizes must name exactly the paper's"),
        (("references", "OVRPX"), "ortools", "no variant 'OVRPX'"),
        (("references",), {"CVRP": "hgs"}, "no solver of OVRP"),
        (("references", "OVRP"), {50: "ortools"}, r"references.OVRP: a solver for each of \[50, 100\], got \[50\]"),
        (("ablations",), ["h_default"], "no 'h_default'"),
        (("trainings", 50, "stages", 0, "sizes"), [9, 10], "trainings.50: sizes are"),
        (("trainings", 50, "balance"), 0.5, "leave batches_before, balance and fresh out"),
        (("few_shot", "stages", 0, "variants"), ["CVRP"], "leave variants and capacities"),
    ],
    "instances": [(("tsplib",), ["eil51", "eil52"], r"instances: tsplib: no instance 'eil52'; did you mean eil51\?")],
}


@pytest.mark.parametrize(
    ("paper", "path", "value", "words"), [(p, *case) for p, cases in CASES.items() for case in cases]
)
def test_an_impossible_scale_is_refused(
    tmp_path: Path, paper: str, path: tuple[Any, ...], value: Any, words: str
) -> None:
    expect_refusal(tmp_path, smoke_with(paper, path, value), words)


def test_a_third_stage_has_as_many_solutions_as_its_elite(tmp_path: Path) -> None:
    values = smoke_with("icam", ("elites", 100), 21)
    load_scale(write_scale(tmp_path, values))  # which no third stage asks for
    values["icam"]["forks"] = [[100, 0.5]]
    expect_refusal(tmp_path, values, "elites.100: the best 21 of 20 solutions")


@pytest.mark.parametrize(
    ("scale", "changes", "words"),
    [
        ("smoke", {"scaling": {"depths": {42: 0}}}, "scaling.depths.42.*greater than or equal to 1"),
        ("smoke", {"scaling": {"more_model": {}}}, "scaling.more_model: unknown key; did you mean more_models"),
        ("smoke", {"scalling": {}}, "scalling: unknown key"),
        ("smoke", {"only": {"scalling": ["table1"]}}, "only: no paper 'scalling'; did you mean scaling"),
        ("smoke", {"apart": {"nope": []}}, "apart: no paper 'nope'"),
        ("smoke", {"seeds": 3}, "seeds: "),
        ("smoke", {"name": "my scale"}, "name: "),
        ("smoke", {"name": "../x"}, "name: "),
        (
            "smoke",
            {"scaling": {"depths": {24: 3}, "widths": {64: {"width": 8, "heads": 2}}}},
            "scaling: 24x64 is a model of Table 2",
        ),
        ("smoke", {"scaling": 3}, "scaling: Input should be"),
        ("laptop", {"scaling": {"rates": {"tried": {"6x128": None}}}}, ".*6x128"),  # a corner
        ("laptop", {"scaling": {"rates": {"best": {"6x128": 0.5}}}}, ".*best: 6x128 has 0.5, which is not tried there"),
        (
            "laptop",
            {"scaling": {"rates": {"best": {"12x128": 1e-3}, "tried": {"12x128": [1e-3, 3e-3]}}}},
            ".*12x128 is no corner",
        ),
    ],
)
def test_what_a_config_changes_of_a_scale_is_checked_as_the_scale_is(
    scale: str, changes: dict[str, Any], words: str
) -> None:
    config = parse_config({"scale": scale, "papers": ["scaling"], "scale_changes": changes}, "mine.yaml")
    with one_line(rf"{scale}.yaml with scale_changes of mine.yaml: {words}"):
        build_plan(config)


def test_seeds_that_a_config_changes_come_before_the_scale_s() -> None:
    seeds = {"scaling/base_*": 5}
    runs = plan_of("laptop", ("scaling",), scale_changes={"seeds": seeds}).runs
    assert [run for run in runs if run.startswith("scaling/base_6x128")] == [
        "scaling/base_6x128", *(f"scaling/base_6x128-s{i}" for i in range(1, 5))
    ]  # fmt: skip


def test_a_scale_shows_nothing_that_is_not_declared() -> None:
    with one_line(r"only\.scaling: no table or figure 'figur3'; did you mean figure3\?$"):
        plan_of("hour", ("scaling",), scale_changes={"only": {"scaling": ["figur3"]}})
