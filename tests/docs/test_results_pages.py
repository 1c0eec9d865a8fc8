"""Result pages say what the kept tables and scale files beneath them say, and quote what they speak of."""

import csv
import re
from typing import Any

import pytest

from neuroute.evaluation.flops import counts, lengths_of, trained_sample
from neuroute.pipeline.papers.scaling.paper import DECODER_ONLY
from neuroute.specs.objects import Network
from neuroute.specs.trainings import Supervised
from pages import ROOT

SIZES = {"icam": (100, 200, 500, 1000), "pens": (100, 250, 500, 1000, 10_000)}
MANY = "no augment."
ROWS = [  # page, row of the page, which row of that name, kept table, labels of its row, columns
    ("icam", "POMO in the three stages", 0, "table7", ("TSP", f"POMO, three stages, {MANY}"), "gap_{}_pct"),
    ("icam", "POMO at one size, three trainings", 0, "table7", ("TSP", f"POMO (original) {MANY}"), "gap_{}_pct"),
    ("icam", "ICAM, three trainings", 0, "table7", ("TSP", f"ICAM {MANY}"), "gap_{}_pct"),
    ("icam", "eight images: ELG, three trainings", 0, "table1", ("TSP", "ELG aug×8"), "gap_{}_pct"),
    ("icam", "ICAM in three stages, three trainings", 0, "one_size", ("Three stages",), "gap_{}_pct"),
    ("icam", "ICAM, two trainings", 0, "table7", ("CVRP", f"ICAM {MANY}"), "gap_{}_pct"),
    ("icam", "POMO in the three stages", 1, "table7", ("CVRP", f"POMO, three stages, {MANY}"), "gap_{}_pct"),
    ("icam", "POMO at one size, two trainings", 0, "table7", ("CVRP", f"POMO (original) {MANY}"), "gap_{}_pct"),
    ("icam", "without the bias in the compatibility", 0, "table9", ("AAFM",), "gap_tsp{}_pct"),
    ("icam", "without the bias in the attention-free modules", 0, "table9", ("AFM+CAB",), "gap_tsp{}_pct"),
    ("icam", "without either", 0, "table9", ("AFM",), "gap_tsp{}_pct"),
    ("pens", "CoordNS, three trainings", 0, "table_figure4", ("CoordNS",), "gap_tsp{}_pct"),
    ("pens", "PENS-A, three", 0, "table_figure4", ("PENS-A",), "gap_tsp{}_pct"),
    ("pens", "PENS-R, three", 0, "table_figure4", ("PENS-R",), "gap_tsp{}_pct"),
    ("pens", "PENS-AR, one", 0, "table3", ("PENS-AR",), "gap_tsp{}_pct"),
    ("pens", "BQ, LEHD", 0, "table3", ("BQ-NCO",), "gap_tsp{}_pct"),
    ("sit", "random insertion, the first labels", 0, "table1", ("TSP", "Random Insertion"), "gap_1k_pct"),
    ("sit", "SIT after the warm-up, greedy", 0, "table1", ("TSP", "Ours, warm-up only, greedy"), "gap_1k_pct"),
    ("sit", "SIT, greedy", 0, "table1", ("TSP", "Ours greedy"), "gap_1k_pct"),
    ("sit", "PRC, 100 iterations", 0, "table1", ("TSP", "Ours PRC1,000, here 100"), "gap_1k_pct"),
    ("sit", "LEHD, greedy; 100 re-constructions", 0, "table1", ("TSP", "LEHD greedy"), "gap_1k_pct"),
    ("sit", "ELG, all starts and eight images", 0, "table1", ("TSP", "ELG aug×8"), "gap_1k_pct"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_numbers_are_those_of_the_kept_table(row: tuple[str, str, int, str, tuple[str, ...], str]) -> None:
    page, label, which, table, labels, column = row
    pattern = rf"^\| {re.escape(label)}(?: \(.*?\))? \|(.*)\|$"
    cells = re.findall(pattern, (ROOT / "docs" / "results" / f"{page}.md").read_text(), re.M)[which].split("|")
    with (ROOT / "docs" / "measured" / "laptop" / page / f"{table}.csv").open() as file:
        kept = next(line for line in csv.DictReader(file) if tuple(line.values())[: len(labels)] == labels)
    names = list(dict.fromkeys(column.format(size) for size in SIZES.get(page, (0,))))
    here = [re.match(r"[\d.]+", cell.strip()) for cell in cells[: len(names)]]
    assert [each and each[0] for each in here] == [f"{float(kept[f'{name}_measured']):.2f}" for name in names]


@pytest.mark.parametrize("reading", ["sub-path", "decision"])
def test_hours_of_the_printed_steps_follow_from_flops(reading: Any) -> None:
    page = (ROOT / "docs" / "results" / "scaling.md").read_text()
    (cells,) = re.findall(rf"^\| `{reading}`[^|]*\| [\d,; ]+ \|(.*EFLOP.*)\|$", page, re.M)
    models = [(6, 128, 8, 2), (42, 128, 8, 4), (42, 512, 16, 8)]
    for cell, (depth, width, heads, cards) in zip(cells.split("|"), models, strict=True):
        net = Network(kind=DECODER_ONLY, arguments={"depth": depth, "width": width, "heads": heads})
        decision = counts(net).decision
        flops = 60_000 * 1024 * trained_sample(decision, lambda nodes: 0, lengths_of(100), reading, cvrp=False)
        eflop, hours = map(float, re.findall(r"[\d.]+", cell))
        assert eflop == pytest.approx(flops / 1e18, rel=0.03)
        assert hours == pytest.approx(flops / (40e12 * cards) / 3600, rel=0.1)


@pytest.mark.parametrize("page", ["choices.md", "results/scaling.md"])
def test_pages_quote_what_a_step_is_and_name_the_default(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert '(defining each batch update as a single step)"' in text
    assert f"`{Supervised.model_fields['step'].default}`, the default" in text
