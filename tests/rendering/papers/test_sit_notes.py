"""What the notes of paper `sit`'s artifacts say of how their numbers came about."""

from dataclasses import replace
from pathlib import Path

from fabricated_sit import FABRIC, RUNS, study
from neuroute.papers.sit.figure_training import figure3
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.objects import Run
from neuroute.rendering.study import Study
from table_cells import of

RECORDS = FABRIC


def with_tsp(found: Study, **change: object) -> Study:
    """The same at a scale whose TSP differs."""
    sit = found.scale[SitScale]
    tsp = sit.tsp.model_copy(update=change)
    return replace(
        found,
        scale=found.scale.model_copy(
            update={"blocks": found.scale.blocks | {"sit": sit.model_copy(update={"tsp": tsp})}}
        ),
    )


def test_table9_names_the_solver_of_its_own_test_sets(work: Path) -> None:
    """Not that of TSP1K, which is another one at scale `paper`."""
    found = study("table9", work)
    references = {**found.scale[SitScale].tsp.references, 1000: "lkh"}
    table = of(with_tsp(found, references=references, small_reference="concorde"))
    (note,) = [n for n in table.notes if n.startswith("Gaps are ratios")]
    assert "against Concorde (TSP)" in note


def alike(table_notes: tuple[str, ...]) -> list[str]:
    return [note for note in table_notes if "have the same gaps" in note]


def test_table5_says_when_trainings_did_not_get_beyond_their_start(tmp_path: Path, work: Path) -> None:
    assert alike(of(study("table5", work)).notes) == []

    def law(run: Run, nodes: int, decoding: object) -> float:
        return 1.0

    FABRIC.by(law).write(tmp_path)
    evaluations = tmp_path / "evaluations" / "sit"
    for ending in ("csv", "npz"):  # l_max 100 ends with the weights of the main model
        source = evaluations / "tsp_10k" / f"sit.{ending}"
        target = evaluations / "tsp_10k_lmax100" / f"sit.{ending}"
        target.write_bytes(source.read_bytes().replace(b"sit/tsp_10k,", b"sit/tsp_10k_lmax100,"))
    (note,) = alike(of(study("table5", tmp_path)).notes)
    assert note.startswith("The rows 100, here 4 and 1,000, here 8 have the same gaps: no validation")


def test_figure3_says_that_the_warm_up_is_one_of_its_rounds(work: Path) -> None:
    found = study("figure3", work)
    training = found.scale[SitScale].repetition_training
    for warm_up in (True, False):
        changed = training.model_copy(update={"warm_up": warm_up})
        sit = found.scale[SitScale].model_copy(update={"repetition_training": changed})
        drawing = figure3(replace(found, scale=found.scale.with_block(sit)))
        said = "of which the first trains on insertion's solutions as they are" in drawing.notes[0]
        assert said is warm_up
    assert any(run.name.startswith("repeat") for run in RUNS)
