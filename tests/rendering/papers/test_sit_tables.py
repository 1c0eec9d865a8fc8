"""Tables of paper `sit` on fabricated records: cells are what the records say, and notes say how they came about."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fabricated import keep_records, solve_all
from fabricated_sit import FABRIC, SCALE, study
from neuroute.datasets.benchmarks import study_instances
from neuroute.decoding.revision import published
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.pipeline.papers.sit.paper import SitScale, glop_note
from neuroute.pipeline.papers.sit.tables import GROUPS
from neuroute.pipeline.plan.config import Config, Scale, load_scale
from neuroute.pipeline.rendering.table import Cell
from shown import cell, of

RECORDS = FABRIC


# -- Table 2 ----------------------------------------------------------------------------------------------------------


def large(work: Path) -> Scale:
    """The micro scale with the paper's instances, all solved; writes their records anew."""
    s, changed = SCALE[SitScale], {}
    for name, nodes in (("tsp", (1000, 90_000)), ("cvrp", (1001, 31_000))):
        changed[name] = getattr(s, name).model_copy(update={"benchmark_nodes": nodes})
    scale = SCALE.with_block(s.model_copy(update=changed))
    least = {"tsplib": 1000, "cvrplib": 1001}
    solve_all(FABRIC, work, lambda name: study_instances(10**9, least[name], name), 1000)
    keep_records(work, "*/bq*/*_search*", lambda frame: frame.n < 7002)  # the size that a beam may have
    return scale


def test_table2_groups_are_the_papers(copy: Path) -> None:
    table = of(study("table2", copy, large(copy)))
    at = {c.key: c.at for c in table.columns}
    assert not any(key.endswith("here_pct") for key in at)
    assert (at["gap_tsplib_to_5k_pct"], at["gap_tsplib_above_5k_pct"]) == ("23 of 23 instances", "10 of 10 instances")
    assert (at["gap_cvrplib_to_7k_pct"], at["gap_cvrplib_above_7k_pct"]) == ("8 of 8 instances", "6 of 6 instances")
    nodes = [k.nodes for k in study_instances(10**9, 1000) if k.nodes <= 5000]
    shown = cell(table, "gap_tsplib_to_5k_pct", "LEHD greedy")
    assert shown.measured == pytest.approx(np.mean(nodes) / 1000)
    assert cell(table, "solved_tsplib", "Ours greedy") == Cell(33, 33)
    assert cell(table, "solved_cvrplib", "BQ greedy") == Cell(14, 14)
    assert cell(table, "solved_tsplib", "BQ bs16, here 2") == Cell(25, 26)
    assert cell(table, "gap_tsplib_to_5k_pct", "BQ bs16, here 2").measured == shown.measured
    for key in ("gap_tsplib_above_5k_pct", "gap_tsplib_all_pct"):  # not all were searched
        assert cell(table, key, "BQ bs16, here 2").measured is None
        assert cell(table, key, "BQ bs16, here 2").published is not None
        assert cell(table, key, "LEHD RRC1,000, here 2").measured is not None
    customers = {k.name: k.nodes - 1 for k in study_instances(10**9, 1001, "cvrplib")}
    least, most = GROUPS["cvrp"]["1K<n<=7K"]
    assert {n for n, c in customers.items() if c > 7000} == {n for n, c in customers.items() if c + 1 > most}
    assert least == 1001
    assert customers["Antwerp2"] == 7000


# -- Tables 5 to 9 and 11 ---------------------------------------------------------------------------------------------


def test_table6_names_what_follows_the_published_code(work: Path) -> None:
    found = study("table6", work)
    run = found.runs["sit/tsp_10k"]
    change = {"starts": "batch", "most_blocks": 250, "initial": "greedy", "clip": 10.0}
    changed = run.model_copy(update={"training": run.training.model_copy(update=change)})
    table = of(replace(found, runs={**found.runs, run.id: changed}))
    assert "TSP, as in the published code: starts: batch at 10K, most_blocks at 10K." in table.notes
    assert cell(table, "tsp_10k", "Initial solutions") == Cell("the model's, greedy")
    assert cell(table, "tsp_10k", "Largest norm of a gradient") == Cell(10.0)


def test_table9_names_the_solver_of_its_own_test_sets(work: Path) -> None:
    """Not that of TSP1K, which is another one at scale `paper`."""
    found = study("table9", work)
    sit = found.scale[SitScale]
    change = {"references": {**sit.tsp.references, 1000: "lkh"}, "small_reference": "concorde"}
    changed = sit.model_copy(update={"tsp": sit.tsp.model_copy(update=change)})
    table = of(replace(found, scale=found.scale.with_block(changed)))
    (note,) = [n for n in table.notes if n.startswith("Gaps are ratios")]
    assert "against Concorde (TSP)" in note


def test_table1_has_lengths_alone_where_an_insertion_is_the_reference(work: Path) -> None:
    found = study("table1", work)
    sit = found.scale[SitScale]
    references = {**sit.tsp.references, 100000: "insertion"}
    changed = sit.model_copy(update={"tsp": sit.tsp.model_copy(update={"references": references})})
    table = of(replace(found, scale=found.scale.with_block(changed)))

    def measured(key: str, problem: str) -> int:
        (place,) = [i for i, column in enumerate(table.columns) if column.key == key]
        return sum(row.labels[0] == problem and row.cells[place].measured is not None for row in table.rows)

    assert measured("gap_100k_pct", "TSP") == 0 < measured("gap_100k_pct", "CVRP")
    assert measured("obj_100k", "TSP") > 0 < measured("gap_50k_pct", "TSP")
    (note,) = [n for n in table.notes if n.startswith("Gaps are ratios")]
    assert note.endswith("No gaps at TSP 100K: an insertion is the reference there.")


def test_table5_says_when_trainings_did_not_get_beyond_their_start(tmp_path: Path, work: Path) -> None:
    FABRIC.by(lambda *_: 1.0).write(tmp_path)
    evaluations = tmp_path / "evaluations" / "sit"
    for ending in ("csv", "npz"):  # l_max 100 ends with the weights of the main model
        source = evaluations / "tsp_10k" / f"sit.{ending}"
        target = evaluations / "tsp_10k_lmax100" / f"sit.{ending}"
        target.write_bytes(source.read_bytes().replace(b"sit/tsp_10k,", b"sit/tsp_10k_lmax100,"))
    said = "The rows 100, here 4 and 1,000, here 8 have the same gaps: no validation"
    folders = (work, tmp_path)
    assert [said in " ".join(of(study("table5", folder)).notes) for folder in folders] == [False, True]


def test_blocks_of_glop_are_those_that_these_sizes_are_revised_in() -> None:
    (glop,) = (run for run in FABRIC.paper.runs(Config(), load_scale("paper")) if run.id == sit.GLOP)
    network = SimpleNamespace(**glop.network.arguments)
    for n in (*sit.SMALL_SIZES, *sit.SIZES):
        blocks = " and ".join(str(nodes) for nodes, _ in published(network, n, "usual").blocks)  # type: ignore[arg-type]
        note = glop_note(SimpleNamespace(runs={glop.id: glop}), "tsp")  # type: ignore[arg-type]
        assert note == f"GLOP revises random insertion in blocks of {blocks} nodes."
