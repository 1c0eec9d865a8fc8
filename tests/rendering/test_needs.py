"""One fact once: tables ask for the cells that their needs name, and for no others."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from fabricated import CONFIG
from neuroute.core.dotted import resolve
from neuroute.plan import needs as kinds
from neuroute.plan.build import repeat_needs
from neuroute.rendering.study import Study


@pytest.mark.parametrize("paper", ["icam", "pens"])
def test_tables_ask_for_what_they_name(paper: str, tmp_path: Path) -> None:
    fabric: Any = importlib.import_module(f"fabricated_{paper}").FABRIC
    work = fabric.write(tmp_path)
    for declaration, declared in fabric.paper.needs(fabric.scale).items():
        needs = list(repeat_needs(CONFIG, fabric.scale, declared))
        named = {(n.run, n.test.labels.dataset.id) for n in needs if isinstance(n, kinds.Tested)}
        if not declaration.name.startswith("table") or not named:
            continue
        study = Study.load(fabric.artifacts[declaration.name], CONFIG, fabric.scale, fabric.runs, work)
        resolve(declaration.function)(study)
        asked = {(run, test) for run, test, _ in study._cache["used"]}
        others = {n.run for n in needs if not isinstance(n, kinds.Tested) and hasattr(n, "run")}  # which have cells too
        assert named <= asked, declaration.name
        assert {cell for cell in asked - named if cell[0].partition("@")[0] not in others} == set(), declaration.name
