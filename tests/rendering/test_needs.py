"""One fact once: tables ask for the cells that their needs name, and for no others."""

from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import one_line

from fabricated import CONFIG, Fabric
from neuroute.pipeline.plan.build import repeat_needs
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.objects import Artifact, Test
from shown import of
from test_all_tables import FABRICS


@pytest.mark.parametrize("paper", ["icam", "pens"])
def test_tables_ask_for_what_they_name(paper: str, records_of: Callable[[Fabric], Path]) -> None:
    fabric = FABRICS[paper]
    for declaration, declared in fabric.paper.needs(fabric.scale).items():
        needs = list(repeat_needs(CONFIG, fabric.scale, declared))
        named = {(n.run, n.labels.dataset.id) for n in needs if isinstance(n, Test) and not n.stage}
        if not declaration.name.startswith("table") or not named:
            continue
        study = fabric.study(declaration.name, records_of(fabric))
        of(study)
        asked = {(run, test) for run, test, _ in study._cache["used"]}
        others = {
            n.run for n in needs if hasattr(n, "run") and not (isinstance(n, Test) and not n.stage)
        }  # which have cells too
        assert named <= asked, declaration.name
        assert {cell for cell in asked - named if cell[0].partition("@")[0] not in others} == set(), declaration.name


def test_what_is_not_declared_is_not_read(tmp_path: Path) -> None:
    """It would go stale: a new training draws nothing that does not name it."""
    fabric = FABRICS["pens"]
    artifact = Artifact(paper="pens", name="figure1", title="t", function="m:f", evaluations=("pens/a/pens",))
    study = Study.load(artifact, CONFIG, fabric.scale, fabric.runs, tmp_path)
    for read, need in (
        (lambda: study.log("pens/a"), r'Log\("pens/a"\)'),
        (lambda: study.log("pens/b"), r'Log\("pens/b"\)'),
        (lambda: study.summary("pens/b"), r'Log\("pens/b"\)'),
        (lambda: study.manifest("tsp_n8_lkh"), "Solved of tsp_n8_lkh"),
        (lambda: study.arrays("pens/b/pens"), "measurement pens/b/pens"),
    ):
        with one_line(f"pens/figure1: reads what it does not need; add {need} to its needs"):
            read()
    with one_line("run.json: missing"):
        study.summary("pens/a")
